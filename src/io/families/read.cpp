// Reads a model of any family: the class defaults and rules of its table row, then its hooks.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>

#include "family.hpp"

namespace shardplan::io {

namespace {

// The spellings that configuration classes map onto one another (attribute_map), and those of remote code.
constexpr Keys hidden_size_keys = {"hidden_size", "n_embd", "d_model", "n_embed"};
constexpr Keys layer_keys = {"num_hidden_layers", "n_layer", "n_layers", "num_layers"};
constexpr Keys head_keys = {"num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads"};
constexpr Keys kv_head_keys = {"num_key_value_heads", "num_kv_heads", "n_head_kv"};
constexpr Keys head_dim_keys = {"head_dim", "kv_channels", "attention_head_dim"};
constexpr Keys intermediate_keys = {"intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"};
constexpr Keys position_keys = {"max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "n_ctx"};
constexpr Keys activation_keys = {"hidden_activation", "hidden_act", "activation_function", "activation"};
constexpr Keys expert_keys = {"num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"};
constexpr Keys top_k_keys = {
    "num_experts_per_tok",  "num_experts_per_token", "experts_per_token", "moe_topk", "moe_top_k", "moe_k",
    "num_selected_experts", "top_k_experts"};
constexpr Keys shared_count_keys = {"n_shared_experts", "num_shared_experts", "moe_num_shared_experts"};
constexpr Keys shared_width_keys = {"shared_expert_intermediate_size", "shared_intermediate_size"};
constexpr Keys mtp_keys = {"num_nextn_predict_layers", "mtp_num_hidden_layers"};

bool holds(const Fields& fields, const Switch& rule) {
  return rule.key.empty() ? rule.if_absent : fields.flag(rule.key, rule.if_absent);
}

/// A size that the class has a default for, or that must be there.
std::int64_t size(const Fields& fields, const Keys& keys, std::int64_t if_absent, std::int64_t most) {
  if (if_absent == 0) return fields.required(keys, 1, most);
  const Integer found = fields.integer(keys, 1, most);
  if (found.state == State::null) fields.problem(found.key, "null is not a whole number");
  return found.value_or(if_absent, 0);
}

void read_latent(const Fields& fields, const Latent& latent, std::int64_t hidden_over_heads, AttentionShape& shape) {
  const Integer rank = fields.integer("kv_lora_rank", 1, limits::hidden);
  const std::int64_t kv_lora_rank = rank.value_or(latent.kv_lora_rank, 0);
  if (kv_lora_rank == 0 && rank.state != State::wrong) return;  // grouped-query attention after all
  shape.kind = AttentionKind::latent;
  shape.kv_heads = shape.heads;
  shape.kv_lora_rank = kv_lora_rank;
  shape.q_lora_rank = fields.integer("q_lora_rank", 0, limits::hidden).value_or(latent.q_lora_rank, 0);
  const std::int64_t nope = size(fields, "qk_nope_head_dim", latent.nope, limits::head_dim);
  shape.rope_head_dim = size(fields, "qk_rope_head_dim", latent.rope, limits::head_dim);
  shape.head_dim = nope + shape.rope_head_dim;
  const std::int64_t value = latent.value > 0 ? latent.value : hidden_over_heads;
  shape.v_head_dim = fields.integer("v_head_dim", 1, limits::head_dim).value_or(value, hidden_over_heads);
}

void read_attention(const Fields& fields, const Family& family, Draft& draft) {
  AttentionShape& shape = draft.common.attention;
  const std::int64_t hidden = draft.model.hidden_size;
  shape.heads = size(fields, head_keys, family.heads, limits::heads);
  const std::int64_t kv_absent = family.kv_heads > 0 ? family.kv_heads : shape.heads;
  const Integer kv_heads = fields.integer(kv_head_keys, 1, limits::heads);
  shape.kv_heads = kv_heads.value_or(kv_absent, shape.heads);
  const std::int64_t derived = shape.heads > 0 ? hidden / shape.heads : 0;
  if (family.latent.possible) read_latent(fields, family.latent, derived, shape);
  if (shape.kind != AttentionKind::latent) {
    const Integer head_dim = fields.integer(head_dim_keys, 1, limits::head_dim);
    shape.head_dim = head_dim.value_or(family.head_dim > 0 ? family.head_dim : derived, derived);
    shape.v_head_dim = shape.head_dim;
    const bool is_derived = head_dim.state == State::null || (head_dim.state == State::absent && family.head_dim == 0);
    if (is_derived && shape.heads > 0 && hidden % shape.heads != 0) {
      const Integer given = fields.integer(head_keys, 1, limits::heads);
      fields.problem(given.key,
                     fmt::format("{} does not divide {} {}", shape.heads,
                                 fields.integer(hidden_size_keys, 1, limits::hidden).key, hidden),
                     "give head_dim, or a number of heads that divides the hidden size");
    }
  }
  shape.qkv_bias = holds(fields, family.qkv_bias);
  shape.output_bias = holds(fields, family.output_bias);
  if (holds(fields, family.qk_norm_if)) shape.qk_norm = family.qk_norm;
}

void read_shape(const Fields& fields, const Family& family, std::optional<bool> outer_tied, Draft& draft) {
  Model& model = draft.model;
  model.family = family.model_type;
  model.vocab_size = size(fields, "vocab_size", family.vocab_size, limits::vocab);
  model.hidden_size = size(fields, hidden_size_keys, family.hidden_size, limits::hidden);
  draft.layer_count = size(fields, layer_keys, family.layers, limits::layers);
  model.max_position_embeddings =
      fields.integer(position_keys, 1, limits::positions).value_or(family.positions, family.positions);
  model.position = family.position;
  if (model.position == Position::learned) model.position_rows = model.max_position_embeddings;
  model.norm = family.norm;
  model.activation = activation_of(fields.text(activation_keys, family.activation));
  model.tied_embeddings = outer_tied.value_or(fields.flag("tie_word_embeddings", family.tied));
  model.head_bias = holds(fields, family.head_bias);
  model.mtp_layers = fields.integer(mtp_keys, 0, limits::layers).value_or(0, 0);
  read_attention(fields, family, draft);
  LayerKind& layer = draft.common;
  layer.mlp.gated = family.gated;
  const std::int64_t four = 4 * model.hidden_size;
  layer.mlp.intermediate = fields.integer(intermediate_keys, 1, limits::intermediate)
                               .value_or(family.intermediate > 0 ? family.intermediate : four, four);
  layer.mlp.up_bias = holds(fields, family.mlp_bias);
  layer.mlp.down_bias = layer.mlp.up_bias;
  layer.norm_placement = family.placement;
  layer.norm_count = norms_of(family.placement);
}

/// Which layers hold experts.
std::vector<bool> expert_layers(const Fields& fields, const Experts& experts, std::int64_t count) {
  std::vector<bool> result(static_cast<std::size_t>(count), true);
  if (const auto types = fields.texts("mlp_layer_types")) {
    if (types->size() != result.size()) {
      fields.problem("mlp_layer_types", fmt::format("{} entries for {} layers", types->size(), count));
      return result;
    }
    for (std::size_t i = 0; i < types->size(); ++i) {
      result[i] = (*types)[i] == "sparse";
      if ((*types)[i] != "sparse" && (*types)[i] != "dense") {
        fields.problem("mlp_layer_types", fmt::format("entry {}, \"{}\", is not dense or sparse", i, (*types)[i]));
      }
    }
    return result;
  }
  if (experts.layers == ExpertLayers::after_dense) {
    const std::int64_t dense =
        fields.integer("first_k_dense_replace", 0, limits::layers).value_or(experts.first_dense, 0);
    const std::int64_t frequency =
        std::max<std::int64_t>(1, fields.integer("moe_layer_freq", 1, limits::layers).value_or(1, 1));
    for (std::int64_t i = 0; i < count; ++i) {
      result[static_cast<std::size_t>(i)] = i >= dense && i % frequency == 0;
    }
  } else if (experts.layers == ExpertLayers::stepped) {
    const std::int64_t step =
        std::max<std::int64_t>(1, fields.integer("decoder_sparse_step", 1, limits::layers).value_or(1, 1));
    for (std::int64_t i = 0; i < count; ++i) result[static_cast<std::size_t>(i)] = (i + 1) % step == 0;
    for (const std::int64_t i :
         fields.integers("mlp_only_layers", 0, limits::layers).value_or(std::vector<std::int64_t>())) {
      if (i < count) result[static_cast<std::size_t>(i)] = false;
    }
  }
  return result;
}

void read_experts(const Fields& fields, const Family& family, Draft& draft) {
  const Experts& experts = family.experts;
  const MlpShape& dense = draft.common.mlp;
  const Integer count = fields.integer(expert_keys, 0, limits::experts);
  MlpShape shape;
  shape.experts = count.value_or(experts.count, 0);
  if (shape.experts <= 1 && count.state != State::wrong) return;  // dense
  shape.gated = dense.gated;
  shape.expert_intermediate = dense.intermediate;
  if (!experts.width_key.empty()) {
    shape.expert_intermediate =
        fields.integer(experts.width_key, 1, limits::intermediate)
            .value_or(experts.width > 0 ? experts.width : dense.intermediate, dense.intermediate);
  }
  const Integer top_k = fields.integer(top_k_keys, 1, limits::experts);
  if (experts.top_k == 0 && (top_k.state == State::absent || top_k.state == State::null)) {
    fields.problem(top_k.key, fmt::format("{} is missing, and there are {} experts", top_k.key, shape.experts));
  }
  shape.top_k = top_k.value_or(experts.top_k, experts.top_k);
  if (shape.experts > 0 && shape.top_k > shape.experts) {
    fields.problem(top_k.key, fmt::format("{} is more than the {} experts", shape.top_k, shape.experts));
  }
  switch (experts.shared) {
    case SharedExperts::none: break;
    case SharedExperts::counted:
      shape.shared_intermediate =
          shape.expert_intermediate *
          fields.integer(shared_count_keys, 0, limits::experts).value_or(experts.shared_count, 0);
      break;
    case SharedExperts::own_width:
      shape.shared_intermediate =
          fields.integer(shared_width_keys, 0, limits::intermediate).value_or(experts.shared_count, 0);
      break;
    case SharedExperts::like_expert: shape.shared_intermediate = shape.expert_intermediate; break;
  }
  shape.shared_gate = experts.shared_gate && shape.shared_intermediate > 0;
  shape.router_bias = experts.router_bias;
  shape.correction_bias = experts.correction_bias;
  shape.expert_bias = experts.expert_bias;
  shape.up_bias = dense.up_bias;
  shape.down_bias = dense.down_bias;
  const std::vector<bool> sparse = expert_layers(fields, experts, draft.layer_count);
  for (std::size_t i = 0; i < draft.layers.size(); ++i) {
    if (sparse[i]) make_moe(draft.layers[i], shape);
  }
}

/// Windows by an explicit list of layer types.
void windows_by_type(const Fields& fields, const std::vector<std::string>& types, bool has_windows, std::int64_t window,
                     Draft& draft) {
  if (types.size() != draft.layers.size()) {
    fields.problem("layer_types", fmt::format("{} entries for {} layers", types.size(), draft.layers.size()));
    return;
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    const std::string& type = types[i];
    if (type == "sliding_attention" || type == "chunked_attention") {
      draft.layers[i].attention.window = window;
    } else if (is_recurrent_layer(type)) {
      refuse(fields, "layer_types", draft.model.family, fmt::format("layers of type {}", type));
      return;
    } else if (has_windows && type != "full_attention") {
      fields.problem("layer_types",
                     fmt::format("entry {}, \"{}\", is not full_attention or sliding_attention", i, type));
      return;
    }
  }
}

/// Each how many layers one is global: a number, or a text such as "LLLG" as long as the period.
std::int64_t window_period(const Fields& fields, std::int64_t if_absent) {
  for (const std::string_view key : {"sliding_window_pattern", "_sliding_window_pattern"}) {
    if (fields.is_text(key)) return static_cast<std::int64_t>(fields.text(key, "").size());
  }
  return fields.integer({"sliding_window_pattern", "_sliding_window_pattern"}, 1, limits::layers)
      .value_or(if_absent, if_absent);
}

void read_windows(const Fields& fields, const Window& rule, Draft& draft) {
  const Integer given = fields.integer({"sliding_window", "attention_chunk_size"}, 0, limits::positions);
  const std::int64_t window = rule.rule == WindowRule::unused ? 0 : given.value_or(rule.if_absent, 0);
  if (const auto types = fields.texts("layer_types")) {
    windows_by_type(fields, *types, rule.rule != WindowRule::unused, window, draft);
    return;
  }
  const bool used = fields.flag("use_sliding_window", rule.rule != WindowRule::late_layers);
  if (window == 0 || !used) return;
  const std::int64_t period = rule.rule == WindowRule::periodic ? window_period(fields, rule.period) : 0;
  const std::int64_t first = rule.rule == WindowRule::late_layers
                                 ? fields.integer("max_window_layers", 0, limits::layers).value_or(rule.period, 0)
                                 : 0;
  for (std::size_t i = 0; i < draft.layers.size(); ++i) {
    const auto layer = static_cast<std::int64_t>(i);
    if (layer < first || (period > 0 && (layer + 1) % period == 0)) continue;
    draft.layers[i].attention.window = window;
  }
}

void check_heads(const Fields& fields, const Draft& draft) {
  const AttentionShape& shape = draft.common.attention;
  if (shape.kind != AttentionKind::grouped_query || shape.kv_heads == 0 || shape.heads % shape.kv_heads == 0) return;
  const Integer kv_heads = fields.integer(kv_head_keys, 1, limits::heads);
  fields.problem(kv_heads.key, fmt::format("{}{} does not divide {} {}", shape.kv_heads,
                                           kv_heads.state == State::absent ? ", the default," : "",
                                           fields.integer(head_keys, 1, limits::heads).key, shape.heads));
}

/// About how many parameters the layers have; in double, so that nothing overflows.
double rough_parameters(const Draft& draft) {
  const auto h = static_cast<double>(draft.model.hidden_size);
  double sum = 2 * h * static_cast<double>(draft.model.vocab_size);
  for (const LayerKind& layer : draft.layers) {
    const AttentionShape& a = layer.attention;
    const MlpShape& m = layer.mlp;
    sum += h * static_cast<double>(a.heads + a.kv_heads) * static_cast<double>(a.head_dim + a.v_head_dim);
    sum += 3 * h * static_cast<double>(m.intermediate + m.shared_intermediate + m.parallel_dense_intermediate);
    sum += 3 * h * static_cast<double>(m.experts) * static_cast<double>(m.expert_intermediate);
  }
  return sum;
}

/// Gathers equal layers into kinds.
void finish(const Fields& fields, Draft& draft) {
  constexpr std::size_t most_kinds = 255;
  std::vector<LayerKind>& kinds = draft.model.kinds;
  for (const LayerKind& layer : draft.layers) {
    auto at = std::find(kinds.begin(), kinds.end(), layer);
    if (at == kinds.end()) {
      if (kinds.size() == most_kinds) {
        fields.problem("", fmt::format("more than {} kinds of layers", most_kinds));
        return;
      }
      at = kinds.insert(kinds.end(), layer);
    }
    draft.model.layer_kinds.push_back(static_cast<std::uint8_t>(at - kinds.begin()));
  }
  if (rough_parameters(draft) > limits::parameters) {
    fields.problem("", fmt::format("a model of about {:.0e} parameters; the most is {:.0e}", rough_parameters(draft),
                                   limits::parameters));
  }
}

}  // namespace

std::int64_t norms_of(NormPlacement placement) noexcept {
  switch (placement) {
    case NormPlacement::parallel: return 1;
    case NormPlacement::sandwich: return 4;
    default: return 2;
  }
}

Activation activation_of(std::string_view name) noexcept {
  const auto contains = [name](std::string_view part) { return name.find(part) != std::string_view::npos; };
  if (contains("xielu")) return Activation::xielu;
  if (contains("relu2") || contains("relu_squared") || contains("squared_relu")) return Activation::relu2;
  if (name == "relu" || name == "reglu") return Activation::relu;
  if (contains("silu") || contains("swish") || contains("swiglu")) return Activation::silu;
  return Activation::gelu;
}

void make_moe(LayerKind& layer, const MlpShape& experts) {
  layer.mlp = experts;
  layer.mlp.kind = MlpKind::moe;
  layer.mlp.intermediate = 0;
}

Model read_family(const Fields& fields, const Family& family, std::optional<bool> outer_tied) {
  Draft draft;
  read_shape(fields, family, outer_tied, draft);
  if (family.adjust != nullptr) family.adjust(fields, draft);
  draft.layers.assign(static_cast<std::size_t>(draft.layer_count), draft.common);
  if (family.experts.possible) read_experts(fields, family, draft);
  read_windows(fields, family.window, draft);
  if (family.per_layer != nullptr) family.per_layer(fields, draft);
  check_heads(fields, draft);
  finish(fields, draft);
  for (const ModulePath& module : family.modules) {
    draft.model.module_names.push_back({std::string(module.path), module.matrices});
    if (module.path == "all-linear") continue;
    using namespace module_sets;
    for (const MatrixSet group : {qkv, gate_up, expert_gate_up, shared_gate_up}) {
      if ((module.matrices & group) == group) draft.model.fused_modules |= group;
    }
  }
  return draft.model;
}

}  // namespace shardplan::io
