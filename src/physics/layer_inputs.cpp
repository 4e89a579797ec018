#include "shardplan/physics/layer_inputs.hpp"

#include <algorithm>
#include <cmath>

#include "shardplan/physics/frameworks/facts.hpp"
#include "shardplan/physics/states.hpp"

namespace shardplan {
namespace {

void set_model_symbols(Symbols<double>& v, const Model& model, const LayerKind& kind) noexcept {
  const AttentionShape& attention = kind.attention;
  const MlpShape& mlp = kind.mlp;
  v.h = static_cast<double>(model.hidden_size);
  v.a = static_cast<double>(attention.heads);
  v.k = static_cast<double>(attention.kv_heads);
  v.d = static_cast<double>(attention.head_dim);
  v.d_v = static_cast<double>(attention.v_head_dim);
  v.r_q = static_cast<double>(attention.q_lora_rank);
  v.r_kv = static_cast<double>(attention.kv_lora_rank);
  v.d_rope = static_cast<double>(attention.rope_head_dim);
  v.i_a = static_cast<double>(attention.indexer_heads);
  v.i_d = static_cast<double>(attention.indexer_head_dim);
  v.f = static_cast<double>(mlp.intermediate);
  v.E = static_cast<double>(mlp.experts);
  v.k_top = static_cast<double>(mlp.top_k);
  v.f_e = static_cast<double>(mlp.expert_intermediate);
  v.f_s = static_cast<double>(mlp.shared_intermediate);
  v.f_p = static_cast<double>(mlp.parallel_dense_intermediate);
  const double window = static_cast<double>(attention.window);
  v.keys = window > 0 ? std::min(v.s, window) : v.s;
  v.keys_causal = causal_keys(v.s, window);
}

bool bitsandbytes(Quantization quant) noexcept { return quant == Quantization::nf4 || quant == Quantization::int8; }

}  // namespace

bool autocast_over_fp32(const Run& run) noexcept {
  const Training& training = run.training;
  const bool gathered_in_16_bit = facts_of(training.framework).gathers_in_16_bit && run.parallel.fsdp != Fsdp::none;
  return training.autocast && training.param_dtype == DType::fp32 && !training.peft.active() && !gathered_in_16_bit;
}

bool quantized_stream_is_fp32(const Run& run) noexcept {
  const Training& training = run.training;
  if (!training.peft.active() || !bitsandbytes(training.peft.quant)) return false;
  if (training.stack.memory.quantized_base_runs_fp32) return true;
  const bool layer_norm = run.model.norm != Norm::rmsnorm;
  return training.peft.kbit_preparation || (training.autocast && layer_norm);
}

Symbols<double> symbols_for(const Run& run, const LayerKind& kind) noexcept {
  const Parallel& parallel = run.parallel;
  const Training& training = run.training;
  Symbols<double> v;
  v.s = static_cast<double>(training.seq_length);
  v.b = static_cast<double>(training.micro_batch_size);
  v.t = parallel.tensor;
  v.c = parallel.context;
  v.e = parallel.expert;
  v.x = parallel.expert_tensor;
  v.t_sp = parallel.sequence_parallel ? v.t : 1.0;
  v.t_in = parallel.sequence_parallel && training.kernels.sp_input == SequenceParallelInput::regather ? v.t : 1.0;
  const bool fp32_quantized = training.stack.memory.quantized_base_runs_fp32 && quantized_stream_is_fp32(run);
  v.w = fp32_quantized ? 4.0 : bytes_of(activation_dtype(training.precision));
  const bool stream_fp32 = autocast_over_fp32(run) || quantized_stream_is_fp32(run);
  v.w_r = stream_fp32 ? 4.0 : v.w;
  v.w_m = quantized_stream_is_fp32(run) ? 4.0 : v.w;
  v.V = static_cast<double>(run.padded_vocab());
  set_model_symbols(v, run.model, kind);
  v.t_kv = std::min(v.t, std::max(1.0, v.k));
  v.capacity = training.capacity_factor.value_or(1.0);
  v.u = v.capacity * training.moe_imbalance;
  v.r = training.peft.rank;
  const bool fp32_adapters = training.peft.adapter_dtype == DType::fp32 && !training.autocast;
  v.w_a = fp32_adapters || fp32_quantized ? 4.0 : 2.0;
  return v;
}

Symbols<double> whole_model_symbols(const Model& model, const LayerKind& kind, double seq_length) noexcept {
  Symbols<double> v;
  v.s = seq_length;
  v.b = v.t = v.c = v.e = v.x = v.t_sp = v.t_in = v.t_kv = v.capacity = v.u = 1.0;
  v.w = v.w_r = v.w_m = v.w_a = 2.0;
  v.V = static_cast<double>(model.vocab_size);
  set_model_symbols(v, model, kind);
  return v;
}

LayerOptions whole_model_options(const Model& model) noexcept {
  LayerOptions o;
  o.norm = model.norm;
  o.activation = model.activation;
  o.rope = model.position == Position::rope;
  o.fused_modules = model.fused_modules;
  return o;
}

LayerOptions options_for(const Run& run, const LayerKind& kind, bool frozen_input) noexcept {
  const Training& training = run.training;
  const Parallel& parallel = run.parallel;
  LayerOptions o = whole_model_options(run.model);
  o.kernels = training.kernels;
  o.attention = training.attention;
  o.dropout = training.dropout > 0;
  o.attention_dropout = training.attention_dropout > 0;
  o.activations_fp32 = !is_16_bit_or_less(training.precision);
  o.base_trains = !training.peft.active();
  o.input_needs_gradient = !frozen_input;
  o.autocast_copies = autocast_over_fp32(run);
  if (training.peft.active()) {
    const Peft& peft = training.peft;
    o.adapted = peft.targets;
    o.quantized = peft.quant != Quantization::none;
    o.quantized_keeps_input = training.stack.memory.quantized_linear_keeps_input;
    o.fused_qkv_adapters = training.stack.memory.fused_qkv_adapters;
    o.adapter_fused = peft.fused;
    o.dora = peft.method == PeftMethod::dora;
    const bool cast = peft.adapter_dtype == DType::fp32 && !training.autocast && !o.activations_fp32;
    const bool dropped = peft.dropout > 0;
    o.adapter_input = dropped || (cast && !peft.fused) ? AdapterInput::own_copy : AdapterInput::shared;
    o.adapter_copy_bytes = cast && !peft.fused ? 4.0 : o.activations_fp32 ? 4.0 : 2.0;
    o.adapter_mask = dropped && !peft.fused;
  }
  o.narrow_input_bytes = narrow_input_bytes(run);
  o.tensor = parallel.tensor > 1;
  o.sequence_parallel = parallel.sequence_parallel;
  o.context = parallel.context > 1;
  o.context_comm = parallel.context_comm;
  o.expert = parallel.expert > 1;
  o.expert_tensor = parallel.expert_tensor > 1;
  o.attention_copy_for_a2a =
      o.context && o.context_comm == ContextComm::a2a && training.stack.memory.attention_copy_for_a2a;
  (void)kind;
  return o;
}

LossBytes loss_bytes_for(const Run& run) noexcept {
  const Training& training = run.training;
  const double width = quantized_stream_is_fp32(run) || (training.autocast && run.model.norm != Norm::rmsnorm)
                           ? 4.0
                           : bytes_of(activation_dtype(training.precision));
  const bool later = training.stack.memory.fused_loss_keeps_log_probs;
  // Liger cuts the tokens into about V/h chunks.
  const double h = static_cast<double>(run.model.hidden_size), v = static_cast<double>(run.padded_vocab());
  const int chunks = training.loss == LossKind::liger ? static_cast<int>(std::ceil(v / h)) : training.loss_chunks;
  LossBytes loss = loss_bytes(training.loss, chunks, width, later);
  if (training.loss == LossKind::logits16 && training.stack.memory.two_logits_at_loss) {
    loss.peak_per_logit = quantized_stream_is_fp32(run) ? 8.0 : 4.0;
  }
  if (training.loss == LossKind::megatron && training.stack.memory.loss_keeps_cast) loss.peak_per_logit += 4;
  return loss;
}

}  // namespace shardplan
