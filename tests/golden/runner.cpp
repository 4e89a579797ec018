// Runs the program as its users do and compares what it prints, byte for byte, with the case files of a folder.
//
// A case file:
//   # why this case
//   $ shardplan estimate run.json --json       one shell line; files it writes go to "$OUT"
//   exit 2
//   --- stdin                                  a section that is empty is left out
//   --- stdout
//   --- stderr
//
// Commands run in the source tree with LC_ALL=C.UTF-8 and no NO_COLOR, COLUMNS or TERM. Numbers with a point may differ
// by 1e-9 of their value: compilers and C libraries disagree in the last bits.
//
//   golden_runner PROGRAM SOURCE_DIR CASES_DIR [--update] [case...]
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace fs = std::filesystem;

struct Case {
  std::string comment;  ///< with its line ends
  std::string command;
  int exit_status = 0;
  std::string input;
  std::string output;
  std::string errors;
};

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void write_file(const fs::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

Case parse_case(const std::string& text) {
  Case parsed;
  std::string* section = &parsed.comment;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line == "--- stdin") {
      section = &parsed.input;
    } else if (line == "--- stdout") {
      section = &parsed.output;
    } else if (line == "--- stderr") {
      section = &parsed.errors;
    } else if (section == &parsed.comment && line.rfind("$ ", 0) == 0) {
      parsed.command = line.substr(2);
    } else if (section == &parsed.comment && line.rfind("exit ", 0) == 0) {
      parsed.exit_status = std::stoi(line.substr(5));
    } else {
      section->append(line).append("\n");
    }
  }
  return parsed;
}

std::string to_text(const Case& c) {
  std::string text = c.comment + "$ " + c.command + "\nexit " + std::to_string(c.exit_status) + "\n";
  if (!c.input.empty()) text += "--- stdin\n" + c.input;
  if (!c.output.empty()) text += "--- stdout\n" + c.output;
  if (!c.errors.empty()) text += "--- stderr\n" + c.errors;
  return text;
}

/// The case with what the program does now.
Case run_case(const Case& expected, const fs::path& folder, const fs::path& source) {
  Case got = expected;
  write_file(folder / "stdin", expected.input);
  write_file(folder / "command", "cd '" + source.string() + "' && " + expected.command + "\n");
  const std::string at = "'" + folder.string();
  const std::string line = "sh " + at + "/command' <" + at + "/stdin' >" + at + "/stdout' 2>" + at + "/stderr'";
  const int status = std::system(line.c_str());  // NOLINT(cert-env33-c): the commands are the tests themselves
  got.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  got.output = read_file(folder / "stdout");
  got.errors = read_file(folder / "stderr");
  return got;
}

bool is_number_part(char c) {
  return (c >= '0' && c <= '9') || c == '.' || c == 'e' || c == 'E' || c == '-' || c == '+';
}

/// Equal, but for the last bits of numbers with a point or an exponent.
bool same_text(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty()) {
    if (!is_number_part(a.front()) || !is_number_part(b.front())) {
      if (a.front() != b.front()) return false;
      a.remove_prefix(1);
      b.remove_prefix(1);
      continue;
    }
    const auto token = [](std::string_view& text) {
      std::size_t end = 0;
      while (end < text.size() && is_number_part(text[end])) ++end;
      const std::string word(text.substr(0, end));
      text.remove_prefix(end);
      return word;
    };
    const std::string x = token(a);
    const std::string y = token(b);
    if (x == y) continue;
    if (x.find('.') == std::string::npos || y.find('.') == std::string::npos) return false;
    char* end_x = nullptr;
    char* end_y = nullptr;
    const double p = std::strtod(x.c_str(), &end_x);
    const double q = std::strtod(y.c_str(), &end_y);
    if (*end_x != '\0' || *end_y != '\0' || std::abs(p - q) > 1e-9 * std::max(std::abs(p), std::abs(q))) return false;
  }
  return a.empty() && b.empty();
}

bool same(const Case& a, const Case& b) {
  return a.exit_status == b.exit_status && same_text(a.output, b.output) && same_text(a.errors, b.errors);
}

void show_difference(const fs::path& folder, const std::string& name, const Case& expected, const Case& got) {
  std::cout << "FAIL " << name << "\n" << std::flush;
  write_file(folder / "expected", to_text(expected));
  write_file(folder / "got", to_text(got));
  const std::string line = "diff -u '" + (folder / "expected").string() + "' '" + (folder / "got").string() + "'";
  if (std::system(line.c_str()) == 0)
    std::cout << "(differs in bytes that diff does not show)\n";  // NOLINT(cert-env33-c)
}

void prepare_environment(const fs::path& program, const fs::path& folder) {
  const char* const path = std::getenv("PATH");
  setenv("PATH", (program.parent_path().string() + ":" + (path == nullptr ? "/usr/bin:/bin" : path)).c_str(), 1);
  setenv("OUT", folder.c_str(), 1);
  setenv("LC_ALL", "C.UTF-8", 1);
  for (const char* const name : {"NO_COLOR", "COLUMNS", "TERM", "LANG", "LC_CTYPE"}) unsetenv(name);
}

}  // namespace

int main(int count, char** words) {
  if (count < 4) {
    std::cerr << "usage: golden_runner PROGRAM SOURCE_DIR CASES_DIR [--update] [case...]\n";
    return 2;
  }
  const fs::path program = fs::absolute(words[1]);
  const fs::path source = fs::absolute(words[2]);
  if (!fs::exists(program)) {
    std::cerr << "golden_runner: there is no " << program.string() << "\n";
    return 2;
  }
  bool update = false;
  std::vector<std::string> wanted;
  for (int i = 4; i < count; ++i) {
    if (std::string_view(words[i]) == "--update") {
      update = true;
    } else {
      wanted.emplace_back(words[i]);
    }
  }

  std::string pattern = (fs::temp_directory_path() / "golden.XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) {
    std::cerr << "golden_runner: cannot make a temporary folder\n";
    return 2;
  }
  const fs::path folder = pattern;
  prepare_environment(program, folder);

  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(words[3])) {
    if (entry.path().extension() == ".case") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());

  int run = 0;
  int differ = 0;
  for (const fs::path& file : files) {
    const std::string name = file.stem().string();
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), name) == wanted.end()) continue;
    ++run;
    const Case expected = parse_case(read_file(file));
    const Case got = run_case(expected, folder, source);
    if (same(expected, got)) continue;
    ++differ;
    if (update) {
      write_file(file, to_text(got));
      std::cout << "updated " << name << "\n";
    } else {
      show_difference(folder, name, expected, got);
    }
  }
  fs::remove_all(folder);
  std::cout << run << " cases, " << differ << (update ? " updated\n" : " differ\n");
  if (run == 0) return 2;
  return update || differ == 0 ? 0 : 1;
}
