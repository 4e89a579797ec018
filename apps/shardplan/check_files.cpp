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

bool is_pattern(const std::string& word) { return word.find_first_of("*?[{") != std::string::npos; }
bool is_hidden(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.size() > 1 && name.front() == '.' && name != "..";
}

/// What a folder holds, sorted by name. `error`: why it could not be looked into, else clear.
std::vector<fs::path> entries_of(const fs::path& folder, std::error_code& error) {
  error.clear();
  std::vector<fs::path> entries;
  for (fs::directory_iterator entry(folder.empty() ? fs::path(".") : folder, error), end; !error && entry != end;
       entry.increment(error)) {
    entries.push_back(folder / entry->path().filename());
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

bool is_json(const fs::path& path) {
  const std::string extension = path.extension().string();
  return extension == ".json" || extension == ".JSON";
}

/// `runs/{a,b}*.json` as `runs/a*.json` and `runs/b*.json`, as a shell has it; braces may nest.
std::vector<std::string> expand_braces(const std::string& word) {
  std::size_t open = std::string::npos;
  std::vector<std::size_t> cuts;
  int depth = 0;
  for (std::size_t i = 0; i < word.size(); ++i) {
    if (word[i] == '{' && depth++ == 0) {
      open = i;
      cuts = {i};
    } else if (word[i] == ',' && depth == 1) {
      cuts.push_back(i);
    } else if (word[i] == '}' && depth > 0 && --depth == 0 && cuts.size() > 1) {
      cuts.push_back(i);
      std::vector<std::string> words;
      for (std::size_t k = 0; k + 1 < cuts.size(); ++k) {
        const std::string part = word.substr(cuts[k] + 1, cuts[k + 1] - cuts[k] - 1);
        for (std::string& each : expand_braces(word.substr(0, open) + part + word.substr(i + 1))) {
          words.push_back(std::move(each));
        }
      }
      return words;
    }
  }
  return {word};
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
    for (const fs::path& entry : entries_of(folder, error)) {
      if (fs::is_directory(fs::symlink_status(entry, error)) && !is_hidden(entry)) match(entry, part, end, found);
    }
  } else if (is_pattern(name)) {
    for (const fs::path& entry : entries_of(folder, error)) {
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
    for (const std::string& each : expand_braces(word)) {
      const fs::path pattern(each);
      const fs::path start = pattern.root_path();
      auto first = pattern.begin();
      for (fs::path root; root != start && first != pattern.end(); ++first) root /= *first;
      match(start, first, pattern.end(), found);
    }
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

  /// What a folder held: files to check, and what was passed over.
  struct Walk {
    std::size_t runs = 0;
    std::size_t unreadable = 0;
    std::vector<std::string> others;
    std::vector<std::string> links;
  };

  void add_folder(const std::string& word) {
    Walk found;
    walk(word, found);
    if (found.runs == 0 && found.unreadable == 0) complain(word, "there is no run file in this folder");
    if (!found.others.empty()) {
      files_.notes.push_back(fmt::format("{}: {} JSON file{} no run file{} and passed over: {}", word,
                                         found.others.size(), found.others.size() == 1 ? " is" : "s are",
                                         found.others.size() == 1 ? "" : "s", first_of(found.others)));
    }
    if (!found.links.empty()) {
      files_.notes.push_back(fmt::format("{}: links to folders are not followed: {}", word, first_of(found.links)));
    }
  }

  /// "a, b, c and 4 more"
  static std::string first_of(const std::vector<std::string>& names) {
    constexpr std::size_t most = 3;
    std::string text;
    for (std::size_t i = 0; i < std::min(most, names.size()); ++i) text += (i == 0 ? "" : ", ") + names[i];
    return names.size() > most ? text + fmt::format(" and {} more", names.size() - most) : text;
  }

  void walk(const fs::path& folder, Walk& found) {
    std::error_code error;
    const std::vector<fs::path> entries = entries_of(folder, error);
    if (error) {
      // There may have been runs in it: that is no pass.
      ++found.unreadable;
      complain(folder.string(), fmt::format("cannot look into this folder: {}", error.message()));
    }
    for (const fs::path& entry : entries) {
      const fs::file_status status = fs::symlink_status(entry, error);
      if (fs::is_directory(status)) {
        if (!is_hidden(entry)) walk(entry, found);
      } else if (fs::is_symlink(status) && fs::is_directory(entry, error)) {
        found.links.push_back(entry.string());
      } else if (is_json(entry) && (fs::is_regular_file(entry, error) || fs::is_symlink(status))) {
        // What cannot be read, a dangling link too, may have been meant as a run: it is reported, not passed over.
        const Result<io::JsonText> text = io::read_json(entry.string());
        const bool run = !text.ok() || io::looks_like_run(text.value);
        if (run) {
          ++found.runs;
          keep(entry.string());
        } else {
          found.others.push_back(entry.string());
        }
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

advise::Files files_on_disk() {
  advise::Files files;
  files.is_folder = [](const std::string& path) {
    std::error_code error;
    return fs::is_directory(path, error);
  };
  files.is_file = [](const std::string& path) {
    std::error_code error;
    return fs::is_regular_file(path, error);
  };
  files.read = [](const std::string& path) { return io::read_json(path); };
  return files;
}

}  // namespace shardplan::cli
