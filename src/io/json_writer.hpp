// Writes JSON in the order in which it is told: two spaces a level, leaf rows on one line. What writes a document
// through this interface describes it too: schema/schema_writer.hpp is told the same and draws the schema.
#pragma once

#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "shardplan/core/names.hpp"

namespace shardplan::io {

/// How many entries a list has; `most` 0: no limit. in_turn: as many as are written, each of its own kind. none: it
/// is empty here.
struct ListEntries {
  std::size_t least = 0;
  std::size_t most = 0;
  bool in_turn = false;
  bool none = false;
};

class JsonWriter {
 public:
  /// How a container is laid out: a member a line, or all on one line (then everything inside is, too).
  enum class Lines : std::uint8_t { many, one };
  /// compact: one line without blanks.
  enum class Style : std::uint8_t { pretty, compact };
  /// The numbers that a whole number may be: those from 0 or 1 on, or any.
  enum class Whole : std::uint8_t { from_0, from_1, any };

  explicit JsonWriter(Style style = Style::pretty) : style_(style) {}
  JsonWriter(const JsonWriter&) = delete;
  JsonWriter& operator=(const JsonWriter&) = delete;
  virtual ~JsonWriter() = default;

  void begin_object(std::string_view name = {}, Lines lines = Lines::many) { begin(name, '{', lines); }
  void end_object() { end('}'); }
  using Entries = ListEntries;
  void begin_array(std::string_view name = {}, Lines lines = Lines::many) { begin(name, '[', lines); }
  void begin_array(std::string_view name, Lines lines, const Entries& entries) {
    expect(entries);
    begin(name, '[', lines);
  }
  void end_array() { end(']'); }

  // Members of an object; in an array the name is "".
  virtual void integer(std::string_view name, std::int64_t value, Whole whole = Whole::from_0);
  /// Shortest text that reads back as the same double, always with a point or an exponent. What is not finite becomes
  /// null and its path is remembered.
  virtual void real(std::string_view name, double value);
  /// A count that is kept as a double: printed without a point.
  virtual void count(std::string_view name, double value);
  virtual void boolean(std::string_view name, bool value);
  virtual void text(std::string_view name, std::string_view value);
  virtual void null(std::string_view name);
  /// JSON text of a whole value, indented to this level.
  virtual void json(std::string_view name, std::string_view value);
  /// A text that is always the same in this place.
  virtual void constant(std::string_view name, std::string_view value);
  /// One of these words.
  virtual void word(std::string_view name, std::string_view value, std::span<const std::string_view> words);
  template <class Enum>
  void word(std::string_view name, Enum value) {
    word(name, shardplan::name(value), names_of<Enum>);
  }

  // What may be null.
  void integer_or_null(std::string_view name, std::optional<std::int64_t> value, Whole whole = Whole::from_0);
  void real_or_null(std::string_view name, std::optional<double> value);
  /// null where it is empty.
  void text_or_null(std::string_view name, std::string_view value);
  /// null where it is empty.
  void json_or_null(std::string_view name, std::string_view value);
  /// An object that write() fills.
  template <class Write>
  void object_or_null(std::string_view name, bool there, Lines lines, const Write& write) {
    may_be_null();
    if (!there && !describes()) return null(name);
    begin_object(name, lines);
    write();
    end_object();
  }
  /// The next value has the schema at a place of the definitions ("training/properties/recompute").
  virtual void like(std::string_view /*place*/) {}

  /// Members that are there or not: write() where they are.
  template <class Write>
  void optional(bool there, const Write& write) {
    if (!there && !describes()) return;
    ++optional_;
    write();
    --optional_;
  }

  /// A list, by write(entry) for each.
  template <class Values, class Write>
  void list(std::string_view name, const Values& values, Lines lines, const Write& write,
            const Entries& entries = Entries()) {
    begin_array(name, lines, entries);
    if (describes()) {
      write(std::remove_cvref_t<decltype(*std::begin(values))>{});
    } else {
      for (const auto& value : values) write(value);
    }
    end_array();
  }
  template <class Values, class Write>
  void list(std::string_view name, const Values& values, const Write& write) {
    list(name, values, Lines::many, write);
  }

  /// Whether the document is described, not written: what is written are examples then.
  virtual bool describes() const { return false; }

  const std::string& str() const noexcept { return out_; }
  /// JSON pointers of the numbers that were not finite.
  const std::vector<std::string>& unknown() const noexcept { return unknown_; }

 protected:
  virtual void begin(std::string_view name, char bracket, Lines lines);
  virtual void end(char bracket);
  /// The next value is one that may be null.
  virtual void may_be_null() {}
  /// The next list has so many entries.
  virtual void expect(const Entries& /*entries*/) {}
  /// Whether members stand in an optional part of the object that is open.
  int optional_ = 0;

 private:
  struct Level {
    std::string_view name;
    bool one_line = false;
    bool empty = true;
  };

  void prefix(std::string_view name);
  void new_line();
  void not_known(std::string_view name);

  Style style_;
  std::string out_;
  std::vector<Level> levels_;
  std::vector<std::string> unknown_;
};

}  // namespace shardplan::io
