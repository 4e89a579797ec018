#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "facts.hpp"
#include "shardplan/report/estimate_text.hpp"
#include "shardplan/report/table.hpp"

namespace shardplan::report {
namespace {

/// Columns and one row's values side by side, so that a head and its value cannot part.
class Record {
 public:
  void add(std::string_view key, std::string value) { fields_.emplace_back(key, std::move(value)); }
  void add(std::string_view key, std::string_view value) { add(key, std::string(value)); }
  void add(std::string_view key, const char* value) { add(key, std::string(value)); }
  void add(std::string_view key, bool value) { add(key, value ? "true" : "false"); }
  void add(std::string_view key, int value) { add(key, fmt::format("{}", value)); }
  void add(std::string_view key, std::int64_t value) { add(key, fmt::format("{}", value)); }
  void add(std::string_view key, double value) { add(key, fmt::format("{}", value)); }

  void write(std::string& out, bool heads) const {
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      out += i == 0 ? "" : ",";
      out += csv_field(heads ? fields_[i].first : fields_[i].second);
    }
    out += "\n";
  }

 private:
  std::vector<std::pair<std::string, std::string>> fields_;
};

void add_run(Record& record, const Run& run) {
  record.add("run.model", run.model.name);
  record.add("run.gpu", run.cluster.gpu.name);
  record.add("run.num_gpus", run.num_gpus);
  const Parallel& parallel = run.parallel;
  record.add("parallel.tensor", parallel.tensor);
  record.add("parallel.pipeline", parallel.pipeline);
  record.add("parallel.virtual_pipeline", parallel.virtual_pipeline);
  record.add("parallel.context", parallel.context);
  record.add("parallel.expert", parallel.expert);
  record.add("parallel.expert_tensor", parallel.expert_tensor);
  record.add("parallel.data", parallel.data);
  record.add("parallel.sequence_parallel", parallel.sequence_parallel);
  record.add("parallel.zero_stage", parallel.zero_stage);
  record.add("parallel.fsdp", parallel.fsdp == Fsdp::none ? "" : name(parallel.fsdp));
  record.add("parallel.schedule", name(parallel.schedule));
  const Training& training = run.training;
  record.add("training.framework", name(training.framework));
  record.add("training.stack", training.stack.name);
  record.add("training.precision", name(training.precision));
  record.add("training.seq_length", training.seq_length);
  record.add("training.micro_batch_size", training.micro_batch_size);
  record.add("training.global_batch_size", training.global_batch_size);
}

void add_stage(Record& record, const StageEstimate& stage) {
  record.add("stage", stage.stage);
  record.add("layers", stage.layers);
  record.add("parameters", stage.parameters);
  record.add("in_flight_microbatches", stage.in_flight_microbatches);
  record.add("in_flight_chunks", stage.in_flight_chunks);
  record.add("peak_moment", name(stage.peak_moment));
  const MemoryParts& peak = stage.peak();
  record.add("parameters_bytes", peak.parameters);
  record.add("gradients_bytes", peak.gradients);
  record.add("optimizer_bytes", peak.optimizer);
  record.add("activations_bytes", peak.activations);
  record.add("transient_bytes", peak.transient);
  record.add("communication_buffers_bytes", peak.communication_buffers);
  record.add("framework_bytes", peak.framework);
  record.add("total_bytes", peak.total());
  record.add("reserved_bytes", stage.reserved_bytes);
  record.add("reserved_low_bytes", stage.reserved_low_bytes);
  record.add("reserved_high_bytes", stage.reserved_high_bytes);
  record.add("host_bytes", stage.host_bytes);
  record.add("nvme_bytes", stage.nvme_bytes);
  record.add("forward_s", stage.forward_s);
  record.add("backward_s", stage.backward_s);
}

void add_totals(Record& record, const Estimate& estimate) {
  record.add("model.parameters", estimate.model.parameters);
  record.add("model.active_parameters", estimate.model.active_parameters);
  record.add("model.trainable_parameters", estimate.model.trainable_parameters);
  record.add("model.padded_vocab_size", estimate.model.padded_vocab_size);
  record.add("memory.fits", estimate.fits);
  record.add("memory.capacity_bytes", estimate.capacity_bytes);
  record.add("memory.peak_bytes", estimate.peak_bytes);
  record.add("memory.peak_stage", estimate.peak_stage);
  record.add("memory.reserved_bytes", estimate.reserved_bytes);
  record.add("memory.reserved_low_bytes", estimate.reserved_low_bytes);
  record.add("memory.reserved_high_bytes", estimate.reserved_high_bytes);
  record.add("memory.headroom_bytes", estimate.headroom_bytes);
  record.add("memory.host_bytes_per_node", estimate.host_bytes_per_node);
  record.add("memory.nvme_bytes_per_node", estimate.nvme_bytes_per_node);
  const SentBytes& sent = estimate.sent;
  record.add("communication.sent_bytes_per_step.tensor", sent.tensor);
  record.add("communication.sent_bytes_per_step.pipeline", sent.pipeline);
  record.add("communication.sent_bytes_per_step.data", sent.data);
  record.add("communication.sent_bytes_per_step.context", sent.context);
  record.add("communication.sent_bytes_per_step.expert", sent.expert);
  record.add("communication.sent_bytes_per_step.total", sent.total());
  record.add("pipeline.num_microbatches", estimate.pipeline.num_microbatches);
  record.add("pipeline.bubble_fraction", estimate.pipeline.bubble_fraction);
  record.add("pipeline.ideal_bubble_fraction", estimate.pipeline.ideal_bubble_fraction);
  const TimeEstimate& time = estimate.time;
  record.add("time.step_s", time.step_s);
  record.add("time.compute_s", time.compute_s);
  record.add("time.recompute_s", time.recompute_s);
  record.add("time.communication_exposed_s", time.communication_exposed_s);
  record.add("time.bubble_s", time.bubble_s);
  record.add("time.optimizer_s", time.optimizer_s);
  record.add("time.offload_s", time.offload_s);
  record.add("time.step_low_s", time.band_low_s);
  record.add("time.step_high_s", time.band_high_s);
  const ThroughputEstimate& throughput = estimate.throughput;
  record.add("throughput.tokens_per_s", throughput.tokens_per_s);
  record.add("throughput.tokens_per_s_per_gpu", throughput.tokens_per_s_per_gpu);
  record.add("throughput.samples_per_s", throughput.samples_per_s);
  record.add("throughput.model_flop_per_token", throughput.model_flop_per_token);
  record.add("throughput.score_flop_per_token", throughput.score_flop_per_token);
  record.add("throughput.peak_tflops_per_gpu", throughput.peak_flop_per_s / 1e12);
  record.add("throughput.model_tflops_per_gpu", throughput.model_flop_per_s_per_gpu / 1e12);
  record.add("throughput.hardware_tflops_per_gpu", throughput.hardware_flop_per_s_per_gpu / 1e12);
  record.add("throughput.mfu", throughput.mfu);
  record.add("throughput.mfu_causal", throughput.mfu_causal);
  record.add("throughput.mfu_6n", throughput.mfu_6n);
  record.add("throughput.hfu", throughput.hfu);
  record.add("throughput.gpu_hours_per_1e12_tokens", throughput.gpu_hours_per_1e12_tokens);
  record.add("throughput.price_per_1e12_tokens",
             throughput.has_price ? fmt::format("{}", throughput.price_per_1e12_tokens) : std::string());
}

}  // namespace

std::string estimate_csv(const Run& run, const Estimate& estimate) {
  std::string out;
  for (const StageEstimate& stage : estimate.stages) {
    Record record;
    add_stage(record, stage);
    add_run(record, run);
    add_totals(record, estimate);
    if (out.empty()) record.write(out, true);
    record.write(out, false);
  }
  return out;
}

}  // namespace shardplan::report
