target_sources(shardplan PRIVATE
  estimate_json.cpp
  json_writer.cpp)
