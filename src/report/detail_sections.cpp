// What --detail adds: the parts at every moment, each collective, each operator of each kind of layer.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "sections.hpp"
#include "shardplan/report/number.hpp"
#include "shardplan/report/table.hpp"

namespace shardplan::report {
namespace {

std::string flop_text(double flop) { return flop > 0 ? fixed_text(flop / 1e9, flop < 99.95e9 ? 2 : 1) : "-"; }

std::string time_text(double time_s) { return time_s > 0 ? fixed_text(time_s * 1e6, time_s < 99.95e-6 ? 1 : 0) : "-"; }

std::string bytes_or_dash(std::int64_t bytes, Units units) { return bytes > 0 ? auto_size(bytes, units) : "-"; }

/// "activations are 34.4% of the peak": the largest part where it is highest.
std::string largest_part_text(const StageEstimate& stage) {
  const auto parts = parts_of(stage.peak());
  const std::size_t largest = static_cast<std::size_t>(std::max_element(parts.begin(), parts.end()) - parts.begin());
  const double total = static_cast<double>(std::max<std::int64_t>(stage.peak().total(), 1));
  return fmt::format("at the peak: {} {}", part_names[largest].word,
                     percent_text(static_cast<double>(parts[largest]) / total));
}

}  // namespace

std::vector<Text> moments_section(const Run& run, const Estimate& estimate, const EstimateTextOptions& options) {
  const Units units = options.style.units;
  const StageEstimate& stage = estimate.stages[static_cast<std::size_t>(estimate.peak_stage)];
  std::vector<Column> columns = {left("moment")};
  std::vector<std::size_t> shown;
  for (std::size_t part = 0; part < part_count; ++part) {
    const bool any = std::any_of(stage.moments.begin(), stage.moments.end(),
                                 [&](const MemoryParts& parts) { return parts_of(parts)[part] > 0; });
    if (!any) continue;
    shown.push_back(part);
    columns.push_back(right(std::string(part_names[part].head)));
  }
  columns.push_back(right("total"));
  Table table(columns);
  for (std::size_t i = 0; i < moment_count; ++i) {
    if (!stage.has_moment[i]) continue;
    const Moment moment = static_cast<Moment>(i);
    const Role role = moment == stage.peak_moment ? Role::heading : Role::plain;
    std::vector<Text> cells = {
        Text(fmt::format("{}{}", moment == stage.peak_moment ? "*" : " ", moment_text(moment)), role)};
    const auto parts = rounded_parts(stage.moments[i], units);
    for (const std::size_t part : shown) cells.emplace_back(hundredths_text(parts[part]), role);
    cells.emplace_back(hundredths_text(std::accumulate(parts.begin(), parts.end(), std::int64_t{0})), role);
    table.add(std::move(cells));
  }
  if (table.rows() == 0) return {};
  std::string head = fmt::format("Moments of the step, {}", unit_name(units));
  if (estimate.stages.size() > 1) head += fmt::format(", {} {}", stage_word(run), stage.stage);
  head += ", " + largest_part_text(stage);
  std::vector<Text> lines = section_head(head, "memory", options);
  append(lines, table.lines(options.style.width));
  return lines;
}

std::vector<Text> communication_section(const Run& run, const Estimate& estimate, const EstimateTextOptions& options) {
  const Units units = options.style.units;
  if (estimate.communication.count == 0) return {};
  const TimeScale scale = step_scale(run, estimate);
  Table table({left("group", 2), right("ranks"), left("link", 1), left("collective"), right("calls", 1),
               right("message", 1), right(fmt::format("sent {}", unit_name(units))),
               right(fmt::format("time {}", scale.unit)), right(fmt::format("exposed {}", scale.unit))});
  std::vector<std::int64_t> sent;
  std::vector<double> times;
  std::vector<double> exposed;
  for (const CommunicationCall& call : estimate.communication) {
    sent.push_back(call.sent_bytes_per_step);
    times.push_back(call.time_s);
    exposed.push_back(call.exposed_s);
  }
  const double quantum = scale.quantum();
  const std::vector<std::int64_t> sent_text = round_parts(sent, unit_bytes(units), 100);
  const std::vector<std::int64_t> time_text = round_parts(times, quantum);
  const std::vector<std::int64_t> exposed_text = round_parts(exposed, quantum);
  const auto time_of = [&](std::int64_t quanta) { return scale.text(static_cast<double>(quanta) * quantum); };
  std::size_t i = 0;
  for (const CommunicationCall& call : estimate.communication) {
    table.add({name(call.group), count_text(call.group_size), link_text(run, call.scope), call.name,
               count_text(call.calls_per_step), bytes_or_dash(call.message_bytes, units), hundredths_text(sent_text[i]),
               time_of(time_text[i]), time_of(exposed_text[i])});
    ++i;
  }
  const auto sum = [](const std::vector<std::int64_t>& parts) {
    return std::accumulate(parts.begin(), parts.end(), std::int64_t{0});
  };
  table.add({"", "", "", Text("total", Role::heading), "", "", Text(hundredths_text(sum(sent_text)), Role::heading),
             Text(time_of(sum(time_text)), Role::heading), Text(time_of(sum(exposed_text)), Role::heading)});
  std::string head = "Communication of one GPU per step";
  if (estimate.stages.size() > 1) head += fmt::format(", {} {}", stage_word(run), estimate.communication_stage);
  std::vector<Text> lines = section_head(head, "communication", options);
  append(lines, table.lines(options.style.width));
  const TimeEstimate& time = estimate.time;
  if (run.parallel.pipeline > 1 && time.data_exposed_stage != estimate.communication_stage &&
      time.data_hidden_s + time.exposed_by_group_s[static_cast<std::size_t>(GroupKind::data)] > 0) {
    const std::string text = fmt::format(
        "data: the step waits for {} {}'s, see --explain time.communication_exposed.data; with @{} other addresses "
        "are that {}'s too",
        stage_word(run), time.data_exposed_stage, time.data_exposed_stage, stage_word(run));
    append(lines, wrap(Text(text, Role::dim), static_cast<std::size_t>(std::max(options.style.width, 1)), 2));
  }
  return lines;
}

std::vector<Text> operators_section(const Run& run, const EstimateDetail& detail, const EstimateTextOptions& options) {
  const Units units = options.style.units;
  const std::size_t page = static_cast<std::size_t>(std::max(options.style.width, 1));
  std::vector<Text> lines =
      section_head(fmt::format("Operators of one layer, one GPU, one microbatch ({} x {} tokens)",
                               count_text(run.training.micro_batch_size), count_text(run.training.seq_length)),
                   "operators", options);
  for (const LayerDetail& layer : detail.layers) {
    const std::string which = layer.count == 1
                                  ? fmt::format("layer {}", layer.first)
                                  : fmt::format("layers {}-{}", layer.first, layer.first + layer.count - 1);
    append(lines, wrap(Text(fmt::format("{} ({}): saves {}, keeps {}", which, layer.moe ? "moe" : "dense",
                                        auto_size(layer.saved_bytes, units), auto_size(layer.kept_bytes, units))),
                       page, 2));
    if (layer.operators.empty()) continue;
    Table table({left("operator"), left("kind", 4), right("parameters", 3), right("saved"), right("GFLOP fwd", 2),
                 right("bwd", 2), right("HBM fwd", 3), right("us fwd"), right("bwd"), right("sent", 1)});
    OperatorDetail sum;
    for (const OperatorDetail& op : layer.operators) {
      table.add({op.name, op.kind, op.parameters > 0 ? count_text(op.parameters) : "-",
                 bytes_or_dash(op.saved_bytes, units), flop_text(op.forward_flop), flop_text(op.backward_flop),
                 bytes_or_dash(static_cast<std::int64_t>(op.forward_hbm_bytes), units), time_text(op.forward_s),
                 time_text(op.backward_s), bytes_or_dash(op.sent_bytes, units)});
      sum.parameters += op.parameters;
      sum.saved_bytes += op.saved_bytes;
      sum.forward_flop += op.forward_flop;
      sum.backward_flop += op.backward_flop;
      sum.forward_hbm_bytes += op.forward_hbm_bytes;
      sum.forward_s += op.forward_s;
      sum.backward_s += op.backward_s;
      sum.sent_bytes += op.sent_bytes;
    }
    const auto total = [](std::string text) { return Text(std::move(text), Role::heading); };
    table.add({total("total"), "", total(count_text(sum.parameters)), total(bytes_or_dash(sum.saved_bytes, units)),
               total(flop_text(sum.forward_flop)), total(flop_text(sum.backward_flop)),
               total(bytes_or_dash(static_cast<std::int64_t>(sum.forward_hbm_bytes), units)),
               total(time_text(sum.forward_s)), total(time_text(sum.backward_s)),
               total(bytes_or_dash(sum.sent_bytes, units))});
    append(lines, table.lines(options.style.width));
  }
  append(lines, wrap(Text(fmt::format(
                         "outside the layers: embedding saves {}, final norm {}, head {} (at most {} more at "
                         "the loss); backward works in {}",
                         auto_size(detail.embedding_saved_bytes, units),
                         auto_size(detail.final_norm_saved_bytes, units), auto_size(detail.head_saved_bytes, units),
                         auto_size(detail.head_peak_bytes, units), auto_size(detail.backward_transient_bytes, units))),
                     page, 2));
  return lines;
}

}  // namespace shardplan::report
