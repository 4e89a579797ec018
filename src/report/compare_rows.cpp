#include "compare_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "check_changes.hpp"
#include "facts.hpp"
#include "shardplan/core/pointer.hpp"
#include "shardplan/plan/results.hpp"
#include "shardplan/report/sweep_text.hpp"

namespace shardplan::report {

using plan::ComparedRun;
using plan::Comparison;
using plan::InputRow;
using plan::Quantity;
using plan::ResultField;

namespace {

bool all_same(const Comparison& comparison, const auto& value) {
  const std::vector<ComparedRun>& runs = comparison.runs;
  return std::all_of(runs.begin(), runs.end(),
                     [&](const ComparedRun& run) { return value(run) == value(runs.front()); });
}

}  // namespace

bool same_gpus(const Comparison& comparison) {
  return all_same(comparison, [](const ComparedRun& run) { return run.run.num_gpus; });
}

bool same_model(const Comparison& comparison) {
  return all_same(comparison, [](const ComparedRun& run) { return run.run.model.name; });
}

bool per_gpu(const Comparison& comparison) { return !same_gpus(comparison) || !same_model(comparison); }

std::string plain_value(const std::string& value) {
  if (value.empty()) return "-";
  return value.size() > 1 && value.front() == '"' ? value.substr(1, value.size() - 2) : value;
}

namespace {

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

  std::vector<ComparisonRow> inputs() const {
    std::vector<ComparisonRow> rows;
    for (const InputRow& input : comparison_.inputs) {
      const bool derived = input.path == "/parallel/shard_group" || input.values.front()[0] == '[';
      ComparisonRow row{dotted(input.path), {}, {}, input.equal, !input.equal && !input.stated && derived};
      for (const std::string& value : input.values) {
        row.values.emplace_back((!value.empty() && value.front() == '[') ? list_value(value) : plain_value(value));
      }
      if (input.alone) row.change = Text(alone_text(*input.alone), Role::dim);
      rows.push_back(std::move(row));
    }
    return rows;
  }

  std::vector<ComparisonRow> results() const {
    std::vector<ComparisonRow> rows = {peak_row(), free_row()};
    if (any([](const ComparedRun& run) { return run.estimate.host_bytes_per_node > 0; })) {
      rows.push_back(field_row(*plan::find_result("host")));
    }
    if (same_tokens()) rows.push_back(field_row(*plan::find_result("step")));
    for (ComparisonRow& row : time_parts()) rows.push_back(std::move(row));
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

  ComparisonRow peak_row() const {
    ComparisonRow row{fmt::format("peak, {}", unit_name(units_)), {}, {}, true};
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

  ComparisonRow free_row() const {
    ComparisonRow row{fmt::format("free, {}", unit_name(units_)), {}, {}, true};
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

  ComparisonRow field_row(const ResultField& field) const {
    const bool bytes = field.quantity == Quantity::bytes;
    std::string label(field.head);
    if (bytes) label = fmt::format("{}, {}", field.head, unit_name(units_));
    ComparisonRow row{std::move(label), {}, {}, true};
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
  std::vector<ComparisonRow> time_parts() const {
    std::vector<std::string> labels;
    std::vector<std::map<std::string, double>> seconds;
    for (const ComparedRun& run : comparison_.runs) {
      std::map<std::string, double>& of_run = seconds.emplace_back();
      for (const TimeRow& row : time_rows(run.run, run.estimate)) {
        if (std::find(labels.begin(), labels.end(), row.label) == labels.end()) labels.push_back(row.label);
        of_run[row.label] = row.time_s;
      }
    }
    std::vector<ComparisonRow> rows;
    for (const std::string& label : labels) {
      ComparisonRow row{label, {}, {}, true};
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

}  // namespace

std::vector<ComparisonRow> input_rows(const Comparison& comparison, Units units) {
  return Rows(comparison, units).inputs();
}
std::vector<ComparisonRow> result_rows(const Comparison& comparison, Units units) {
  return Rows(comparison, units).results();
}

}  // namespace shardplan::report
