// What --detail adds about the device and the pipeline: memory outside the model, every rank of the simulated step.
#include <fmt/format.h>

#include <algorithm>

#include "sections.hpp"
#include "shardplan/report/number.hpp"
#include "shardplan/report/table.hpp"

namespace shardplan::report {
namespace {

std::string spaced(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

}  // namespace

std::vector<Text> overheads_section(const Estimate& estimate, const EstimateDetail& detail,
                                    const EstimateTextOptions& options) {
  if (detail.overheads.empty()) return {};
  const Units units = options.style.units;
  std::vector<Text> lines =
      section_head(fmt::format("Outside the model, {}, about", unit_name(units)), "memory", options);
  Table table({left("what"), right("bytes"), left("in"), left("source", 1)});
  for (const OverheadDetail& line : detail.overheads) {
    table.add({spaced(line.name), hundredths_text(hundredths_of(line.bytes, units)),
               line.allocated ? "transient" : "CUDA+NCCL", Text(std::string(line.source), Role::dim)});
  }
  const StageEstimate& stage = estimate.stages[static_cast<std::size_t>(estimate.binding_stage)];
  const std::int64_t allocated = stage.peak().allocated();
  table.add({"allocator", hundredths_text(hundredths_of(stage.reserved_bytes - allocated, units)), "reserve",
             Text(fmt::format("reserved but not allocated, {} to {}",
                              hundredths_text(hundredths_of(stage.reserved_low_bytes - allocated, units)),
                              hundredths_text(hundredths_of(stage.reserved_high_bytes - allocated, units))),
                  Role::dim)});
  append(lines, table.lines(options.style.width));
  return lines;
}

std::vector<Text> offload_section(const Estimate& estimate, const EstimateTextOptions& options) {
  const OffloadEstimate& moved = estimate.offload;
  if (moved.to_host_bytes + moved.from_host_bytes + moved.nvme_read_bytes <= 0) return {};
  const Units units = options.style.units;
  const auto size = [units](double bytes) { return auto_size(static_cast<std::int64_t>(bytes), units); };
  std::string text = fmt::format("Offload, one GPU and step: {} to the host, {} back", size(moved.to_host_bytes),
                                 size(moved.from_host_bytes));
  if (moved.nvme_read_bytes > 0) {
    text += fmt::format("; NVMe {} read, {} written", size(moved.nvme_read_bytes), size(moved.nvme_written_bytes));
  }
  return wrap(Text(text), static_cast<std::size_t>(std::max(options.style.width, 1)), 2);
}

std::vector<Text> pipeline_section(const Run& run, const Estimate& estimate, const EstimateDetail& detail,
                                   const EstimateTextOptions& options) {
  const StepTimeline& timeline = detail.timeline;
  if (timeline.stages.size() < 2) return {};
  const TimeScale scale = step_scale(run, estimate);
  const std::size_t page = static_cast<std::size_t>(std::max(options.style.width, 1));
  std::vector<Text> lines =
      section_head(fmt::format("Pipeline, {}: {} microbatches, {}", scale.unit,
                               count_text(estimate.pipeline.num_microbatches), name(estimate.pipeline.schedule)),
                   "pipeline", options);
  Table table({left(std::string(stage_word(run))), right("forward ms", 2), right("backward ms", 2), right("starts"),
               right("busy"), right("sends"), right("waits"), right("reduces from"), right("ends")});
  for (const StageTimeline& stage : timeline.stages) {
    const StageEstimate& own = estimate.stages[static_cast<std::size_t>(stage.stage)];
    const double reduce = *std::min_element(stage.reduce_start_s.begin(), stage.reduce_start_s.end());
    const double waits = std::max(0.0, timeline.makespan_s - stage.busy_s - stage.exposed_p2p_s);
    table.add({count_text(stage.stage), fixed_text(own.forward_s * 1e3, 2), fixed_text(own.backward_s * 1e3, 2),
               scale.text(stage.first_start_s), scale.text(stage.busy_s), scale.text(stage.exposed_p2p_s),
               scale.text(waits), scale.text(reduce), scale.text(stage.last_end_s)});
  }
  append(lines, table.lines(options.style.width));
  append(lines, wrap(Text(fmt::format("makespan {} to the barrier before the optimizer; longest span of one rank {} "
                                      "(the zero-bubble papers' cost)",
                                      scale.text(timeline.makespan_s), scale.text(timeline.max_span_s)),
                          Role::dim),
                     page, 2));
  return lines;
}

}  // namespace shardplan::report
