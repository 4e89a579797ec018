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

io::ReadRun read_run_of(const Arguments& arguments) {
  Result<std::vector<io::Override>> overrides = overrides_of(arguments);
  if (!overrides.ok()) return rejected(std::move(overrides.problems));
  if (arguments.words.empty() && overrides.value.empty()) {
    return rejected(
        usage_problem("a run needs model, cluster and num_gpus: give a RUN.json or --model, --cluster, --gpus",
                      "for example shardplan estimate --model llama-3.1-70b --cluster dgx-h100 --gpus 128 "
                      "--tp 8 --pp 4")
            .problems);
  }
  io::RunInput input;
  input.overrides = std::move(overrides.value);
  if (!arguments.words.empty()) {
    const std::string& path = arguments.words.front();
    if (path == "-" && arguments.value("model") == "-") {
      return rejected(usage_problem("RUN.json and --model cannot both be standard input").problems);
    }
    Result<io::JsonText> text = io::read_json(path);
    if (!text.ok()) return rejected(std::move(text.problems));
    input.text = std::move(text.value);
  }
  io::ReadRun read = io::read_run(input, catalog::builtin_catalog());
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
