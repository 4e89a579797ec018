#include "shardplan/report/explain_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sections.hpp"
#include "shardplan/explain/terms.hpp"

namespace shardplan::report {
namespace {

constexpr std::size_t label_width = 16;

using explain::ExplainedSymbol;
using explain::Explanation;
using explain::value_text;

/// A label and its text, later lines under the text; on narrow pages under the label.
void add_line(std::vector<Text>& lines, std::string_view label, const Text& text, int width) {
  const std::size_t page = static_cast<std::size_t>(std::max(width, 20));
  const std::size_t indent = page < 50 ? 4 : label_width;
  std::vector<Text> folded = wrap(text, page - indent, 0);
  for (std::size_t i = 0; i < folded.size(); ++i) {
    const Text front = i == 0 ? pad_right(Text("  ") + Text(std::string(label), Role::dim), indent) : spaces(indent);
    if (i == 0 && front.width() >= indent && label.size() + 2 >= indent) {
      lines.push_back(front);
      lines.push_back(spaces(indent) + folded[i]);
    } else {
      lines.push_back(front + folded[i]);
    }
  }
}

/// 312e12 as people write it; empty for numbers that are not round.
std::string round_number(double value) {
  for (const int power : {12, 9}) {
    const double scaled = value / std::pow(10.0, power);
    if (scaled >= 1 && scaled * 100 == std::nearbyint(scaled * 100)) return fmt::format("{:.6g}e{}", scaled, power);
  }
  return {};
}

/// "p = 4 pipeline stages"; numbers as they go into the formula.
std::string symbol_text(const ExplainedSymbol& symbol) {
  std::string round = round_number(symbol.value);
  if (round.empty() && symbol.unit.empty() && symbol.value >= 1e5) {
    round = value_text(std::nearbyint(symbol.value), "");  // as a count; the line below has every digit
  }
  std::string text =
      fmt::format("{} = {}", symbol.symbol,
                  round.empty() ? value_text(symbol.value, symbol.unit == "B" ? "" : symbol.unit) : round);
  if (!round.empty() && !symbol.unit.empty() && symbol.unit != "B") text += " " + symbol.unit;
  if (symbol.unit == "B") text += " B";
  if (!symbol.meaning.empty()) text += " " + symbol.meaning;
  return text;
}

std::string shown_value(const Explanation& card) {
  return card.shown.empty() ? value_text(card.value, card.unit) : card.shown;
}

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += (all.empty() ? "" : "; ") + text;
  return all;
}

Text card_head(const Explanation& card) {
  const std::string head = card.head.empty() ? card.formula : card.head;
  return pad_right(Text(card.topic, Role::heading), label_width - 1) + Text(" ") +
         Text(shown_value(card), Role::heading) + Text(head.empty() ? "" : " = " + head);
}

}  // namespace

Text card_line(const Explanation& card) {
  return card_head(card) + Text(card.note.empty() ? "" : "  " + card.note, Role::dim);
}

std::vector<Text> card_lines(const Explanation& card, int width) {
  const std::size_t page = static_cast<std::size_t>(std::max(width, 20));
  std::vector<Text> lines;
  Text first = card_head(card);
  const Text note(card.note, Role::dim);
  if (!card.note.empty() && first.width() + 2 + note.width() <= page) {
    first += spaces(page - first.width() - note.width()) + note;
    append(lines, {first});
  } else {
    append(lines, wrap(first, page, page < 50 ? 4 : label_width));
    if (!card.note.empty()) add_line(lines, "", note, width);
  }
  if (!card.symbols.empty()) {
    std::string where = card.run.empty() ? "" : card.run + ": ";
    for (std::size_t i = 0; i < card.symbols.size(); ++i) where += (i == 0 ? "" : ", ") + symbol_text(card.symbols[i]);
    add_line(lines, "where", Text(where), width);
  }
  if (!card.substitution.empty() && card.substitution != card.formula) {
    add_line(lines, "here", Text(card.substitution), width);
  }
  for (const explain::Remark& remark : card.remarks) add_line(lines, remark.label, Text(remark.text), width);
  if (!card.beware.empty()) add_line(lines, "beware", Text(card.beware), width);
  if (!card.sources.empty()) add_line(lines, "source", Text(joined(card.sources), Role::dim), width);
  if (!card.next.empty()) add_line(lines, "try", Text(card.next), width);
  return lines;
}

std::vector<Text> term_lines(const Explanation& term, int width) {
  const std::size_t page = static_cast<std::size_t>(std::max(width, 20));
  std::vector<Text> lines;
  const std::string value = value_text(term.value, term.unit);
  const bool is_formula = !term.symbols.empty();
  Text first = Text(term.topic, Role::heading) + Text(" = ") + Text(value, Role::heading);
  if (is_formula) first += Text(" = " + term.formula);
  append(lines, wrap(first, page, 6));
  append(lines, wrap(Text("  " + term.title), page, 4));
  if (is_formula) {
    const std::string plain =
        explain::number(term.value) + (term.unit.empty() || term.unit == "fraction" ? "" : " " + term.unit);
    add_line(lines, "here", Text(fmt::format("{} = {}", term.substitution, plain)), width);
    for (std::size_t i = 0; i < term.symbols.size(); ++i) {
      const ExplainedSymbol& symbol = term.symbols[i];
      add_line(lines, i == 0 ? "where" : "",
               Text(fmt::format("{} = {}  ", symbol.symbol, value_text(symbol.value, symbol.unit))) +
                   Text(symbol.address.empty() ? "" : symbol.address + "  ", Role::heading) +
                   Text(symbol.meaning, Role::dim),
               width);
    }
  }
  // The symbols of a plain sum are its parts already.
  const bool listed = term.parts.size() == term.symbols.size() &&
                      std::equal(term.parts.begin(), term.parts.end(), term.symbols.begin(),
                                 [](const auto& part, const auto& symbol) { return part.address == symbol.address; });
  if (!listed) {
    std::vector<const explain::PartOf*> parts;
    for (const explain::PartOf& part : term.parts) parts.push_back(&part);
    std::stable_sort(parts.begin(), parts.end(), [](const auto* a, const auto* b) { return a->value > b->value; });
    for (std::size_t i = 0; i < parts.size(); ++i) {
      add_line(lines, i == 0 ? "parts" : "",
               pad_left(Text(value_text(parts[i]->value, term.unit)), 12) + Text("  ") +
                   Text(parts[i]->address, Role::heading),
               width);
    }
  }
  for (const explain::Remark& remark : term.remarks) {
    add_line(lines, remark.label, Text(remark.text, Role::dim), width);
  }
  add_line(lines, "source", Text(joined(term.sources), Role::dim), width);
  return lines;
}

Table addresses_table(const explain::Terms& terms, int width) {
  Table table({left("address"), right("value"), left("meaning", 1)});
  std::size_t longest = 7;
  for (const explain::Term& term : terms.all()) longest = std::max(longest, term.address.size());
  const std::size_t room = static_cast<std::size_t>(std::max(width, 0));
  for (const explain::Term& term : terms.all()) {
    std::string meaning = term.meaning;
    const std::size_t rest = longest + 18 < room ? room - longest - 18 : 0;
    if (width > 0 && meaning.size() > rest) meaning = rest > 3 ? meaning.substr(0, rest - 2) + ".." : "";
    table.add({term.address, value_text(term.value, term.unit), Text(meaning, Role::dim)});
  }
  return table;
}

std::string card_markdown(const Explanation& card) {
  std::string text = fmt::format("## {}\n\n", card.topic);
  if (!card.title.empty()) text += fmt::format("{}\n\n", card.title);
  return text + "```text\n" + render(card_lines(card, 100), {}) + "```\n";
}

}  // namespace shardplan::report
