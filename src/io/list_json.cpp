#include "shardplan/io/list_json.hpp"

#include <initializer_list>
#include <nlohmann/json.hpp>

#include "shardplan/core/bytes.hpp"
#include "shardplan/core/number_format.hpp"
#include "shardplan/io/gpu_file.hpp"
#include "shardplan/physics/optimizer_states.hpp"
#include "shardplan/physics/parameters.hpp"
#include "shardplan/schedule/summaries.hpp"

namespace shardplan::io {
namespace {

using Json = nlohmann::ordered_json;

/// The members of an entry, first those named, in that order.
Json in_order(const nlohmann::json& entry, std::initializer_list<const char*> first) {
  Json item = Json::object();
  for (const char* name : first) {
    if (entry.contains(name)) item[name] = entry[name];
  }
  for (const auto& [name, value] : entry.items()) {
    if (!item.contains(name)) item[name] = value;
  }
  return item;
}

std::string line(const Json& item) { return item.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

std::string list_json(std::string_view kind, std::string_view version, const std::vector<std::string>& items) {
  std::string text = "{\n  \"schema\": \"shardplan/list/v1\",\n  \"version\": " + line(Json(std::string(version))) +
                     ",\n  \"kind\": " + line(Json(std::string(kind))) + ",\n  \"items\": [";
  for (std::size_t i = 0; i < items.size(); ++i) {
    text += i == 0 ? "\n    " : ",\n    ";
    text += items[i];
  }
  text += items.empty() ? "]\n}\n" : "\n  ]\n}\n";
  return text;
}

std::string gpu_item(const nlohmann::json& entry) {
  const Gpu gpu = read_gpu(entry, "", "").value;
  nlohmann::json filled = entry;
  filled["memory_cuda_gib"] = gpu.memory_cuda_bytes / gib;
  if (entry.contains("memory_cuda_gib")) filled["memory_cuda_gib"] = entry["memory_cuda_gib"];
  filled["memory_is_estimated"] = gpu.memory_is_estimated;
  return line(in_order(filled, {"name",
                                "aliases",
                                "vendor",
                                "architecture",
                                "memory_gb",
                                "memory_reported_mib",
                                "memory_cuda_gib",
                                "memory_is_estimated",
                                "memory_bandwidth_gb_s",
                                "dense_tflops",
                                "scale_up_type",
                                "scale_up_gb_s_per_direction",
                                "scale_up_domain",
                                "multiprocessors",
                                "compute_capability",
                                "pcie_gen",
                                "tdp_w",
                                "gemm_efficiency",
                                "attention_efficiency",
                                "inter_node_efficiency",
                                "notes",
                                "source",
                                "trust"}));
}

std::string cluster_item(const nlohmann::json& entry, int scale_up_domain) {
  nlohmann::json filled = entry;
  filled["scale_up_domain"] = scale_up_domain;
  return line(in_order(filled, {"name", "aliases", "gpu", "gpus_per_node", "scale_up_domain", "intra_node",
                                "inter_node", "host", "notes", "source", "trust"}));
}

std::string stack_item(const nlohmann::json& entry) {
  return line(in_order(entry, {"name", "framework", "description", "kernels", "loss", "optimizer_impl", "compile",
                               "autocast", "flash", "overlap", "memory", "timing", "source"}));
}

std::string model_item(const Model& model, const std::vector<std::string>& aliases, std::string_view source) {
  const ModelCounts counts = count_parameters(model);
  const LayerKind& layer = model.layer(model.layers() - 1);
  Json item;
  item["name"] = model.name;
  item["aliases"] = aliases;
  item["model_type"] = model.family;
  item["parameters"] = counts.parameters;
  item["active_parameters"] = counts.active_parameters;
  item["num_hidden_layers"] = model.layers();
  item["hidden_size"] = model.hidden_size;
  item["num_attention_heads"] = layer.attention.heads;
  item["num_key_value_heads"] = layer.attention.kv_heads;
  item["head_dim"] = layer.attention.head_dim;
  item["intermediate_size"] = layer.mlp.kind == MlpKind::moe ? layer.mlp.expert_intermediate : layer.mlp.intermediate;
  item["num_experts"] = layer.mlp.experts;
  item["num_experts_per_tok"] = layer.mlp.top_k;
  item["vocab_size"] = model.vocab_size;
  item["max_position_embeddings"] =
      model.max_position_embeddings > 0 ? Json(model.max_position_embeddings) : Json(nullptr);
  item["tie_word_embeddings"] = model.tied_embeddings;
  item["source"] = std::string(source);
  return line(item);
}

std::vector<std::string> schedule_items() {
  std::vector<std::string> items;
  for (const schedule::Summary& row : schedule::summaries) {
    Json item;
    item["name"] = std::string(name(row.kind));
    item["description"] = std::string(row.what);
    item["needs"] = std::string(row.needs);
    item["bubble_fraction"] = std::string(row.bubble);
    item["source"] = std::string(row.source);
    items.push_back(line(item));
  }
  return items;
}

std::vector<std::string> optimizer_items() {
  std::vector<std::string> items;
  for (const Optimizer& optimizer : optimizers()) {
    constexpr std::array<const char*, 9> forms = {"elementwise",    "block_quantized", "factored",
                                                  "row_blocks",     "momentum",        "low_rank_factor",
                                                  "preconditioned", "projected",       "block_coordinate"};
    constexpr std::array<const char*, 4> scopes = {"none", "all", "hidden", "linear"};
    Json item;
    item["name"] = std::string(optimizer.name);
    item["aliases"] = Json::array();
    for (const OptimizerAlias& alias : optimizer_aliases()) {
      if (alias.optimizer == optimizer.name) item["aliases"].push_back(std::string(alias.name));
    }
    item["description"] = std::string(optimizer.description);
    item["form"] = forms[static_cast<std::size_t>(optimizer.form)];
    item["matrices"] = scopes[static_cast<std::size_t>(optimizer.scope)];
    item["state_tensors"] = optimizer.block > 0 ? 0.0 : optimizer.state_tensors;  // then all of it is fixed
    item["matrix_state_tensors"] = optimizer.matrix_tensors;
    item["fixed_bytes_per_parameter"] = optimizer.block > 0 ? elementwise_bytes(optimizer, 4) : optimizer.fixed_bytes;
    item["paged"] = optimizer.paged;
    item["timed"] = optimizer.timed;
    item["source"] = std::string(optimizer.source);
    items.push_back(line(item));
  }
  return items;
}

std::vector<std::string> dtype_items() {
  std::vector<std::string> items;
  for (const NumberFormat& format : number_formats) {
    Json item;
    item["name"] = std::string(format.name);
    item["bits"] = format.bits();
    item["sign_bits"] = 1;
    item["exponent_bits"] = format.exponent_bits;
    item["fraction_bits"] = format.fraction_bits;
    item["exponent_bias"] = format.bias();
    item["max"] = format.max();
    item["min_normal"] = format.min_normal();
    item["min_subnormal"] = format.min_subnormal();
    item["epsilon"] = format.epsilon();
    item["use"] = std::string(format.use);
    item["source"] = std::string(format.source);
    items.push_back(line(item));
  }
  return items;
}

}  // namespace shardplan::io
