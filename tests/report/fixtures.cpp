#include "fixtures.hpp"

#include <cmath>

namespace test {

using namespace shardplan;

std::int64_t gib(double size) { return std::llround(size * 1073741824.0); }

namespace {

StageEstimate stage_of(int index, int layers, std::int64_t live, std::int64_t parameters, const MemoryParts& parts,
                       double reserve = 1.05) {
  StageEstimate stage;
  stage.stage = index;
  stage.layers = layers;
  stage.parameters = parameters;
  stage.in_flight_microbatches = live;
  stage.in_flight_chunks = live;
  stage.peak_moment = Moment::backward;
  const std::size_t backward = static_cast<std::size_t>(Moment::backward);
  stage.moments[backward] = parts;
  stage.has_moment[backward] = true;
  const std::size_t step = static_cast<std::size_t>(Moment::optimizer_step);
  stage.moments[step] = parts;
  stage.moments[step].activations = 0;
  stage.moments[step].transient = 0;
  stage.has_moment[step] = true;
  const double allocated = static_cast<double>(parts.allocated());
  stage.reserved_bytes = std::llround(allocated * reserve);
  stage.reserved_low_bytes = std::llround(allocated * (reserve - 0.03));
  stage.reserved_high_bytes = std::llround(allocated * (reserve + 0.04));
  return stage;
}

/// Peak, reserve and verdict from the stages.
void finish(Estimate& estimate) {
  estimate.peak_bytes = 0;
  estimate.headroom_bytes = estimate.capacity_bytes;
  for (std::size_t i = 0; i < estimate.stages.size(); ++i) {
    const StageEstimate& stage = estimate.stages[i];
    if (stage.peak().total() > estimate.peak_bytes) {
      estimate.peak_bytes = stage.peak().total();
      estimate.peak_stage = static_cast<int>(i);
    }
    const std::int64_t headroom = estimate.capacity_bytes - stage.reserved_bytes - stage.peak().framework;
    if (headroom < estimate.headroom_bytes) {
      estimate.headroom_bytes = headroom;
      estimate.binding_stage = static_cast<int>(i);
      estimate.reserved_bytes = stage.reserved_bytes;
      estimate.reserved_low_bytes = stage.reserved_low_bytes;
      estimate.reserved_high_bytes = stage.reserved_high_bytes;
    }
  }
  estimate.fits_gpu = estimate.headroom_bytes >= 0;
  estimate.fits = estimate.fits_gpu;
}

void call(Estimate& estimate, const char* name, Collective op, GroupKind group, int size, Scope scope,
          std::int64_t calls, double message_gib, double sent_gib, double time_s, double exposed_s) {
  CommunicationCall row;
  row.name = name;
  row.op = op;
  row.group = group;
  row.group_size = size;
  row.scope = scope;
  row.calls_per_step = calls;
  row.message_bytes = gib(message_gib);
  row.sent_bytes_per_step = gib(sent_gib);
  row.time_s = time_s;
  row.exposed_s = exposed_s;
  estimate.communication.add(row);
}

Run h100_run() {
  Run run;
  run.model.name = "llama-3.1-70b";
  run.model.hidden_size = 8192;
  run.model.vocab_size = 128256;
  run.model.kinds.resize(1);
  run.model.layer_kinds.assign(80, 0);
  run.cluster.name = "dgx-h100";
  run.cluster.gpu.name = "H100-SXM-80GB";
  run.cluster.gpu.link_bandwidth = 450e9;
  run.cluster.gpu.link_type = "NVLink 4";
  run.cluster.gpu.gemm.measured = true;
  run.num_gpus = 128;
  run.parallel.tensor = 8;
  run.parallel.pipeline = 4;
  run.parallel.data = 4;
  run.parallel.sequence_parallel = true;
  run.parallel.zero_stage = 1;
  run.training.seq_length = 4096;
  run.training.micro_batch_size = 1;
  run.training.global_batch_size = 1024;
  run.training.framework = Framework::megatron;
  run.training.grad_dtype = DType::fp32;
  run.training.vocab_multiple = 128;
  return run;
}

}  // namespace

Example pipeline_of_four() {
  Example example;
  example.run = h100_run();
  Estimate& estimate = example.estimate;
  estimate.model.parameters = 70553706496;
  estimate.model.active_parameters = 70553706496;
  estimate.model.trainable_parameters = 70553706496;
  estimate.model.padded_vocab_size = 129024;
  estimate.capacity_bytes = gib(79.65);
  const std::int64_t outer = 2271543296;
  const std::int64_t inner = 2139422720;
  const auto parts = [](std::int64_t p, std::int64_t live, double transient) {
    MemoryParts m;
    m.parameters = 2 * p;
    m.gradients = 4 * p;
    m.optimizer = 3 * p;
    m.activations = 20 * live * 150081536;
    m.transient = gib(transient);
    m.framework = gib(2.1);
    return m;
  };
  estimate.stages = {
      stage_of(0, 20, 4, outer, parts(outer, 4, 0.1485)), stage_of(1, 20, 3, inner, parts(inner, 3, 0.1485)),
      stage_of(2, 20, 2, inner, parts(inner, 2, 0.1485)), stage_of(3, 20, 1, outer, parts(outer, 1, 0.3945))};
  for (StageEstimate& stage : estimate.stages) {
    stage.forward_s = 0.0396;
    stage.backward_s = 0.0793;
  }
  estimate.stages[3].backward_s = 0.0850;
  finish(estimate);

  estimate.pipeline.num_microbatches = 256;
  estimate.pipeline.ideal_bubble_fraction = 3.0 / 259;
  estimate.pipeline.bubble_fraction = 0.0443;
  TimeEstimate& time = estimate.time;
  time.compute_s = 22.40;
  time.gemm_s = 18.71;
  time.attention_s = 2.55;
  time.other_compute_s = 1.14;
  time.exposed_by_group_s[static_cast<std::size_t>(GroupKind::tensor)] = 8.40;
  time.exposed_by_group_s[static_cast<std::size_t>(GroupKind::pipeline)] = 0.083;
  time.exposed_by_group_s[static_cast<std::size_t>(GroupKind::data)] = 0.128;
  time.data_exposed_stage = 0;
  time.data_hidden_s = 0.198;
  time.communication_exposed_s = 8.40 + 0.083 + 0.128;
  time.bubble_s = 1.431;
  time.optimizer_s = 0.006;
  time.step_s = time.compute_s + time.communication_exposed_s + time.bubble_s + time.optimizer_s;
  time.band_low_s = 0.92 * time.step_s;
  time.band_high_s = 1.10 * time.step_s;
  ThroughputEstimate& throughput = estimate.throughput;
  throughput.tokens_per_s = 4194304 / time.step_s;
  throughput.tokens_per_s_per_gpu = throughput.tokens_per_s / 128;
  throughput.samples_per_s = 1024 / time.step_s;
  throughput.peak_flop_per_s = 989.4e12;
  throughput.mfu = 0.459;
  throughput.mfu_causal = 0.442;
  throughput.mfu_6n = 0.432;
  throughput.hfu = 0.459;

  call(estimate, "sp_all_gather", Collective::all_gather, GroupKind::tensor, 8, Scope::intra_node, 30720, 0.0625, 1680,
       6.39, 4.26);
  call(estimate, "sp_reduce_scatter", Collective::reduce_scatter, GroupKind::tensor, 8, Scope::intra_node, 20480,
       0.0625, 1120, 4.14, 4.14);
  call(estimate, "p2p", Collective::send, GroupKind::pipeline, 4, Scope::inter_node, 512, 0.0078125, 4, 0.11, 0.083);
  call(estimate, "grad_reduce_scatter", Collective::reduce_scatter, GroupKind::data, 4, Scope::inter_node, 1, 8.46, 6.3,
       0.16, 0.09);
  call(estimate, "param_all_gather", Collective::all_gather, GroupKind::data, 4, Scope::inter_node, 1, 4.23, 3.2, 0.08,
       0.038);
  return example;
}

Example out_of_memory() {
  Example example = pipeline_of_four();
  example.run.training.attention = AttentionKernel::eager;
  example.run.training.micro_batch_size = 2;
  for (StageEstimate& stage : example.estimate.stages) {
    MemoryParts parts = stage.peak();
    parts.activations = gib(15.585 * static_cast<double>(stage.in_flight_microbatches));
    parts.transient *= 2;
    const StageEstimate changed =
        stage_of(stage.stage, stage.layers, stage.in_flight_microbatches, stage.parameters, parts);
    stage.moments = changed.moments;
    stage.reserved_bytes = changed.reserved_bytes;
    stage.reserved_low_bytes = changed.reserved_low_bytes;
    stage.reserved_high_bytes = changed.reserved_high_bytes;
  }
  finish(example.estimate);
  return example;
}

Example one_gpu() {
  Example example;
  Run& run = example.run;
  run.model.name = "llama-3.1-8b";
  run.model.hidden_size = 4096;
  run.model.vocab_size = 128256;
  run.model.kinds.resize(1);
  run.model.layer_kinds.assign(32, 0);
  run.cluster.gpu.name = "RTX-4090";
  run.cluster.gpu.vendor = "NVIDIA";
  run.cluster.gpus_per_node = 1;
  run.training.seq_length = 2048;
  run.training.global_batch_size = 1;
  run.training.framework = Framework::ddp;
  run.training.loss = LossKind::hf;
  run.training.optimizer = "adamw8bit";
  run.training.grad_dtype = DType::fp32;
  run.training.peft.method = PeftMethod::qlora;
  run.training.peft.target_names = {"all-linear"};
  run.training.peft.quant = Quantization::nf4;

  Estimate& estimate = example.estimate;
  estimate.model.parameters = 8030261248;
  estimate.model.by_part.adapters = 41943040;
  estimate.model.trainable_parameters = 41943040;
  estimate.model.padded_vocab_size = 128256;
  estimate.capacity_bytes = gib(23.99);
  MemoryParts parts;
  parts.parameters = gib(3.353 + 1.957 + 0.156);
  parts.gradients = 4 * 41943040;
  parts.optimizer = gib(0.0794);
  parts.activations = gib(11.27);
  parts.transient = gib(2.935);
  parts.framework = gib(0.6);
  StageEstimate stage = stage_of(0, 32, 1, 8030261248 + 41943040, parts);
  stage.peak_moment = Moment::loss;
  stage.moments[static_cast<std::size_t>(Moment::loss)] = parts;
  stage.has_moment[static_cast<std::size_t>(Moment::loss)] = true;
  stage.moments[static_cast<std::size_t>(Moment::backward)].transient /= 2;
  estimate.stages = {stage};
  finish(estimate);
  TimeEstimate& time = estimate.time;
  time.compute_s = 0.70;
  time.gemm_s = 0.27;
  time.attention_s = 0.05;
  time.other_compute_s = 0.38;
  time.optimizer_s = 0.012;
  time.step_s = 0.712;
  time.band_low_s = 0.55;
  time.band_high_s = 0.92;
  estimate.throughput.tokens_per_s = 2048 / 0.712;
  estimate.throughput.tokens_per_s_per_gpu = 2048 / 0.712;
  estimate.throughput.peak_flop_per_s = 165.2e12;
  estimate.throughput.mfu = 0.583;
  estimate.throughput.mfu_causal = 0.561;
  estimate.throughput.mfu_6n = 0.57;
  estimate.throughput.hfu = 0.583;
  return example;
}

Example sixteen_stages(bool equal) {
  Example example = pipeline_of_four();
  Estimate& estimate = example.estimate;
  example.run.parallel.pipeline = 16;
  example.run.num_gpus = 512;
  const StageEstimate first = estimate.stages.front();
  const StageEstimate middle = estimate.stages[1];
  estimate.stages.assign(16, middle);
  estimate.stages.front() = first;
  for (std::size_t i = 0; i < 16; ++i) {
    StageEstimate& stage = estimate.stages[i];
    MemoryParts parts = stage.peak();
    const std::int64_t live = equal ? (i == 0 ? 4 : 1) : 16 - static_cast<std::int64_t>(i);
    parts.activations = 5 * live * 150081536;
    const StageEstimate timed = stage;
    stage = stage_of(static_cast<int>(i), 5, live, stage.parameters, parts);
    stage.forward_s = timed.forward_s;
    stage.backward_s = timed.backward_s;
  }
  finish(estimate);
  return example;
}

}  // namespace test
