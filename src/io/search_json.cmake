target_sources(shardplan PRIVATE search_json.cpp solve_json.cpp)
