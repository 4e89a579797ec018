// A model family as data: what its configuration class takes for absent fields, and the rules that follow from them.
//
// A new family is one table row (families/*.cpp) and, where it does something no row can say, one small hook.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "fields.hpp"
#include "modules.hpp"
#include "shardplan/core/model.hpp"
#include "shardplan/core/value_type.hpp"

namespace shardplan::io {

/// A switch: the field that sets it and what its absence means. Without a field it is fixed.
struct Switch {
  std::string_view key;
  bool if_absent = false;
};
inline constexpr Switch always = {"", true};
inline constexpr Switch never = {"", false};

/// Which layers see a sliding window. An explicit `layer_types` wins over every rule.
enum class WindowRule : std::uint8_t {
  unused,       ///< the class has no window; a field of that name is ignored
  every_layer,  ///< `sliding_window`, where it is not null
  periodic,     ///< all layers but each `period`-th: local, local, ..., global
  late_layers   ///< where `use_sliding_window`: from layer `max_window_layers` on
};

struct Window {
  WindowRule rule = WindowRule::unused;
  std::int64_t if_absent = 0;  ///< 0: full attention
  std::int64_t period = 0;     ///< periodic; late_layers: max_window_layers where absent
};

/// Which layers hold experts. An explicit `mlp_layer_types` ("dense", "sparse") wins.
enum class ExpertLayers : std::uint8_t {
  all,
  after_dense,  ///< from `first_k_dense_replace` on, each `moe_layer_freq`-th
  stepped       ///< each `decoder_sparse_step`-th, those of `mlp_only_layers` apart
};

enum class SharedExperts : std::uint8_t {
  none,
  counted,     ///< n_shared_experts times the expert's width, as one MLP
  own_width,   ///< shared_expert_intermediate_size or shared_intermediate_size
  like_expert  ///< always one, as wide as an expert
};

/// Mixture of experts. A count of 0 or 1 and null mean a dense model.
struct Experts {
  bool possible = false;
  std::int64_t count = 0;
  std::int64_t top_k = 0;                                ///< 0: must be given
  std::string_view width_key = "moe_intermediate_size";  ///< empty: the dense width
  std::int64_t width = 0;                                ///< where absent; 0: the dense width
  ExpertLayers layers = ExpertLayers::all;
  std::int64_t first_dense = 0;  ///< first_k_dense_replace where absent
  SharedExperts shared = SharedExperts::none;
  std::int64_t shared_count = 0;  ///< or width, where absent
  bool shared_gate = false;
  bool router_bias = false;
  bool correction_bias = false;
  bool expert_bias = false;
};

/// Multi-head latent attention.
struct Latent {
  bool possible = false;
  std::int64_t q_lora_rank = 0;  ///< where absent; null: queries are projected directly
  std::int64_t kv_lora_rank = 0;
  std::int64_t nope = 0;
  std::int64_t rope = 0;
  std::int64_t value = 0;  ///< 0: hidden / heads
};

/// A model while it is being read. `common` is the layer that most layers are; `layers` holds every layer once it is
/// expanded.
struct Draft {
  Model model;
  LayerKind common;
  std::int64_t layer_count = 0;
  std::vector<LayerKind> layers;
};

struct Family {
  std::string_view model_type;
  // Defaults of the configuration class; 0 without a remark: the field must be there.
  std::int64_t vocab_size = 0;
  std::int64_t hidden_size = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;      ///< 0: as many as heads. null always means that.
  std::int64_t head_dim = 0;      ///< 0: hidden / heads. null always means that.
  std::int64_t intermediate = 0;  ///< 0: 4 x hidden. null always means that.
  std::int64_t positions = 0;     ///< 0: not stated
  bool tied = false;
  std::string_view activation = "silu";
  bool gated = true;
  Norm norm = Norm::rmsnorm;
  NormPlacement placement = NormPlacement::pre;
  Position position = Position::rope;
  Switch qkv_bias = never;
  Switch output_bias = never;
  Switch mlp_bias = never;
  Switch head_bias = never;
  QkNorm qk_norm = QkNorm::none;
  Switch qk_norm_if = always;
  Window window = {};
  Experts experts = {};
  Latent latent = {};
  Modules modules = llama_modules;
  /// Changes the common layer and the model, before the layers are expanded.
  void (*adjust)(const Fields&, Draft&) = nullptr;
  /// Changes single layers.
  void (*per_layer)(const Fields&, Draft&) = nullptr;
};

/// Bounds that keep every later count inside 64 bits.
namespace limits {
inline constexpr std::int64_t hidden = std::int64_t{1} << 20;
inline constexpr std::int64_t layers = 10'000;
inline constexpr std::int64_t heads = 65'536;
inline constexpr std::int64_t head_dim = 65'536;
inline constexpr std::int64_t intermediate = std::int64_t{1} << 24;
inline constexpr std::int64_t vocab = std::int64_t{1} << 24;
inline constexpr std::int64_t positions = std::int64_t{1} << 40;
inline constexpr std::int64_t experts = 65'536;
inline constexpr double parameters = 1e15;
}  // namespace limits

/// Norms over the hidden size that a layer of this placement holds.
std::int64_t norms_of(NormPlacement placement) noexcept;

/// Activation functions by name; anything unknown counts as gelu, which keeps what any element-wise function keeps.
Activation activation_of(std::string_view name) noexcept;

/// Reads a model of a family (without checking its unknown fields). `outer_tied`: tie_word_embeddings of the object
/// around a nested text model.
Model read_family(const Fields& fields, const Family& family, std::optional<bool> outer_tied);

/// Turns one layer into experts (the rest stays dense).
void make_moe(LayerKind& layer, const MlpShape& experts);

/// The tables, one per lineage; `family_of` knows them all.
struct FamilyList {
  const Family* first = nullptr;
  std::size_t count = 0;
};
FamilyList gpt_families();
FamilyList llama_families();
FamilyList mistral_families();
FamilyList qwen_families();
FamilyList gemma_families();
FamilyList falcon_families();
FamilyList mpt_families();
FamilyList phi_families();
FamilyList olmo_families();
FamilyList deepseek_families();
FamilyList glm_families();
FamilyList granite_families();
FamilyList nemotron_families();
FamilyList other_families();
const Family& transformer_family();
/// A field of the generic type.
struct GenericField {
  std::string_view name;
  ValueType type;
  std::string_view about;
};
/// Those that it has; any other is an error.
std::span<const GenericField> transformer_fields();

/// The family of a model_type, also of one that is only another name of it; nothing when unknown.
const Family* family_of(std::string_view model_type);
/// Every model_type that `family_of` knows.
std::vector<std::string_view> family_names();
/// The model_type that a class name such as "LlamaForCausalLM" belongs to; empty when unknown.
std::string_view model_type_of_architecture(std::string_view architecture);
/// The model_type of `text_config` where it does not name its own.
std::string_view nested_model_type(std::string_view outer);
/// Why a model_type cannot be planned ("state-space layers (Mamba)"); empty when it is not one of those.
std::string_view refusal_of(std::string_view model_type);
/// Names of refused types, for "did you mean".
std::vector<std::string_view> refused_names();
/// A layer type that is not softmax attention ("linear_attention", "mamba", "conv"...).
bool is_recurrent_layer(std::string_view layer_type) noexcept;

/// Reports the problem of a model that cannot be planned.
void refuse(const Fields& fields, std::string_view key, std::string_view model_type, std::string_view why);

}  // namespace shardplan::io
