#include "shardplan/advise/baseline.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <string_view>

#include "shardplan/advise/trials.hpp"
#include "shardplan/io/check_json.hpp"
#include "shardplan/io/run_file.hpp"

namespace shardplan::advise {
namespace {

namespace fs = std::filesystem;

Result<plan::Figures> figures_of_run(io::JsonText text, const std::vector<io::Override>& overrides,
                                     const io::CatalogSource& catalog) {
  Result<plan::Figures> result;
  io::RunInput input;
  input.text = std::move(text);
  io::ReadRun read = io::read_run(input, catalog);
  if (!read.ok() && !overrides.empty()) {
    input.overrides = overrides;
    read = io::read_run(input, catalog);
  }
  result.problems = std::move(read.problems);
  if (!result.ok()) return result;
  result.value = plan::figures_of(Trial().estimate(read.run));
  return result;
}

}  // namespace

Result<Baseline> Baseline::open(const std::string& place, const std::vector<io::Override>& overrides,
                                const io::CatalogSource& catalog, Files files) {
  Result<Baseline> result;
  Baseline& baseline = result.value;
  baseline.overrides_ = overrides;
  baseline.files_ = std::move(files);
  baseline.catalog_ = &catalog;
  if (baseline.files_.is_folder(place)) {
    baseline.folder_ = place;
    return result;
  }
  Result<io::JsonText> text = baseline.files_.read(place);
  if (!text.ok()) {
    result.problems = std::move(text.problems);
    return result;
  }
  if (io::is_check(text.value)) {
    Result<std::map<std::string, plan::Figures>> earlier = io::read_check(text.value);
    for (const auto& [file, figures] : earlier.value) {
      baseline.figures_.emplace(fs::path(file).lexically_normal().string(), figures);
    }
    result.problems = std::move(earlier.problems);
    return result;
  }
  if (!io::looks_like_run(text.value)) {
    result.problems.push_back(
        usage_diagnostic(fmt::format("--baseline {}: neither a folder, nor a run file, nor what check --json "
                                     "printed",
                                     place)));
    return result;
  }
  Result<plan::Figures> one = figures_of_run(std::move(text.value), overrides, catalog);
  if (one.ok()) baseline.one_ = one.value;
  result.problems = std::move(one.problems);
  return result;
}

namespace {

/// Whether a path ends with the parts of another: new/runs/a.json with runs/a.json.
bool ends_with(std::string_view path, std::string_view end) {
  if (path.size() < end.size() || path.substr(path.size() - end.size()) != end) return false;
  return path.size() == end.size() || path[path.size() - end.size() - 1] == '/';
}

}  // namespace

std::optional<plan::Figures> Baseline::of(const std::string& path, std::string& problem) const {
  if (one_) return one_;
  const std::string whole = fs::path(path).lexically_normal().string();
  if (const auto same = figures_.find(whole); same != figures_.end()) return same->second;
  // "a/b/c.json", "b/c.json", "c.json"
  std::size_t next = whole.front() == '/' ? 1 : 0;
  for (std::size_t begin = next; next != std::string::npos; begin = next) {
    const std::string end = whole.substr(begin);
    const std::size_t slash = whole.find('/', begin);
    next = slash == std::string::npos ? slash : slash + 1;
    // Of an earlier answer: the one run whose path ends so.
    const plan::Figures* found = nullptr;
    for (const auto& [earlier, figures] : figures_) {
      if (!ends_with(earlier, end)) continue;
      if (found != nullptr) return std::nullopt;
      found = &figures;
    }
    if (found != nullptr) return *found;
    const fs::path candidate = fs::path(folder_) / end;
    if (folder_.empty() || !files_.is_file(candidate.string())) continue;
    Result<io::JsonText> text = files_.read(candidate.string());
    Result<plan::Figures> figures;
    figures.problems = std::move(text.problems);
    if (figures.ok()) figures = figures_of_run(std::move(text.value), overrides_, *catalog_);
    if (figures.ok()) return figures.value;
    problem = fmt::format("{} is no legal run: {}", candidate.string(), figures.problems.front().message);
    return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace shardplan::advise
