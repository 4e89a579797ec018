// Writes JSON in the order in which it is told: two spaces a level, leaf rows on one line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardplan::io {

class JsonWriter {
 public:
  /// How a container is laid out: a member a line, or all on one line (then everything inside is, too).
  enum class Lines : std::uint8_t { many, one };

  void begin_object(std::string_view name = {}, Lines lines = Lines::many) { begin(name, '{', lines); }
  void end_object() { end('}'); }
  void begin_array(std::string_view name = {}, Lines lines = Lines::many) { begin(name, '[', lines); }
  void end_array() { end(']'); }

  // Members of an object; in an array the name is "".
  void integer(std::string_view name, std::int64_t value);
  /// Shortest text that reads back as the same double, always with a point or an exponent. What is not finite becomes
  /// null and its path is remembered.
  void real(std::string_view name, double value);
  /// A count that is kept as a double: printed without a point.
  void count(std::string_view name, double value);
  void boolean(std::string_view name, bool value);
  void text(std::string_view name, std::string_view value);
  void null(std::string_view name);
  /// JSON text of a whole value, indented to this level.
  void json(std::string_view name, std::string_view value);

  const std::string& str() const noexcept { return out_; }
  /// JSON pointers of the numbers that were not finite.
  const std::vector<std::string>& unknown() const noexcept { return unknown_; }

 private:
  struct Level {
    std::string_view name;
    bool one_line = false;
    bool empty = true;
  };

  void begin(std::string_view name, char bracket, Lines lines);
  void end(char bracket);
  void prefix(std::string_view name);
  void new_line();
  void not_known(std::string_view name);

  std::string out_;
  std::vector<Level> levels_;
  std::vector<std::string> unknown_;
};

}  // namespace shardplan::io
