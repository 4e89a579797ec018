#include "shardplan/report/table.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

namespace shardplan::report {
namespace {

constexpr std::size_t gap = 2;

std::string head_of(const Column& column) {
  return column.unit.empty() ? column.head : column.head + " " + column.unit;
}

std::string key_of(const Column& column) {
  if (!column.key.empty()) return column.key;
  std::string key = head_of(column);
  for (char& c : key) {
    const bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    c = word ? c : '_';
  }
  return key;
}

/// "12,345" as a program reads it; other text as it is.
std::string without_commas(std::string text) {
  if (text.find_first_not_of("-0123456789.,") != std::string::npos) return text;
  text.erase(std::remove(text.begin(), text.end(), ','), text.end());
  return text;
}

Text without_margin(const Text& cell) {
  const std::string plain = cell.plain();
  const std::size_t margin = std::min(plain.find_first_not_of(' '), plain.size());
  return cell.slice(margin, cell.width());
}

/// Control characters would break the line structure of a file.
std::string printable(std::string_view text) { return Text(text).render(Style{}); }

}  // namespace

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

std::string markdown_cell(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    if (std::string_view("|<[*`\\").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

Table& Table::add(std::vector<Text> cells) {
  cells.resize(columns_.size());
  rows_.push_back({std::move(cells), false});
  return *this;
}

Table& Table::add_note(Text note) {
  rows_.push_back({{std::move(note)}, true});
  return *this;
}

std::vector<std::size_t> Table::widths(const std::vector<bool>& hidden) const {
  std::vector<std::size_t> widths(columns_.size(), 0);
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (hidden[i]) continue;
    widths[i] =
        std::max(display_width(head_of(columns_[i])), static_cast<std::size_t>(std::max(0, columns_[i].min_width)));
    for (const Row& row : rows_) {
      if (!row.note) widths[i] = std::max(widths[i], row.cells[i].width());
    }
  }
  return widths;
}

namespace {

std::size_t total_width(const std::vector<std::size_t>& widths, const std::vector<bool>& hidden) {
  std::size_t total = 0;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    if (!hidden[i]) total += widths[i] + (total > 0 ? gap : 0);
  }
  return total;
}

Text line_of(const std::vector<Column>& columns, const std::vector<Text>& cells, const std::vector<std::size_t>& widths,
             const std::vector<bool>& hidden) {
  Text line;
  bool first = true;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (hidden[i]) continue;
    if (!first) line += spaces(gap);
    first = false;
    line += columns[i].align == Align::right ? pad_left(cells[i], widths[i]) : pad_right(cells[i], widths[i]);
  }
  return line;
}

/// A row, on as many lines as its last cell takes.
std::vector<Text> lines_of(const std::vector<Column>& columns, const std::vector<Text>& cells,
                           const std::vector<std::size_t>& widths, const std::vector<bool>& hidden) {
  std::vector<Text> lines;
  if (hidden.back() || cells.back().width() <= widths.back()) {
    lines.push_back(line_of(columns, cells, widths, hidden));
    return lines;
  }
  std::vector<Text> row = cells;
  for (const Text& part : wrap(cells.back(), widths.back(), 1)) {
    row.back() = part;
    lines.push_back(line_of(columns, row, widths, hidden));
    row.assign(cells.size(), Text());
  }
  return lines;
}

}  // namespace

std::size_t Table::width() const {
  const std::vector<bool> hidden(columns_.size(), false);
  return total_width(widths(hidden), hidden);
}

std::vector<bool> Table::folded(std::size_t width) const {
  std::vector<bool> hidden(columns_.size(), false);
  while (total_width(widths(hidden), hidden) > width) {
    int most = 0;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (!hidden[i]) most = std::max(most, columns_[i].fold);
    }
    if (most == 0) break;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i].fold == most) hidden[i] = true;
    }
  }
  return hidden;
}

std::vector<Text> Table::records(int page) const {
  const std::size_t width = static_cast<std::size_t>(std::max(page, 1));
  const std::vector<bool> hidden = folded(width);
  std::vector<Text> out;
  for (const Row& row : rows_) {
    if (!out.empty()) out.emplace_back();
    if (row.note) {
      for (Text& line : wrap(row.cells[0], width, 2)) out.push_back(std::move(line));
      continue;
    }
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const Text cell = without_margin(row.cells[i]);
      if (hidden[i] || cell.empty()) continue;
      const std::string head = head_of(columns_[i]);
      const Text label = head.empty() ? Text() : Text(head + ": ");
      for (Text& line : wrap(label + cell, width, 2)) out.push_back(std::move(line));
    }
  }
  return out;
}

std::vector<Text> Table::lines(int page) const {
  const std::size_t width = static_cast<std::size_t>(std::max(page, 1));
  const std::vector<bool> hidden = folded(width);
  std::vector<std::size_t> sizes = widths(hidden);
  const std::size_t total = total_width(sizes, hidden);
  if (total > width) {
    const std::size_t excess = total - width;
    const auto least = static_cast<std::size_t>(std::max(0, columns_.back().least_width));
    if (least == 0 || hidden.back() || sizes.back() < least + excess) return records(page);
    sizes.back() -= excess;
  }
  std::vector<Text> out;
  std::vector<Text> heads;
  bool any_head = false;
  for (const Column& column : columns_) {
    heads.emplace_back(head_of(column), Role::heading);
    any_head = any_head || !heads.back().empty();
  }
  if (any_head) out.push_back(line_of(columns_, heads, sizes, hidden));
  for (const Row& row : rows_) {
    if (row.note) {
      for (Text& line : wrap(row.cells[0], width, 2)) out.push_back(std::move(line));
    } else {
      for (Text& line : lines_of(columns_, row.cells, sizes, hidden)) out.push_back(std::move(line));
    }
  }
  return out;
}

std::string Table::text(const Style& style) const { return render(lines(style.width), style); }

std::string Table::markdown() const {
  std::string out = "|";
  for (const Column& column : columns_) out.append(" ").append(markdown_cell(head_of(column))).append(" |");
  out += "\n|";
  for (const Column& column : columns_) out += column.align == Align::right ? " ---: |" : " --- |";
  out += "\n";
  for (const Row& row : rows_) {
    if (row.note) continue;
    out += "|";
    for (const Text& cell : row.cells) out.append(" ").append(markdown_cell(cell.plain())).append(" |");
    out += "\n";
  }
  return out;
}

std::string Table::csv() const {
  std::string out;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    out.append(i == 0 ? "" : ",").append(csv_field(key_of(columns_[i])));
  }
  out += "\n";
  for (const Row& row : rows_) {
    if (row.note) continue;
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      out.append(i == 0 ? "" : ",").append(csv_field(without_commas(printable(row.cells[i].plain()))));
    }
    out += "\n";
  }
  return out;
}

}  // namespace shardplan::report
