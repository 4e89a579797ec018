# The search over layouts.
target_sources(shardplan PRIVATE
  search.cpp
  search_harvest.cpp
  search_layout.cpp
  search_node.cpp
  search_report.cpp
  search_rules.cpp
  search_shardings.cpp
  search_space.cpp
  search_tree.cpp
  solve.cpp
  why_not.cpp)
