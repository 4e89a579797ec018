#include "shardplan/report/text.hpp"

#include <algorithm>
#include <utility>

namespace shardplan::report {
namespace {

bool is_continuation(char c) noexcept { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

/// Byte offset of the character number `index`.
std::size_t byte_of(std::string_view text, std::size_t index) noexcept {
  std::size_t at = 0;
  for (; at < text.size(); ++at) {
    if (is_continuation(text[at])) continue;
    if (index == 0) break;
    --index;
  }
  return at;
}

/// Appends `text` with '?' for control characters (C1, U+0080 to U+009F, among them) and where `ascii` asks for it.
void append_clean(std::string& out, std::string_view text, bool ascii) {
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i + 1;
    while (end < text.size() && is_continuation(text[end])) ++end;
    const unsigned char lead = static_cast<unsigned char>(text[i]);
    const bool c1 = lead == 0xC2U && end == i + 2 && static_cast<unsigned char>(text[i + 1]) < 0xA0U;
    const bool bad = lead < 0x20U || lead == 0x7FU || is_continuation(text[i]) || c1;
    if (bad || (ascii && lead >= 0x80U)) {
      out += '?';
    } else {
      out += text.substr(i, end - i);
    }
    i = end;
  }
}

/// Position after the last character that is not a space.
std::size_t trimmed_width(const Text& text) {
  const std::string plain = text.plain();
  const std::size_t last = plain.find_last_not_of(' ');
  return last == std::string::npos ? 0 : display_width(std::string_view(plain).substr(0, last + 1));
}

}  // namespace

std::size_t display_width(std::string_view text) noexcept {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return !is_continuation(c); }));
}

Text::Text(std::string text, Role role) {
  if (!text.empty()) spans_.push_back({std::move(text), role});
}
Text::Text(const char* text, Role role) : Text(std::string(text), role) {}
Text::Text(std::string_view text, Role role) : Text(std::string(text), role) {}

Text& Text::operator+=(const Text& other) {
  if (this == &other) return *this += Text(other);
  for (const Span& span : other.spans_) {
    if (!spans_.empty() && spans_.back().role == span.role) {
      spans_.back().text += span.text;
    } else {
      spans_.push_back(span);
    }
  }
  return *this;
}

std::size_t Text::width() const noexcept {
  std::size_t width = 0;
  for (const Span& span : spans_) width += display_width(span.text);
  return width;
}

bool Text::empty() const noexcept { return spans_.empty(); }

std::string Text::plain() const {
  std::string out;
  for (const Span& span : spans_) out += span.text;
  return out;
}

std::string Text::render(const Style& style) const {
  std::string out;
  for (const Span& span : slice(0, trimmed_width(*this)).spans_) {
    const std::string_view code = style.color ? sgr(span.role) : std::string_view();
    if (!code.empty()) out.append("\x1b[").append(code).append("m");
    append_clean(out, span.text, style.ascii);
    if (!code.empty()) out += "\x1b[0m";
  }
  return out;
}

Text Text::slice(std::size_t begin, std::size_t end) const {
  Text out;
  std::size_t at = 0;
  for (const Span& span : spans_) {
    const std::size_t size = display_width(span.text);
    const std::size_t from = std::clamp(begin, at, at + size) - at;
    const std::size_t to = std::clamp(end, at, at + size) - at;
    if (from < to) {
      const std::size_t first = byte_of(span.text, from);
      out += Text(span.text.substr(first, byte_of(span.text, to) - first), span.role);
    }
    at += size;
  }
  return out;
}

Text spaces(std::size_t count) { return Text(std::string(count, ' ')); }

Text pad_right(Text text, std::size_t width) {
  const std::size_t own = text.width();
  return own < width ? text += spaces(width - own) : text;
}

Text pad_left(const Text& text, std::size_t width) {
  const std::size_t own = text.width();
  return own < width ? spaces(width - own) + text : text;
}

std::vector<Text> wrap(const Text& text, std::size_t width, std::size_t indent) {
  width = std::max<std::size_t>(width, 1);
  if (indent >= width) indent = 0;
  std::vector<Text> lines;
  Text rest = text.slice(0, trimmed_width(text));
  while (true) {
    const std::size_t margin = lines.empty() ? 0 : indent;
    const std::size_t room = width - margin;
    const std::size_t size = rest.width();
    if (size <= room) {
      if (size > 0 || lines.empty()) lines.push_back(spaces(margin) + rest);
      return lines;
    }
    // The last space at or before `room` that has words on its left, else a cut through the word. One character is
    // one byte of `mask`.
    std::string mask;
    for (const char c : rest.plain()) {
      if (!is_continuation(c)) mask += c == ' ' ? ' ' : 'x';
    }
    std::size_t cut = mask.rfind(' ', room);
    if (cut == std::string::npos || mask.find('x') >= cut) cut = room;
    const std::size_t next = mask.find('x', cut);
    lines.push_back(spaces(margin) + rest.slice(0, cut));
    if (next == std::string::npos) return lines;
    rest = rest.slice(next, size);
  }
}

std::vector<Text> join_wrapped(const std::vector<Text>& parts, std::size_t width, std::size_t indent) {
  std::vector<Text> joined;
  for (const Text& part : parts) {
    if (part.empty()) continue;
    if (!joined.empty() && joined.back().width() + 3 + part.width() + (joined.size() > 1 ? indent : 0) <= width) {
      joined.back() += Text(" | ") + part;
    } else {
      joined.push_back(part);
    }
  }
  std::vector<Text> lines;
  for (std::size_t i = 0; i < joined.size(); ++i) {
    const std::size_t margin = i == 0 || indent >= width ? 0 : indent;
    for (const Text& line : wrap(joined[i], width - margin, 2)) lines.push_back(spaces(margin) + line);
  }
  return lines;
}

std::string render(const std::vector<Text>& lines, const Style& style) {
  std::string out;
  for (const Text& line : lines) out.append(line.render(style)).append("\n");
  return out;
}

}  // namespace shardplan::report
