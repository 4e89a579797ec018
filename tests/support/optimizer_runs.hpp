// One GPU that trains a model with one optimizer, states in fp32.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace test {

inline nlohmann::json run_with(const std::string& optimizer, const char* model = "llama-2-7b") {
  return {{"model", model},
          {"cluster", "dgx-h100"},
          {"num_gpus", 1},
          {"training", {{"framework", "ddp"}, {"param_dtype", "fp32"}, {"optimizer", optimizer}}}};
}

}  // namespace test
