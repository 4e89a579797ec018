#include "property/invariants.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

namespace test {

using namespace shardplan;
using nlohmann::json;

namespace {

class Judge {
 public:
  void holds(bool condition, const std::string& rule) {
    if (!condition) broken_.push_back(rule);
  }
  template <class A, class B>
  void equal(const A& left, const B& right, const std::string& rule) {
    if (!(left == right)) broken_.push_back(fmt::format("{}: {} != {}", rule, left, right));
  }
  template <class A, class B>
  void at_most(const A& left, const B& right, const std::string& rule) {
    if (!(left <= right)) broken_.push_back(fmt::format("{}: {} > {}", rule, left, right));
  }
  /// A quantity of time, FLOP or rate.
  void amount(double value, const std::string& rule) {
    if (!std::isfinite(value) || value < 0) broken_.push_back(fmt::format("{} is {}", rule, value));
  }
  void close(double left, double right, const std::string& rule) {
    if (!(std::abs(left - right) <= 1e-9 * std::max({std::abs(left), std::abs(right), 1e-12}))) {
      broken_.push_back(fmt::format("{}: {} is not {}", rule, left, right));
    }
  }
  std::vector<std::string> broken() && { return std::move(broken_); }

 private:
  std::vector<std::string> broken_;
};

void judge_stage(const StageEstimate& stage, std::int64_t microbatches, Judge& judge) {
  const std::string where = fmt::format("stage {}", stage.stage);
  std::int64_t most = -1;
  bool any = false;
  for (std::size_t i = 0; i < moment_count; ++i) {
    if (!stage.has_moment[i]) continue;
    any = true;
    const MemoryParts& parts = stage.moments[i];
    const std::int64_t least = std::min({parts.parameters, parts.gradients, parts.optimizer, parts.activations,
                                         parts.transient, parts.communication_buffers, parts.framework});
    judge.at_most(std::int64_t{0}, least, fmt::format("{}: a part at {}", where, name(static_cast<Moment>(i))));
    most = std::max(most, parts.total());
  }
  judge.holds(any, where + " has a moment");
  judge.equal(stage.peak().total(), most, where + ": the peak is its largest moment");
  judge.at_most(stage.peak().allocated(), stage.reserved_bytes, where + ": allocated fits into reserved");
  judge.at_most(stage.reserved_low_bytes, stage.reserved_bytes, where + ": reserved band");
  judge.at_most(stage.reserved_bytes, stage.reserved_high_bytes, where + ": reserved band");
  judge.at_most(std::int64_t{0}, std::min({stage.host_bytes, stage.nvme_bytes, stage.parameters}), where + ": counts");
  judge.amount(stage.forward_s, where + " forward_s");
  judge.amount(stage.backward_s, where + " backward_s");
  judge.at_most(stage.in_flight_microbatches, microbatches, where + ": in flight");
}

void judge_memory(const Run& run, const Estimate& e, Judge& judge) {
  const bool data_parallel = run.training.framework == Framework::dp && run.num_gpus > 1;
  judge.equal(e.stages.size(), static_cast<std::size_t>(data_parallel ? 2 : run.parallel.pipeline), "stages");
  std::int64_t peak = -1;
  std::int64_t headroom = 0;
  std::int64_t layers = 0;
  bool first = true;
  for (const StageEstimate& stage : e.stages) {
    judge_stage(stage, run.microbatches(), judge);
    peak = std::max(peak, stage.peak().total());
    const std::int64_t left = e.capacity_bytes - stage.reserved_bytes - stage.peak().framework;
    headroom = first ? left : std::min(headroom, left);
    first = false;
    layers += stage.layers;
  }
  judge.equal(e.peak_bytes, peak, "peak_bytes is the largest stage's");
  judge.equal(e.stages[static_cast<std::size_t>(e.peak_stage)].peak().total(), peak, "peak_stage");
  judge.equal(e.headroom_bytes, headroom, "headroom_bytes is the least");
  judge.equal(e.fits_gpu, headroom >= 0, "fits_gpu");
  judge.holds(!e.fits || e.fits_gpu, "what fits, fits the GPU");
  const std::int64_t copies = data_parallel || run.parallel.schedule == ScheduleKind::dualpipe ? 2 : 1;
  const bool doubled = data_parallel || (run.parallel.schedule == ScheduleKind::dualpipe && run.parallel.pipeline > 1);
  judge.equal(layers, (doubled ? copies : 1) * run.model.layers(), "layers of all stages");
}

void judge_model(const Run& run, const ModelCounts& model, Judge& judge) {
  const ParametersByPart& parts = model.by_part;
  judge.equal(parts.total(), model.parameters + parts.adapters, "parameters by part");
  judge.at_most(std::int64_t{0},
                std::min({parts.embedding, parts.attention, parts.mlp, parts.experts, parts.router, parts.norm,
                          parts.head, parts.adapters}),
                "parameters of a part");
  judge.at_most(model.active_parameters, model.parameters, "active parameters");
  judge.equal(model.trainable_parameters, run.training.peft.active() ? parts.adapters : model.parameters,
              "trainable parameters");
  judge.at_most(run.model.vocab_size, model.padded_vocab_size, "padded vocabulary");
}

void judge_communication(const Estimate& e, Judge& judge) {
  SentBytes sums;
  for (const CommunicationCall& call : e.communication) {
    const std::string row(call.name);
    std::int64_t& sum = call.group == GroupKind::tensor                                             ? sums.tensor
                        : call.group == GroupKind::pipeline                                         ? sums.pipeline
                        : call.group == GroupKind::context                                          ? sums.context
                        : call.group == GroupKind::expert || call.group == GroupKind::expert_tensor ? sums.expert
                                                                                                    : sums.data;
    sum += call.sent_bytes_per_step;
    judge.at_most(2, call.group_size, row + ": ranks");
    judge.at_most(std::int64_t{1}, call.calls_per_step, row + ": calls");
    judge.at_most(std::int64_t{1}, call.message_bytes, row + ": message");
    judge.at_most(std::int64_t{0}, call.sent_bytes_per_step, row + ": sent");
    judge.holds(call.scope != Scope::none, row + " has a scope");
    const double n = call.group_size;
    const bool whole = call.op == Collective::send || call.op == Collective::broadcast;
    const double share = whole ? 1 : call.op == Collective::all_reduce ? 2 * (n - 1) / n : (n - 1) / n;
    const double ring = share * static_cast<double>(call.message_bytes + 1) * static_cast<double>(call.calls_per_step);
    judge.at_most(static_cast<double>(call.sent_bytes_per_step), ring * (1 + 1e-12) + 1, row + ": at most a ring's");
    judge.amount(call.time_s, row + " time_s");
    judge.amount(call.exposed_s, row + " exposed_s");
  }
  judge.equal(sums.tensor, e.sent.tensor, "sent by tensor groups");
  judge.equal(sums.pipeline, e.sent.pipeline, "sent by pipeline groups");
  judge.equal(sums.data, e.sent.data, "sent by data groups");
  judge.equal(sums.context, e.sent.context, "sent by context groups");
  judge.equal(sums.expert, e.sent.expert, "sent by expert groups");
  judge.holds(e.communication.count < CommunicationCalls::capacity, "room for every collective");
}

void judge_time(const Run& run, const Estimate& e, Judge& judge) {
  const TimeEstimate& t = e.time;
  for (const double part : {t.compute_s, t.recompute_s, t.communication_exposed_s, t.bubble_s, t.optimizer_s,
                            t.offload_s, t.gemm_s, t.attention_s, t.other_compute_s}) {
    judge.amount(part, "a part of the step");
  }
  judge.holds(t.step_s > 0, "step_s > 0");
  judge.close(t.compute_s + t.recompute_s + t.communication_exposed_s + t.bubble_s + t.optimizer_s + t.offload_s,
              t.step_s, "parts of step_s");
  judge.close(t.gemm_s + t.attention_s + t.other_compute_s, t.compute_s + t.recompute_s, "parts of the GPU's work");
  judge.close(std::accumulate(t.exposed_by_group_s.begin(), t.exposed_by_group_s.end(), 0.0), t.communication_exposed_s,
              "exposed by group");
  judge.at_most(t.band_low_s, t.step_s, "band of the step");
  judge.at_most(t.step_s, t.band_high_s, "band of the step");
  for (const double bubble : {e.pipeline.bubble_fraction, e.pipeline.ideal_bubble_fraction}) {
    judge.amount(bubble, "bubble");
    judge.holds(bubble < 1, "bubble < 1");
  }
  judge.equal(e.pipeline.num_microbatches, run.microbatches(), "microbatches");

  const ThroughputEstimate& x = e.throughput;
  const double tokens =
      static_cast<double>(run.training.global_batch_size) * static_cast<double>(run.training.seq_length);
  judge.close(x.tokens_per_s * t.step_s, tokens, "tokens_per_s");
  judge.close(x.tokens_per_s_per_gpu * run.num_gpus, x.tokens_per_s, "tokens_per_s_per_gpu");
  judge.close(x.mfu * x.peak_flop_per_s, x.model_flop_per_s_per_gpu, "mfu");
  judge.close(x.tokens_per_s_per_gpu * x.model_flop_per_token, x.model_flop_per_s_per_gpu, "model_flop_per_s");
  for (const double value : {x.mfu, x.hfu, x.mfu_causal, x.mfu_6n, x.score_flop_per_token}) {
    judge.amount(value, "a throughput");
  }
  judge.at_most(x.mfu_causal, x.mfu, "mfu_causal <= mfu");
  judge.at_most(x.mfu, x.hfu * (1 + 1e-12), "mfu <= hfu");
  judge.at_most(x.hfu, 1.0, "hfu <= 1");
  judge.at_most(x.score_flop_per_token, x.model_flop_per_token, "scores are a part of the FLOP");
}

const std::vector<std::string> byte_parts = {"parameters_bytes",  "gradients_bytes", "optimizer_bytes",
                                             "activations_bytes", "transient_bytes", "communication_buffers_bytes",
                                             "framework_bytes"};

void judge_parts(const json& parts, const std::string& where, Judge& judge) {
  std::int64_t sum = 0;
  for (const std::string& part : byte_parts) {
    const json& value = parts.at(part);
    judge.holds(value.is_number_integer() && value.get<std::int64_t>() >= 0,
                where + ": " + part + " is " + value.dump());
    sum += value.get<std::int64_t>();
  }
  judge.equal(sum, parts.at("total_bytes").get<std::int64_t>(), where + ": parts sum to total_bytes");
}

/// No null where a number belongs, nothing that is not finite: nlohmann prints those as null.
void judge_numbers(const json& value, const std::string& where, Judge& judge) {
  if (value.is_number_float()) judge.holds(std::isfinite(value.get<double>()), where + " is finite");
  if (value.is_structured()) {
    for (const auto& [key, member] : value.items()) judge_numbers(member, where + "/" + key, judge);
  }
}

}  // namespace

std::vector<std::string> violations(const Run& run, const Estimate& estimate) {
  Judge judge;
  judge_memory(run, estimate, judge);
  judge_model(run, estimate.model, judge);
  judge_communication(estimate, judge);
  judge_time(run, estimate, judge);
  return std::move(judge).broken();
}

std::vector<std::string> json_violations(const std::string& document) {
  Judge judge;
  const json root = json::parse(document);
  judge.equal(root.at("schema").get<std::string>(), "shardplan/estimate/v1", "schema");
  const json& memory = root.at("memory");
  std::int64_t peak = 0;
  for (const json& stage : memory.at("stages")) {
    const std::string where = "stage " + stage.at("stage").dump();
    judge_parts(stage, where, judge);
    std::int64_t most = 0;
    for (const auto& [moment, parts] : stage.at("moments").items()) {
      judge_parts(parts, where + " " + moment, judge);
      most = std::max(most, parts.at("total_bytes").get<std::int64_t>());
    }
    const json& at_peak = stage.at("moments").at(stage.at("peak_moment").get<std::string>());
    judge.equal(at_peak.at("total_bytes").get<std::int64_t>(), most, where + ": peak_moment");
    judge.equal(stage.at("total_bytes").get<std::int64_t>(), most, where + ": total_bytes is the peak's");
    peak = std::max(peak, most);
  }
  judge.equal(memory.at("peak_bytes").get<std::int64_t>(), peak, "memory.peak_bytes");
  std::int64_t sent = 0;
  const json& communication = root.at("communication");
  for (const json& call : communication.at("calls")) sent += call.at("sent_bytes_per_step").get<std::int64_t>();
  judge.equal(sent, communication.at("sent_bytes_per_step").at("total").get<std::int64_t>(), "sent bytes");
  std::int64_t parameters = 0;
  for (const auto& [part, count] : root.at("model").at("parameters_by_part").items()) {
    if (part != "adapters") parameters += count.get<std::int64_t>();
  }
  judge.equal(parameters, root.at("model").at("parameters").get<std::int64_t>(), "parameters by part");
  judge_numbers(root, "", judge);
  return std::move(judge).broken();
}

}  // namespace test
