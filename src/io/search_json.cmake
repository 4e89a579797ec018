target_sources(shardplan PRIVATE search_json.cpp)
