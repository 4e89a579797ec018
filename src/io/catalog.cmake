# Readers of what the catalog holds: GPUs, clusters, stacks.
target_sources(shardplan PRIVATE
  ${CMAKE_CURRENT_LIST_DIR}/calibration.cpp
  ${CMAKE_CURRENT_LIST_DIR}/catalog_lookup.cpp
  ${CMAKE_CURRENT_LIST_DIR}/cluster_file.cpp
  ${CMAKE_CURRENT_LIST_DIR}/efficiency_file.cpp
  ${CMAKE_CURRENT_LIST_DIR}/gpu_file.cpp
  ${CMAKE_CURRENT_LIST_DIR}/list_json.cpp
  ${CMAKE_CURRENT_LIST_DIR}/object_reader.cpp
  ${CMAKE_CURRENT_LIST_DIR}/stack_file.cpp)
