#include "explained.hpp"

#include <fmt/format.h>

#include <vector>

#include "shardplan/explain/terms.hpp"
#include "shardplan/io/explain_json.hpp"
#include "shardplan/io/suggest.hpp"
#include "shardplan/report/explain_text.hpp"
#include "shardplan/version.hpp"

namespace shardplan::cli {
namespace {

std::string listed(const explain::Terms& terms, const OutputStyle& style) {
  switch (style.format) {
    case Format::json: return io::addresses_json(terms, SHARDPLAN_VERSION);
    case Format::markdown: return report::addresses_table(terms, 0).markdown();
    case Format::csv: return report::addresses_table(terms, 0).csv();
    default: return report::addresses_table(terms, style.page.width).text(style.page);
  }
}

}  // namespace

Outcome explained(const Run& run, std::string_view term, const OutputStyle& style) {
  EstimateWorkspace workspace;
  Estimate result;
  estimate(run, workspace, result);
  const auto terms = explain::terms_of(run, workspace, result);
  Outcome outcome;
  outcome.status = result.fits ? exit_ok : exit_no;
  if (term.empty()) {
    if (style.quiet) return usage_problem("-q: the list of addresses has no first line that answers for the others");
    outcome.result = listed(*terms, style);
    return outcome;
  }
  const explain::Term* const found = terms->find(term);
  if (found == nullptr) {
    std::vector<std::string_view> known;
    for (const explain::Term& each : terms->all()) known.push_back(each.address);
    return usage_problem(
        fmt::format("--explain: this estimate has no term \"{}\"{}", term, io::did_you_mean(term, known)),
        "--explain without a term lists the addresses");
  }
  if (style.format == Format::csv) return usage_problem("--explain TERM has no rows in csv", "text and json show it");
  const explain::Explanation explanation = explain::explain_term(*terms, *found);
  if (style.format == Format::json) {
    outcome.result = io::explain_json(explanation, SHARDPLAN_VERSION);
    return outcome;
  }
  report::Style page = style.page;
  if (style.quiet) page.width = 1 << 20;
  std::vector<report::Text> lines = report::term_lines(explanation, page.width);
  if (style.quiet) lines.resize(1);
  outcome.result = report::render(lines, page);
  if (style.format == Format::markdown) outcome.result = "```text\n" + outcome.result + "```\n";
  return outcome;
}

}  // namespace shardplan::cli
