// A decoder-only transformer, normalised from whatever config.json spelled it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "shardplan/core/names.hpp"

namespace shardplan {

enum class Norm : std::uint8_t { rmsnorm, layernorm, layernorm_no_bias, layernorm_no_weights };
template <>
inline constexpr std::array<std::string_view, 4> names_of<Norm> = {"rmsnorm", "layernorm", "layernorm_no_bias",
                                                                   "layernorm_no_weights"};

enum class Position : std::uint8_t { rope, learned, alibi, none };
template <>
inline constexpr std::array<std::string_view, 4> names_of<Position> = {"rope", "learned", "alibi", "none"};

enum class AttentionKind : std::uint8_t { none, grouped_query, latent };
enum class MlpKind : std::uint8_t { none, dense, moe };

/// Where a layer's norms stand.
///   pre: x + f(norm(x)), twice (Llama, GPT).  post: x + norm(f(x)) (OLMo 2).  sandwich: both (Gemma 2, GLM-4).
///   parallel: one norm feeds attention and MLP (GPT-J, Phi, Cohere, Falcon-7B).
///   parallel_two_norms: the same input through two norms (GPT-NeoX, Falcon-40B).
///   original_post: norm(x + f(x)) (OPT-350m).
enum class NormPlacement : std::uint8_t { pre, post, sandwich, parallel, parallel_two_norms, original_post };

/// Weights of the norms on queries and keys.
///   per_head: head_dim each (Qwen3).  full: the whole projection's width (OLMo 2).
///   each_head: head_dim per head, queries and keys (StableLM).  weightless: a norm without weights (Llama 4).
enum class QkNorm : std::uint8_t { none, per_head, full, each_head, weightless };

enum class Activation : std::uint8_t { silu, gelu, relu, relu2, xielu };

struct AttentionShape {
  AttentionKind kind = AttentionKind::grouped_query;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;     ///< of queries and keys (latent: nope + rope)
  std::int64_t v_head_dim = 0;   ///< of values; equals head_dim for grouped-query attention
  std::int64_t q_lora_rank = 0;  ///< latent attention; 0: queries are projected directly
  std::int64_t kv_lora_rank = 0;
  std::int64_t rope_head_dim = 0;  ///< latent attention: the part of head_dim that carries positions
  std::int64_t window = 0;         ///< keys a query sees at most; 0: all before it
  std::int64_t indexer_heads = 0;  ///< sparse attention's indexer (DeepSeek-V3.2, GLM-5); 0: none
  std::int64_t indexer_head_dim = 0;
  std::int64_t indexer_top_k = 0;
  bool qkv_bias = false;
  bool output_bias = false;
  bool output_gate = false;      ///< q_proj is twice as wide, half of it gates the output
  bool sinks = false;            ///< one learned number per head (gpt-oss)
  bool keys_are_values = false;  ///< K and V share one projection (Gemma 4 global layers)
  QkNorm qk_norm = QkNorm::none;

  bool operator==(const AttentionShape&) const = default;
};

struct MlpShape {
  MlpKind kind = MlpKind::dense;
  bool gated = true;              ///< three matrices instead of two
  std::int64_t intermediate = 0;  ///< dense width (moe: 0)
  bool up_bias = false;           ///< gate and up (or the first) matrix
  bool down_bias = false;
  // Mixture of experts.
  std::int64_t experts = 0;
  std::int64_t top_k = 0;
  std::int64_t expert_intermediate = 0;
  std::int64_t shared_intermediate = 0;          ///< width of the shared expert(s) together; 0: none
  std::int64_t parallel_dense_intermediate = 0;  ///< a dense MLP beside the experts (Gemma 4)
  bool shared_gate = false;                      ///< h numbers that gate the shared expert (Qwen2-MoE)
  bool router_bias = false;                      ///< E numbers, trained (gpt-oss)
  bool correction_bias = false;                  ///< E numbers, counted by the Hub (DeepSeek-V3)
  bool expert_bias = false;                      ///< biases in the experts' matrices (gpt-oss)
  std::int64_t router_extra_parameters = 0;      ///< scales and the like that belong to the router (Gemma 4)

  bool operator==(const MlpShape&) const = default;
};

/// One kind of decoder layer; a model has one to a few.
struct LayerKind {
  AttentionShape attention;
  MlpShape mlp;
  NormPlacement norm_placement = NormPlacement::pre;
  std::int64_t norm_count = 2;        ///< norms over the hidden size that this layer holds weights of
  std::int64_t extra_parameters = 0;  ///< small replicated weights outside every other list (layer scalars)

  bool operator==(const LayerKind&) const = default;
};

/// Matrices that a config names differently from our own names, for `peft.targets`.
struct ModuleNames {
  std::string text;            ///< the family's own module name, e.g. "query_key_value"
  std::uint32_t matrices = 0;  ///< bit set over physics::MatrixId
};

struct Model {
  std::string name;
  std::string family;  ///< model_type
  std::int64_t hidden_size = 0;
  std::int64_t vocab_size = 0;
  std::int64_t max_position_embeddings = 0;  ///< 0: not stated
  std::int64_t position_rows = 0;            ///< rows of a learned position table, 0: none
  std::int64_t embedding_dim = 0;  ///< width of the token table where it differs from hidden_size (OPT-350m), else 0
  Position position = Position::rope;
  Norm norm = Norm::rmsnorm;
  Activation activation = Activation::silu;
  bool tied_embeddings = false;
  bool embedding_norm = false;  ///< a norm right after the embedding (BLOOM)
  bool final_norm = true;
  bool head_bias = false;       ///< V numbers (GPT-J, Phi)
  std::int64_t mtp_layers = 0;  ///< multi-token-prediction blocks behind the last layer; not in `parameters`
  bool mtp_shared_head = true;
  std::vector<LayerKind> kinds;
  std::vector<std::uint8_t> layer_kinds;  ///< index into `kinds`, one per decoder layer
  std::vector<ModuleNames> module_names;
  std::uint32_t fused_modules = 0;  ///< matrices that are one module (q, k, v of a fused QKV): one adapter serves them

  std::int64_t layers() const noexcept { return static_cast<std::int64_t>(layer_kinds.size()); }
  const LayerKind& layer(std::int64_t i) const noexcept { return kinds[layer_kinds[static_cast<std::size_t>(i)]]; }
  bool has_experts() const noexcept {
    for (const LayerKind& kind : kinds) {
      if (kind.mlp.kind == MlpKind::moe) return true;
    }
    return false;
  }
};

}  // namespace shardplan
