#include "facts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "shardplan/physics/frameworks/facts.hpp"
#include "shardplan/report/number.hpp"

namespace shardplan::report {
namespace {

/// By GroupKind.
constexpr std::array<std::string_view, 8> exchange_names = {"TP exchange",  "PP send",     "DP exchange",
                                                            "CP exchange",  "EP exchange", "EDP exchange",
                                                            "tied weights", "ETP exchange"};

/// Time of a group's collectives that other work hides, for the GPU whose collectives the estimate lists.
double hidden_s(const Estimate& estimate, GroupKind group) noexcept {
  double hidden = 0;
  for (const CommunicationCall& call : estimate.communication) {
    if (call.group == group) hidden += std::max(0.0, call.time_s - call.exposed_s);
  }
  return hidden;
}

Scope widest_scope(const Estimate& estimate, GroupKind group) noexcept {
  Scope scope = Scope::none;
  for (const CommunicationCall& call : estimate.communication) {
    if (call.group == group) scope = std::max(scope, call.scope);
  }
  return scope;
}

std::string exchange_note(const Run& run, const Estimate& estimate, GroupKind group, const TimeScale& scale) {
  std::string note = link_text(run, widest_scope(estimate, group));
  const auto add = [&note](std::string_view text) {
    if (!note.empty()) note += ", ";
    note += text;
  };
  // All wait for the data-parallel traffic of one stage; the rows of --detail may be another's.
  const bool of_data = group == GroupKind::data;
  const double hidden = of_data ? estimate.time.data_hidden_s : hidden_s(estimate, group);
  if (of_data && estimate.stages.size() > 1 && run.parallel.pipeline > 1) {
    add(fmt::format("{} {}'s", stage_word(run), estimate.time.data_exposed_stage));
  }
  const bool sharding = group == GroupKind::data || group == GroupKind::expert_data;
  if (group == GroupKind::tensor && !run.training.overlap.tp) {
    add("not overlapped (overlap.tp off)");
  } else if (sharding && !run.training.overlap.grad_reduce && !run.training.overlap.param_gather) {
    add("not overlapped (overlap off)");
  } else if (hidden >= 0.5 * scale.quantum()) {
    add(fmt::format("{} more is hidden by overlap", scale.with_unit(hidden)));
  }
  return note;
}

/// Matrix products, attention and the rest. The estimate counts recomputation in them.
std::string compute_note(const TimeEstimate& time, const TimeScale& scale) {
  const std::array<double, 3> parts = {time.gemm_s, time.attention_s, time.other_compute_s};
  const double step = scale.quantum();
  const std::vector<std::int64_t> rounded = round_parts(parts, step);
  const auto text = [&](std::size_t i) { return scale.text(static_cast<double>(rounded[i]) * step); };
  return fmt::format("{}gemm {}, attention {}, rest {}", time.recompute_s > 0 ? "with recompute: " : "", text(0),
                     text(1), text(2));
}

/// From which batch on the offload stops to matter: what recurs with every pass hides behind a larger micro batch, what
/// happens once a step is a tenth of it with enough microbatches.
std::string offload_note(const Run& run, const Estimate& estimate) {
  const TimeEstimate& time = estimate.time;
  const OffloadEstimate& moved = estimate.offload;
  const Training& training = run.training;
  const double passes_wait = time.offload_s - moved.step_s;
  const bool weights = training.offload.parameters != OffloadDevice::none;  // activations grow with the batch, too
  if (weights && passes_wait > moved.step_s) {
    const double larger = moved.passes_s / std::max(moved.passes_s - passes_wait, 1e-12);
    const double sequences = std::ceil(static_cast<double>(training.micro_batch_size) * larger);
    if (!(sequences < 1e9)) return "not hidden behind compute";
    return fmt::format("hidden behind compute from about mbs {} on", count_text(static_cast<std::int64_t>(sequences)));
  }
  const double rest = time.step_s - time.offload_s;
  constexpr double tenth = 9;  // the rest over the offload, where it is a tenth of the step
  if (rest <= 0 || time.offload_s * tenth <= rest) return "not hidden behind compute";
  const double unit = static_cast<double>(training.micro_batch_size) * run.parallel.data;
  const double batch =
      std::ceil(static_cast<double>(training.global_batch_size) * tenth * time.offload_s / rest / unit) * unit;
  constexpr double most = 1e9;  // nobody trains with such a batch
  if (!(batch < most)) return "not hidden behind compute";
  return fmt::format("a tenth of the step from about gbs {} on", count_text(static_cast<std::int64_t>(batch)));
}

/// How much the slowest stage exceeds the mean of the others, and which it is.
std::string imbalance_note(const Estimate& estimate) {
  if (estimate.stages.size() < 2) return {};
  std::size_t slowest = 0;
  double sum = 0;
  const auto load = [&](std::size_t i) { return estimate.stages[i].forward_s + estimate.stages[i].backward_s; };
  for (std::size_t i = 0; i < estimate.stages.size(); ++i) {
    sum += load(i);
    if (load(i) > load(slowest) * (1 + 1e-9)) slowest = i;
  }
  const double others = (sum - load(slowest)) / static_cast<double>(estimate.stages.size() - 1);
  if (!(others > 0)) return {};
  const double excess = load(slowest) / others - 1;
  if (excess < 0.005) return {};
  return fmt::format(" + stage {} is {} heavier", estimate.stages[slowest].stage, percent_text(excess));
}

}  // namespace

std::string recompute_text(const Recompute& recompute) {
  switch (recompute.mode) {
    case RecomputeMode::none: return {};
    case RecomputeMode::selective: return "selective";
    case RecomputeMode::full: return "full";
    case RecomputeMode::first_n: return fmt::format("full:{}", recompute.n);
    case RecomputeMode::every_k: return fmt::format("every:{}", recompute.n);
    case RecomputeMode::ops: return "ops";
    case RecomputeMode::modules: break;
  }
  std::string text;
  for (std::size_t i = 0; i < recompute_module_names.size(); ++i) {
    if ((recompute.modules >> i & 1U) == 0) continue;
    if (!text.empty()) text += "+";
    text += recompute_module_names[i];
  }
  return text;
}

namespace {

std::string_view peft_title(PeftMethod method) noexcept {
  switch (method) {
    case PeftMethod::none: return "";
    case PeftMethod::lora: return "LoRA";
    case PeftMethod::qlora: return "QLoRA";
    case PeftMethod::dora: return "DoRA";
    case PeftMethod::rslora: return "rsLoRA";
  }
  return "";
}

bool is_default(const std::vector<std::string>& defaults, std::string_view pointer) {
  return std::find(defaults.begin(), defaults.end(), pointer) != defaults.end();
}

}  // namespace

std::string_view moment_text(Moment moment) noexcept {
  static constexpr std::array<std::string_view, moment_count> names = {"loss", "backward", "end of backward",
                                                                       "optimizer step", "initialisation"};
  return names[static_cast<std::size_t>(moment)];
}

std::string fabric_text(FabricType fabric) {
  static constexpr std::array<std::string_view, 5> names = {"InfiniBand", "RoCE", "EFA", "Omni-Path", "Ethernet"};
  return std::string(names[static_cast<std::size_t>(fabric)]);
}

std::string link_text(const Run& run, Scope scope) {
  switch (scope) {
    case Scope::none: return {};
    case Scope::intra_node: return run.cluster.gpu.link_bandwidth > 0 ? run.cluster.gpu.link_type : "PCIe";
    case Scope::inter_node: return fabric_text(run.cluster.fabric);
  }
  return {};
}

std::string collective_text(Collective op) {
  std::string text(name(op));
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

std::string_view stage_word(const Run& run) noexcept {
  return facts_of(run.training.framework).single_process ? "GPU" : "stage";
}

std::string peak_place(const Run& run, const Estimate& estimate) {
  const StageEstimate& stage = estimate.stages[static_cast<std::size_t>(estimate.peak_stage)];
  if (estimate.stages.size() == 1) return fmt::format("({})", moment_text(stage.peak_moment));
  return fmt::format("({} {}, {})", stage_word(run), stage.stage, moment_text(stage.peak_moment));
}

Need need_of(const Estimate& estimate) noexcept {
  const StageEstimate& stage = estimate.stages[static_cast<std::size_t>(estimate.binding_stage)];
  const std::int64_t framework = stage.peak().framework;
  return {stage.reserved_bytes + framework, stage.reserved_low_bytes + framework, stage.reserved_high_bytes + framework,
          stage.stage};
}

std::array<std::int64_t, part_count> parts_of(const MemoryParts& parts) noexcept {
  return {parts.parameters,  parts.gradients, parts.optimizer,
          parts.activations, parts.transient, parts.communication_buffers,
          parts.framework};
}

std::array<std::int64_t, part_count> rounded_parts(const MemoryParts& parts, Units units) {
  const std::array<std::int64_t, part_count> bytes = parts_of(parts);
  const std::vector<std::int64_t> rounded = round_parts(bytes, unit_bytes(units), 100);
  std::array<std::int64_t, part_count> out{};
  std::copy(rounded.begin(), rounded.end(), out.begin());
  return out;
}

std::vector<TimeRow> time_rows(const Run& run, const Estimate& estimate) {
  const TimeEstimate& time = estimate.time;
  const TimeScale scale = step_scale(run, estimate);
  std::vector<TimeRow> losses;
  if (time.recompute_s > 0) {
    losses.push_back({"recompute", time.recompute_s, recompute_text(run.training.recompute)});
  }
  double exposed = 0;
  for (std::size_t i = 0; i < time.exposed_by_group_s.size(); ++i) {
    const double group_s = time.exposed_by_group_s[i];
    exposed += group_s;
    if (!(group_s > 0)) continue;
    losses.push_back(
        {std::string(exchange_names[i]), group_s, exchange_note(run, estimate, static_cast<GroupKind>(i), scale)});
  }
  const double other = time.communication_exposed_s - exposed;
  if (other > 1e-9 * time.step_s) losses.push_back({"other exchange", other, ""});
  if (time.bubble_s > 0 || run.parallel.pipeline > 1) {
    losses.push_back({"bubble", time.bubble_s,
                      fmt::format("{} of makespan: {} ideal{}", percent_text(estimate.pipeline.bubble_fraction),
                                  percent_text(estimate.pipeline.ideal_bubble_fraction), imbalance_note(estimate))});
  }
  if (time.offload_s > 0) losses.push_back({"offload", time.offload_s, offload_note(run, estimate)});
  if (time.optimizer_s > 0) losses.push_back({"optimizer", time.optimizer_s, ""});
  std::stable_sort(losses.begin(), losses.end(),
                   [](const TimeRow& a, const TimeRow& b) { return a.time_s > b.time_s; });

  std::vector<TimeRow> rows = {{"compute", time.compute_s, compute_note(time, scale), true}};
  rows.insert(rows.end(), losses.begin(), losses.end());
  double sum = 0;
  for (const TimeRow& row : rows) sum += row.time_s;
  if (time.step_s - sum > 1e-9 * time.step_s) rows.push_back({"rest", time.step_s - sum, ""});
  return rows;
}

std::string binding_text(const Run& run, const Estimate& estimate) {
  const TimeEstimate& time = estimate.time;
  if (!(time.step_s > 0)) return "nothing";
  TimeRow largest;
  for (const TimeRow& row : time_rows(run, estimate)) {
    if (!row.compute && row.time_s > largest.time_s) largest = row;
  }
  const double other = time.other_compute_s;
  if (other > 0.5 * (time.compute_s + time.recompute_s) && other > largest.time_s) {
    return fmt::format("memory and launches {}", percent_text(other / time.step_s, 0));
  }
  if (largest.time_s >= 0.1 * time.step_s) {
    return fmt::format("{} {}", largest.label, percent_text(largest.time_s / time.step_s, 0));
  }
  return fmt::format("compute {}", percent_text(time.compute_s / time.step_s, 0));
}

TimeScale step_scale(const Run& run, const Estimate& estimate) noexcept {
  TimeScale scale = time_scale(estimate.time.step_s);
  if (!is_measured(run) && scale.decimals > 0) --scale.decimals;
  return scale;
}

bool is_measured(const Run& run) noexcept { return run.cluster.gpu.gemm.measured; }

std::string layout_text(const Run& run) {
  const Parallel& parallel = run.parallel;
  std::string text;
  const auto add = [&text](const std::string& word) { text += text.empty() ? word : " " + word; };
  if (parallel.tensor > 1) add(fmt::format("TP{}{}", parallel.tensor, parallel.sequence_parallel ? "+SP" : ""));
  if (parallel.pipeline > 1) {
    add(parallel.virtual_pipeline > 1 ? fmt::format("PP{}x{}", parallel.pipeline, parallel.virtual_pipeline)
                                      : fmt::format("PP{}", parallel.pipeline));
  }
  if (parallel.context > 1) add(fmt::format("CP{}", parallel.context));
  if (parallel.expert > 1) add(fmt::format("EP{}", parallel.expert));
  if (parallel.expert_tensor > 1) add(fmt::format("ETP{}", parallel.expert_tensor));
  if (parallel.data > 1) add(fmt::format("DP{}", parallel.data));
  if (text.empty()) text = "1 GPU";
  if (parallel.fsdp != Fsdp::none) {
    std::string words = fmt::format("FSDP{} {}", parallel.fsdp_version, name(parallel.fsdp));
    if (parallel.fsdp == Fsdp::hybrid_shard) words += fmt::format(" over {}", parallel.shard_group);
    add(words);
  } else if (parallel.zero_stage > 0) {
    add(fmt::format("ZeRO-{}", parallel.zero_stage));
    if (parallel.hpz) add(fmt::format("hpZ over {}", parallel.shard_group));
    if (parallel.qwz) add("qwZ");
    if (parallel.qgz) add("qgZ");
  }
  return text;
}

std::vector<std::string> model_line(const Run& run, const Estimate& estimate) {
  const ModelCounts& counts = estimate.model;
  const Training& training = run.training;
  std::vector<std::string> parts;

  const Peft& peft = training.peft;
  std::string model = run.model.name;
  if (peft.active()) {
    const std::int64_t all = counts.parameters + counts.by_part.adapters;
    std::string targets;
    for (const std::string& target : peft.target_names) targets += (targets.empty() ? " " : ",") + target;
    model += fmt::format(
        " + {} r={}{}: {} of {} train ({})", peft_title(peft.method), peft.rank, targets,
        long_count(counts.trainable_parameters), long_count(all),
        percent_text(
            static_cast<double>(counts.trainable_parameters) / static_cast<double>(std::max<std::int64_t>(all, 1)), 2));
  } else {
    model += fmt::format(", {} parameters", long_count(counts.parameters));
    if (counts.active_parameters > 0 && run.model.has_experts()) {
      model += fmt::format(", {} active", long_count(counts.active_parameters));
    }
  }
  parts.push_back(model);

  std::string gpus = fmt::format("{} x {}", count_text(run.num_gpus), run.cluster.gpu.name);
  if (run.num_gpus > run.cluster.gpus_per_node) {
    const int nodes = (run.num_gpus + run.cluster.gpus_per_node - 1) / run.cluster.gpus_per_node;
    gpus += fmt::format(", {} nodes", count_text(nodes));
  }
  parts.push_back(gpus);

  std::string how(name(training.precision));
  if (training.precision == Precision::fp8) how += fmt::format(" {}", name(training.fp8_recipe));
  how += fmt::format(", {}", name(training.framework));
  if (!training.stack.name.empty()) how += fmt::format(" ({})", training.stack.name);
  how += fmt::format(", {}", name(training.attention));
  if (training.optimizer != "adamw") how += ", " + training.optimizer;
  if (training.recompute.mode != RecomputeMode::none) how += ", recompute " + recompute_text(training.recompute);
  parts.push_back(how);

  std::string offload;
  const auto add_offload = [&offload](std::string_view what, OffloadDevice to) {
    if (to == OffloadDevice::none) return;
    offload += fmt::format("{}{}={}", offload.empty() ? "offload " : ",", what, name(to));
  };
  add_offload("optimizer", training.offload.optimizer);
  add_offload("parameters", training.offload.parameters);
  add_offload("activations", training.offload.activations);
  if (!offload.empty()) parts.push_back(offload);
  return parts;
}

std::vector<std::string> layout_line(const Run& run, const std::vector<std::string>& defaults) {
  const Training& training = run.training;
  std::vector<std::string> parts = {layout_text(run)};
  const std::int64_t microbatches = run.microbatches();
  const std::string count = fmt::format("{} microbatch{}", count_text(microbatches), microbatches == 1 ? "" : "es");
  if (run.parallel.pipeline > 1) {
    parts.push_back(fmt::format("{}, {}", name(run.parallel.schedule), count));
  } else if (microbatches > 1) {
    parts.push_back(count);
  }
  const auto mark = [&defaults](std::string_view pointer) { return is_default(defaults, pointer) ? " (default)" : ""; };
  parts.push_back(fmt::format("seq {}{}, mbs {}, gbs {}{} ({} tokens/step)", count_text(training.seq_length),
                              mark("/training/seq_length"), count_text(training.micro_batch_size),
                              count_text(training.global_batch_size), mark("/training/global_batch_size"),
                              long_count(training.global_batch_size * training.seq_length)));
  return parts;
}

std::string host_text(const Run& run, const Estimate& estimate, Units units) {
  std::string text;
  const auto add = [&](std::string_view what, std::int64_t bytes, double capacity) {
    if (bytes <= 0) return;
    if (!text.empty()) text += " | ";
    text += fmt::format("{} {}", what, size_text(bytes, units));
    if (capacity > 0) text += fmt::format(" of {}", size_text(static_cast<std::int64_t>(capacity), units));
    text += fmt::format(" {} a node", unit_name(units));
  };
  add("host memory", estimate.host_bytes_per_node, run.cluster.host.memory_bytes);
  add("NVMe", estimate.nvme_bytes_per_node, run.cluster.host.nvme_bytes);
  return text;
}

std::string mfu_text(const Run& run, const Estimate& estimate) {
  const ThroughputEstimate& throughput = estimate.throughput;
  const Precision precision = run.training.precision;
  return fmt::format("MFU {} scores in full | {} causal | {} by 6N | HFU {}  of {} dense {} TFLOP/s",
                     percent_text(throughput.mfu), percent_text(throughput.mfu_causal), percent_text(throughput.mfu_6n),
                     percent_text(throughput.hfu), fixed_text(throughput.peak_flop_per_s / 1e12, 1), name(precision));
}

}  // namespace shardplan::report
