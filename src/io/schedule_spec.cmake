target_sources(shardplan PRIVATE schedule_spec.cpp)
