#include "json_scanner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <optional>

#include "shardplan/core/number_text.hpp"
#include "shardplan/core/utf8.hpp"
#include "shardplan/io/json_text.hpp"

namespace shardplan::io {
namespace {

constexpr std::size_t most_duplicates = 20;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || c == '$'; }

bool continues_character(char c) { return (static_cast<std::uint8_t>(c) & 0xC0U) == 0x80U; }

std::optional<unsigned> hex4(std::string_view digits) {
  if (digits.size() < 4) return std::nullopt;
  return number_of<unsigned>(digits.substr(0, 4), 16);
}

constexpr bool is_high_surrogate(unsigned code) { return code >= 0xD800 && code <= 0xDBFF; }
constexpr bool is_low_surrogate(unsigned code) { return code >= 0xDC00 && code <= 0xDFFF; }

struct Key {
  std::string text;
  std::size_t offset = 0;
};

/// Recursive descent; the depth limit bounds the recursion.
class Scanner {
 public:
  Scanner(std::string& text, const std::string& file, bool python_constants, Diagnostics& problems)
      : text_(text), file_(file), problems_(problems), python_constants_(python_constants) {}

  bool document() {
    if (!is_text()) return false;
    if (text_.rfind("\xEF\xBB\xBF", 0) == 0) std::fill_n(text_.begin(), 3, '\r');  // byte order mark
    if (!space()) return false;
    if (at_ == text_.size()) return fail(at_, "the file is empty");
    if (!value() || !space()) return false;
    return at_ == text_.size() || fail(at_, fmt::format("expected the end of the file before {}", token(at_)));
  }

 private:
  bool fail(std::size_t offset, std::string message) {
    const TextPosition position = text_position(text_, offset);
    problems_.push_back({file_, "", "JSON: " + std::move(message), "", position.line, position.column});
    return false;
  }

  /// What stands at an offset, for a message.
  std::string token(std::size_t offset) const {
    if (offset >= text_.size()) return "the end of the file";
    std::size_t end = offset + 1;
    if (text_[offset] == '"') {
      while (end < text_.size() && text_[end] != '"' && text_[end] != '\n') end += text_[end] == '\\' ? 2 : 1;
      end = std::min(end + 1, text_.size());
    } else if (is_word(text_[offset]) || text_[offset] == '-' || text_[offset] == '+' || text_[offset] == '.') {
      while (end < text_.size() && (is_word(text_[end]) || text_[end] == '.' || text_[end] == '-')) ++end;
    } else {
      const std::string symbol = text_.substr(offset, utf8_length(text_, offset));
      if (symbol.size() == 1 && (symbol[0] < ' ' || symbol[0] == 0x7F)) {
        return fmt::format("a control character (0x{:02x})", static_cast<unsigned>(symbol[0]));
      }
      return "'" + symbol + "'";
    }
    std::string word = text_.substr(offset, end - offset);
    while (!word.empty() && (word.back() == '\n' || word.back() == '\r')) word.pop_back();
    if (word.size() <= 40) return word;
    std::size_t keep = 0;
    while (keep < 36) keep += std::max<std::size_t>(1, utf8_length(word, keep));
    return word.substr(0, keep) + "...";
  }

  bool is_text() {
    for (std::size_t i = 0; i < text_.size();) {
      const std::size_t length = utf8_length(text_, i);
      if (length == 0 || text_[i] == '\0') {
        const auto byte = static_cast<unsigned>(static_cast<std::uint8_t>(text_[i]));
        return fail(i, fmt::format("byte 0x{:02x} is not UTF-8 text; is this a binary file?", byte));
      }
      i += length;
    }
    return true;
  }

  /// Skips white space and blanks comments.
  bool space() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
        ++at_;
      } else if (c == '/' && at_ + 1 < text_.size() && (text_[at_ + 1] == '/' || text_[at_ + 1] == '*')) {
        const bool line = text_[at_ + 1] == '/';
        std::size_t end = line ? text_.find('\n', at_) : text_.find("*/", at_ + 2);
        if (!line && end == std::string::npos) return fail(at_, "this comment has no end");
        end = end == std::string::npos ? text_.size() : end + (line ? 0 : 2);
        for (; at_ < end; ++at_) {
          if (text_[at_] != '\n') text_[at_] = continues_character(text_[at_]) ? '\r' : ' ';
        }
      } else {
        break;
      }
    }
    return true;
  }

  bool value() {
    if (at_ == text_.size()) return ends_early();
    if (++values_ > max_json_values) return fail(at_, fmt::format("more than {} values", max_json_values));
    const char c = text_[at_];
    if (c == '{' || c == '[') return container();
    if (c == '"') return string();
    if (c == '-' || is_digit(c)) return number();
    return literal();
  }

  bool ends_early() {
    if (open_.empty()) return fail(text_.size(), "the file ends where a value should stand");
    const TextPosition start = text_position(text_, open_.back());
    return fail(text_.size(), fmt::format("the file ends inside the {} that opens at line {}, column {}",
                                          text_[open_.back()] == '{' ? "object" : "list", start.line, start.column));
  }

  bool container() {
    const bool object = text_[at_] == '{';
    const char close = object ? '}' : ']';
    if (static_cast<int>(open_.size()) == max_json_depth) {
      return fail(at_, fmt::format("nested more than {} deep", max_json_depth));
    }
    open_.push_back(at_++);
    std::vector<Key> keys;
    std::size_t comma = std::string::npos;
    for (std::size_t index = 0;; ++index) {
      if (!space()) return false;
      if (at_ == text_.size()) return ends_early();
      if (text_[at_] == close) {
        if (comma != std::string::npos) text_[comma] = ' ';
        break;
      }
      if (object) {
        if (!key(keys)) return false;
      } else {
        path_.push_back(std::to_string(index));
      }
      if (!value()) return false;
      path_.pop_back();
      const std::size_t end = at_;
      if (!space()) return false;
      if (at_ == text_.size()) return ends_early();
      if (text_[at_] == ',') {
        comma = at_++;
      } else if (text_[at_] != close) {
        return missing_comma(end, close);
      } else {
        break;
      }
    }
    ++at_;
    open_.pop_back();
    duplicates(keys);
    return true;
  }

  bool missing_comma(std::size_t end, char close) {
    std::string message = fmt::format("expected ',' or '{}' before {}", close, token(at_));
    const char c = text_[at_];
    if (c == '"' || c == '{' || c == '[' || is_word(c)) {
      const int before = text_position(text_, end).line;
      if (before != text_position(text_, at_).line) {
        message += fmt::format("; a comma is missing after line {}", before);
      } else {
        message += "; a comma is missing";
      }
    }
    return fail(at_, std::move(message));
  }

  bool key(std::vector<Key>& keys) {
    const std::size_t start = at_;
    if (text_[at_] != '"') {
      if (text_[at_] == '\'') return fail(at_, "a key stands in double quotes, not single ones");
      if (text_[at_] == ',')
        return fail(at_, "expected a key in double quotes before ','; is this comma one too many?");
      return fail(at_, fmt::format("expected a key in double quotes before {}", token(at_)));
    }
    if (!string()) return false;
    keys.push_back({unescape(std::string_view(text_).substr(start + 1, at_ - start - 2)), start});
    path_.push_back(keys.back().text);
    if (!space()) return false;
    if (at_ == text_.size()) return ends_early();
    if (text_[at_] != ':') {
      return fail(at_, fmt::format("expected ':' after {} before {}", token(start), token(at_)));
    }
    ++at_;
    return space();
  }

  /// Two members of one name: nlohmann would keep the last in silence.
  void duplicates(std::vector<Key>& keys) {
    if (keys.size() < 2) return;
    std::stable_sort(keys.begin(), keys.end(), [](const Key& a, const Key& b) { return a.text < b.text; });
    for (std::size_t i = 1; i < keys.size(); ++i) {
      if (keys[i].text != keys[i - 1].text || problems_.size() >= most_duplicates) continue;
      std::string pointer;
      for (const std::string& token : path_) pointer += "/" + escape_token(token);
      const TextPosition here = text_position(text_, keys[i].offset);
      const int first = text_position(text_, keys[i - 1].offset).line;
      problems_.push_back({file_, pointer + "/" + escape_token(keys[i].text),
                           fmt::format("given twice, before at line {}", first), "", here.line, here.column});
    }
  }

  bool string() {
    const std::size_t start = at_++;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '"') {
        ++at_;
        return true;
      }
      if (c == '\n' || c == '\r') break;
      if (static_cast<std::uint8_t>(c) < 0x20) {
        return fail(at_,
                    c == '\t' ? "a tab inside a string is written \\t" : fmt::format("{} inside a string", token(at_)));
      }
      if (c == '\\' && !escape()) return false;
    }
    return fail(start, "this string has no closing quote");
  }

  /// Leaves at_ on the escape's last character.
  bool escape() {
    const std::size_t start = at_++;
    if (at_ == text_.size()) return fail(start, "the file ends inside a string");
    if (std::string_view("\"\\/bfnrt").find(text_[at_]) != std::string_view::npos) return true;
    const std::string_view rest = std::string_view(text_).substr(at_);
    if (rest[0] == 'u') {
      const std::optional<unsigned> code = hex4(rest.substr(1));
      if (code && !is_high_surrogate(*code) && !is_low_surrogate(*code)) {
        at_ += 4;
        return true;
      }
      if (code && is_high_surrogate(*code) && rest.substr(5, 2) == "\\u" && rest.size() > 7) {
        const std::optional<unsigned> low = hex4(rest.substr(7));
        if (low && is_low_surrogate(*low)) {
          at_ += 10;
          return true;
        }
      }
    }
    return fail(start, "a backslash in a string starts one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX");
  }

  bool number() {
    const std::size_t start = at_;
    if (text_[at_] == '-') ++at_;
    const auto digits = [&] {
      const std::size_t first = at_;
      while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
      return at_ - first;
    };
    const std::size_t first = at_;
    bool ok = digits() > 0 && (text_[first] != '0' || at_ - first == 1);
    if (ok && at_ < text_.size() && text_[at_] == '.') {
      ++at_;
      ok = digits() > 0;
    }
    if (ok && at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
      ++at_;
      if (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) ++at_;
      ok = digits() > 0;
    }
    if (!ok || (at_ < text_.size() && (is_word(text_[at_]) || text_[at_] == '.'))) return literal(start);
    if (std::isinf(std::strtod(text_.c_str() + start, nullptr))) {
      return fail(start, fmt::format("the number {} is too large", token(start)));
    }
    return true;
  }

  bool literal() { return literal(at_); }

  bool literal(std::size_t start) {
    const std::string word = token(start);
    for (const std::string_view legal : {"true", "false", "null"}) {
      if (word == legal) {
        at_ = start + legal.size();
        return true;
      }
    }
    if (python_constants_ && (word == "NaN" || word == "Infinity" || word == "-Infinity")) {
      text_.replace(start, word.size(), "{}" + std::string(word.size() - 2, ' '));
      at_ = start + word.size();
      return true;
    }
    std::string lower = word;
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    if (lower == "true" || lower == "false" || lower == "null" || lower == "none") {
      return fail(start, fmt::format("{} is written {}", word, lower == "none" ? "null" : lower));
    }
    if (lower == "nan" || lower == "infinity" || lower == "inf" || lower == "-infinity" || lower == "-inf" ||
        lower == "+infinity") {
      return fail(start, fmt::format("{} is not a JSON number", word));
    }
    if (is_digit(word[0]) || word[0] == '-' || word[0] == '+' || word[0] == '.') {
      return fail(start, fmt::format("{} is not a JSON number", word));
    }
    if (text_[start] == '\'') return fail(start, "a string stands in double quotes, not single ones");
    if (is_word(word[0]))
      return fail(start, fmt::format("expected a value before {}; a string stands in double quotes", word));
    return fail(start, fmt::format("expected a value before {}", word));
  }

  std::string& text_;
  const std::string& file_;
  Diagnostics& problems_;
  bool python_constants_;
  std::size_t at_ = 0;
  std::size_t values_ = 0;
  std::vector<std::size_t> open_;  ///< offsets of the brackets that enclose at_
  std::vector<std::string> path_;  ///< keys and indices that lead to at_
};

}  // namespace

TextPosition text_position(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const auto lines = std::count(before.begin(), before.end(), '\n');
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  const std::string_view line = before.substr(line_start);
  // Blanking leaves '\r' where a byte has no width.
  const auto columns =
      std::count_if(line.begin(), line.end(), [](char c) { return c != '\r' && !continues_character(c); });
  return {static_cast<int>(lines) + 1, static_cast<int>(columns) + 1};
}

std::string unescape(std::string_view inside) {
  std::string out;
  out.reserve(inside.size());
  const auto add = [&](unsigned code) {
    if (code < 0x80) {
      out += static_cast<char>(code);
    } else if (code < 0x800) {
      out += static_cast<char>(0xC0U | (code >> 6U));
    } else if (code < 0x10000) {
      out += static_cast<char>(0xE0U | (code >> 12U));
      out += static_cast<char>(0x80U | ((code >> 6U) & 0x3FU));
    } else {
      out += static_cast<char>(0xF0U | (code >> 18U));
      out += static_cast<char>(0x80U | ((code >> 12U) & 0x3FU));
      out += static_cast<char>(0x80U | ((code >> 6U) & 0x3FU));
    }
    if (code >= 0x80) out += static_cast<char>(0x80U | (code & 0x3FU));
  };
  constexpr std::string_view letters = "\"\\/bfnrt";
  constexpr std::string_view meanings = "\"\\/\b\f\n\r\t";
  for (std::size_t i = 0; i < inside.size(); ++i) {
    if (inside[i] != '\\') {
      out += inside[i];
    } else if (inside[++i] == 'u') {
      unsigned code = hex4(inside.substr(i + 1)).value_or(0);
      i += 4;
      if (is_high_surrogate(code)) {
        code = 0x10000 + ((code - 0xD800) << 10U) + hex4(inside.substr(i + 3)).value_or(0xDC00) - 0xDC00;
        i += 6;
      }
      add(code);
    } else {
      out += meanings[letters.find(inside[i])];
    }
  }
  return out;
}

bool scan_json(std::string& text, const std::string& file, bool python_constants, Diagnostics& problems) {
  return Scanner(text, file, python_constants, problems).document();
}

}  // namespace shardplan::io
