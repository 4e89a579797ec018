target_sources(shardplan PRIVATE search_plot.cpp search_rules.cpp search_tables.cpp search_text.cpp solve_text.cpp)
