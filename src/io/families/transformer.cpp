// The generic model_type "transformer": a decoder described by explicit fields, Hub names where the Hub has one.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "family.hpp"
#include "shardplan/io/suggest.hpp"

namespace shardplan::io {

namespace {

constexpr std::array<std::string_view, 13> activations = {
    "silu",       "swish", "swiglu", "gelu",  "gelu_new", "gelu_fast", "gelu_pytorch_tanh",
    "quick_gelu", "geglu", "relu",   "reglu", "relu2",    "xielu"};

/// Experts and shared experts answer to the names of the dense MLP, as modules of one name do in PEFT.
constexpr std::array<ModulePath, 13> modules = {{
    {"q_proj", set_of(MatrixId::q_proj)},
    {"k_proj", set_of(MatrixId::k_proj)},
    {"v_proj", set_of(MatrixId::v_proj)},
    {"o_proj", set_of(MatrixId::o_proj)},
    {"q_a_proj", set_of(MatrixId::q_a_proj)},
    {"q_b_proj", set_of(MatrixId::q_b_proj)},
    {"kv_a_proj", set_of(MatrixId::kv_a_proj)},
    {"kv_b_proj", set_of(MatrixId::kv_b_proj)},
    {"gate_proj", set_of(MatrixId::gate_proj, MatrixId::expert_gate_proj, MatrixId::shared_gate_proj)},
    {"up_proj", set_of(MatrixId::up_proj, MatrixId::expert_up_proj, MatrixId::shared_up_proj)},
    {"down_proj", set_of(MatrixId::down_proj, MatrixId::expert_down_proj, MatrixId::shared_down_proj)},
    {"embed_tokens", set_of(MatrixId::embed_tokens)},
    {"lm_head", set_of(MatrixId::lm_head)},
}};

/// Gate and up, or one matrix up, where `gated_mlp` does not say.
bool gated_by_name(std::string_view activation) {
  return activation_of(activation) == Activation::silu || activation == "geglu" || activation == "reglu";
}

template <class Enum>
Enum named(const Fields& fields, std::string_view key, Enum if_absent) {
  const std::string text = fields.text(key, name(if_absent));
  if (const auto value = parse_name<Enum>(text)) return *value;
  const std::vector<std::string_view> legal(names_of<Enum>.begin(), names_of<Enum>.end());
  fields.problem(key, fmt::format("\"{}\" is not {}", text, list_of(legal)));
  return if_absent;
}

void read_norms_and_positions(const Fields& fields, Draft& draft) {
  Model& model = draft.model;
  model.name = fields.text("name", "");
  model.norm = named(fields, "norm", Norm::rmsnorm);
  model.position = named(fields, "position", Position::rope);
  if (model.position == Position::learned) model.position_rows = model.max_position_embeddings;
}

void check_latent(const Fields& fields) {
  constexpr std::array<std::string_view, 4> parts = {"qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim",
                                                     "q_lora_rank"};
  if (fields.given("kv_lora_rank")) {
    if (!fields.given("v_head_dim")) fields.problem("v_head_dim", "v_head_dim is missing");
    return;
  }
  for (const std::string_view part : parts) {
    if (fields.given(part)) {
      fields.problem(part, fmt::format("{} needs kv_lora_rank", part), "give kv_lora_rank for latent attention");
    }
  }
}

void transformer(const Fields& fields, Draft& draft) {
  read_norms_and_positions(fields, draft);
  const std::string activation = fields.text("hidden_act", "silu");
  if (std::find(activations.begin(), activations.end(), activation) == activations.end()) {
    const std::vector<std::string_view> legal(activations.begin(), activations.end());
    fields.problem("hidden_act", fmt::format("\"{}\" is not {}", activation, list_of(legal)));
  }
  MlpShape& mlp = draft.common.mlp;
  mlp.gated = fields.given("gated_mlp") ? fields.flag("gated_mlp", true) : gated_by_name(activation);
  AttentionShape& attention = draft.common.attention;
  const bool bias = fields.flag("attention_bias", false);
  attention.output_bias = bias;
  attention.qkv_bias = fields.given("qkv_bias") ? fields.flag("qkv_bias", false) : bias;
  attention.sinks = fields.flag("attention_sinks", false);
  if (fields.flag("qk_norm", false)) attention.qk_norm = QkNorm::per_head;
  fields.flag("norm_topk_prob", false);
  check_latent(fields);
}

/// The shared experts' width, biases of the experts, and the window that a list of layer types needs.
void transformer_layers(const Fields& fields, Draft& draft) {
  const Integer width = fields.integer("shared_expert_intermediate_size", 0, limits::intermediate);
  const bool none = fields.integer("num_shared_experts", 0, limits::experts).value_or(1, 1) == 0;
  for (LayerKind& layer : draft.layers) {
    if (layer.mlp.kind != MlpKind::moe) continue;
    if (width.state == State::present) layer.mlp.shared_intermediate = none ? 0 : width.value;
    layer.mlp.expert_bias = draft.common.mlp.up_bias;
  }
  if (fields.given("sliding_window")) return;
  const auto types = fields.texts("layer_types");
  if (types && std::find(types->begin(), types->end(), "sliding_attention") != types->end()) {
    fields.problem("layer_types", "sliding_attention needs sliding_window", "give sliding_window");
  }
}

constexpr Family family = {
    .model_type = "transformer",
    .mlp_bias = {"mlp_bias", false},
    .window = {.rule = WindowRule::every_layer},
    .experts = {.possible = true, .layers = ExpertLayers::after_dense, .shared = SharedExperts::counted},
    .latent = {.possible = true},
    .modules = modules_of(modules),
    .adjust = transformer,
    .per_layer = transformer_layers};

using Kind = ValueType::Kind;

constexpr std::array<std::string_view, 2> layer_types = {"full_attention", "sliding_attention"};

constexpr ValueType own(Kind kind) { return {kind, {}, {}}; }
constexpr ValueType count(std::int64_t to, double from = 1) {
  return {Kind::integer, {std::nullopt, from, static_cast<double>(to)}, {}};
}
constexpr ValueType words(std::span<const std::string_view> list) { return {Kind::word, {}, list}; }

constexpr std::array<GenericField, 37> generic_fields = {{
    {"$schema", own(Kind::text), ""},
    {"shardplan", own(Kind::object), ""},
    {"model_type", own(Kind::name), ""},
    {"name", own(Kind::text), "for reports"},
    {"hidden_size", count(limits::hidden), "width of the residual stream"},
    {"num_hidden_layers", count(limits::layers), "decoder layers"},
    {"num_attention_heads", count(limits::heads), "query heads"},
    {"num_key_value_heads", count(limits::heads), "default: num_attention_heads"},
    {"head_dim", count(limits::head_dim), "default: hidden_size / num_attention_heads"},
    {"intermediate_size", count(limits::intermediate), "default: 4 hidden_size"},
    {"vocab_size", count(limits::vocab), "rows of the embedding"},
    {"max_position_embeddings", count(limits::positions), "longest sequence"},
    {"tie_word_embeddings", own(Kind::boolean), "default false"},
    {"hidden_act", words(activations), "default silu"},
    {"gated_mlp", own(Kind::boolean), "default true for silu, geglu and reglu"},
    {"norm", words(names_of<Norm>), "default rmsnorm"},
    {"position", words(names_of<Position>), "default rope"},
    {"attention_bias", own(Kind::boolean), "of q, k, v and o"},
    {"qkv_bias", own(Kind::boolean), "of q, k and v"},
    {"mlp_bias", own(Kind::boolean), "of the MLP"},
    {"qk_norm", own(Kind::boolean), "norms of queries and keys"},
    {"sliding_window", count(limits::positions, 0), "keys that a query sees"},
    {"layer_types", {Kind::list, {}, layer_types}, ""},
    {"attention_sinks", own(Kind::boolean), "one learned number per head"},
    {"num_experts", count(limits::experts, 0), "routed experts of a layer"},
    {"num_experts_per_tok", count(limits::experts), "experts that a token passes"},
    {"moe_intermediate_size", count(limits::intermediate), "width of an expert"},
    {"num_shared_experts", count(limits::experts, 0), "experts that every token passes"},
    {"shared_expert_intermediate_size", count(limits::intermediate, 0), "width of the shared experts together"},
    {"first_k_dense_replace", count(limits::layers, 0), "first layers without experts"},
    {"norm_topk_prob", own(Kind::boolean), "has no effect on size or time"},
    {"q_lora_rank", count(limits::hidden, 0), "latent attention"},
    {"kv_lora_rank", count(limits::hidden), "latent attention"},
    {"qk_nope_head_dim", count(limits::head_dim), "latent attention"},
    {"qk_rope_head_dim", count(limits::head_dim), "latent attention"},
    {"v_head_dim", count(limits::head_dim), "latent attention"},
    {"num_nextn_predict_layers", count(limits::layers, 0), "multi-token prediction"},
}};

}  // namespace

const Family& transformer_family() { return family; }

std::span<const GenericField> transformer_fields() { return generic_fields; }

}  // namespace shardplan::io
