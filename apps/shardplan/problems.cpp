#include "problems.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <tuple>
#include <vector>

#include "command.hpp"
#include "shardplan/report/text.hpp"

namespace shardplan::cli {
namespace {

using report::Role;
using report::Text;

/// Bytes before the character with this 0-based index.
std::size_t byte_offset(std::string_view line, std::size_t characters) {
  std::size_t at = 0;
  while (at < line.size() && characters > 0) {
    ++at;
    while (at < line.size() && (static_cast<unsigned char>(line[at]) & 0xC0U) == 0x80U) ++at;
    --characters;
  }
  return at;
}

/// The line of a file, 1-based, or "" when there is none or the file cannot be read again.
std::string line_of(const std::string& file, int number) {
  std::ifstream in(file, std::ios::binary);
  std::string line;
  for (int i = 0; i < number; ++i) {
    if (!std::getline(in, line)) return {};
  }
  if (!line.empty() && line.back() == '\r') line.pop_back();
  return line;
}

/// The source line and the carets below it. Of a long line (minified JSON) a window around the place.
std::vector<Text> source_lines(const Diagnostic& problem) {
  constexpr std::size_t window = 88;
  const std::string line = line_of(problem.file, problem.line);
  if (line.empty() || problem.column <= 0) return {};
  const auto column = static_cast<std::size_t>(problem.column);
  const std::size_t width = report::display_width(line);
  std::size_t first = 0;
  if (width > window && column > window / 2) first = std::min(column - window / 2, width - window);
  const std::size_t begin = byte_offset(line, first);
  const std::string_view part = std::string_view(line).substr(begin, byte_offset(line.substr(begin), window));
  const std::string gutter = fmt::format("{:>5} | ", problem.line);
  std::string under(gutter.size(), ' ');
  for (std::size_t i = 0; i + 1 < column - first; ++i) {
    const std::size_t at = byte_offset(part, i);
    under += at < part.size() && part[at] == '\t' ? '\t' : ' ';
  }
  const std::size_t carets =
      std::min(token_width(line, column), std::max<std::size_t>(window + first, column) - column + 1);
  // A tab becomes one space in both lines: rendering replaces control characters.
  std::string shown(part);
  for (std::string* const text : {&shown, &under}) std::replace(text->begin(), text->end(), '\t', ' ');
  return {Text(gutter, Role::dim) + Text(shown), Text(under) + Text(std::string(carets, '^'), Role::bad)};
}

std::string place_of(const Diagnostic& problem) {
  if (problem.pointer.empty() && problem.line > 0)
    return fmt::format("{}:{}:{}: ", problem.file, problem.line, problem.column);
  return problem.pointer.empty() ? problem.file + ": " : fmt::format("{}: {}: ", problem.file, problem.pointer);
}

/// "3 problems in m.json; nothing was computed"
std::string count_line(const Diagnostics& problems, Computed computed) {
  const std::string& file = problems.front().file;
  const bool one_file =
      std::all_of(problems.begin(), problems.end(), [&](const Diagnostic& p) { return p.file == file; });
  std::string where;
  if (one_file && file == "command line") {
    where = " on the command line";
  } else if (one_file && file != command_line_file) {
    where = " in " + file;
  }
  if (computed == Computed::others) return fmt::format("{} problems{}", problems.size(), where);
  return fmt::format("{} problems{}; nothing was computed", problems.size(), where);
}

}  // namespace

std::size_t token_width(std::string_view line, std::size_t column) {
  const std::string_view rest = line.substr(std::min(byte_offset(line, column - 1), line.size()));
  if (rest.empty()) return 1;
  std::size_t end = 1;
  if (rest.front() == '"') {
    while (end < rest.size() && rest[end] != '"') end += rest[end] == '\\' ? 2 : 1;
    end = std::min(end + 1, rest.size());
  } else if (std::string_view("{}[],:").find(rest.front()) == std::string_view::npos) {
    end = std::min(rest.find_first_of(",:{}[] \t"), rest.size());
  }
  return std::max<std::size_t>(report::display_width(rest.substr(0, end)), 1);
}

std::string render_problems(Diagnostics problems, const report::Style& style, bool show_source, Computed computed) {
  if (problems.empty()) return {};
  std::vector<std::string> files;  // in order of appearance
  const auto order = [&](const Diagnostic& problem) {
    return static_cast<std::size_t>(std::find(files.begin(), files.end(), problem.file) - files.begin());
  };
  for (const Diagnostic& problem : problems) {
    if (order(problem) == files.size()) files.push_back(problem.file);
  }
  std::stable_sort(problems.begin(), problems.end(), [&](const Diagnostic& a, const Diagnostic& b) {
    const auto key = [&](const Diagnostic& p) { return std::tuple(order(p), p.line == 0, p.line, p.column); };
    return key(a) < key(b);
  });

  std::vector<Text> lines;
  for (const Diagnostic& problem : problems) {
    lines.push_back(Text(place_of(problem), Role::heading) + Text(problem.message));
    if (show_source && problem.line > 0) {
      for (Text& line : source_lines(problem)) lines.push_back(std::move(line));
    }
    if (!problem.way_out.empty()) lines.push_back(Text("    " + problem.way_out));
  }
  if (problems.size() > 1) lines.push_back(Text(count_line(problems, computed), Role::bad));
  return report::render(lines, style);
}

std::string render_remarks(const std::vector<std::string>& notes, const Warnings& warnings,
                           const report::Style& style) {
  std::vector<Text> lines;
  lines.reserve(notes.size() + warnings.size());
  for (const std::string& note : notes) lines.push_back(Text("note: ", Role::dim) + Text(note));
  for (const Warning& warning : warnings) {
    lines.push_back(Text("warning: ", Role::warning) + Text(fmt::format("{}: {}", warning.code, warning.message)));
  }
  return report::render(lines, style);
}

}  // namespace shardplan::cli
