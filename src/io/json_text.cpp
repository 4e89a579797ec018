#include "shardplan/io/json_text.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "json_scanner.hpp"

namespace shardplan::io {
namespace {

using Path = std::vector<std::string>;

struct Offsets {
  std::size_t key = 0;
  std::size_t value = 0;
};

/// Finds the offsets of many paths in one pass over a text that is known to be JSON.
class Finder {
 public:
  Finder(std::string_view text, const std::vector<Path>& paths) : text_(text), paths_(paths), found_(paths.size()) {}

  std::vector<Offsets> find() {
    std::vector<std::size_t> all(paths_.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    space();
    const Offsets whole{at_, at_};
    walk(all, 0, whole);
    return found_;
  }

 private:
  void space() {
    while (at_ < text_.size() && std::strchr(" \t\n\r", text_[at_]) != nullptr) ++at_;
  }

  void string() {
    for (++at_; text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\\') ++at_;
    }
    ++at_;
  }

  void skip() {
    int depth = 0;
    do {
      const char c = text_[at_];
      if (c == '"') {
        string();
        continue;
      }
      if (depth == 0 && (c == ',' || c == '}' || c == ']')) return;
      depth += c == '{' || c == '[' ? 1 : (c == '}' || c == ']' ? -1 : 0);
      ++at_;
      if (depth == 0 && (c == '}' || c == ']')) return;
    } while (at_ < text_.size());
  }

  /// `wanted`: the paths whose first `depth` tokens lead to the value at at_.
  void walk(const std::vector<std::size_t>& wanted, std::size_t depth, Offsets here) {
    bool deeper = false;
    for (const std::size_t i : wanted) {
      found_[i] = here;
      deeper = deeper || paths_[i].size() > depth;
    }
    const char open = text_[at_];
    if (!deeper || (open != '{' && open != '[')) return skip();
    ++at_;
    for (std::size_t index = 0;; ++index) {
      space();
      if (text_[at_] == '}' || text_[at_] == ']') break;
      Offsets member{at_, at_};
      std::string token = std::to_string(index);
      if (open == '{') {
        string();
        token = unescape(text_.substr(member.key + 1, at_ - member.key - 2));
        space();
        ++at_;  // the colon
        space();
        member.value = at_;
      }
      std::vector<std::size_t> inside;
      for (const std::size_t i : wanted) {
        if (paths_[i].size() > depth && paths_[i][depth] == token) inside.push_back(i);
      }
      if (inside.empty()) {
        skip();
      } else {
        walk(inside, depth + 1, member);
      }
      space();
      if (text_[at_] == ',') ++at_;
    }
    ++at_;
  }

  std::string_view text_;
  const std::vector<Path>& paths_;
  std::vector<Offsets> found_;
  std::size_t at_ = 0;
};

std::string read_failure(int error) {
  if (error == ENOENT) return "no such file";
  if (error == EISDIR) return "is a folder, not a file";
  return std::string("cannot be read: ") + std::strerror(error);
}

}  // namespace

std::string escape_token(std::string_view token) {
  std::string out;
  for (const char c : token) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out += c;
    }
  }
  return out;
}

std::vector<std::string> pointer_tokens(std::string_view pointer) {
  std::vector<std::string> path;
  for (std::size_t at = 0; at < pointer.size();) {
    const std::size_t end = std::min(pointer.find('/', at + 1), pointer.size());
    std::string token;
    for (std::size_t i = at + 1; i < end; ++i) {
      const bool escaped = pointer[i] == '~' && i + 1 < end;
      token += escaped ? (pointer[++i] == '1' ? '/' : '~') : pointer[i];
    }
    path.push_back(std::move(token));
    at = end;
  }
  return path;
}

JsonPosition position_of(const JsonText& document, std::string_view pointer) {
  if (!document.text) return {};
  const std::vector<Path> paths = {pointer_tokens(pointer)};
  const Offsets offsets = Finder(*document.text, paths).find().front();
  const TextPosition key = text_position(*document.text, offsets.key);
  const TextPosition value = text_position(*document.text, offsets.value);
  return {value.line, value.column, key.line, key.column};
}

std::string text_at(const JsonText& document, std::string_view pointer) {
  if (!document.text) return {};
  const std::vector<Path> paths = {pointer_tokens(pointer)};
  const std::string_view rest =
      std::string_view(*document.text).substr(Finder(*document.text, paths).find().front().value);
  return std::string(rest.substr(0, rest.find_first_of(" \t\r\n,]}")));
}

void locate(const JsonText& document, Diagnostics& problems) {
  if (!document.text) return;
  std::vector<Path> paths;
  std::vector<Diagnostic*> open;
  for (Diagnostic& problem : problems) {
    if (problem.line != 0 || problem.file != document.file) continue;
    paths.push_back(pointer_tokens(problem.pointer));
    open.push_back(&problem);
  }
  if (open.empty()) return;
  const std::vector<Offsets> offsets = Finder(*document.text, paths).find();
  for (std::size_t i = 0; i < open.size(); ++i) {
    const bool at_key = open[i]->message.rfind("unknown field", 0) == 0;
    const TextPosition position = text_position(*document.text, at_key ? offsets[i].key : offsets[i].value);
    open[i]->line = position.line;
    open[i]->column = position.column;
  }
}

Result<JsonText> parse_json(std::string text, std::string file, JsonDialect dialect) {
  Result<JsonText> result;
  result.value.file = std::move(file);
  const std::string& name = result.value.file;
  if (text.size() > max_json_bytes) {
    result.problems.push_back(
        {name, "", fmt::format("larger than {} MiB, which no run, model or cluster file is", max_json_bytes >> 20U), "",
         0, 0});
    return result;
  }
  if (!scan_json(text, name, dialect == JsonDialect::python, result.problems)) return result;
  nlohmann::json value = nlohmann::json::parse(text, nullptr, false);
  if (value.is_discarded()) {
    result.problems.push_back({name, "", "JSON: cannot be parsed", "", 1, 1});
    return result;
  }
  result.value.value = std::make_shared<const nlohmann::json>(std::move(value));
  result.value.text = std::make_shared<const std::string>(std::move(text));
  return result;
}

Result<JsonText> read_json(const std::string& path, JsonDialect dialect) {
  Result<JsonText> result;
  const bool standard_input = path == "-";
  result.value.file = standard_input ? "<stdin>" : path;
  const auto refuse = [&](int error) {
    result.problems.push_back({result.value.file, "", read_failure(error), "", 0, 0});
    return result;
  };
  std::FILE* stream = standard_input ? stdin : std::fopen(path.c_str(), "rb");
  if (stream == nullptr) return refuse(errno);
  std::string text;
  std::vector<char> block(std::size_t{1} << 16U);
  int error = 0;
  while (text.size() <= max_json_bytes) {
    errno = 0;
    const std::size_t wanted = std::min(block.size(), max_json_bytes + 1 - text.size());
    const std::size_t got = std::fread(block.data(), 1, wanted, stream);
    text.append(block.data(), got);
    if (got < wanted) {
      if (std::ferror(stream) != 0) error = errno == 0 ? EIO : errno;
      break;
    }
  }
  if (!standard_input) std::fclose(stream);
  if (error != 0) return refuse(error);
  return parse_json(std::move(text), result.value.file, dialect);
}

}  // namespace shardplan::io
