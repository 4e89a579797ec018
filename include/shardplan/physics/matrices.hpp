// The weight matrices that a decoder can have, by name.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "shardplan/core/names.hpp"

namespace shardplan {

enum class MatrixId : std::uint8_t {
  q_proj,
  k_proj,
  v_proj,
  o_proj,
  gate_proj,
  up_proj,
  down_proj,
  q_a_proj,
  q_b_proj,
  kv_a_proj,
  kv_b_proj,
  indexer_q_proj,
  indexer_k_proj,
  indexer_weights,
  router,
  expert_gate_proj,
  expert_up_proj,
  expert_down_proj,
  shared_gate_proj,
  shared_up_proj,
  shared_down_proj,
  shared_expert_gate,
  embed_tokens,
  position_embeddings,
  embed_projection,
  lm_head
};
template <>
inline constexpr std::array<std::string_view, 26> names_of<MatrixId> = {"q_proj",
                                                                        "k_proj",
                                                                        "v_proj",
                                                                        "o_proj",
                                                                        "gate_proj",
                                                                        "up_proj",
                                                                        "down_proj",
                                                                        "q_a_proj",
                                                                        "q_b_proj",
                                                                        "kv_a_proj",
                                                                        "kv_b_proj",
                                                                        "indexer.wq_b",
                                                                        "indexer.wk",
                                                                        "indexer.weights_proj",
                                                                        "router",
                                                                        "experts.gate_proj",
                                                                        "experts.up_proj",
                                                                        "experts.down_proj",
                                                                        "shared_expert.gate_proj",
                                                                        "shared_expert.up_proj",
                                                                        "shared_expert.down_proj",
                                                                        "shared_expert_gate",
                                                                        "embed_tokens",
                                                                        "position_embeddings",
                                                                        "embed_projection",
                                                                        "lm_head"};

using MatrixSet = std::uint32_t;

constexpr MatrixSet set_of(MatrixId id) noexcept { return MatrixSet{1} << static_cast<unsigned>(id); }
template <class... Ids>
constexpr MatrixSet set_of(MatrixId first, Ids... rest) noexcept {
  return set_of(first) | set_of(rest...);
}
constexpr bool contains(MatrixSet set, MatrixId id) noexcept { return (set & set_of(id)) != 0; }

/// Every linear layer of the decoder blocks, routers apart, embeddings and head apart: PEFT's "all-linear".
inline constexpr MatrixSet all_linear =
    set_of(MatrixId::q_proj, MatrixId::k_proj, MatrixId::v_proj, MatrixId::o_proj, MatrixId::gate_proj,
           MatrixId::up_proj, MatrixId::down_proj, MatrixId::q_a_proj, MatrixId::q_b_proj, MatrixId::kv_a_proj,
           MatrixId::kv_b_proj, MatrixId::expert_gate_proj, MatrixId::expert_up_proj, MatrixId::expert_down_proj,
           MatrixId::shared_gate_proj, MatrixId::shared_up_proj, MatrixId::shared_down_proj);

}  // namespace shardplan
