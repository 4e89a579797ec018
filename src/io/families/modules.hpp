// Names of the linear modules of each family, as paths inside a decoder layer or the model.
//
// A `peft.targets` entry names every module whose path equals it or ends in "." + it, as in PEFT.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "shardplan/physics/matrices.hpp"

namespace shardplan::io {

struct ModulePath {
  std::string_view path;
  MatrixSet matrices = 0;
};

/// A view of a family's list.
struct Modules {
  const ModulePath* first = nullptr;
  std::size_t count = 0;

  const ModulePath* begin() const noexcept { return first; }
  const ModulePath* end() const noexcept { return first + count; }
};

template <std::size_t Size>
constexpr Modules modules_of(const std::array<ModulePath, Size>& list) noexcept {
  return {list.data(), Size};
}

namespace module_sets {
inline constexpr MatrixSet qkv = set_of(MatrixId::q_proj, MatrixId::k_proj, MatrixId::v_proj);
inline constexpr MatrixSet gate_up = set_of(MatrixId::gate_proj, MatrixId::up_proj);
inline constexpr MatrixSet expert_gate_up = set_of(MatrixId::expert_gate_proj, MatrixId::expert_up_proj);
inline constexpr MatrixSet shared_gate_up = set_of(MatrixId::shared_gate_proj, MatrixId::shared_up_proj);
}  // namespace module_sets

/// Llama and all that took over its names: separate q, k, v, o, gate, up, down; experts in lists; latent attention.
inline constexpr std::array<ModulePath, 27> llama_module_paths = {{
    {"self_attn.q_proj", set_of(MatrixId::q_proj)},
    {"self_attn.k_proj", set_of(MatrixId::k_proj)},
    {"self_attn.v_proj", set_of(MatrixId::v_proj)},
    {"self_attn.o_proj", set_of(MatrixId::o_proj)},
    {"self_attn.q_a_proj", set_of(MatrixId::q_a_proj)},
    {"self_attn.q_b_proj", set_of(MatrixId::q_b_proj)},
    {"self_attn.kv_a_proj_with_mqa", set_of(MatrixId::kv_a_proj)},
    {"self_attn.kv_b_proj", set_of(MatrixId::kv_b_proj)},
    {"self_attn.indexer.wq_b", set_of(MatrixId::indexer_q_proj)},
    {"self_attn.indexer.wk", set_of(MatrixId::indexer_k_proj)},
    {"self_attn.indexer.weights_proj", set_of(MatrixId::indexer_weights)},
    {"mlp.gate_proj", set_of(MatrixId::gate_proj)},
    {"mlp.up_proj", set_of(MatrixId::up_proj)},
    {"mlp.down_proj", set_of(MatrixId::down_proj)},
    {"mlp.gate", set_of(MatrixId::router)},
    {"mlp.experts.gate_proj", set_of(MatrixId::expert_gate_proj)},
    {"mlp.experts.up_proj", set_of(MatrixId::expert_up_proj)},
    {"mlp.experts.down_proj", set_of(MatrixId::expert_down_proj)},
    {"mlp.shared_experts.gate_proj", set_of(MatrixId::shared_gate_proj)},
    {"mlp.shared_experts.up_proj", set_of(MatrixId::shared_up_proj)},
    {"mlp.shared_experts.down_proj", set_of(MatrixId::shared_down_proj)},
    {"mlp.shared_expert_gate", set_of(MatrixId::shared_expert_gate)},
    {"mlp.shared_expert.gate_proj", set_of(MatrixId::shared_gate_proj)},
    {"mlp.shared_expert.up_proj", set_of(MatrixId::shared_up_proj)},
    {"mlp.shared_expert.down_proj", set_of(MatrixId::shared_down_proj)},
    {"embed_tokens", set_of(MatrixId::embed_tokens)},
    {"lm_head", set_of(MatrixId::lm_head)},
}};
inline constexpr Modules llama_modules = modules_of(llama_module_paths);

}  // namespace shardplan::io
