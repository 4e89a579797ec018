#include "json_writer.hpp"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "shardplan/core/utf8.hpp"

namespace shardplan::io {
namespace {

/// Escapes what JSON demands. What files hold is UTF-8, readers refuse anything else; their names may not be.
void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  std::size_t at = 0;
  for (; at < text.size(); ++at) {
    const char letter = text[at];
    if (letter == '"' || letter == '\\') {
      out += '\\';
      out += letter;
    } else if (static_cast<unsigned char>(letter) < 0x20U) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(letter));
    } else if (static_cast<unsigned char>(letter) < 0x80U) {
      out += letter;
    } else {
      const std::size_t length = utf8_length(text, at);
      out += length == 0 ? std::string_view("\xEF\xBF\xBD") : text.substr(at, length);
      if (length > 0) at += length - 1;
    }
  }
  out += '"';
}

}  // namespace

void JsonWriter::new_line() {
  out_ += '\n';
  out_.append(2 * levels_.size(), ' ');
}

void JsonWriter::prefix(std::string_view name) {
  if (!levels_.empty()) {
    Level& level = levels_.back();
    if (!level.empty) out_ += level.one_line && style_ == Style::pretty ? ", " : ",";
    if (!level.one_line) new_line();
    level.empty = false;
  }
  if (name.empty()) return;
  append_quoted(out_, name);
  out_ += style_ == Style::pretty ? ": " : ":";
}

void JsonWriter::begin(std::string_view name, char bracket, Lines lines) {
  prefix(name);
  out_ += bracket;
  const bool inside_one_line = !levels_.empty() && levels_.back().one_line;
  levels_.push_back({name, inside_one_line || lines == Lines::one || style_ == Style::compact, true});
}

void JsonWriter::end(char bracket) {
  const Level level = levels_.back();
  levels_.pop_back();
  if (!level.one_line && !level.empty) new_line();
  out_ += bracket;
}

void JsonWriter::not_known(std::string_view name) {
  std::string pointer;
  for (const Level& level : levels_) {
    if (!level.name.empty()) pointer.append("/").append(level.name);
  }
  if (!name.empty()) pointer.append("/").append(name);
  unknown_.push_back(pointer);
  out_ += "null";
}

void JsonWriter::integer(std::string_view name, std::int64_t value, Whole /*whole*/) {
  prefix(name);
  fmt::format_to(std::back_inserter(out_), "{}", value);
}

void JsonWriter::real(std::string_view name, double value) {
  prefix(name);
  if (!std::isfinite(value)) return not_known(name);
  const std::size_t begin = out_.size();
  fmt::format_to(std::back_inserter(out_), "{}", value);
  if (out_.find_first_of(".e", begin) == std::string::npos) out_ += ".0";
}

void JsonWriter::count(std::string_view name, double value) {
  prefix(name);
  if (!std::isfinite(value)) return not_known(name);
  fmt::format_to(std::back_inserter(out_), "{:.0f}", value);
}

void JsonWriter::boolean(std::string_view name, bool value) {
  prefix(name);
  out_ += value ? "true" : "false";
}

void JsonWriter::text(std::string_view name, std::string_view value) {
  prefix(name);
  append_quoted(out_, value);
}

void JsonWriter::constant(std::string_view name, std::string_view value) { text(name, value); }

void JsonWriter::word(std::string_view name, std::string_view value, std::span<const std::string_view> /*words*/) {
  text(name, value);
}

void JsonWriter::integer_or_null(std::string_view name, std::optional<std::int64_t> value, Whole whole) {
  may_be_null();
  if (!value && !describes()) return null(name);
  integer(name, value.value_or(0), whole);
}

void JsonWriter::real_or_null(std::string_view name, std::optional<double> value) {
  may_be_null();
  if (!value && !describes()) return null(name);
  real(name, value.value_or(0));
}

void JsonWriter::text_or_null(std::string_view name, std::string_view value) {
  may_be_null();
  if (value.empty() && !describes()) return null(name);
  text(name, value);
}

void JsonWriter::json_or_null(std::string_view name, std::string_view value) {
  may_be_null();
  if (value.empty() && !describes()) return null(name);
  json(name, value);
}

void JsonWriter::null(std::string_view name) {
  prefix(name);
  out_ += "null";
}

void JsonWriter::json(std::string_view name, std::string_view value) {
  prefix(name);
  // A line feed in JSON text stands between tokens, never in a string.
  for (const char letter : value) {
    if (letter == '\n') {
      new_line();
    } else {
      out_ += letter;
    }
  }
}

}  // namespace shardplan::io
