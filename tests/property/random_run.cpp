#include "property/random_run.hpp"

#include <algorithm>

#include "shardplan/catalog/catalog.hpp"
#include "shardplan/physics/optimizers.hpp"

namespace test {

using nlohmann::json;
using Texts = std::vector<std::string>;
using Numbers = std::vector<std::int64_t>;

namespace {

bool divides_data_only(const std::string& framework) { return framework == "ddp" || framework == "dp"; }

Degrees random_degrees(Random& random, const std::string& framework, std::int64_t gpus_per_node) {
  Degrees d;
  d.data = random.pick(Numbers{1, 1, 2, 2, 3, 4, 8, 16});
  if (!divides_data_only(framework)) {
    d.tensor = random.pick(Numbers{1, 1, 2, 4, 8});
    d.pipeline = random.pick(Numbers{1, 1, 1, 2, 3, 4, 8});
    d.context = random.pick(Numbers{1, 1, 1, 2, 4});
    if (d.pipeline > 1 && framework != "deepspeed" && framework != "nanotron" && random.chance(40))
      d.virtual_pipeline = random.pick(Numbers{2, 3});
  } else if (framework == "dp") {
    d.data = std::min(d.data, gpus_per_node);
  }
  // Above one node, whole nodes.
  while (d.world() > gpus_per_node && d.world() % gpus_per_node != 0) ++d.data;
  return d;
}

std::string random_schedule(Random& random, const std::string& framework, const Degrees& d) {
  if (framework == "deepspeed") return "1f1b";
  if (framework == "nanotron") return random.pick(Texts{"gpipe", "1f1b"});
  if (d.virtual_pipeline == 1) {
    const Texts torch = {"1f1b", "1f1b", "gpipe", "naive"};
    const Texts all = {"1f1b", "1f1b", "gpipe", "naive", "zb-h1", "zb-h2", "dualpipe"};
    return random.pick(framework == "fsdp" ? torch : all);
  }
  if (d.virtual_pipeline == 2) return random.pick(Texts{"interleaved", "interleaved", "bfs", "zb-v", "dualpipe-v"});
  return random.pick(Texts{"interleaved", "bfs"});
}

json random_recompute(Random& random, const std::string& framework, std::int64_t layers_per_stage, bool experts,
                      bool latent) {
  if (framework == "nanotron") return random.pick(Texts{"none", "full"});
  const bool lists = framework == "megatron" || framework == "textbook" || framework == "fsdp";
  const bool per_op = framework != "megatron" && framework != "deepspeed";
  const std::int64_t some = 1 + random.below(std::max<std::int64_t>(1, layers_per_stage));
  switch (random.below(7)) {
    case 0: return "selective";
    case 1: return "full";
    case 2: return "full:" + std::to_string(some);
    case 3: return "every:" + std::to_string(some);
    case 4: return per_op ? json("ops") : json("none");
    case 5: {
      if (!lists) return "none";
      json modules = json::array({random.chance(50) ? "core_attn" : "layernorm"});
      if (experts && random.chance(50)) modules.push_back(random.chance(50) ? "moe" : "moe_act");
      if (latent) modules.push_back("mla_up_proj");
      return json{{"modules", modules}};
    }
    default: return "none";
  }
}

json random_kernels(Random& random) {
  json kernels = json::object();
  const auto maybe = [&](const char* name, const Texts& values) {
    if (random.chance(40)) kernels[name] = random.pick(values);
  };
  maybe("norm", {"fused", "naive"});
  maybe("mlp", {"fused", "naive"});
  maybe("qkv", {"fused", "separate"});
  maybe("softmax", {"fused16", "fp32"});
  maybe("sp_input", {"regather", "keep"});
  maybe("wgrad", {"fused", "separate"});
  maybe("moe_dispatch", {"permute", "loop"});
  maybe("moe_probs", {"activation", "after"});
  maybe("moe_combine", {"scatter_add", "index_add"});
  for (const char* const name : {"attention_output_copy", "kv_expanded", "reentrant_checkpoint", "te_dummy_wgrad"}) {
    if (random.chance(20)) kernels[name] = random.chance(50);
  }
  return kernels;
}

json random_peft(Random& random, const std::string& framework, const Degrees& d) {
  json peft = {{"method", random.pick(Texts{"lora", "rslora", "dora"})}, {"rank", random.pick(Numbers{4, 8, 16, 64})}};
  peft["targets"] = random.chance(60) ? json("all-linear") : json::array({"q_proj", "o_proj"});
  if (random.chance(30)) peft["dropout"] = 0.1;
  if (random.chance(30)) peft["adapter_dtype"] = random.pick(Texts{"fp32", "bf16"});
  if (random.chance(20)) peft["fused"] = true;
  if ((d.tensor == 1 || framework == "textbook") && random.chance(40)) {
    peft["quant"] = random.pick(Texts{"nf4", "int8", "gptq4"});
    peft["double_quant"] = random.chance(50);
    if (random.chance(50) && peft["quant"] != "gptq4") peft["kbit_preparation"] = true;
  }
  return peft;
}

json random_offload(Random& random, const std::string& framework, std::int64_t zero_stage) {
  json offload = json::object();
  if (framework == "textbook" || (framework == "deepspeed" && zero_stage >= 1) ||
      (framework == "megatron" && zero_stage == 1)) {
    offload["optimizer"] = framework != "megatron" && zero_stage == 3 && random.chance(30) ? "nvme" : "cpu";
    const bool partly = framework != "deepspeed" || zero_stage == 3;
    if (offload["optimizer"] == "cpu" && partly && random.chance(40)) offload["optimizer_fraction"] = 0.5;
  }
  if (framework == "fsdp") offload = {{"optimizer", "cpu"}, {"parameters", "cpu"}};
  if (framework == "deepspeed" && zero_stage == 3 && random.chance(40)) offload["parameters"] = "cpu";
  if (random.chance(40)) offload["activations"] = "cpu";
  return offload;
}

void add_sharding(Random& random, const std::string& framework, const Degrees& d, json& parallel) {
  if (framework == "textbook") parallel["zero_stage"] = random.below(4);
  if (framework == "deepspeed") {
    parallel["zero_stage"] = random.below(d.pipeline > 1 ? 2 : 4);
    if (parallel["zero_stage"] == 3 && random.chance(25)) {
      parallel["zeropp"] = {{"hpz", random.chance(50)}, {"qwz", random.chance(50)}, {"qgz", random.chance(50)}};
    }
  }
  if (framework == "nanotron" && d.context == 1) parallel["zero_stage"] = random.below(2);
  if (framework == "megatron" && random.chance(70)) parallel["zero_stage"] = random.below(2);
  if (framework == "fsdp" || (framework == "megatron" && !parallel.contains("zero_stage") && random.chance(50))) {
    parallel["fsdp"] = random.pick(Texts{"full_shard", "full_shard", "shard_grad_op", "no_shard", "hybrid_shard"});
    parallel["fsdp_version"] = 1 + random.below(2);
  }
  const bool every_only = framework == "deepspeed" && parallel["zero_stage"] >= 2;
  if (random.chance(25)) parallel["grad_sync"] = every_only || random.chance(50) ? "every" : "last";
}

const std::vector<std::string>& catalog_models() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> result;
    for (const std::string_view name :
         shardplan::catalog::builtin_catalog().names(shardplan::io::CatalogKind::models)) {
      result.emplace_back(name);
    }
    return result;
  }();
  return names;
}

const std::vector<std::string>& optimizer_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> result;
    for (const shardplan::Optimizer& optimizer : shardplan::optimizers()) result.emplace_back(optimizer.name);
    return result;
  }();
  return names;
}

}  // namespace

json random_model(Random& random, const Degrees& d, std::int64_t longest_sequence) {
  const std::int64_t head_dim = random.pick(Numbers{32, 64, 96, 128});
  const std::int64_t heads = d.tensor * d.context * random.pick(Numbers{1, 2, 3, 4, 8});
  json model = {{"model_type", "transformer"},
                {"hidden_size", 64 * random.pick(Numbers{2, 8, 12, 32, 64, 80})},
                {"num_hidden_layers", d.pipeline * d.virtual_pipeline * (1 + random.below(6))},
                {"num_attention_heads", heads},
                {"head_dim", head_dim},
                {"intermediate_size", 64 * d.tensor * random.pick(Numbers{1, 4, 11, 43})},
                {"vocab_size", random.pick(Numbers{1000, 32000, 50257, 128256, 151936})}};
  if (random.chance(50)) model["tie_word_embeddings"] = random.chance(50);
  if (random.chance(60)) model["hidden_act"] = random.pick(Texts{"silu", "gelu", "relu"});
  if (random.chance(30)) model["gated_mlp"] = random.chance(50);
  if (random.chance(60)) model["norm"] = random.pick(Texts{"rmsnorm", "layernorm"});
  for (const char* const flag : {"attention_bias", "qkv_bias", "mlp_bias", "qk_norm", "attention_sinks"}) {
    if (random.chance(20)) model[flag] = random.chance(50);
  }
  if (random.chance(60)) {
    model["position"] = random.pick(Texts{"rope", "learned", "alibi", "none"});
    if (model["position"] == "learned") model["max_position_embeddings"] = longest_sequence * (1 + random.below(3));
  }
  if (random.chance(15)) model["sliding_window"] = 64 * (1 + random.below(64));
  const bool latent = random.chance(20);
  if (latent) {
    if (random.chance(60)) model["q_lora_rank"] = 64 * (1 + random.below(8));
    model["kv_lora_rank"] = 64 * (1 + random.below(8));
    model["qk_nope_head_dim"] = 64;
    model["qk_rope_head_dim"] = 32;
    model["v_head_dim"] = random.pick(Numbers{32, 64, 128});
    model.erase("head_dim");
    for (const char* const flag : {"attention_bias", "qkv_bias", "qk_norm", "attention_sinks"}) model.erase(flag);
  } else if (random.chance(60)) {
    std::vector<std::int64_t> divisors;
    for (std::int64_t k = 1; k <= heads; ++k) {
      if (heads % k == 0 && (k % d.tensor == 0 || d.tensor % k == 0)) divisors.push_back(k);
    }
    model["num_key_value_heads"] = random.pick(divisors);
  }
  if (d.expert > 1 || random.chance(15)) {
    model["num_experts"] = d.expert * random.pick(Numbers{1, 2, 4, 8});
    model["num_experts_per_tok"] =
        1 + random.below(std::min<std::int64_t>(8, model["num_experts"].get<std::int64_t>()));
    model["moe_intermediate_size"] = 64 * d.expert_tensor * random.pick(Numbers{1, 4, 22});
    if (random.chance(40)) model["num_shared_experts"] = 1 + random.below(2);
    if (random.chance(30)) model["first_k_dense_replace"] = random.below(2);
    // Shared experts are cut by tensor parallelism like a dense MLP.
    if (model.contains("num_shared_experts")) model["moe_intermediate_size"] = 64 * d.expert_tensor * d.tensor;
  }
  if (random.chance(10)) model["num_nextn_predict_layers"] = 1;
  return model;
}

json random_run(Random& random, const std::string& chosen_framework) {
  const std::string framework = chosen_framework.empty()
                                    ? random.pick(Texts{"textbook", "textbook", "megatron", "megatron", "megatron",
                                                        "deepspeed", "deepspeed", "fsdp", "fsdp", "fsdp", "ddp", "dp"})
                                    : chosen_framework;
  const std::string cluster = random.pick(Texts{"dgx-h100", "dgx-h100", "dgx-a100-80gb", "dgx-b200", "selene"});
  Degrees d = random_degrees(random, framework, 8);
  const std::int64_t experts_room = d.world() / d.pipeline;
  if (!divides_data_only(framework) && framework != "nanotron" && random.chance(35)) {
    Numbers divisors;
    for (std::int64_t e = 1; e <= std::min<std::int64_t>(64, experts_room); ++e) {
      if (experts_room % e == 0) divisors.push_back(e);
    }
    d.expert = random.pick(divisors);
    if (framework == "megatron" && experts_room / d.expert % 2 == 0 && random.chance(25)) d.expert_tensor = 2;
  }
  // A multiple of everything that may have to divide it.
  const std::int64_t sequence = 2 * d.context * d.tensor * random.pick(Numbers{4, 16, 64, 160, 256});

  const bool built_in = d.expert == 1 && random.chance(25);
  json model = built_in ? json(random.pick(catalog_models())) : random_model(random, d, sequence);
  const bool experts = !built_in && model.contains("num_experts");
  const bool latent = !built_in && model.contains("kv_lora_rank");
  if (!experts) d.expert = d.expert_tensor = 1;

  json parallel = {{"tensor", d.tensor}, {"pipeline", d.pipeline}, {"context", d.context}, {"data", d.data}};
  if (d.expert > 1) parallel["expert"] = d.expert;
  if (d.expert_tensor > 1) parallel["expert_tensor"] = d.expert_tensor;
  if (d.virtual_pipeline > 1) parallel["virtual_pipeline"] = d.virtual_pipeline;
  if (d.tensor > 1 && random.chance(60)) parallel["sequence_parallel"] = random.chance(70);
  if (d.context > 1) {
    parallel["context_comm"] = framework == "deepspeed"  ? std::string("a2a")
                               : framework == "nanotron" ? std::string("all_gather")
                                                         : random.pick(Texts{"ring", "all_gather", "a2a"});
  }
  if (d.pipeline > 1) parallel["schedule"] = random_schedule(random, framework, d);
  add_sharding(random, framework, d, parallel);
  if (random.chance(10)) parallel["order"] = random.pick(Texts{"tp-cp-ep-dp-pp", "tp-ep-cp-dp-pp", "tp-cp-ep-pp-dp"});

  const std::int64_t mbs = 1 + random.below(4);
  const std::int64_t microbatches = d.pipeline > 1 ? 2 * d.pipeline * (1 + random.below(6)) : 1 + random.below(8);
  json training = {{"framework", framework},
                   {"seq_length", sequence},
                   {"micro_batch_size", mbs},
                   {"global_batch_size", mbs * d.data * microbatches}};
  training["precision"] = random.pick(Texts{"bf16", "bf16", "bf16", "fp16", "fp32", "tf32"});
  if (cluster != "dgx-a100-80gb" && cluster != "selene" && random.chance(15)) {
    training["precision"] = "fp8";
    if (random.chance(50)) training["fp8"] = {{"recipe", random.pick(Texts{"delayed", "current", "blockwise"})}};
  }
  training["optimizer"] = random.chance(60) ? std::string("adamw") : random.pick(optimizer_names());
  const std::int64_t layers_per_stage =
      built_in ? 1 : model["num_hidden_layers"].get<std::int64_t>() / (d.pipeline * d.virtual_pipeline);
  if (random.chance(60)) training["recompute"] = random_recompute(random, framework, layers_per_stage, experts, latent);
  if (random.chance(50)) training["attention"] = random.pick(Texts{"eager", "flash", "flash-v1", "flash-v3"});
  if (random.chance(50)) {
    training["loss"] = random.pick(Texts{"hf", "hf-shift", "hf-external", "hf-native", "fused-ce", "fused-ce-native",
                                         "compiled", "logits16", "megatron", "te", "chunked:8", "liger"});
  }
  if (random.chance(10)) training["keep_logits"] = true;
  if (random.chance(40)) training["kernels"] = random_kernels(random);
  if (random.chance(30)) training["dropout"] = 0.1;
  if (random.chance(15)) training["attention_dropout"] = random.pick(std::vector<double>{0.0, 0.1});
  if (random.chance(15)) training["grad_dtype"] = random.pick(Texts{"fp32", "bf16"});
  if (random.chance(10)) training["param_dtype"] = random.pick(Texts{"fp32", "bf16"});
  if (random.chance(10)) training["master_weights"] = random.chance(50);
  if (random.chance(10)) training["optimizer_state_dtype"] = random.pick(Texts{"fp32", "bf16"});
  if (random.chance(15)) training["make_vocab_size_divisible_by"] = random.pick(Numbers{1, 64, 128});
  if (experts && random.chance(40)) {
    training["moe"] = {{"imbalance", 1.0 + 0.25 * static_cast<double>(random.below(5))}};
    if (random.chance(50)) training["moe"]["capacity_factor"] = 1.25;
  }
  const std::int64_t zero_stage = parallel.value("zero_stage", std::int64_t{0});
  if (framework != "nanotron" && random.chance(15)) training["peft"] = random_peft(random, framework, d);
  if (random.chance(15)) {
    const json offload = random_offload(random, framework, zero_stage);
    if (!offload.empty()) training["offload"] = offload;
  }
  if (random.chance(25)) {
    for (const char* const name : {"grad_reduce", "param_gather", "tp", "p2p"}) {
      training["overlap"][name] = random.chance(50);
    }
  }
  if (random.chance(10)) training["initialisation"] = "full";
  if (random.chance(15)) training["optimizer_impl"] = random.pick(Texts{"foreach", "fused", "for_loop"});
  if (random.chance(10)) training["compile"] = random.chance(50);
  if (random.chance(10)) training["autocast"] = random.chance(50);
  if (random.chance(20)) {
    if (framework == "megatron") training["stack"] = random.pick(Texts{"megatron-2021", "megatron-core-2024"});
    if (framework == "deepspeed") training["stack"] = random.pick(Texts{"deepspeed-2024", "deepspeed-2026"});
    if (framework == "fsdp" || framework == "ddp") {
      training["stack"] = random.pick(Texts{"hf-4.45", "hf-4.48", "fsdp1-2023", "fsdp1-2024", "fsdp2-2024-12",
                                            "fsdp2-2025-04", "litgpt-2023", "litgpt-2024", "fsdp-qlora-2024"});
    }
  }
  return {
      {"model", model}, {"cluster", cluster}, {"num_gpus", d.world()}, {"parallel", parallel}, {"training", training}};
}

}  // namespace test
