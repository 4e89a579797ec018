// GPU and precision, adapters, offload, recomputation, ranges.
#include <fmt/format.h>

#include <algorithm>

#include "describe.hpp"
#include "shardplan/physics/frameworks/facts.hpp"

namespace shardplan::plan {
namespace {

std::string precisions_of(const Gpu& gpu) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < names_of<Precision>.size(); ++i) {
    const auto precision = static_cast<Precision>(i);
    if (gpu.peak(precision) > 0) words.emplace_back(name(precision));
  }
  return join_words(words, "or");
}

Words describe_offloaded_optimizer(const Run& run) {
  const std::string_view device = name(run.training.offload.optimizer);
  const int stage = run.parallel.zero_stage;
  const bool nvme = run.training.offload.optimizer == OffloadDevice::nvme;
  const OffloadFacts& facts = facts_of(run.training.framework).offload;
  const int cpu_from = facts.optimizer_cpu_from, nvme_from = facts.optimizer_nvme_from;
  if (cpu_from == never) {
    return {fmt::format("\"{}\": {} keeps the optimizer on the GPU", device, name(run.training.framework)),
            {set(Field::framework, R"("deepspeed")", Field::zero_stage, nvme ? "3" : "1"),
             set(Field::offload_optimizer, "null", "a paged optimizer: list optimizers")}};
  }
  if (cpu_from == 0) {
    WayOut way = set(Field::offload_optimizer, R"("cpu")");
    if (facts.together) way = with(std::move(way), Field::offload_parameters, R"("cpu")");
    return {fmt::format("\"{}\": {}", device, facts.optimizer_words), {way}};
  }
  Words words{fmt::format("\"{}\" with zero_stage {}: {}", device, stage, facts.optimizer_words)};
  const std::string lowest = std::to_string(cpu_from);
  if (!nvme || nvme_from != never)
    words.ways.push_back(set(Field::zero_stage, std::to_string(nvme ? nvme_from : cpu_from)));
  if (nvme) {
    words.ways.push_back(nvme_from != never
                             ? set(Field::offload_optimizer, R"("cpu")", Field::zero_stage, lowest)
                             : with(set(Field::zero_stage, lowest), Field::offload_optimizer, R"("cpu")"));
  }
  return words;
}

Words describe_offloaded_parameters(const Run& run) {
  const std::string_view device = name(run.training.offload.parameters);
  const OffloadFacts& facts = facts_of(run.training.framework).offload;
  const int first = facts.parameters_cpu_from;
  if (first == never) {
    return {fmt::format("\"{}\": {} keeps parameters on the GPU", device, name(run.training.framework)),
            {set(Field::framework, R"("deepspeed")", Field::zero_stage, "3"),
             with(with(set(Field::fsdp, R"("full_shard")", Field::framework, R"("fsdp")"), Field::offload_parameters,
                       R"("cpu")"),
                  Field::offload_optimizer, R"("cpu")"),
             set(Field::offload_parameters, "null")}};
  }
  if (first > 0) {
    return {fmt::format("\"{}\" with zero_stage {}: {}", device, run.parallel.zero_stage, facts.parameters_words),
            {set(Field::zero_stage, std::to_string(first))}};
  }
  WayOut way = set(Field::offload_parameters, R"("cpu")");
  if (facts.together) way = with(std::move(way), Field::offload_optimizer, R"("cpu")");
  return {fmt::format("\"{}\": {}", device, facts.parameters_words), {way}};
}

Words describe_modules(const Subject& subject) {
  const std::uint8_t modules = subject.run.training.recompute.modules;
  std::vector<std::string> missing;
  std::string reason;
  if (subject.facts.experts == 0) {
    if ((modules & recompute_moe) != 0) missing.emplace_back("moe");
    if ((modules & recompute_moe_act) != 0) missing.emplace_back("moe_act");
    if (!missing.empty()) reason = "the model has no experts";
  }
  if ((modules & recompute_mla_up_proj) != 0 && !subject.facts.has_latent_attention) {
    missing.emplace_back("mla_up_proj");
    reason += std::string(reason.empty() ? "the model has" : " and") + " no latent attention";
  }
  if ((modules & recompute_mlp) != 0 && !subject.facts.has_dense_mlp) {
    missing.emplace_back("mlp");
    reason += std::string(reason.empty() ? "the model has" : " and") + " no dense MLP";
  }
  return {fmt::format("modules {}: {}", join_words(missing, "and"), reason), say("leave them out of the list")};
}

Words describe_recompute(Rule rule, const Subject& subject) {
  const Recompute& recompute = subject.run.training.recompute;
  const std::string_view framework = name(subject.run.training.framework);
  switch (rule) {
    case Rule::recompute_framework:
      if (recompute.mode == RecomputeMode::ops) {
        return {fmt::format("\"ops\" is torchtitan's, but the framework is {}", framework),
                say("none, selective, full, full:N, every:K or {\"modules\": [...]}")};
      }
      if (recompute.mode != RecomputeMode::modules) {
        return {fmt::format("{} recomputes whole layers, every one or none", framework),
                {set(Field::recompute, R"("full")"), set(Field::recompute, R"("none")"),
                 set(Field::framework, R"("megatron")", "recomputes parts")}};
      }
      return {fmt::format("{{\"modules\": ...}} is Megatron-Core's, but the framework is {}", framework),
              say("none, selective, full, full:N or every:K")};
    case Rule::recompute_modules: return describe_modules(subject);
    case Rule::recompute_layers: {
      const bool first = recompute.mode == RecomputeMode::first_n;
      const std::vector<int>& chunks = subject.run.parallel.layers_per_chunk;
      const int most = chunks.empty() ? 0 : *std::max_element(chunks.begin(), chunks.end());
      return {fmt::format("\"{}:{}\" is more than a stage's layers (pipeline {}, {} in the largest chunk)",
                          first ? "full" : "every", recompute.n, subject.run.parallel.pipeline, most),
              {set(Field::recompute, R"("full")", "every layer")}};
    }
    default: return {};
  }
}

}  // namespace

Words describe_training(Rule rule, const Subject& subject) {
  const Run& run = subject.run;
  const Training& training = run.training;
  const Peft& peft = training.peft;
  switch (rule) {
    case Rule::precision_gpu:
      return {fmt::format("\"{}\": {} has no {} rate", name(training.precision), run.cluster.gpu.name,
                          name(training.precision)),
              say(precisions_of(run.cluster.gpu))};
    case Rule::fp8_param_gather:
      return {fmt::format("true with precision \"{}\" under {}: fp8 weights are gathered by Megatron's distributed "
                          "optimizer and by FSDP2 with recipe \"tensorwise\"",
                          name(training.precision), name(training.framework)),
              {set(Field::zero_stage, "1"), set(Field::framework, R"("megatron")", Field::zero_stage, "1"),
               set(Field::fp8_recipe, R"("tensorwise")"), set(Field::fp8_param_gather, "false")}};
    case Rule::fp8_recipe_gpu:
      return {
          fmt::format("\"{}\" needs a Blackwell GPU (compute capability 10.0), {} has {}.{}", name(training.fp8_recipe),
                      run.cluster.gpu.name, run.cluster.gpu.major, run.cluster.gpu.minor),
          say("delayed, current, tensorwise, rowwise or blockwise")};
    case Rule::peft_framework:
      return {fmt::format("{} trains no adapters", facts_of(training.framework).title),
              {set(Field::peft, "null"), set(Field::framework, R"("fsdp")"), set(Field::framework, R"("megatron")")}};
    case Rule::peft_quant:
      return {"\"none\": qlora trains adapters over a quantised base",
              {set(Field::peft_quant, R"("nf4")", "int8, gptq4"), set(Field::peft_method, R"("lora")")}};
    case Rule::peft_quant_tensor:
      return {fmt::format("\"{}\" with tensor {}: tensor parallelism does not split quantised weights",
                          name(peft.quant), run.parallel.tensor),
              {set(Field::tensor, "1"), set(Field::peft_quant, R"("none")"),
               set(Field::peft_quant, R"("none")", Field::peft_method, R"("lora")")}};
    case Rule::peft_kbit:
      return {fmt::format("true with quant \"{}\": it prepares a base that bitsandbytes quantised", name(peft.quant)),
              {set(Field::peft_quant, R"("nf4")"), set(Field::kbit_preparation, "null"),
               set(Field::peft_quant, R"("nf4")", Field::peft_method, R"("qlora")")}};
    case Rule::offload_optimizer: return describe_offloaded_optimizer(run);
    case Rule::offload_parameters: return describe_offloaded_parameters(run);
    case Rule::offload_pair:
      return {"FSDP's offload keeps parameters, gradients and optimizer on the host together, or none of them",
              {set(Field::offload_optimizer, R"("cpu")", Field::offload_parameters, R"("cpu")"),
               {{{"/training/offload", "null"}}, ""}}};
    case Rule::offload_fraction:
      return {fmt::format("{}: a part of the optimizer goes to cpu with megatron, or deepspeed at zero_stage 3",
                          training.offload.optimizer_fraction),
              {set(Field::optimizer_fraction, "1")}};
    case Rule::offload_layers:
      if (training.offload.activations == OffloadDevice::none) {
        return {fmt::format("{} without \"activations\": \"cpu\"", training.offload.activation_layers),
                {set(Field::offload_activations, R"("cpu")"), set(Field::activation_layers, "null")}};
      }
      return {fmt::format("{} is more than a stage's layers (pipeline {})", training.offload.activation_layers,
                          run.parallel.pipeline),
              {set(Field::activation_layers, "null", "those of every layer")}};
    case Rule::too_large:
      return {
          fmt::format("seq_length {} x micro_batch_size {} x {} microbatches: the byte counts of this run pass 2^60",
                      training.seq_length, training.micro_batch_size, run.microbatches()),
          say("a shorter sequence, or a smaller batch")};
    default: return describe_recompute(rule, subject);
  }
}

}  // namespace shardplan::plan
