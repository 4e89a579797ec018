#include "shardplan/physics/states.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace shardplan {
namespace {

double padded(double elements, double shards) noexcept {
  const double unit = static_cast<double>(std::lcm(static_cast<long long>(shards), 128LL));
  return std::ceil(elements / unit) * unit;
}

struct Shards {
  double parameter, gradient, optimizer, replicas;
};

/// Stored bytes of a quantised matrix element and its block constants (optimizers.md section 4; QLoRA, 2305.14314:
/// blocks of 64, second level over 256 of them).
void set_quantization(StateRule& rule, const Peft& peft) noexcept {
  switch (peft.quant) {
    case Quantization::none: break;
    case Quantization::nf4:
      rule.quantized_bytes = 0.5;
      rule.quantized_constant_bytes = peft.double_quant ? 1.0 / 64 + 4.0 / (64 * 256) : 4.0 / 64;
      break;
    case Quantization::int8:
      rule.quantized_bytes = 1;
      rule.quantized_row_bytes = 4;
      break;
    case Quantization::gptq4:
      rule.quantized_bytes = 0.5;
      rule.quantized_constant_bytes = 2.0 / 128 + 0.5 / 128;
      break;
  }
}

/// Shampoo's blocks are dealt out one by one, the others' matrices whole.
bool keeps_matrices_whole(const Optimizer& optimizer) noexcept {
  if (optimizer.form == StateForm::preconditioned) return optimizer.block_side <= 0;
  return optimizer.form == StateForm::momentum || optimizer.form == StateForm::low_rank_factor ||
         optimizer.form == StateForm::projected;
}

/// Transformer Engine quantises for the framework; torchao, which torchtitan uses, keeps the 16-bit tensors.
bool transformer_engine(const Run& run) noexcept {
  const Precision precision = run.training.precision;
  return run.training.framework == Framework::megatron &&
         (precision == Precision::fp8 || precision == Precision::nvfp4);
}

/// One copy of one element with its share of the scales.
double narrow_element_bytes(const Training& training) noexcept {
  if (training.precision == Precision::nvfp4) return 0.5 + 1.0 / 16;
  switch (training.fp8_recipe) {
    case Fp8Recipe::mxfp8: return 1 + 1.0 / 32;
    case Fp8Recipe::blockwise: return 1 + 4.0 / 128;  // fp32 scales of 1 x 128 blocks
    default: return 1;
  }
}

}  // namespace

double narrow_copy_bytes(const Run& run) noexcept {
  if (!transformer_engine(run)) return 0;
  const Training& training = run.training;
  const double one = training.fp8_recipe == Fp8Recipe::blockwise && training.precision == Precision::fp8
                         ? 1 + 4.0 / (128 * 128)  // weights have 128 x 128 blocks
                         : narrow_element_bytes(training);
  const bool scaled_by_block = training.precision == Precision::nvfp4 || training.fp8_recipe == Fp8Recipe::mxfp8 ||
                               training.fp8_recipe == Fp8Recipe::blockwise;
  constexpr int blackwell = 10;  // multiplies fp8 in any layout: one copy serves all three products
  return scaled_by_block || run.cluster.gpu.major < blackwell ? 2 * one : one;
}

double narrow_input_bytes(const Run& run) noexcept {
  return transformer_engine(run) && !run.training.peft.active() ? narrow_element_bytes(run.training) : 0;
}

bool rounds_per_unit(Framework framework) noexcept {
  return framework != Framework::textbook && framework != Framework::megatron;
}

StateRule state_rule(const Run& run) noexcept {
  const Training& training = run.training;
  const Parallel& parallel = run.parallel;
  StateRule rule;
  const Optimizer* found = find_optimizer(training.optimizer);
  const Optimizer& optimizer = found != nullptr ? *found : optimizers().front();
  rule.parameter_bytes = bytes_of(training.param_dtype);
  rule.gradient_bytes = bytes_of(training.grad_dtype);
  rule.keeps_gradients = optimizer.keeps_gradients;
  const auto master = [&](DType weight) {
    if (!training.master_weights || weight == DType::fp32) return 0.0;
    if (optimizer.master == MasterCopy::fp16) return 2.0;
    return optimizer.master == MasterCopy::remainder && weight == DType::bf16 ? 2.0 : 4.0;
  };
  rule.master_bytes = master(training.param_dtype);
  rule.moment_bytes = elementwise_bytes(optimizer, bytes_of(training.optimizer_state_dtype));
  rule.replica_share_bytes = optimizer.replica_share_bytes;
  if (training.fp8_param_gather) rule.narrow_parameter_bytes = narrow_copy_bytes(run);
  if (training.peft.active()) {
    const Peft& peft = training.peft;
    const bool fp32_run = !is_16_bit_or_less(training.precision);
    rule.frozen_bytes = fp32_run ? 4 : 2;
    set_quantization(rule, peft);
    rule.adapter_parameter_bytes = bytes_of(peft.adapter_dtype);
    rule.adapter_gradient_bytes = rule.gradient_bytes;
    rule.adapter_master_bytes = master(peft.adapter_dtype);
    rule.adapter_moment_bytes = rule.moment_bytes;
  }

  rule.rounds_bytes = training.framework == Framework::textbook;
  rule.whole_matrices = training.framework == Framework::megatron && keeps_matrices_whole(optimizer);
  const double dense = parallel.dense_replicas();
  const double expert = parallel.expert_replicas();
  rule.dense_replicas = dense;
  rule.expert_replicas = expert;
  const auto cut = [&](bool parameters, bool gradients, bool states) {
    rule.parameter_shards = parameters ? dense : 1;
    rule.gradient_shards = gradients ? dense : 1;
    rule.optimizer_shards = states ? dense : 1;
    rule.expert_parameter_shards = parameters ? expert : 1;
    rule.expert_gradient_shards = gradients ? expert : 1;
    rule.expert_optimizer_shards = states ? expert : 1;
  };
  switch (training.framework) {
    case Framework::textbook:
    case Framework::deepspeed: cut(parallel.zero_stage >= 3, parallel.zero_stage >= 2, parallel.zero_stage >= 1); break;
    case Framework::megatron:
    case Framework::fsdp:
      if (parallel.fsdp == Fsdp::none || parallel.fsdp == Fsdp::no_shard) {
        cut(false, false, training.framework == Framework::megatron && parallel.zero_stage >= 1);
        rule.padded_buffers = training.framework == Framework::megatron && parallel.zero_stage >= 1;
      } else {
        cut(true, true, true);
        if (parallel.fsdp == Fsdp::hybrid_shard) {
          const double group = std::max(1, parallel.shard_group);
          rule.parameter_shards = rule.gradient_shards = rule.optimizer_shards = group;
          const double expert_group = std::min(group, expert);
          rule.expert_parameter_shards = rule.expert_gradient_shards = rule.expert_optimizer_shards = expert_group;
        }
        rule.constants_sharded = false;
        rule.adapters_sharded = !training.peft.fused;
      }
      break;
    case Framework::ddp:
    case Framework::dp: break;
  }
  return rule;
}

StateCounting state_counting(const Run& run) noexcept {
  const Training& training = run.training;
  StateCounting counting;
  counting.optimizer = find_optimizer(training.optimizer);
  if (counting.optimizer == nullptr) return counting;
  counting.width = bytes_of(training.optimizer_state_dtype);
  switch (counting.optimizer->rank) {
    case ProjectionRank::none: break;
    case ProjectionRank::one: counting.rank = 1; break;
    case ProjectionRank::quarter_of_hidden: counting.rank = static_cast<double>(run.model.hidden_size) / 4; break;
    case ProjectionRank::smaller_side: counting.rank = std::numeric_limits<double>::max(); break;
  }
  // transformers' Trainer registers nn.Embedding for 32-bit states (trainer.py, create_optimizer).
  const bool trainer = training.stack.name.rfind("hf-", 0) == 0;
  counting.embedding_in_fp32 = trainer && counting.optimizer->kernel == StepKernel::bitsandbytes;
  return counting;
}

StateBytes active_layer_bytes(const StateRule& rule, double elements) noexcept {
  StateBytes bytes;
  bytes.gradients = std::ceil(rule.gradient_bytes * elements / rule.gradient_shards);
  bytes.moments = rule.moment_bytes * elements / rule.optimizer_shards;
  bytes.optimizer =
      std::ceil((rule.parameter_bytes < 4 ? 4.0 : 0.0) * elements / rule.optimizer_shards + bytes.moments);
  return bytes;
}

StateBytes state_bytes(const StateRule& rule, const UnitWeights& unit, const Optimizer& optimizer) noexcept {
  StateBytes bytes;
  const bool one_layer = optimizer.form == StateForm::block_coordinate;
  const auto shard = [&rule](double elements, double shards) {
    if (shards <= 1) return elements;
    return rule.rounds_bytes ? elements / shards : std::ceil(elements / shards);
  };
  double unpaged = 0;
  const auto add = [&](const Weights& w, const Shards& shards) {
    double trained_buffer = w.trained;
    if (rule.padded_buffers) trained_buffer = padded(w.trained, shards.optimizer);
    bytes.parameters += rule.parameter_bytes * shard(trained_buffer, shards.parameter);
    if (rule.narrow_parameter_bytes > 0) {
      bytes.parameters += (rule.narrow_parameter_bytes - rule.parameter_bytes) * shard(w.narrow, shards.parameter);
    }
    if (optimizer.weight_bytes > 0 && w.treated > 0) {
      bytes.parameters -= (rule.parameter_bytes - optimizer.weight_bytes) * shard(w.treated, shards.parameter);
    }
    // Of the layer that it is about, active_layer_bytes.
    if (!one_layer) {
      if (rule.keeps_gradients) bytes.gradients += rule.gradient_bytes * shard(trained_buffer, shards.gradient);
      const double elementwise = std::max(0.0, trained_buffer - w.counted);
      double counted = w.counted_bytes / shards.optimizer;
      if (rule.whole_matrices) counted = std::max(counted, w.largest_bytes);
      const double moments = rule.moment_bytes * shard(elementwise, shards.optimizer) + counted +
                             rule.replica_share_bytes * w.trained / shards.replicas;
      bytes.moments += moments;
      bytes.optimizer += rule.master_bytes * shard(trained_buffer, shards.optimizer) + moments;
    }
    // Frozen weights: stored once, never with gradients or states.
    bytes.parameters += rule.frozen_bytes * shard(w.frozen, shards.parameter);
    if (w.quantized > 0) {
      bytes.parameters += rule.quantized_bytes * shard(w.quantized, shards.parameter);
      const double constants =
          std::ceil(rule.quantized_constant_bytes * w.quantized + rule.quantized_row_bytes * w.quantized_rows);
      bytes.parameters += rule.constants_sharded ? shard(constants, shards.parameter) : constants;
    }
    if (w.adapters > 0) {
      const bool cut = rule.adapters_sharded;
      const double buffer = rule.padded_buffers ? padded(w.adapters, shards.optimizer) : w.adapters;
      bytes.parameters += rule.adapter_parameter_bytes * shard(buffer, cut ? shards.parameter : 1);
      const double gradients = rule.keeps_gradients ? rule.adapter_gradient_bytes : 0.0;
      bytes.gradients += gradients * shard(buffer, cut ? shards.gradient : 1);
      const double states = cut ? shards.optimizer : 1;
      const double elementwise = std::max(0.0, buffer - w.adapter_counted);
      const double moments = rule.adapter_moment_bytes * shard(elementwise, states) + w.adapter_counted_bytes / states;
      bytes.moments += moments;
      bytes.optimizer += rule.adapter_master_bytes * shard(buffer, states) + moments;
    }
    if (optimizer.paged) unpaged += w.unpaged_bytes / shards.optimizer;
  };
  add(unit.dense, {rule.parameter_shards, rule.gradient_shards, rule.optimizer_shards, rule.dense_replicas});
  add(unit.expert,
      {rule.expert_parameter_shards, rule.expert_gradient_shards, rule.expert_optimizer_shards, rule.expert_replicas});
  if (optimizer.paged) bytes.paged = std::max(0.0, std::floor(bytes.moments - unpaged));
  bytes.parameters = std::ceil(bytes.parameters);
  bytes.gradients = std::ceil(bytes.gradients);
  bytes.optimizer = std::ceil(bytes.optimizer);
  return bytes;
}

}  // namespace shardplan
