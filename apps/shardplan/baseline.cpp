#include "baseline.hpp"

#include <fmt/format.h>

#include <algorithm>
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

namespace {

/// "a/b/c.json", "b/c.json", "c.json": the ends of a path, the longest first.
std::vector<fs::path> ends_of(const std::string& path) {
  std::vector<fs::path> ends;
  const fs::path whole = fs::path(path).lexically_normal().relative_path();
  for (auto first = whole.begin(); first != whole.end(); ++first) {
    fs::path end;
    for (auto part = first; part != whole.end(); ++part) end /= *part;
    ends.push_back(std::move(end));
  }
  return ends;
}

}  // namespace

std::optional<plan::Figures> Baseline::of(const std::string& path, std::string& problem) const {
  if (one_) return one_;
  const fs::path whole = fs::path(path).lexically_normal();
  for (const auto& [earlier, figures] : figures_) {
    if (fs::path(earlier).lexically_normal() == whole) return figures;
  }
  std::error_code error;
  for (const fs::path& end : ends_of(path)) {
    // Of an earlier answer: the one run whose path ends so.
    const plan::Figures* found = nullptr;
    std::size_t count = 0;
    for (const auto& [earlier, figures] : figures_) {
      const std::vector<fs::path> ends = ends_of(earlier);
      if (std::find(ends.begin(), ends.end(), end) == ends.end()) continue;
      found = &figures;
      ++count;
    }
    if (count == 1) return *found;
    if (count > 1) return std::nullopt;
    const fs::path candidate = fs::path(folder_) / end;
    if (folder_.empty() || !fs::is_regular_file(candidate, error)) continue;
    Result<io::JsonText> text = io::read_json(candidate.string());
    Result<plan::Figures> figures;
    figures.problems = std::move(text.problems);
    if (figures.ok()) figures = figures_of_run(std::move(text.value), overrides_);
    if (figures.ok()) return figures.value;
    problem = fmt::format("{} is no legal run: {}", candidate.string(), figures.problems.front().message);
    return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace shardplan::cli
