#include "check_files.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include "command.hpp"
#include "shardplan/io/json_text.hpp"
#include "shardplan/io/run_file.hpp"

namespace shardplan::cli {
namespace {

namespace fs = std::filesystem;

bool is_pattern(const std::string& word) { return word.find_first_of("*?[") != std::string::npos; }
bool is_hidden(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.size() > 1 && name.front() == '.' && name != "..";
}

/// What a folder holds, sorted by name.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> entries;
  for (fs::directory_iterator entry(folder.empty() ? fs::path(".") : folder, error), end; !error && entry != end;
       entry.increment(error)) {
    entries.push_back(folder / entry->path().filename());
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

/// Every path below `folder` that fits the rest of a pattern.
void match(const fs::path& folder, fs::path::iterator part, const fs::path::iterator& end,
           std::vector<std::string>& found) {
  std::error_code error;
  if (part == end) {
    if (fs::exists(folder, error) && !fs::is_directory(folder, error)) found.push_back(folder.string());
    return;
  }
  const std::string name = part->string();
  const auto rest = std::next(part);
  if (name == "**") {
    match(folder, rest, end, found);
    for (const fs::path& entry : entries_of(folder)) {
      if (fs::is_directory(fs::symlink_status(entry, error)) && !is_hidden(entry)) match(entry, part, end, found);
    }
  } else if (is_pattern(name)) {
    for (const fs::path& entry : entries_of(folder)) {
      if (fnmatch(name.c_str(), entry.filename().c_str(), FNM_PERIOD) == 0) match(entry, rest, end, found);
    }
  } else if (fs::exists(folder / name, error)) {
    match(folder / name, rest, end, found);
  }
}

class Expansion {
 public:
  void add(const std::string& word) {
    std::error_code error;
    if (word != "-" && fs::is_directory(word, error)) return add_folder(word);
    if (word == "-" || !is_pattern(word) || fs::exists(word, error)) return keep(word);
    std::vector<std::string> found;
    const fs::path pattern(word);
    const fs::path start = pattern.root_path();
    auto first = pattern.begin();
    for (fs::path root; root != start && first != pattern.end(); ++first) root /= *first;
    match(start, first, pattern.end(), found);
    if (found.empty()) complain(word, "no file fits this pattern");
    for (const std::string& path : found) keep(path);
  }

  CheckFiles take() { return std::move(files_); }

 private:
  void keep(const std::string& path) {
    if (seen_.insert(fs::path(path).lexically_normal().string()).second) files_.paths.push_back(path);
  }

  void complain(const std::string& word, std::string message) {
    files_.problems.push_back({word, "", std::move(message), "", 0, 0});
  }

  void add_folder(const std::string& word) {
    std::size_t others = 0;
    std::size_t runs = 0;
    walk(word, runs, others);
    if (runs == 0) complain(word, "there is no run file in this folder");
    if (others > 0) {
      files_.notes.push_back(fmt::format("{}: {} JSON file{} no run file{} and passed over", word, others,
                                         others == 1 ? " is" : "s are", others == 1 ? "" : "s"));
    }
  }

  void walk(const fs::path& folder, std::size_t& runs, std::size_t& others) {
    std::error_code error;
    for (const fs::path& entry : entries_of(folder)) {
      if (fs::is_directory(fs::symlink_status(entry, error))) {
        if (!is_hidden(entry)) walk(entry, runs, others);
      } else if (entry.extension() == ".json" && fs::is_regular_file(entry, error)) {
        // What cannot be read may have been meant as a run: it is reported, not passed over.
        const Result<io::JsonText> text = io::read_json(entry.string());
        const bool run = !text.ok() || io::looks_like_run(text.value);
        ++(run ? runs : others);
        if (run) keep(entry.string());
      }
    }
  }

  CheckFiles files_;
  std::set<std::string> seen_;
};

}  // namespace

CheckFiles check_files(const std::vector<std::string>& words) {
  Expansion expansion;
  for (const std::string& word : words) expansion.add(word);
  return expansion.take();
}

}  // namespace shardplan::cli
