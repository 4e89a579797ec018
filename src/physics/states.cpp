#include "shardplan/physics/states.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "shardplan/physics/frameworks/facts.hpp"
#include "shardplan/physics/state_formula.hpp"

namespace shardplan {
namespace {

/// Stored bytes of a quantised matrix element and its block constants (QLoRA, arXiv:2305.14314:
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
  return facts_of(run.training.framework).transformer_engine &&
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

bool rounds_per_unit(Framework framework) noexcept { return facts_of(framework).rounding == StateRounding::unit; }

StateRule state_rule(const Run& run) noexcept {
  const Training& training = run.training;
  const Parallel& parallel = run.parallel;
  const FrameworkFacts& framework = facts_of(training.framework);
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

  rule.rounds_bytes = framework.rounding == StateRounding::bytes;
  rule.whole_matrices = framework.whole_matrices && keeps_matrices_whole(optimizer);
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
  if (!shards_states(parallel.fsdp)) {
    cut(parallel.zero_stage >= 3, parallel.zero_stage >= 2, parallel.zero_stage >= 1);
    rule.padded_buffers = framework.padded_buffers && parallel.zero_stage >= 1;
    return rule;
  }
  cut(true, true, true);
  if (parallel.fsdp == Fsdp::hybrid_shard) {
    const double group = std::max(1, parallel.shard_group);
    rule.parameter_shards = rule.gradient_shards = rule.optimizer_shards = group;
    const double expert_group = std::min(group, expert);
    rule.expert_parameter_shards = rule.expert_gradient_shards = rule.expert_optimizer_shards = expert_group;
  }
  rule.constants_sharded = false;
  rule.adapters_sharded = !training.peft.fused;
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
  const bool trainer = training.stack.memory.embedding_states_fp32;
  counting.embedding_in_fp32 = trainer && counting.optimizer->kernel == StepKernel::bitsandbytes;
  return counting;
}

StateBytes active_layer_bytes(const StateRule& rule, double elements) noexcept {
  return active_layer_states(NoTrace{}, rule, elements);
}

StateBytes state_bytes(const StateRule& rule, const UnitWeights& unit, const Optimizer& optimizer) noexcept {
  return unit_state_bytes(NoTrace{}, rule, unit, optimizer);
}

}  // namespace shardplan
