#include "run_input.hpp"

#include <fmt/format.h>

#include "output.hpp"
#include "overrides.hpp"
#include "shardplan/catalog/catalog.hpp"

namespace shardplan::cli {
namespace {

io::ReadRun rejected(Diagnostics problems) {
  io::ReadRun read;
  read.problems = std::move(problems);
  return read;
}

}  // namespace

Result<io::RunInput> run_input_of(const Arguments& arguments) {
  Result<io::RunInput> result;
  Result<std::vector<io::Override>> overrides = overrides_of(arguments);
  result.problems = std::move(overrides.problems);
  if (!result.ok()) return result;
  if (arguments.words.empty() && overrides.value.empty()) {
    result.problems =
        usage_problem("a run needs model, cluster and num_gpus: give a RUN.json or --model, --cluster, --gpus",
                      "for example shardplan estimate --model llama-3.1-70b --cluster dgx-h100 --gpus 128 "
                      "--tp 8 --pp 4")
            .problems;
    return result;
  }
  result.value.overrides = std::move(overrides.value);
  if (arguments.words.empty()) return result;
  const std::string& path = arguments.words.front();
  if (path == "-" && arguments.value("model") == "-") {
    result.problems = usage_problem("RUN.json and --model cannot both be standard input").problems;
    return result;
  }
  Result<io::JsonText> text = io::read_json(path);
  result.problems = std::move(text.problems);
  if (result.ok()) result.value.text = std::move(text.value);
  return result;
}

io::ReadRun read_run_of(const Arguments& arguments) {
  Result<io::RunInput> input = run_input_of(arguments);
  if (!input.ok()) return rejected(std::move(input.problems));
  io::ReadRun read = io::read_run(input.value, catalog::builtin_catalog());
  const std::string output(arguments.value("output").value_or(""));
  for (const std::string& file : read.files) {
    // main() has opened it by now, but nothing of it is replaced before there is a result.
    if (read.ok() && is_same_file(output, file)) {
      return rejected(usage_problem(fmt::format("-o {}: that is an input, {}", output, file)).problems);
    }
  }
  return read;
}

}  // namespace shardplan::cli
