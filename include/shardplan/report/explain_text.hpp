// Explanations as text and markdown: a card of a topic, a term of an estimate, the list of addresses.
#pragma once

#include <string>
#include <vector>

#include "shardplan/explain/explanation.hpp"
#include "shardplan/report/table.hpp"
#include "shardplan/report/text.hpp"

namespace shardplan::explain {
class Terms;
}

namespace shardplan::report {

/// Name, result, formula; where, here, beware, source, try. Folded to the page.
std::vector<Text> card_lines(const explain::Explanation& card, int width);

/// Its first line alone, however long.
Text card_line(const explain::Explanation& card);

/// A term: value and formula, each symbol with the address that opens it, the parts, the source.
std::vector<Text> term_lines(const explain::Explanation& term, int width);

/// Every address with its value.
Table addresses_table(const explain::Terms& terms, int width);

/// A card as a section of a markdown document.
std::string card_markdown(const explain::Explanation& card);

}  // namespace shardplan::report
