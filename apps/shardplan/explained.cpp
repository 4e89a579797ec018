#include "explained.hpp"

#include <fmt/format.h>

#include <algorithm>
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

Outcome unknown_term(std::string_view term, const std::vector<std::string_view>& known) {
  const std::string_view meant = explain::Terms::meant(term);
  if (!meant.empty()) {
    const bool is_price = meant == "throughput.price_per_1e12_tokens";
    return usage_problem(fmt::format("--explain: \"{}\" is {}, which this estimate does not have", term, meant),
                         is_price ? "the cluster's price_per_gpu_hour gives a price; gpu_hours is there without one"
                                  : "--explain without a term lists the addresses");
  }
  return usage_problem(
      fmt::format("--explain: this estimate has no term \"{}\"{}", term, io::did_you_mean(term, known)),
      "--explain without a term lists the addresses");
}

Outcome no_csv() { return usage_problem("--explain TERM has no rows in csv", "text and json show it"); }

std::string text_of(const explain::Explanation& explanation, const OutputStyle& style) {
  report::Style page = style.page;
  if (style.quiet) page.width = 1 << 20;
  std::vector<report::Text> lines = report::term_lines(explanation, page.width);
  if (style.quiet) lines.resize(1);
  return report::render(lines, page);
}

std::string framed(const std::string& text, const OutputStyle& style) {
  return style.format == Format::markdown ? "```text\n" + text + "```\n" : text;
}

/// `--detail`: the symbols and parts of the term are opened too.
void add_parts(const explain::Terms& terms, std::vector<explain::Explanation>& opened) {
  std::vector<std::string> addresses;
  for (const explain::ExplainedSymbol& symbol : opened.front().symbols) addresses.push_back(symbol.address);
  for (const explain::PartOf& part : opened.front().parts) addresses.push_back(part.address);
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const auto before = addresses.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::find(addresses.begin(), before, addresses[i]) != before) continue;
    if (const explain::Term* const part = terms.find(addresses[i]))
      opened.push_back(explain::explain_term(terms, *part));
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
    return unknown_term(term, known);
  }
  if (style.format == Format::csv) return no_csv();
  std::vector<explain::Explanation> opened = {explain::explain_term(*terms, *found)};
  if (style.detail) add_parts(*terms, opened);
  if (style.format == Format::json) {
    outcome.result = opened.size() == 1 ? io::explain_json(opened.front(), SHARDPLAN_VERSION)
                                        : io::explain_all_json(opened, SHARDPLAN_VERSION);
    return outcome;
  }
  std::string text;
  for (const explain::Explanation& each : opened)
    text += (text.empty() || style.quiet ? "" : "\n") + text_of(each, style);
  outcome.result = framed(text, style);
  return outcome;
}

Outcome explained(std::span<const NamedRun> runs, std::string_view term, const OutputStyle& style) {
  if (style.format == Format::csv) return no_csv();
  if (term.empty()) {
    return usage_problem("--explain needs a term where several runs are printed",
                         "shardplan estimate RUN.json --explain lists the addresses of one");
  }
  Outcome outcome;
  std::vector<explain::Explanation> found;
  std::vector<std::string> addresses;
  std::string text;
  for (const NamedRun& each : runs) {
    EstimateWorkspace workspace;
    Estimate result;
    estimate(*each.run, workspace, result);
    if (!result.fits) outcome.status = exit_no;
    const auto terms = explain::terms_of(*each.run, workspace, result);
    const explain::Term* const of_run = terms->find(term);
    text += fmt::format("{}{}: ", text.empty() || style.quiet ? "" : "\n", each.name);
    if (of_run == nullptr) {
      for (const explain::Term& known : terms->all()) addresses.push_back(known.address);
      text += fmt::format("has no term {}\n", term);
      continue;
    }
    found.push_back(explain::explain_term(*terms, *of_run));
    found.back().run = each.name;
    text += text_of(found.back(), style);
  }
  if (found.empty()) return unknown_term(term, {addresses.begin(), addresses.end()});
  if (!style.quiet && found.size() == runs.size() && found.size() > 1) {
    text += "\n";
    for (std::size_t i = 1; i < found.size(); ++i) {
      const double from = found.front().value, by = found[i].value - from;
      text += fmt::format("{} less {}: {}{}{}\n", found[i].run, found.front().run, by > 0 ? "+" : "",
                          explain::value_text(by, found[i].unit),
                          from == 0 ? std::string() : fmt::format(", {:.4g}x", found[i].value / from));
    }
  }
  outcome.result = style.format == Format::json ? io::explain_all_json(found, SHARDPLAN_VERSION) : framed(text, style);
  return outcome;
}

}  // namespace shardplan::cli
