# Drawings of a pipeline step.
target_sources(shardplan PRIVATE
  ${CMAKE_CURRENT_LIST_DIR}/timeline_compare.cpp
  ${CMAKE_CURRENT_LIST_DIR}/timeline_parts.cpp
  ${CMAKE_CURRENT_LIST_DIR}/timeline_svg.cpp
  ${CMAKE_CURRENT_LIST_DIR}/timeline_text.cpp)
