#include "shardplan/report/compare_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compare_rows.hpp"
#include "shardplan/plan/results.hpp"
#include "shardplan/report/sweep_text.hpp"
#include "shardplan/report/table.hpp"
#include "shardplan/report/text.hpp"

namespace shardplan::report {
namespace {

using plan::ComparedRun;
using plan::Comparison;
using plan::InputRow;
using plan::Quantity;
using plan::ResultField;

/// Rows that are left out.
struct Hidden {
  std::size_t equal = 0;
  std::size_t follow = 0;
};

double speed_of(const ComparedRun& run, bool by_gpu) {
  const ThroughputEstimate& throughput = run.estimate.throughput;
  return by_gpu ? throughput.tokens_per_s_per_gpu : throughput.tokens_per_s;
}

/// Nothing where the two are as fast.
std::string faster_text(const ComparedRun& faster, const ComparedRun& slower, bool by_gpu) {
  const double ratio = speed_of(faster, by_gpu) / speed_of(slower, by_gpu);
  return ratio > 1.0005 ? percent_text(ratio - 1) + " faster" : std::string();
}

/// "a.json", and where they differ "a.json (64 GPUs, mixtral-8x7b)"
std::string named(const ComparedRun& run, const Comparison& comparison) {
  std::string about;
  if (!same_gpus(comparison)) {
    about = fmt::format("{} GPU{}", count_text(run.run.num_gpus, 1000), run.run.num_gpus == 1 ? "" : "s");
  }
  if (!same_model(comparison)) about += (about.empty() ? "" : ", ") + run.run.model.name;
  return about.empty() ? run.name : fmt::format("{} ({})", run.name, about);
}

std::string over_of(const ComparedRun& run, Units units) {
  const Estimate& estimate = run.estimate;
  return estimate.fits_gpu ? std::string("host memory or NVMe is too small")
                           : fmt::format("{} over", size_with_unit(-estimate.headroom_bytes, units, 1));
}

/// "best.json is 15.7% faster and needs 27.3 GiB more: both fit"
std::string headline(const Comparison& comparison, Units units) {
  const std::vector<ComparedRun>& runs = comparison.runs;
  std::string over;
  std::size_t fit = 0;
  for (const ComparedRun& run : runs) {
    if (run.estimate.fits) {
      ++fit;
    } else {
      over += fmt::format("{}{} does not fit, {}", over.empty() ? "" : "; ", run.name, over_of(run, units));
    }
  }
  if (std::all_of(comparison.inputs.begin(), comparison.inputs.end(), [](const InputRow& row) { return row.equal; })) {
    std::string names = runs.front().name;
    for (std::size_t i = 1; i < runs.size(); ++i) names += (i + 1 < runs.size() ? ", " : " and ") + runs[i].name;
    return fmt::format("{} are the same run: {}", names,
                       over.empty() ? std::string("it fits") : over_of(runs.front(), units));
  }
  const bool by_gpu = per_gpu(comparison);
  const ComparedRun& best = *std::max_element(
      runs.begin(), runs.end(),
      [&](const ComparedRun& a, const ComparedRun& b) { return speed_of(a, by_gpu) < speed_of(b, by_gpu); });
  if (runs.size() > 2) {
    const std::string verdict = over.empty() ? std::string("all fit") : over;
    const double speed = speed_of(best, by_gpu);
    return fmt::format("{} is fastest{}, {} tokens/s{}: {}", named(best, comparison), by_gpu ? " per GPU" : "",
                       by_gpu ? fixed_text(speed, 0, 1000) : short_count(speed, 4), by_gpu ? "/GPU" : "", verdict);
  }
  const ComparedRun& other = &best == &runs[0] ? runs[1] : runs[0];
  // As fast: the change from the first to the second is what counts.
  const std::string faster = faster_text(best, other, by_gpu);
  const ComparedRun& subject = faster.empty() ? runs[1] : best;
  const ComparedRun& reference = faster.empty() ? runs[0] : other;
  std::string speed = faster.empty() ? "as fast" : faster;
  if (by_gpu) speed += fmt::format(" per GPU {} {}", faster.empty() ? "as" : "than", named(reference, comparison));
  const std::int64_t more = subject.estimate.peak_bytes - reference.estimate.peak_bytes;
  const std::string size = size_with_unit(std::abs(more), units, 1);
  std::string memory = fmt::format("needs {} {}", size, more > 0 ? "more" : "less");
  if (size.rfind("0.0 ", 0) == 0) memory = "needs as much memory";
  return fmt::format("{} is {} and {}: {}", named(subject, comparison), speed, memory,
                     over.empty() ? std::string("both fit")
                     : fit == 0   ? "neither fits"
                                  : over);
}

std::vector<std::string> names_of_runs(const Comparison& comparison) {
  std::vector<std::string> names;
  names.reserve(comparison.runs.size());
  for (const ComparedRun& run : comparison.runs) names.push_back(run.name);
  return names;
}

/// Letters for runs whose names leave no room for numbers.
std::vector<std::string> letters_of_runs(const Comparison& comparison) {
  std::vector<std::string> letters;
  for (std::size_t i = 0; i < comparison.runs.size(); ++i) letters.emplace_back(1, static_cast<char>('A' + i));
  return letters;
}

/// `heads`: what stands above each run's column.
Table table_of(const Comparison& comparison, const std::vector<std::string>& heads, const Style& style, bool all,
               Hidden& hidden) {
  std::vector<Column> columns = {{""}};
  for (const std::string& head : heads) columns.push_back({head, Align::right});
  constexpr int least_remark = 12;
  if (comparison.runs.size() == 2) columns.push_back({"change", Align::left, {}, 0, {}, 0, least_remark});
  Table table(columns);
  const auto add = [&](std::vector<ComparisonRow> part) {
    for (ComparisonRow& row : part) {
      if ((row.equal || row.follows) && !all) {
        ++(row.equal ? hidden.equal : hidden.follow);
        continue;
      }
      std::vector<Text> cells = {Text(std::move(row.label))};
      for (Text& value : row.values) cells.push_back(std::move(value));
      cells.push_back(std::move(row.change));
      table.add(std::move(cells));
    }
  };
  add(input_rows(comparison, style.units));
  add(result_rows(comparison, style.units));
  return table;
}

/// "the other 66 rows are equal, 2 follow from the layout: --all"
std::string hidden_text(const Hidden& hidden) {
  const auto rows = [](std::size_t count, const char* one, const char* many) {
    return fmt::format("{} row{}", count, count == 1 ? one : many);
  };
  std::string text;
  if (hidden.equal > 0) text = "the other " + rows(hidden.equal, " is equal", "s are equal");
  if (hidden.follow > 0) {
    text += text.empty() ? rows(hidden.follow, " differs and follows", "s differ and follow")
                         : fmt::format(", {} {}", hidden.follow, hidden.follow == 1 ? "follows" : "follow");
    text += " from the layout";
  }
  return text + ": --all";
}

}  // namespace

std::string compare_text(const Comparison& comparison, const Style& style, bool quiet, bool all) {
  std::vector<Text> lines = {Text(headline(comparison, style.units), Role::heading)};
  if (quiet) return render(lines, style);
  Hidden hidden;
  Table table = table_of(comparison, names_of_runs(comparison), style, all, hidden);
  constexpr std::size_t most_letters = 26;
  if (table.width() > static_cast<std::size_t>(std::max(style.width, 20)) && comparison.runs.size() <= most_letters) {
    const std::vector<std::string> letters = letters_of_runs(comparison);
    for (std::size_t i = 0; i < letters.size(); ++i) {
      lines.emplace_back(fmt::format("{}  {}", letters[i], comparison.runs[i].name));
    }
    hidden = {};
    table = table_of(comparison, letters, style, all, hidden);
  }
  if (table.rows() > 0) {
    for (Text& line : table.lines(style.width)) lines.push_back(std::move(line));
  }
  if (hidden.equal + hidden.follow > 0) lines.emplace_back(hidden_text(hidden), Role::dim);
  return render(lines, style);
}

std::string compare_markdown(const Comparison& comparison, const Style& style, bool quiet, bool all) {
  std::string out = markdown_cell(headline(comparison, style.units)) + "\n";
  if (quiet) return out;
  Hidden hidden;
  return out + "\n" + table_of(comparison, names_of_runs(comparison), style, all, hidden).markdown();
}

std::string compare_csv(const Comparison& comparison, bool all) {
  std::string out = "path";
  for (const ComparedRun& run : comparison.runs) out += "," + csv_field(run.name);
  out += "\n";
  for (const InputRow& row : comparison.inputs) {
    if (row.equal && !all) continue;
    out += csv_field(row.path);
    for (const std::string& value : row.values) out += "," + csv_field(value.empty() ? "" : plain_value(value));
    out += "\n";
  }
  for (const ResultField& field : plan::result_fields()) {
    if (field.path.empty() || field.path.rfind("/run/", 0) == 0) continue;
    std::string cells;
    bool equal = true;
    const double before = field.value(comparison.runs.front().run, comparison.runs.front().estimate);
    for (const ComparedRun& run : comparison.runs) {
      const double value = field.value(run.run, run.estimate);
      equal = equal && (value == before || (std::isnan(value) && std::isnan(before)));
      const bool whole = field.quantity == Quantity::bytes || field.quantity == Quantity::count;
      cells += !std::isfinite(value) ? "," : whole ? fmt::format(",{:.0f}", value) : fmt::format(",{}", value);
    }
    if (!equal || all) out += csv_field(field.path) + cells + "\n";
  }
  return out;
}

}  // namespace shardplan::report
