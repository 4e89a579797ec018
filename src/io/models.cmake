# Sources of the model reader.
target_sources(shardplan PRIVATE
  model_config.cpp
  model_config_modules.cpp
  families/deepseek.cpp
  families/falcon.cpp
  families/fields.cpp
  families/gemma.cpp
  families/glm.cpp
  families/gpt.cpp
  families/granite.cpp
  families/llama.cpp
  families/mistral.cpp
  families/mpt.cpp
  families/nemotron.cpp
  families/olmo.cpp
  families/other.cpp
  families/phi.cpp
  families/qwen.cpp
  families/read.cpp
  families/table.cpp
  families/transformer.cpp)
# The families read fields with the layer's own object reader, one folder up.
set_source_files_properties(families/fields.cpp TARGET_DIRECTORY shardplan
  PROPERTIES INCLUDE_DIRECTORIES ${CMAKE_CURRENT_SOURCE_DIR})
