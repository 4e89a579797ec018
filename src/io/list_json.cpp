#include "shardplan/io/list_json.hpp"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "describe_outputs.hpp"
#include "json_writer.hpp"
#include "shardplan/core/bytes.hpp"
#include "shardplan/core/number_format.hpp"
#include "shardplan/explain/topics.hpp"
#include "shardplan/io/gpu_file.hpp"
#include "shardplan/physics/optimizer_states.hpp"
#include "shardplan/physics/parameters.hpp"
#include "shardplan/schedule/facts.hpp"

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

namespace {

std::string compact(const std::function<void(JsonWriter&)>& write) {
  JsonWriter out(JsonWriter::Style::compact);
  write(out);
  return out.str();
}

void write_texts(JsonWriter& out, std::string_view name, const std::vector<std::string>& texts) {
  out.list(name, texts, [&](const std::string& text) { out.text("", text); });
}

/// `layer`: one that most layers are.
void write_model(JsonWriter& out, const Model& model, const LayerKind& layer, const ModelCounts& counts,
                 const std::vector<std::string>& aliases, std::string_view source) {
  const std::int64_t positions = model.max_position_embeddings;
  out.begin_object();
  out.text("name", model.name);
  write_texts(out, "aliases", aliases);
  out.text("model_type", model.family);
  out.integer("parameters", counts.parameters);
  out.integer("active_parameters", counts.active_parameters);
  out.integer("num_hidden_layers", model.layers());
  out.integer("hidden_size", model.hidden_size);
  out.integer("num_attention_heads", layer.attention.heads);
  out.integer("num_key_value_heads", layer.attention.kv_heads);
  out.integer("head_dim", layer.attention.head_dim);
  out.integer("intermediate_size",
              layer.mlp.kind == MlpKind::moe ? layer.mlp.expert_intermediate : layer.mlp.intermediate);
  out.integer("num_experts", layer.mlp.experts);
  out.integer("num_experts_per_tok", layer.mlp.top_k);
  out.integer("vocab_size", model.vocab_size);
  out.integer_or_null("max_position_embeddings", positions > 0 ? std::optional(positions) : std::nullopt);
  out.boolean("tie_word_embeddings", model.tied_embeddings);
  out.text("source", source);
  out.end_object();
}

void write_schedule(JsonWriter& out, ScheduleKind kind) {
  const schedule::ScheduleFacts& facts = schedule::facts_of(kind);
  out.begin_object();
  out.text("name", name(kind));
  out.text("description", facts.summary);
  out.text("needs", facts.needs);
  out.text("bubble_fraction", schedule::bubble_text(kind));
  out.text("source", facts.source);
  out.end_object();
}

void write_optimizer(JsonWriter& out, const Optimizer& optimizer) {
  constexpr std::array<std::string_view, 9> forms = {"elementwise",    "block_quantized", "factored",
                                                     "row_blocks",     "momentum",        "low_rank_factor",
                                                     "preconditioned", "projected",       "block_coordinate"};
  constexpr std::array<std::string_view, 4> scopes = {"none", "all", "hidden", "linear"};
  std::vector<std::string> aliases;
  for (const OptimizerAlias& alias : optimizer_aliases()) {
    if (alias.optimizer == optimizer.name) aliases.emplace_back(alias.name);
  }
  out.begin_object();
  out.text("name", optimizer.name);
  write_texts(out, "aliases", aliases);
  out.text("description", optimizer.description);
  out.word("form", forms[static_cast<std::size_t>(optimizer.form)], forms);
  out.word("matrices", scopes[static_cast<std::size_t>(optimizer.scope)], scopes);
  out.real("state_tensors", optimizer.block > 0 ? 0.0 : optimizer.state_tensors);  // then all of it is fixed
  out.real("matrix_state_tensors", optimizer.matrix_tensors);
  out.real("fixed_bytes_per_parameter", optimizer.block > 0 ? elementwise_bytes(optimizer, 4) : optimizer.fixed_bytes);
  out.boolean("paged", optimizer.paged);
  out.boolean("timed", optimizer.timed);
  out.text("source", optimizer.source);
  out.end_object();
}

void write_dtype(JsonWriter& out, const NumberFormat& format) {
  out.begin_object();
  out.text("name", format.name);
  out.integer("bits", format.bits());
  out.integer("sign_bits", 1);
  out.integer("exponent_bits", format.exponent_bits);
  out.integer("fraction_bits", format.fraction_bits);
  out.integer("exponent_bias", format.bias(), JsonWriter::Whole::any);
  out.real("max", format.max());
  out.real("min_normal", format.min_normal());
  out.real("min_subnormal", format.min_subnormal());
  out.real("epsilon", format.epsilon());
  out.text("use", format.use);
  out.text("source", format.source);
  out.end_object();
}

void write_topic(JsonWriter& out, const explain::Topic& topic, const std::string& notes) {
  std::vector<std::string> aliases;
  for (std::string_view rest = topic.aliases; !rest.empty();) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    aliases.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  out.begin_object();
  out.text("name", topic.name);
  out.text("section", topic.section);
  out.text("description", topic.summary);
  write_texts(out, "aliases", aliases);
  out.text("notes", notes);
  out.end_object();
}

void write_kind(JsonWriter& out, std::string_view name, std::string_view description) {
  out.begin_object();
  out.text("name", name);
  out.text("description", description);
  out.end_object();
}

}  // namespace

std::string model_item(const Model& model, const std::vector<std::string>& aliases, std::string_view source) {
  const LayerKind& last = model.layer(model.layers() - 1);
  return compact([&](JsonWriter& out) { write_model(out, model, last, count_parameters(model), aliases, source); });
}

std::vector<std::string> schedule_items() {
  std::vector<std::string> items;
  for (std::size_t i = 0; i < schedule_count; ++i) {
    items.push_back(compact([&](JsonWriter& out) { write_schedule(out, static_cast<ScheduleKind>(i)); }));
  }
  return items;
}

std::vector<std::string> optimizer_items() {
  std::vector<std::string> items;
  for (const Optimizer& optimizer : optimizers()) {
    items.push_back(compact([&](JsonWriter& out) { write_optimizer(out, optimizer); }));
  }
  return items;
}

std::vector<std::string> dtype_items() {
  std::vector<std::string> items;
  for (const NumberFormat& format : number_formats) {
    items.push_back(compact([&](JsonWriter& out) { write_dtype(out, format); }));
  }
  return items;
}

std::string topic_item(const explain::Topic& topic) {
  return compact([&](JsonWriter& out) { write_topic(out, topic, explain::places_of(topic)); });
}

std::string kind_item(std::string_view name, std::string_view description) {
  return compact([&](JsonWriter& out) { write_kind(out, name, description); });
}

void describe_list_item(JsonWriter& out, std::string_view kind) {
  if (kind == "kinds") return write_kind(out, {}, {});
  if (kind == "models") return write_model(out, {}, {}, {}, {}, {});
  if (kind == "schedules") return write_schedule(out, ScheduleKind{});
  if (kind == "optimizers") return write_optimizer(out, optimizers().front());
  if (kind == "dtypes") return write_dtype(out, number_formats[0]);
  if (kind == "topics") return write_topic(out, {}, {});
  out.like(kind);  // entries of files, as they are
  out.json({}, {});
}

}  // namespace shardplan::io
