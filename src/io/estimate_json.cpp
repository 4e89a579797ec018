#include "shardplan/io/estimate_json.hpp"

#include <array>
#include <optional>
#include <span>

#include "describe_outputs.hpp"
#include "json_writer.hpp"
#include "shardplan/version.hpp"

namespace shardplan::io {
namespace {

using Whole = JsonWriter::Whole;
constexpr JsonWriter::Lines one_line = JsonWriter::Lines::one;
constexpr JsonWriter::Entries two = {2, 2};

constexpr std::array<std::string_view, 2> overhead_parts = {"transient_bytes", "framework_bytes"};
constexpr std::array<std::string_view, 2> layer_kinds = {"dense", "moe"};

/// What splits an expert's matrices, the last of them, is shown as expert traffic.
constexpr auto shown_groups =
    std::span<const std::string_view>(names_of<GroupKind>).first(static_cast<std::size_t>(GroupKind::expert_tensor));

/// The group as the schema names it: what splits an expert's matrices counts as expert traffic.
std::string_view group_name(GroupKind group) noexcept {
  return name(group == GroupKind::expert_tensor ? GroupKind::expert : group);
}

void write_model(JsonWriter& out, const Model& model, const ModelCounts& counts) {
  out.begin_object("model");
  out.text("name", model.name);
  out.integer("parameters", counts.parameters);
  out.integer("active_parameters", counts.active_parameters);
  out.integer("trainable_parameters", counts.trainable_parameters);
  out.integer("padded_vocab_size", counts.padded_vocab_size);
  out.begin_object("parameters_by_part", one_line);
  out.integer("embedding", counts.by_part.embedding);
  out.integer("attention", counts.by_part.attention);
  out.integer("mlp", counts.by_part.mlp);
  out.integer("experts", counts.by_part.experts);
  out.integer("router", counts.by_part.router);
  out.integer("norm", counts.by_part.norm);
  out.integer("head", counts.by_part.head);
  out.integer("adapters", counts.by_part.adapters);
  out.end_object();
  out.end_object();
}

void write_parts(JsonWriter& out, const MemoryParts& parts) {
  out.integer("parameters_bytes", parts.parameters);
  out.integer("gradients_bytes", parts.gradients);
  out.integer("optimizer_bytes", parts.optimizer);
  out.integer("activations_bytes", parts.activations);
  out.integer("transient_bytes", parts.transient);
  out.integer("communication_buffers_bytes", parts.communication_buffers);
  out.integer("framework_bytes", parts.framework);
  out.integer("total_bytes", parts.total());
}

void write_stage(JsonWriter& out, const StageEstimate& stage, bool detail) {
  out.begin_object();
  out.integer("stage", stage.stage);
  out.integer("layers", stage.layers);
  out.integer("parameters", stage.parameters);
  out.integer("in_flight_microbatches", stage.in_flight_microbatches);
  out.optional(detail, [&] { out.integer("in_flight_chunks", stage.in_flight_chunks); });
  out.word("peak_moment", stage.peak_moment);
  write_parts(out, stage.peak());
  out.integer("reserved_bytes", stage.reserved_bytes);
  out.integer("host_bytes", stage.host_bytes);
  out.integer("nvme_bytes", stage.nvme_bytes);
  out.begin_object("moments");
  for (std::size_t i = 0; i < moment_count; ++i) {
    out.optional(stage.has_moment[i], [&] {
      out.begin_object(names_of<Moment>[i], one_line);
      write_parts(out, stage.moments[i]);
      out.end_object();
    });
  }
  out.end_object();
  out.end_object();
}

void write_memory(JsonWriter& out, const Estimate& estimate, bool detail) {
  out.begin_object("memory");
  out.integer("capacity_bytes", estimate.capacity_bytes);
  out.integer("peak_bytes", estimate.peak_bytes);
  out.integer("peak_stage", estimate.peak_stage);
  out.word("peak_moment", estimate.stages[static_cast<std::size_t>(estimate.peak_stage)].peak_moment);
  out.integer("reserved_bytes", estimate.reserved_bytes);
  out.begin_array("reserved_band_bytes", one_line, two);
  out.integer("", estimate.reserved_low_bytes);
  out.integer("", estimate.reserved_high_bytes);
  out.end_array();
  out.integer("headroom_bytes", estimate.headroom_bytes, Whole::any);
  out.boolean("fits", estimate.fits);
  out.integer("host_bytes_per_node", estimate.host_bytes_per_node);
  out.integer("nvme_bytes_per_node", estimate.nvme_bytes_per_node);
  out.list("stages", estimate.stages, JsonWriter::Lines::many,
           [&](const StageEstimate& stage) { write_stage(out, stage, detail); }, {1});
  out.end_object();
}

void write_communication(JsonWriter& out, const Estimate& estimate) {
  out.begin_object("communication");
  out.list("calls", estimate.communication, [&](const CommunicationCall& call) {
    out.begin_object({}, one_line);
    out.text("name", call.name);
    out.word("op", call.op);
    out.word("group", group_name(call.group), shown_groups);
    out.integer("group_size", call.group_size);
    out.word("scope", call.scope);
    out.integer("calls_per_step", call.calls_per_step);
    out.integer("message_bytes", call.message_bytes);
    out.integer("sent_bytes_per_step", call.sent_bytes_per_step);
    out.real("time_s", call.time_s);
    out.real("exposed_s", call.exposed_s);
    out.end_object();
  });
  const SentBytes& sent = estimate.sent;
  out.begin_object("sent_bytes_per_step", one_line);
  out.integer("tensor", sent.tensor);
  out.integer("pipeline", sent.pipeline);
  out.integer("data", sent.data);
  out.integer("context", sent.context);
  out.integer("expert", sent.expert);
  out.integer("total", sent.total());
  out.end_object();
  out.end_object();
}

void write_pipeline(JsonWriter& out, const PipelineEstimate& pipeline) {
  out.begin_object("pipeline", one_line);
  out.word("schedule", pipeline.schedule);
  out.integer("num_microbatches", pipeline.num_microbatches);
  out.real("bubble_fraction", pipeline.bubble_fraction);
  out.real("ideal_bubble_fraction", pipeline.ideal_bubble_fraction);
  out.end_object();
}

void write_time(JsonWriter& out, const TimeEstimate& time) {
  out.begin_object("time");
  out.real("step_s", time.step_s);
  out.real("compute_s", time.compute_s);
  out.real("recompute_s", time.recompute_s);
  out.real("communication_exposed_s", time.communication_exposed_s);
  out.real("bubble_s", time.bubble_s);
  out.real("optimizer_s", time.optimizer_s);
  out.real("offload_s", time.offload_s);
  out.begin_array("step_band_s", one_line, two);
  out.real("", time.band_low_s);
  out.real("", time.band_high_s);
  out.end_array();
  out.word("step_band_class", time.band_class);
  out.end_object();
}

void write_throughput(JsonWriter& out, const ThroughputEstimate& throughput) {
  constexpr double tera = 1e12;
  out.begin_object("throughput");
  out.real("tokens_per_s", throughput.tokens_per_s);
  out.real("tokens_per_s_per_gpu", throughput.tokens_per_s_per_gpu);
  out.real("samples_per_s", throughput.samples_per_s);
  out.real("model_flop_per_token", throughput.model_flop_per_token);
  out.real("score_flop_per_token", throughput.score_flop_per_token);
  out.real("peak_tflops_per_gpu", throughput.peak_flop_per_s / tera);
  out.real("model_tflops_per_gpu", throughput.model_flop_per_s_per_gpu / tera);
  out.real("hardware_tflops_per_gpu", throughput.hardware_flop_per_s_per_gpu / tera);
  out.real("mfu", throughput.mfu);
  out.real("hfu", throughput.hfu);
  out.real("mfu_causal", throughput.mfu_causal);
  out.real("mfu_6n", throughput.mfu_6n);
  out.real("gpu_hours_per_1e12_tokens", throughput.gpu_hours_per_1e12_tokens);
  out.real_or_null("price_per_1e12_tokens",
                   throughput.has_price ? std::optional(throughput.price_per_1e12_tokens) : std::nullopt);
  out.end_object();
}

void write_measured(JsonWriter& out, const Measured& measured) {
  out.begin_object("measured", one_line);
  out.real("mfu", measured.mfu);
  out.real("mfu_causal", measured.mfu_causal);
  out.real("hfu", measured.hfu);
  out.real("ratio_to_estimate", measured.ratio_to_estimate);
  out.boolean("in_band", measured.in_band);
  out.text_or_null("suspect", measured.suspect.term);
  out.end_object();
}

void write_warnings(JsonWriter& out, const Warnings& warnings) {
  out.list("warnings", warnings, [&](const Warning& warning) {
    out.begin_object({}, one_line);
    out.text("code", warning.code);
    out.text("path", warning.path);
    out.text("message", warning.message);
    out.end_object();
  });
}

void write_numbers(JsonWriter& out, std::string_view name, const std::vector<double>& values) {
  out.list(name, values, one_line, [&](double value) { out.real("", value); });
}

void write_overheads(JsonWriter& out, const EstimateDetail& detail) {
  out.list("overheads", detail.overheads, [&](const OverheadDetail& line) {
    out.begin_object({}, one_line);
    out.text("name", line.name);
    out.integer("bytes", line.bytes);
    out.word("part", overhead_parts[line.allocated ? 0 : 1], overhead_parts);
    out.text("source", line.source);
    out.end_object();
  });
}

void write_offload(JsonWriter& out, const OffloadEstimate& offload) {
  out.begin_object("offload", one_line);
  out.count("to_host_bytes", offload.to_host_bytes);
  out.count("from_host_bytes", offload.from_host_bytes);
  out.count("nvme_read_bytes", offload.nvme_read_bytes);
  out.count("nvme_written_bytes", offload.nvme_written_bytes);
  out.real("once_a_step_s", offload.step_s);
  out.real("passes_s", offload.passes_s);
  out.end_object();
}

void write_timeline(JsonWriter& out, const StepTimeline& timeline) {
  out.begin_object("timeline");
  out.real("makespan_s", timeline.makespan_s);
  out.real("max_span_s", timeline.max_span_s);
  out.list("stages", timeline.stages, [&](const StageTimeline& stage) {
    out.begin_object();
    out.integer("stage", stage.stage);
    out.real("first_start_s", stage.first_start_s);
    out.real("last_end_s", stage.last_end_s);
    out.real("busy_s", stage.busy_s);
    out.real("exposed_p2p_s", stage.exposed_p2p_s);
    write_numbers(out, "gradients_ready_s", stage.gradients_ready_s);
    write_numbers(out, "reduce_start_s", stage.reduce_start_s);
    out.list("activations_held", stage.held, one_line, [&](const HeldActivations& point) {
      out.begin_array({}, one_line, {.in_turn = true});
      out.real("", point.time_s);
      out.integer("", point.bytes);
      out.end_array();
    });
    out.end_object();
  });
  out.end_object();
}

void write_detail(JsonWriter& out, const EstimateDetail& detail) {
  out.list("layers", detail.layers, [&](const LayerDetail& layer) {
    out.begin_object();
    out.integer("first", layer.first);
    out.integer("count", layer.count);
    out.word("kind", layer_kinds[layer.moe ? 1 : 0], layer_kinds);
    out.integer("saved_bytes", layer.saved_bytes);
    out.integer("kept_bytes", layer.kept_bytes);
    out.list("operators", layer.operators, [&](const OperatorDetail& row) {
      out.begin_object({}, one_line);
      out.text("name", row.name);
      out.text("kind", row.kind);
      out.integer("parameters", row.parameters);
      out.integer("saved_bytes", row.saved_bytes);
      out.count("forward_flop", row.forward_flop);
      out.count("backward_flop", row.backward_flop);
      out.count("forward_hbm_bytes", row.forward_hbm_bytes);
      out.real("forward_s", row.forward_s);
      out.real("backward_s", row.backward_s);
      out.integer("sent_bytes", row.sent_bytes);
      out.end_object();
    });
    out.end_object();
  });
  out.begin_object("embedding", one_line);
  out.integer("saved_bytes", detail.embedding_saved_bytes);
  out.end_object();
  out.begin_object("final_norm", one_line);
  out.integer("saved_bytes", detail.final_norm_saved_bytes);
  out.end_object();
  out.begin_object("head", one_line);
  out.integer("saved_bytes", detail.head_saved_bytes);
  out.integer("peak_bytes", detail.head_peak_bytes);
  out.end_object();
  out.integer("backward_transient_bytes", detail.backward_transient_bytes);
  write_overheads(out, detail);
  write_timeline(out, detail.timeline);
}

void write_document(JsonWriter& out, const Run& run, const Estimate& estimate, const EstimateContext& context,
                    const Warnings& warnings) {
  out.begin_object();
  out.constant("schema", "shardplan/estimate/v1");
  out.text("version", SHARDPLAN_VERSION);
  out.like("resolved_run");
  out.json("run", context.run_json);
  write_model(out, run.model, estimate.model);
  write_memory(out, estimate, context.detail != nullptr);
  write_communication(out, estimate);
  write_pipeline(out, estimate.pipeline);
  write_time(out, estimate.time);
  write_throughput(out, estimate.throughput);
  out.optional(context.measured != nullptr, [&] { write_measured(out, *context.measured); });
  write_warnings(out, warnings);
  out.optional(context.detail != nullptr, [&] {
    write_detail(out, *context.detail);
    write_offload(out, estimate.offload);
  });
  out.end_object();
}

}  // namespace

std::string estimate_json(const Run& run, const Estimate& estimate, const EstimateContext& context) {
  Warnings warnings = context.warnings != nullptr ? *context.warnings : Warnings();
  JsonWriter first;
  write_document(first, run, estimate, context, warnings);
  if (first.unknown().empty()) return first.str() + '\n';
  // Warnings stand before the detail: only a second pass can tell of everything.
  for (const std::string& pointer : first.unknown()) {
    warnings.push_back({"unknown_value", pointer, pointer + " cannot be known for this run"});
  }
  JsonWriter second;
  write_document(second, run, estimate, context, warnings);
  return second.str() + '\n';
}

void describe_estimate(JsonWriter& out) {
  Estimate estimate;
  estimate.stages.resize(1);
  const EstimateDetail detail;
  const Measured measured;
  EstimateContext context;
  context.detail = &detail;
  context.measured = &measured;
  write_document(out, {}, estimate, context, {});
}

}  // namespace shardplan::io
