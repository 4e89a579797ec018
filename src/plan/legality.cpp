#include "shardplan/plan/legality.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "shardplan/physics/frameworks/facts.hpp"
#include "shardplan/plan/saturate.hpp"
#include "shardplan/schedule/legality.hpp"

namespace shardplan::plan {
namespace {

/// Whether a ZeRO stage is one of those from `first` on.
bool from(int first, int stage) noexcept { return first != never && stage >= first; }

/// Widths of which 0 means "none", so that it must not take part.
void fold(std::int64_t& divisor, std::int64_t width) noexcept {
  if (width > 0) divisor = std::gcd(divisor, width);
}

void check_world(const RuleInputs& layout, RuleSet& broken) noexcept {
  if (layout.num_gpus > layout.gpus_per_node && layout.num_gpus % layout.gpus_per_node != 0) {
    add(broken, Rule::node_shape);
  }
  const bool splits_more = layout.tensor > 1 || layout.pipeline > 1 || layout.context > 1 || layout.expert > 1;
  const FrameworkFacts& framework = facts_of(layout.framework);
  const bool splits_experts = layout.expert > 1 || layout.expert_tensor > 1;
  if ((framework.data_only && splits_more) || (!framework.expert_parallel && splits_experts)) {
    add(broken, Rule::framework_degrees);
  }
  if (framework.single_process && layout.num_gpus > layout.gpus_per_node) add(broken, Rule::single_node);

  const std::int64_t replica = saturating_product({layout.tensor, layout.pipeline, layout.context});
  if (saturating_product({replica, layout.data}) != layout.num_gpus) add(broken, Rule::world_product);
  if (layout.num_gpus % replica != 0) add(broken, Rule::world_multiple);
  const std::int64_t experts = saturating_product({layout.pipeline, layout.expert, layout.expert_tensor});
  if (layout.num_gpus % experts != 0) add(broken, Rule::expert_world);
}

void check_model(const ModelFacts& model, const RuleInputs& layout, RuleSet& broken) noexcept {
  const std::int64_t tensor = layout.tensor;
  if (model.heads % tensor != 0) add(broken, Rule::tensor_heads);
  for (std::size_t i = 0; i < model.kv_heads_count; ++i) {
    const bool replicated = tensor % model.kv_heads[i] == 0 && facts_of(layout.framework).replicates_kv_heads;
    if (model.kv_heads[i] % tensor != 0 && !replicated) add(broken, Rule::tensor_kv_heads);
  }
  if (model.intermediate % tensor != 0) add(broken, Rule::tensor_intermediate);
  if (model.experts == 0) {
    if (layout.expert > 1) add(broken, Rule::experts_missing);
    if (layout.expert_tensor > 1) add(broken, Rule::expert_tensor_missing);
  } else {
    if (model.experts % layout.expert != 0) add(broken, Rule::expert_count);
    if (model.expert_intermediate % layout.expert_tensor != 0) add(broken, Rule::expert_tensor_width);
  }
  if (layout.equal_layers) {
    if (model.layers % layout.pipeline != 0) {
      add(broken, Rule::pipeline_layers);
    } else if (model.layers / layout.pipeline % layout.virtual_pipeline != 0) {
      add(broken, Rule::virtual_layers);
    }
  }
}

void check_sharding(const RuleInputs& layout, RuleSet& broken) noexcept {
  const FrameworkFacts& framework = facts_of(layout.framework);
  const ZeroFacts& zero = framework.zero;
  if (layout.zero_stage > 0 && layout.fsdp != Fsdp::none) add(broken, Rule::zero_and_fsdp);
  if (layout.zero_stage > zero.highest) {
    add(broken, Rule::zero_framework);
  } else if (layout.zero_stage > framework.highest_zero_stage(layout.pipeline > 1)) {
    add(broken, Rule::zero_pipeline);
  }
  if (layout.zero_stage > 0 && layout.context > 1 && !zero.with_context) add(broken, Rule::zero_context);
  if (layout.fsdp != Fsdp::none && framework.fsdp == FsdpKind::none) add(broken, Rule::fsdp_framework);
  if (from(zero.reduces_every_microbatch_from, layout.zero_stage) && layout.grad_sync == GradSync::last) {
    add(broken, Rule::grad_sync_zero);
  }
  if (layout.zeropp && (!zero.plus_plus || layout.zero_stage != 3)) add(broken, Rule::zeropp_stage);
  if (layout.fsdp == Fsdp::hybrid_shard || layout.hpz) {
    const std::int64_t replicas = saturating_product({layout.data, layout.context});
    if (replicas % layout.shard_group != 0) add(broken, Rule::shard_group_divides);
  }
}

void check_sequence(const ModelFacts& model, const RuleInputs& layout, RuleSet& broken) noexcept {
  const std::int64_t context = layout.context;
  const bool all_to_all = layout.context_comm == ContextComm::a2a;
  if (context > 1) {
    const FrameworkFacts& framework = facts_of(layout.framework);
    if (!framework.data_only && !framework.context.has(layout.context_comm)) add(broken, Rule::context_framework);
    if (all_to_all && model.heads % saturating_product({layout.tensor, context}) != 0) {
      add(broken, Rule::context_heads);
    }
    if (layout.seq_length % (all_to_all ? context : 2 * context) != 0) add(broken, Rule::sequence_context);
  }
  if (layout.sequence_parallel && layout.seq_length % saturating_product({context, layout.tensor}) != 0) {
    add(broken, Rule::sequence_tensor);
  }
  if (model.longest_sequence > 0 && layout.seq_length > model.longest_sequence) add(broken, Rule::sequence_positions);
}

void check_schedule(const RuleInputs& layout, RuleSet& broken) noexcept {
  if (layout.virtual_pipeline > 1 && layout.pipeline == 1) add(broken, Rule::virtual_alone);
  const FrameworkFacts& framework = facts_of(layout.framework);
  if (!framework.data_only) {  // else there is no pipeline to speak of
    if (layout.virtual_pipeline > 1 && !framework.pipeline.virtual_stages) add(broken, Rule::virtual_framework);
    const bool known = framework.pipeline.schedules.has(layout.schedule);
    if (layout.pipeline > 1 && !known) add(broken, Rule::schedule_framework);
  }

  schedule::Shape shape;
  shape.kind = layout.schedule;
  shape.p = layout.pipeline;
  shape.v = layout.virtual_pipeline;
  shape.m = 2 * layout.pipeline;  // right for every schedule whose stages and chunks are
  if (!schedule::is_legal(shape)) add(broken, Rule::schedule_shape);

  const std::int64_t sequences = saturating_product({layout.micro_batch_size, layout.data});
  if (layout.global_batch_size % sequences != 0 || layout.global_batch_size < sequences) {
    add(broken, Rule::batch_multiple);
    return;
  }
  const std::int64_t microbatches = layout.global_batch_size / sequences;
  shape.m = static_cast<int>(std::min<std::int64_t>(microbatches, std::numeric_limits<int>::max()));
  if (layout.schedule == ScheduleKind::interleaved) {
    shape.group = interleaved_group(layout.framework, layout.pipeline, microbatches);
    if (shape.group == layout.pipeline) shape.group = 0;
  }
  const bool filled = framework.fills(layout.schedule, layout.pipeline, microbatches);
  if (!schedule::is_legal(shape) || !filled) add(broken, Rule::schedule_microbatches);
  const bool strict = framework.needs_overlapped_sends(layout.schedule, layout.pipeline);
  if (strict && !layout.overlap_p2p) add(broken, Rule::interleaved_two);
}

bool gathers_fp8(const Run& run) noexcept {
  switch (facts_of(run.training.framework).fp8_gather) {
    case Fp8Gather::none: break;
    case Fp8Gather::sharded_optimizer: return run.parallel.zero_stage == 1 || run.parallel.fsdp != Fsdp::none;
    case Fp8Gather::tensorwise: return run.training.fp8_recipe == Fp8Recipe::tensorwise;
  }
  return false;
}

void check_precision(const Run& run, RuleSet& broken) noexcept {
  const Training& training = run.training;
  if (!(run.cluster.gpu.peak(training.precision) > 0)) add(broken, Rule::precision_gpu);
  if (training.fp8_param_gather && (training.precision != Precision::fp8 || !gathers_fp8(run))) {
    add(broken, Rule::fp8_param_gather);
  }
  constexpr int blackwell = 10;  // the first compute capability with MX formats in its tensor cores
  const bool needs_mx = training.precision == Precision::fp8 && training.fp8_recipe == Fp8Recipe::mxfp8;
  if (needs_mx && run.cluster.gpu.major > 0 && run.cluster.gpu.major < blackwell) add(broken, Rule::fp8_recipe_gpu);
}

void check_adapters(const Run& run, RuleSet& broken) noexcept {
  const Peft& peft = run.training.peft;
  if (!peft.active()) return;
  if (!facts_of(run.training.framework).adapters) add(broken, Rule::peft_framework);
  const bool quantised = peft.quant != Quantization::none;
  if (peft.method == PeftMethod::qlora && !quantised) add(broken, Rule::peft_quant);
  if (quantised && run.parallel.tensor > 1 && !facts_of(run.training.framework).splits_quantized) {
    add(broken, Rule::peft_quant_tensor);
  }
  const bool bitsandbytes = peft.quant == Quantization::nf4 || peft.quant == Quantization::int8;
  if (peft.kbit_preparation && !bitsandbytes) add(broken, Rule::peft_kbit);
}

bool keeps_optimizer(const Run& run, OffloadDevice device) noexcept {
  const OffloadFacts& facts = facts_of(run.training.framework).offload;
  const int first = device == OffloadDevice::nvme ? facts.optimizer_nvme_from : facts.optimizer_cpu_from;
  return from(first, run.parallel.zero_stage);
}

bool keeps_parameters(const Run& run, OffloadDevice device) noexcept {
  const OffloadFacts& facts = facts_of(run.training.framework).offload;
  const int first = device == OffloadDevice::nvme ? facts.parameters_nvme_from : facts.parameters_cpu_from;
  return from(first, run.parallel.zero_stage);
}

int largest_stage(const Run& run) noexcept {
  const std::vector<int>& chunks = run.parallel.layers_per_chunk;
  const auto p = static_cast<std::size_t>(run.parallel.pipeline);
  const bool vee = schedule::placement(run.parallel.schedule) == schedule::Placement::vee;
  int largest = 0;
  for (std::size_t rank = 0; rank < p; ++rank) {
    int layers = 0;
    for (std::size_t first = 0; first + p <= chunks.size(); first += p) {
      const bool back = vee && first / p % 2 == 1;
      layers += chunks[first + (back ? p - 1 - rank : rank)];
    }
    largest = std::max(largest, layers);
  }
  return largest;
}

void check_offload(const Run& run, RuleSet& broken) noexcept {
  const Offload& offload = run.training.offload;
  const OffloadFacts& facts = facts_of(run.training.framework).offload;
  const bool optimizer = offload.optimizer != OffloadDevice::none;
  const bool parameters = offload.parameters != OffloadDevice::none;
  if (optimizer && !keeps_optimizer(run, offload.optimizer)) add(broken, Rule::offload_optimizer);
  if (parameters && !keeps_parameters(run, offload.parameters)) add(broken, Rule::offload_parameters);
  if (facts.together && optimizer != parameters) add(broken, Rule::offload_pair);
  if (offload.optimizer_fraction < 1) {
    const bool partly = from(facts.fraction_from, run.parallel.zero_stage);
    if (!partly || offload.optimizer != OffloadDevice::cpu) add(broken, Rule::offload_fraction);
  }
  if (offload.activation_layers >= 0) {
    const bool known = !run.parallel.layers_per_chunk.empty();
    if (offload.activations == OffloadDevice::none || (known && offload.activation_layers > largest_stage(run))) {
      add(broken, Rule::offload_layers);
    }
  }
}

void check_recompute(const ModelFacts& model, const Run& run, RuleSet& broken) noexcept {
  const Recompute& recompute = run.training.recompute;
  const RecomputeFacts& facts = facts_of(run.training.framework).recompute;
  const bool whole = recompute.mode == RecomputeMode::none || recompute.mode == RecomputeMode::full;
  if ((recompute.mode == RecomputeMode::modules && !facts.modules) ||
      (recompute.mode == RecomputeMode::ops && !facts.per_operator) || (facts.layers_alone && !whole)) {
    add(broken, Rule::recompute_framework);
  }
  if (recompute.mode == RecomputeMode::modules) {
    const bool experts = (recompute.modules & (recompute_moe | recompute_moe_act)) != 0;
    const bool latent = (recompute.modules & recompute_mla_up_proj) != 0;
    const bool dense = (recompute.modules & recompute_mlp) != 0;
    if ((experts && model.experts == 0) || (latent && !model.has_latent_attention) || (dense && !model.has_dense_mlp)) {
      add(broken, Rule::recompute_modules);
    }
  }
  const bool counted = recompute.mode == RecomputeMode::first_n || recompute.mode == RecomputeMode::every_k;
  if (counted && !run.parallel.layers_per_chunk.empty() && recompute.n > largest_stage(run)) {
    add(broken, Rule::recompute_layers);
  }
}

/// Byte counts are 64-bit integers. Bounded from above with room for every factor that the physics has.
void check_range(const ModelFacts& model, const Run& run, RuleSet& broken) noexcept {
  constexpr double limit = 1152921504606846976.0;  // 2^60
  const Training& training = run.training;
  const auto seq = static_cast<double>(training.seq_length);
  const double tokens = seq * static_cast<double>(training.micro_batch_size);
  const auto microbatches = static_cast<double>(run.microbatches());
  double per_token = model.bytes_per_token * std::max(1.0, training.moe_imbalance);
  if (training.capacity_factor) per_token *= std::max(1.0, *training.capacity_factor);
  if (training.attention == AttentionKernel::eager) per_token += 16 * model.widest_heads * seq;
  const double activations = tokens * per_token * microbatches;
  const double weights = 16 * model.parameters * microbatches;
  if (!(activations < limit) || !(weights < limit)) add(broken, Rule::too_large);
}

}  // namespace

ModelFacts facts_of(const Model& model) noexcept {
  ModelFacts facts;
  facts.layers = model.layers();
  std::array<std::int64_t, 256> count{};
  for (const std::uint8_t kind : model.layer_kinds) ++count[kind];
  const auto hidden = static_cast<double>(model.hidden_size);
  for (std::size_t i = 0; i < model.kinds.size(); ++i) {
    const AttentionShape& attention = model.kinds[i].attention;
    const MlpShape& mlp = model.kinds[i].mlp;
    const auto layers = static_cast<double>(i < count.size() ? count[i] : 0);
    double width = 8 * hidden;
    double matrices = 0;
    if (attention.kind != AttentionKind::none) {
      fold(facts.heads, attention.heads);
      const auto heads = static_cast<double>(attention.heads);
      const double head = static_cast<double>(attention.head_dim + attention.v_head_dim);
      facts.widest_heads += heads * layers;
      width += 4 * heads * head + static_cast<double>(attention.q_lora_rank + attention.kv_lora_rank);
      matrices +=
          4 * hidden * heads * head + hidden * static_cast<double>(attention.q_lora_rank + attention.kv_lora_rank);
    }
    if (attention.kind == AttentionKind::latent) facts.has_latent_attention = true;
    if (attention.kind == AttentionKind::grouped_query) {
      const auto end = facts.kv_heads.begin() + static_cast<std::ptrdiff_t>(facts.kv_heads_count);
      const bool known = std::find(facts.kv_heads.begin(), end, attention.kv_heads) != end;
      if (!known && attention.kv_heads > 0 && facts.kv_heads_count < ModelFacts::most_kv_heads) {
        facts.kv_heads[facts.kv_heads_count++] = attention.kv_heads;
      }
    }
    fold(facts.intermediate, mlp.intermediate);
    fold(facts.intermediate, mlp.shared_intermediate);
    fold(facts.intermediate, mlp.parallel_dense_intermediate);
    facts.has_dense_mlp = facts.has_dense_mlp || mlp.intermediate > 0;
    const auto dense =
        static_cast<double>(mlp.intermediate + mlp.shared_intermediate + mlp.parallel_dense_intermediate);
    width += 4 * dense;
    matrices += 3 * hidden * dense;
    if (mlp.kind == MlpKind::moe) {
      fold(facts.experts, mlp.experts);
      fold(facts.expert_intermediate, mlp.expert_intermediate);
      const auto experts = static_cast<double>(mlp.experts);
      const auto expert_width = static_cast<double>(mlp.expert_intermediate);
      width += static_cast<double>(mlp.top_k) * (4 * expert_width + 4 * hidden) + 4 * experts;
      matrices += experts * (3 * hidden * expert_width + hidden);
    }
    facts.bytes_per_token += 16 * width * layers;
    facts.parameters += matrices * layers;
  }
  const auto vocabulary = static_cast<double>(model.vocab_size);
  facts.bytes_per_token += 64 * vocabulary;
  facts.parameters += 4 * hidden * vocabulary + hidden * static_cast<double>(model.position_rows);
  if (model.position == Position::learned) facts.longest_sequence = model.max_position_embeddings;
  return facts;
}

RuleInputs rule_inputs_of(const Run& run, bool equal_layers) noexcept {
  const Parallel& parallel = run.parallel;
  const Training& training = run.training;
  RuleInputs inputs{layout_of(run)};
  inputs.framework = training.framework;
  inputs.gpus_per_node = run.cluster.gpus_per_node;
  inputs.data = parallel.data;
  inputs.grad_sync = parallel.grad_sync;
  inputs.context_comm = parallel.context_comm;
  inputs.zeropp = parallel.hpz || parallel.qwz || parallel.qgz;
  inputs.hpz = parallel.hpz;
  inputs.shard_group = parallel.shard_group;  // hpZ has one too
  inputs.equal_layers = equal_layers;
  inputs.seq_length = training.seq_length;
  inputs.global_batch_size = training.global_batch_size;
  return inputs;
}

RuleSet broken_layout_rules(const ModelFacts& model, const RuleInputs& layout) noexcept {
  RuleSet broken;
  check_world(layout, broken);
  check_model(model, layout, broken);
  check_sharding(layout, broken);
  check_sequence(model, layout, broken);
  check_schedule(layout, broken);
  return broken;
}

RuleSet broken_training_rules(const ModelFacts& model, const Run& run) noexcept {
  RuleSet broken;
  const Training& training = run.training;
  const std::int64_t gpus_of_cluster = saturating_product({run.cluster.num_nodes, run.cluster.gpus_per_node});
  if (run.cluster.num_nodes > 0 && run.num_gpus > gpus_of_cluster) {
    add(broken, Rule::cluster_size);
  }
  if (!training.stack.name.empty() && !stack_fits(training.stack.framework, training.framework)) {
    add(broken, Rule::stack_framework);
  }
  if (model.experts == 0 && (training.capacity_factor || training.moe_imbalance != 1)) add(broken, Rule::moe_options);
  check_precision(run, broken);
  check_adapters(run, broken);
  check_offload(run, broken);
  check_recompute(model, run, broken);
  check_range(model, run, broken);
  return broken;
}

int interleaved_group(Framework framework, int pipeline, std::int64_t microbatches) noexcept {
  if (!facts_of(framework).pipeline.interleaves_in_rounds) return pipeline;
  const std::int64_t rounds = std::max<std::int64_t>(1, microbatches / pipeline);
  return microbatches % rounds == 0 ? static_cast<int>(microbatches / rounds) : 0;
}

bool has_schedule(Framework framework, ScheduleKind kind) noexcept {
  const FrameworkFacts& facts = facts_of(framework);
  return facts.data_only || facts.pipeline.schedules.has(kind);
}

bool runs_attention(const Gpu& gpu, AttentionKernel kernel) noexcept {
  if (gpu.major == 0 || kernel == AttentionKernel::eager) return true;
  const int capability = 10 * gpu.major + gpu.minor;
  return capability >= (kernel == AttentionKernel::flash_v1 ? 75 : 80);
}

bool stack_fits(Framework stack, Framework run) noexcept {
  const FrameworkFacts& facts = facts_of(run);
  return facts.any_stack || facts_of(stack).family == facts.family;
}

}  // namespace shardplan::plan
