// The run as resolved: a run file in which nothing is left out.
#include <fmt/format.h>

#include <string>

#include "json_writer.hpp"
#include "shardplan/io/run_file.hpp"

namespace shardplan::io {
namespace {

using plan::Draft;
using plan::Field;
using Lines = JsonWriter::Lines;

constexpr std::string_view member_of(Field field) noexcept {
  const std::string_view pointer = name(field);
  return pointer.substr(pointer.rfind('/') + 1);
}

/// Writes fields under the last token of their pointers.
class FieldWriter {
 public:
  explicit FieldWriter(JsonWriter& out) : out_(out) {}

  void integer(Field field, std::int64_t value) { out_.integer(member_of(field), value); }
  void boolean(Field field, bool value) { out_.boolean(member_of(field), value); }
  void text(Field field, std::string_view value) { out_.text(member_of(field), value); }
  void null(Field field) { out_.null(member_of(field)); }
  template <class Enum>
  void choice(Field field, Enum value) {
    text(field, name(value));
  }
  /// Whole numbers without a point.
  void number(Field field, double value) {
    const bool whole = value == static_cast<double>(static_cast<std::int64_t>(value));
    if (whole) return integer(field, static_cast<std::int64_t>(value));
    out_.real(member_of(field), value);
  }

 private:
  JsonWriter& out_;
};

void write_parallel(JsonWriter& out, const Draft& draft, const Parallel& parallel) {
  FieldWriter fields(out);
  out.begin_object("parallel");
  fields.integer(Field::tensor, parallel.tensor);
  fields.integer(Field::pipeline, parallel.pipeline);
  fields.integer(Field::virtual_pipeline, parallel.virtual_pipeline);
  fields.integer(Field::context, parallel.context);
  fields.integer(Field::expert, parallel.expert);
  fields.integer(Field::expert_tensor, parallel.expert_tensor);
  fields.integer(Field::data, parallel.data);
  fields.boolean(Field::sequence_parallel, parallel.sequence_parallel);
  fields.integer(Field::zero_stage, parallel.zero_stage);
  if (parallel.fsdp == Fsdp::none && !draft.given.has(Field::fsdp)) {
    fields.null(Field::fsdp);
  } else {
    fields.choice(Field::fsdp, parallel.fsdp);
  }
  fields.integer(Field::fsdp_version, parallel.fsdp_version);
  fields.choice(Field::grad_sync, parallel.grad_sync);
  fields.choice(Field::context_comm, parallel.context_comm);
  fields.integer(Field::shard_group, parallel.shard_group);
  out.begin_object("zeropp", Lines::one);
  fields.boolean(Field::hpz, parallel.hpz);
  fields.boolean(Field::qwz, parallel.qwz);
  fields.boolean(Field::qgz, parallel.qgz);
  out.end_object();
  fields.choice(Field::schedule, parallel.schedule);
  out.begin_array(member_of(Field::layers_per_stage), Lines::one);
  for (const int layers : parallel.layers_per_chunk) out.integer("", layers);
  out.end_array();
  std::string order;
  for (const Axis axis : parallel.order) order += (order.empty() ? "" : "-") + std::string(name(axis));
  fields.text(Field::order, order);
  out.end_object();
}

void write_recompute(JsonWriter& out, const Recompute& recompute) {
  const std::string_view member = member_of(Field::recompute);
  switch (recompute.mode) {
    case RecomputeMode::none: return out.text(member, "none");
    case RecomputeMode::selective: return out.text(member, "selective");
    case RecomputeMode::full: return out.text(member, "full");
    case RecomputeMode::ops: return out.text(member, "ops");
    case RecomputeMode::first_n: return out.text(member, fmt::format("full:{}", recompute.n));
    case RecomputeMode::every_k: return out.text(member, fmt::format("every:{}", recompute.n));
    case RecomputeMode::modules: break;
  }
  out.begin_object(member, Lines::one);
  out.begin_array("modules");
  for (std::size_t i = 0; i < recompute_module_names.size(); ++i) {
    if ((recompute.modules & (1U << i)) != 0) out.text("", recompute_module_names[i]);
  }
  out.end_array();
  out.end_object();
}

void write_kernels(JsonWriter& out, const Kernels& kernels) {
  FieldWriter fields(out);
  out.begin_object("kernels", Lines::one);
  fields.choice(Field::kernel_norm, kernels.norm);
  fields.choice(Field::kernel_mlp, kernels.mlp);
  fields.choice(Field::kernel_qkv, kernels.qkv);
  fields.choice(Field::kernel_softmax, kernels.softmax);
  fields.choice(Field::kernel_sp_input, kernels.sp_input);
  fields.choice(Field::kernel_wgrad, kernels.wgrad);
  fields.boolean(Field::attention_output_copy, kernels.attention_output_copy);
  fields.boolean(Field::kv_expanded, kernels.kv_expanded);
  fields.boolean(Field::reentrant_checkpoint, kernels.reentrant_checkpoint);
  fields.boolean(Field::te_dummy_wgrad, kernels.te_dummy_wgrad);
  fields.choice(Field::moe_dispatch, kernels.moe_dispatch);
  fields.choice(Field::moe_probs, kernels.moe_probs);
  fields.choice(Field::moe_combine, kernels.moe_combine);
  out.end_object();
}

void write_peft(JsonWriter& out, const Peft& peft) {
  if (!peft.active()) return out.null("peft");
  FieldWriter fields(out);
  out.begin_object("peft", Lines::one);
  fields.choice(Field::peft_method, peft.method);
  fields.integer(Field::peft_rank, peft.rank);
  fields.number(Field::peft_alpha, peft.alpha);
  fields.number(Field::peft_dropout, peft.dropout);
  const bool all = peft.target_names.size() == 1 && peft.target_names.front() == "all-linear";
  if (all) {
    fields.text(Field::peft_targets, "all-linear");
  } else {
    out.begin_array(member_of(Field::peft_targets));
    for (const std::string& target : peft.target_names) out.text("", target);
    out.end_array();
  }
  fields.choice(Field::peft_quant, peft.quant);
  fields.boolean(Field::double_quant, peft.double_quant);
  fields.choice(Field::adapter_dtype, peft.adapter_dtype);
  fields.boolean(Field::kbit_preparation, peft.kbit_preparation);
  fields.boolean(Field::peft_fused, peft.fused);
  out.end_object();
}

void write_offload(JsonWriter& out, const Draft& draft, const Offload& offload) {
  if (!draft.given.has(Field::offload)) return out.null("offload");
  FieldWriter fields(out);
  out.begin_object("offload", Lines::one);
  fields.choice(Field::offload_optimizer, offload.optimizer);
  fields.choice(Field::offload_parameters, offload.parameters);
  fields.choice(Field::offload_activations, offload.activations);
  if (offload.activation_layers >= 0) {
    fields.integer(Field::activation_layers, offload.activation_layers);
  } else {
    fields.null(Field::activation_layers);
  }
  fields.number(Field::optimizer_fraction, offload.optimizer_fraction);
  out.end_object();
}

void write_training(JsonWriter& out, const Draft& draft, const Training& training) {
  FieldWriter fields(out);
  out.begin_object("training");
  fields.integer(Field::seq_length, training.seq_length);
  fields.integer(Field::micro_batch_size, training.micro_batch_size);
  fields.integer(Field::global_batch_size, training.global_batch_size);
  fields.choice(Field::precision, training.precision);
  out.begin_object("fp8", Lines::one);
  fields.choice(Field::fp8_recipe, training.fp8_recipe);
  fields.boolean(Field::fp8_param_gather, training.fp8_param_gather);
  out.end_object();
  fields.boolean(Field::compile, training.compile);
  fields.choice(Field::framework, training.framework);
  if (training.stack.name.empty()) {
    fields.null(Field::stack);
  } else {
    fields.text(Field::stack, training.stack.name);
  }
  fields.text(Field::initialisation, training.full_initialisation ? "full" : "sharded");
  fields.text(Field::optimizer, training.optimizer);
  fields.choice(Field::optimizer_impl, training.optimizer_impl);
  write_recompute(out, training.recompute);
  fields.choice(Field::attention, training.attention);
  fields.text(Field::loss, training.loss == LossKind::chunked ? fmt::format("chunked:{}", training.loss_chunks)
                                                              : std::string(name(training.loss)));
  fields.boolean(Field::keep_logits, training.keep_logits);
  write_kernels(out, training.kernels);
  fields.number(Field::dropout, training.dropout);
  fields.number(Field::attention_dropout, training.attention_dropout);
  fields.boolean(Field::autocast, training.autocast);
  // With adapters the states are theirs, and a stated type of the frozen weights stands as it was.
  const bool stated = training.peft.active() && draft.given.has(Field::param_dtype);
  fields.choice(Field::param_dtype, stated ? draft.run.training.param_dtype : training.param_dtype);
  fields.choice(Field::grad_dtype, training.grad_dtype);
  fields.boolean(Field::master_weights, training.master_weights);
  fields.choice(Field::optimizer_state_dtype, training.optimizer_state_dtype);
  fields.integer(Field::vocab_multiple, training.vocab_multiple);
  out.begin_object("moe", Lines::one);
  if (training.capacity_factor) {
    fields.number(Field::capacity_factor, *training.capacity_factor);
  } else {
    fields.null(Field::capacity_factor);
  }
  fields.number(Field::moe_imbalance, training.moe_imbalance);
  out.end_object();
  write_peft(out, training.peft);
  write_offload(out, draft, training.offload);
  out.begin_object("overlap", Lines::one);
  fields.boolean(Field::overlap_grad_reduce, training.overlap.grad_reduce);
  fields.boolean(Field::overlap_param_gather, training.overlap.param_gather);
  fields.boolean(Field::overlap_tp, training.overlap.tp);
  fields.boolean(Field::overlap_p2p, training.overlap.p2p);
  out.end_object();
  out.end_object();
}

void write_requirements(JsonWriter& out, const Requirements& require) {
  out.begin_object("require", Lines::one);
  const auto number = [&](std::string_view member, const std::optional<double>& value) {
    if (value) out.real(member, *value);
  };
  if (require.fits) out.boolean("fits", *require.fits);
  number("min_headroom_gib", require.min_headroom_gib);
  number("min_mfu", require.min_mfu);
  number("max_bubble", require.max_bubble);
  number("max_step_s", require.max_step_s);
  number("min_tokens_per_s_per_gpu", require.min_tokens_per_s_per_gpu);
  number("max_gpu_hours_per_1e12_tokens", require.max_gpu_hours_per_1e12_tokens);
  out.end_object();
}

}  // namespace

std::string resolved_run_json(const Draft& draft, const Run& run, std::string_view model, std::string_view cluster) {
  JsonWriter out;
  out.begin_object();
  out.json("model", model.empty() ? "null" : model);
  out.json("cluster", cluster.empty() ? "null" : cluster);
  out.integer(member_of(Field::num_gpus), run.num_gpus);
  write_parallel(out, draft, run.parallel);
  write_training(out, draft, run.training);
  write_requirements(out, run.require);
  out.begin_array("defaults");
  for (const Field field : plan::defaults_taken(draft)) out.text("", name(field));
  out.end_array();
  out.end_object();
  return out.str();
}

}  // namespace shardplan::io
