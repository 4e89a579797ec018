# Tables of `list`.
target_sources(shardplan PRIVATE
  ${CMAKE_CURRENT_LIST_DIR}/list_hardware.cpp
  ${CMAKE_CURRENT_LIST_DIR}/list_text.cpp)
