// Legal runs from a few words of JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

#include "shardplan/catalog/catalog.hpp"
#include "shardplan/io/run_file.hpp"

namespace test {

/// What a snippet leaves out: Llama-3.1-8B on one node of eight H100.
inline nlohmann::json base_run() {
  return nlohmann::json::parse(R"({"model": "llama-3.1-8b", "cluster": "dgx-h100", "num_gpus": 8})");
}

/// The snippet's members put over the base, one by one: a run file's text. `null` removes a member.
inline std::string run_text(std::string_view snippet) {
  nlohmann::json run = base_run();
  const nlohmann::json changes = nlohmann::json::parse(snippet);
  for (const auto& [key, value] : changes.items()) {
    if (value.is_object() && run.contains(key) && run[key].is_object()) {
      run[key].update(value);
    } else if (value.is_null()) {
      run.erase(key);
    } else {
      run[key] = value;
    }
  }
  return run.dump(2);
}

/// Reads a snippet over the base; problems stay in the result.
inline shardplan::io::ReadRun read_snippet(std::string_view snippet) {
  return shardplan::io::read_run(shardplan::io::run_input_from_json(run_text(snippet)),
                                 shardplan::catalog::builtin_catalog());
}

/// The problems in one text, a line each: "/parallel/tensor: 6 does not divide ... | way out".
inline std::string problem_lines(const shardplan::Diagnostics& problems) {
  std::string lines;
  for (const shardplan::Diagnostic& problem : problems) {
    lines += problem.file + ": " + problem.pointer + ": " + problem.message;
    if (!problem.way_out.empty()) lines += " | " + problem.way_out;
    lines += "\n";
  }
  return lines;
}

/// A legal run; an illegal one is a defect of the test and throws.
inline shardplan::Run run_of(std::string_view snippet) {
  shardplan::io::ReadRun read = read_snippet(snippet);
  if (!read.ok()) throw std::runtime_error("not a legal run:\n" + problem_lines(read.problems));
  return read.run;
}

}  // namespace test
