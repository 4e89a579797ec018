// A table once filled, printed as text, markdown or CSV.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shardplan/report/style.hpp"
#include "shardplan/report/text.hpp"

namespace shardplan::report {

enum class Align : std::uint8_t { left, right };

struct Column {
  std::string head;
  Align align = Align::left;
  std::string unit = {};  ///< follows the head: "memory GiB"
  /// A table wider than the page loses columns, the highest `fold` first; 0 stays.
  int fold = 0;
  std::string key = {};  ///< CSV head; empty: head and unit with '_' for what is not a letter or digit
  int min_width = 0;
  int least_width = 0;  ///< of the last column: where the page is too narrow its cells go on below; 0: they do not
};

/// Cells are texts; a row may be shorter than the columns. A right-aligned column's head is right-aligned as well.
class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  Table& add(std::vector<Text> cells);
  /// A line across all columns, after the rows so far (text only).
  Table& add_note(Text note);

  const std::vector<Column>& columns() const noexcept { return columns_; }
  std::size_t rows() const noexcept { return rows_.size(); }

  /// Characters of the widest line with every column.
  std::size_t width() const;

  /// Lines of at most `width` characters. Columns fold; where even the last ones do not fit, each row becomes lines of
  /// `head: value`, rows parted by an empty line.
  std::vector<Text> lines(int width) const;
  std::vector<Text> records(int width) const;  ///< the `head: value` lines, whatever the width
  std::string text(const Style& style) const;

  /// GitHub's tables. Every column; '|' in a cell is escaped.
  std::string markdown() const;
  /// RFC 4180 with "\n" line ends. Every column; numbers lose the commas between their thousands.
  std::string csv() const;

 private:
  struct Row {
    std::vector<Text> cells;
    bool note = false;
  };
  std::vector<Column> columns_;
  std::vector<Row> rows_;

  std::vector<bool> folded(std::size_t width) const;
  std::vector<std::size_t> widths(const std::vector<bool>& hidden) const;
};

/// A field of CSV, quoted where it must be.
std::string csv_field(std::string_view text);
/// Text that cannot break a markdown table or start markup.
std::string markdown_cell(std::string_view text);

}  // namespace shardplan::report
