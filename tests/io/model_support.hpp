// Reading models from JSON literals and files, for tests.
#pragma once

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "shardplan/io/model_config.hpp"
#include "support/catch.hpp"

namespace test {

inline nlohmann::json json_file(const std::string& path) {
  std::ifstream file(std::string(SHARDPLAN_SOURCE_DIR) + "/" + path);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  INFO(path);
  REQUIRE_FALSE(text.empty());
  return nlohmann::json::parse(text);
}

inline std::string all_messages(const shardplan::Diagnostics& problems) {
  std::string text;
  for (const shardplan::Diagnostic& problem : problems) {
    text += problem.file + ": " + problem.pointer + ": " + problem.message + " [" + problem.way_out + "]\n";
  }
  return text;
}

/// A model that must be readable.
inline shardplan::Model model_of(const nlohmann::json& config) {
  const auto result = shardplan::io::read_model(config, "config.json", "");
  INFO(config.dump());
  INFO(all_messages(result.problems));
  REQUIRE(result.ok());
  return result.value;
}

inline shardplan::Model model_of(const char* text) { return model_of(nlohmann::json::parse(text)); }

}  // namespace test
