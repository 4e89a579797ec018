#include "baseline.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "command.hpp"
#include "shardplan/catalog/catalog.hpp"
#include "shardplan/io/check_json.hpp"
#include "shardplan/io/run_file.hpp"

namespace shardplan::cli {
namespace {

namespace fs = std::filesystem;

Result<plan::Figures> figures_of_run(io::JsonText text, const std::vector<io::Override>& overrides) {
  Result<plan::Figures> result;
  io::RunInput input;
  input.text = std::move(text);
  io::ReadRun read = io::read_run(input, catalog::builtin_catalog());
  if (!read.ok() && !overrides.empty()) {
    input.overrides = overrides;
    read = io::read_run(input, catalog::builtin_catalog());
  }
  result.problems = std::move(read.problems);
  if (!result.ok()) return result;
  Estimate estimated;
  estimate(read.run, estimated);
  result.value = plan::figures_of(estimated);
  return result;
}

}  // namespace

Result<Baseline> Baseline::open(const std::string& place, const std::vector<io::Override>& overrides) {
  Result<Baseline> result;
  Baseline& baseline = result.value;
  baseline.overrides_ = overrides;
  std::error_code error;
  if (fs::is_directory(place, error)) {
    baseline.folder_ = place;
    return result;
  }
  Result<io::JsonText> text = io::read_json(place);
  if (!text.ok()) {
    result.problems = std::move(text.problems);
    return result;
  }
  if (io::is_check(text.value)) {
    Result<std::map<std::string, plan::Figures>> earlier = io::read_check(text.value);
    baseline.figures_ = std::move(earlier.value);
    result.problems = std::move(earlier.problems);
    return result;
  }
  if (!io::looks_like_run(text.value)) {
    result.problems =
        usage_problem(fmt::format("--baseline {}: neither a folder, nor a run file, nor what check --json "
                                  "printed",
                                  place))
            .problems;
    return result;
  }
  Result<plan::Figures> one = figures_of_run(std::move(text.value), overrides);
  if (one.ok()) baseline.one_ = one.value;
  result.problems = std::move(one.problems);
  return result;
}

std::optional<plan::Figures> Baseline::of(const std::string& path) const {
  if (one_) return one_;
  const fs::path file = fs::path(path).lexically_normal();
  for (const auto& [earlier, figures] : figures_) {
    if (fs::path(earlier).lexically_normal() == file) return figures;
  }
  if (folder_.empty()) return std::nullopt;
  std::error_code error;
  for (const fs::path& candidate : {file.is_relative() ? folder_ / file : fs::path(), folder_ / file.filename()}) {
    if (candidate.empty() || !fs::is_regular_file(candidate, error)) continue;
    Result<io::JsonText> text = io::read_json(candidate.string());
    if (!text.ok()) return std::nullopt;
    const Result<plan::Figures> figures = figures_of_run(std::move(text.value), overrides_);
    return figures.ok() ? std::optional(figures.value) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace shardplan::cli
