#include "shardplan/report/compare_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "check_changes.hpp"
#include "facts.hpp"
#include "shardplan/core/pointer.hpp"
#include "shardplan/plan/results.hpp"
#include "shardplan/report/number.hpp"
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

std::int64_t tokens_of(const Run& run) { return run.training.global_batch_size * run.training.seq_length; }

/// "[20] x 4" of a list of equal values; a long one is cut.
std::string list_value(const std::string& value) {
  const std::string first = value.substr(1, value.find_first_of(",]") - 1);
  std::string same = "[" + first;
  std::size_t count = 1;
  for (; same.size() + 1 < value.size(); ++count) same += "," + first;
  if (count > 1 && same + "]" == value) return fmt::format("[{}] x {}", first, count);
  constexpr std::size_t longest = 24;
  return value.size() <= longest ? value : value.substr(0, longest - 3) + "..]";
}

/// A JSON value without the quotes of a text; nothing as "-".
std::string plain_value(const std::string& value) {
  if (value.empty()) return "-";
  return value.size() > 1 && value.front() == '"' ? value.substr(1, value.size() - 2) : value;
}

/// A row of the table: label, one text a run, what is said of the change.
struct Row {
  std::string label;
  std::vector<Text> values;
  Text change;
  bool equal = false;
  bool follows = false;  ///< from the layout: it differs, and says nothing of its own
};

/// Rows that are left out.
struct Hidden {
  std::size_t equal = 0;
  std::size_t follow = 0;
};

bool all_same(const Comparison& comparison, const auto& value) {
  const std::vector<ComparedRun>& runs = comparison.runs;
  return std::all_of(runs.begin(), runs.end(),
                     [&](const ComparedRun& run) { return value(run) == value(runs.front()); });
}

bool same_gpus(const Comparison& comparison) {
  return all_same(comparison, [](const ComparedRun& run) { return run.run.num_gpus; });
}

bool same_model(const Comparison& comparison) {
  return all_same(comparison, [](const ComparedRun& run) { return run.run.model.name; });
}

/// Runs of other sizes or models compare by what a GPU does.
bool per_gpu(const Comparison& comparison) { return !same_gpus(comparison) || !same_model(comparison); }

/// Which parts of memory make most of a difference: "activ 14.5, grad 8.5".
std::string parts_behind(const Estimate& now, const Estimate& before, Units units) {
  const auto parts = [](const Estimate& e) {
    return parts_of(e.stages[static_cast<std::size_t>(e.peak_stage)].peak());
  };
  const auto left = parts(before);
  const auto right = parts(now);
  const std::int64_t total = now.peak_bytes - before.peak_bytes;
  std::vector<std::pair<std::int64_t, std::size_t>> changes;
  for (std::size_t i = 0; i < part_count; ++i) {
    const std::int64_t change = right[i] - left[i];
    // Of those that go the same way, what is a twentieth at least.
    if (change != 0 && (change > 0) == (total > 0) && std::abs(change) * 20 >= std::abs(total)) {
      changes.emplace_back(std::abs(change), i);
    }
  }
  std::sort(changes.rbegin(), changes.rend());
  constexpr std::size_t most = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(changes.size(), most); ++i) {
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", part_names[changes[i].second].head,
                        size_text(changes[i].first, units, 1));
  }
  return text;
}

class Rows {
 public:
  Rows(const Comparison& comparison, Units units) : comparison_(comparison), units_(units) {}

  std::vector<Row> inputs() const {
    std::vector<Row> rows;
    for (const InputRow& input : comparison_.inputs) {
      const bool derived = input.path == "/parallel/shard_group" || input.values.front()[0] == '[';
      Row row{dotted(input.path), {}, {}, input.equal, !input.equal && !input.stated && derived};
      for (const std::string& value : input.values) {
        row.values.emplace_back((!value.empty() && value.front() == '[') ? list_value(value) : plain_value(value));
      }
      if (input.alone) row.change = Text(alone_text(*input.alone), Role::dim);
      rows.push_back(std::move(row));
    }
    return rows;
  }

  std::vector<Row> results() const {
    std::vector<Row> rows = {peak_row(), free_row()};
    if (any([](const ComparedRun& run) { return run.estimate.host_bytes_per_node > 0; })) {
      rows.push_back(field_row(*plan::find_result("host")));
    }
    if (same_tokens()) rows.push_back(field_row(*plan::find_result("step")));
    for (Row& row : time_parts()) rows.push_back(std::move(row));
    if (per_gpu(comparison_)) rows.push_back(field_row(*plan::find_result("tokens-per-gpu")));
    for (const char* const word : {"tokens", "mfu", "causal", "sent", "hours"}) {
      rows.push_back(field_row(*plan::find_result(word)));
    }
    if (any([](const ComparedRun& run) { return run.estimate.throughput.has_price; })) {
      rows.push_back(field_row(*plan::find_result("price")));
    }
    return rows;
  }

 private:
  template <class Matches>
  bool any(const Matches& matches) const {
    return std::any_of(comparison_.runs.begin(), comparison_.runs.end(), matches);
  }
  bool is_pair() const { return comparison_.runs.size() == 2; }
  const ComparedRun& first() const { return comparison_.runs.front(); }
  const ComparedRun& last() const { return comparison_.runs.back(); }

  bool same_tokens() const {
    return std::all_of(comparison_.runs.begin(), comparison_.runs.end(),
                       [&](const ComparedRun& run) { return tokens_of(run.run) == tokens_of(first().run); });
  }

  std::string alone_text(const plan::Alone& alone) const {
    if (!alone.legal) return "not legal alone";
    std::string text;
    const std::string speed = relative(alone.tokens_per_s, first().estimate.throughput.tokens_per_s);
    if (!speed.empty()) text = speed + " tokens/s";
    const std::int64_t bytes = alone.peak_bytes - first().estimate.peak_bytes;
    const std::string size = signed_size(bytes, units_);
    if (size.substr(1) != "0.0") text += fmt::format("{}{} {}", text.empty() ? "" : ", ", size, unit_name(units_));
    if (text.empty()) return "alone: no change";
    return fmt::format("alone: {}{}", text, alone.fits || !first().estimate.fits ? "" : ", does not fit");
  }

  Row peak_row() const {
    Row row{fmt::format("peak, {}", unit_name(units_)), {}, {}, true};
    for (const ComparedRun& run : comparison_.runs) {
      row.values.emplace_back(size_text(run.estimate.peak_bytes, units_, 1));
      row.equal = row.equal && run.estimate.peak_bytes == first().estimate.peak_bytes;
    }
    if (!is_pair() || row.equal) return row;
    const std::int64_t now = last().estimate.peak_bytes;
    const std::int64_t before = first().estimate.peak_bytes;
    std::string change = signed_size(now - before, units_);
    const std::string share = relative(static_cast<double>(now), static_cast<double>(before));
    if (!share.empty()) change += fmt::format(" ({})", share);
    row.change = Text(change) + Text(" " + parts_behind(last().estimate, first().estimate, units_), Role::dim);
    return row;
  }

  Row free_row() const {
    Row row{fmt::format("free, {}", unit_name(units_)), {}, {}, true};
    for (const ComparedRun& run : comparison_.runs) {
      const Estimate& estimate = run.estimate;
      row.equal = row.equal && estimate.headroom_bytes == first().estimate.headroom_bytes;
      if (estimate.fits) {
        row.values.emplace_back(size_text(estimate.headroom_bytes, units_, 1));
      } else if (estimate.fits_gpu) {
        row.values.emplace_back("OVER host", Role::bad);
      } else {
        row.values.emplace_back("OVER " + size_text(-estimate.headroom_bytes, units_, 1), Role::bad);
      }
    }
    if (is_pair() && !row.equal) {
      row.change = Text(signed_size(last().estimate.headroom_bytes - first().estimate.headroom_bytes, units_));
    }
    return row;
  }

  Row field_row(const ResultField& field) const {
    const bool bytes = field.quantity == Quantity::bytes;
    std::string label(field.head);
    if (bytes) label = fmt::format("{}, {}", field.head, unit_name(units_));
    Row row{std::move(label), {}, {}, true};
    std::vector<double> values;
    for (const ComparedRun& run : comparison_.runs) {
      const double value = field.value(run.run, run.estimate);
      values.push_back(value);
      row.values.emplace_back(std::isfinite(value) ? figure_text(field, value, units_) : "-");
      row.equal = row.equal && (value == values.front() || (std::isnan(value) && std::isnan(values.front())));
    }
    if (!is_pair() || row.equal) return row;
    const double change = values.back() - values.front();
    if (field.quantity == Quantity::fraction) {
      row.change = Text(fmt::format("{:+.1f} points", 100 * change));
      return row;
    }
    const std::string share = relative(values.back(), values.front());
    std::string text = bytes ? signed_size(static_cast<std::int64_t>(change), units_) : std::string();
    if (!bytes && std::isfinite(change)) text = (change < 0 ? "-" : "+") + figure_text(field, std::abs(change), units_);
    if (!share.empty()) text += fmt::format(" ({})", share);
    row.change = Text(text, field.better * change > 0 ? Role::good : Role::plain);
    return row;
  }

  /// The rows of the step as shares, by name; the one that moves the step most is the reason.
  std::vector<Row> time_parts() const {
    std::vector<std::string> labels;
    std::vector<std::map<std::string, double>> seconds;
    for (const ComparedRun& run : comparison_.runs) {
      std::map<std::string, double>& of_run = seconds.emplace_back();
      for (const TimeRow& row : time_rows(run.run, run.estimate)) {
        if (std::find(labels.begin(), labels.end(), row.label) == labels.end()) labels.push_back(row.label);
        of_run[row.label] = row.time_s;
      }
    }
    std::vector<Row> rows;
    for (const std::string& label : labels) {
      Row row{label, {}, {}, true};
      std::string before;
      for (std::size_t i = 0; i < seconds.size(); ++i) {
        const std::string share = percent_text(seconds[i][label] / comparison_.runs[i].estimate.time.step_s);
        if (i == 0) before = share;
        row.equal = row.equal && share == before;
        row.values.emplace_back(share);
      }
      if (is_pair() && !row.equal) row.change = Text(reason_text(seconds[0][label], seconds[1][label]), Role::dim);
      rows.push_back(std::move(row));
    }
    return rows;
  }

  std::string reason_text(double before, double now) const {
    // Another model has another step throughout. Of other tokens and GPUs, the time of a GPU per token.
    if (!same_model(comparison_)) return {};
    const double tokens = static_cast<double>(tokens_of(first().run)) / static_cast<double>(tokens_of(last().run));
    const double scale = tokens * last().run.num_gpus / first().run.num_gpus;
    const double total = scale * last().estimate.time.step_s - first().estimate.time.step_s;
    const double change = scale * now - before;
    constexpr double least = 0.005;  // of the step: below it rounds away in the headline
    const bool other_step = tokens != 1 || !same_gpus(comparison_);
    if (other_step && std::abs(total) < least * first().estimate.time.step_s) return {};
    if (total == 0 || change / total < 0.5) return {};
    return change / total > 0.95 ? "the reason for it" : "the reason for most of it";
  }

  const Comparison& comparison_;
  Units units_;
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
  const Rows rows(comparison, style.units);
  const auto add = [&](std::vector<Row> part) {
    for (Row& row : part) {
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
  add(rows.inputs());
  add(rows.results());
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
