// Text whose pieces carry a role, and how it becomes a string: colour, character set, folding to a width.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "shardplan/report/style.hpp"

namespace shardplan::report {

struct Span {
  std::string text;
  Role role = Role::plain;
};

/// One line of text. Width counts characters, not bytes or escapes.
class Text {
 public:
  Text() = default;
  Text(std::string text, Role role = Role::plain);
  Text(const char* text, Role role = Role::plain);
  Text(std::string_view text, Role role = Role::plain);

  Text& operator+=(const Text& other);
  friend Text operator+(Text left, const Text& right) { return left += right; }

  std::size_t width() const noexcept;
  bool empty() const noexcept;
  const std::vector<Span>& spans() const noexcept { return spans_; }

  /// The characters without colour.
  std::string plain() const;
  /// The line as printed, without its end of line and without trailing spaces. Control characters become '?', and so
  /// do characters beyond ASCII where the style asks for ASCII: a model's name cannot steer the terminal.
  std::string render(const Style& style) const;

  /// Characters [begin, end).
  Text slice(std::size_t begin, std::size_t end) const;

 private:
  std::vector<Span> spans_;
};

/// `count` spaces.
Text spaces(std::size_t count);

/// Padded with spaces to a width; wider text is returned as it is.
Text pad_right(Text text, std::size_t width);
Text pad_left(const Text& text, std::size_t width);

/// Breaks at spaces to lines of at most `width` characters, later ones indented; a longer word is cut.
std::vector<Text> wrap(const Text& text, std::size_t width, std::size_t indent);

/// Joins parts with " | ", breaking between parts (and within one that alone is too wide).
std::vector<Text> join_wrapped(const std::vector<Text>& parts, std::size_t width, std::size_t indent);

/// Lines as printed, each with its end of line.
std::string render(const std::vector<Text>& lines, const Style& style);

/// Characters of UTF-8 text.
std::size_t display_width(std::string_view text) noexcept;

}  // namespace shardplan::report
