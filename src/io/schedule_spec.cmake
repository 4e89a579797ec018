target_sources(shardplan PRIVATE chrome_trace.cpp schedule_spec.cpp)
