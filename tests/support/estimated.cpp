#include "support/estimated.hpp"

#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "shardplan/catalog/catalog.hpp"

namespace test {

using namespace shardplan;

io::ReadRun read_run(std::string_view json, const Overrides& overrides) {
  io::RunInput input = io::run_input_from_json(json);
  for (const auto& [pointer, value] : overrides) input.overrides.push_back({pointer, value, "--set " + pointer});
  return io::read_run(input, catalog::builtin_catalog());
}

std::string problems_of(const io::ReadRun& read) {
  std::string text;
  for (const Diagnostic& problem : read.problems) text += problem.pointer + ": " + problem.message + "\n";
  return text;
}

Estimate estimate_of(std::string_view json, const Overrides& overrides) {
  const io::ReadRun read = read_run(json, overrides);
  if (!read.ok()) throw std::runtime_error(problems_of(read));
  Estimate result;
  estimate(read.run, result);
  return result;
}

std::vector<std::string> run_files() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(SHARDPLAN_SOURCE_DIR "/configs/runs")) {
    if (entry.path().extension() == ".json") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace test
