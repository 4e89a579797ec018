// The symbols of the formulas, as numbers or as text. Every formula of the operator lists is written once over them.
//
// Legend (Korthikanti et al. 2022, arXiv:2205.05198, where it has the letter):
//   s sequence length   b micro batch   h hidden size   a query heads   k KV heads   d head size   f MLP width
//   V padded vocabulary t tensor parallel   c context parallel   e expert parallel   x expert tensor parallel
#pragma once

#include "shardplan/core/model.hpp"
#include "shardplan/core/run.hpp"

namespace shardplan {

/// Symbols of one layer kind under one layout. N is double in an estimate; divisions are exact by legality.
template <class N>
struct Symbols {
  // Run
  N s{}, b{};
  N t{};     ///< tensor parallel
  N c{};     ///< context parallel
  N e{};     ///< expert parallel
  N x{};     ///< expert tensor parallel
  N t_sp{};  ///< what divides tokens outside the tensor-parallel regions: t with sequence parallelism, else 1
  N t_in{};  ///< what divides a column-parallel input as kept for backward: t_sp, or 1 where it is kept gathered
  N w{};     ///< bytes of an activation element
  N w_r{};   ///< bytes of an element of the residual stream (4 where autocast leaves it in fp32)
  N w_m{};   ///< bytes of an element inside the MLP (4 behind an fp32 norm and a quantised linear)
  // Model
  N h{};
  N V{};  ///< padded vocabulary
  // Attention
  N a{};            ///< query heads
  N k{};            ///< KV heads
  N t_kv{};         ///< what divides KV heads: min(t, k), the rest of t replicates them
  N d{};            ///< size of a query or key head
  N d_v{};          ///< size of a value head
  N r_q{};          ///< rank of the query latent (0: none)
  N r_kv{};         ///< rank of the KV latent
  N d_rope{};       ///< latent attention: positional part of d
  N keys{};         ///< keys that a query is scored against: s, or the window
  N keys_causal{};  ///< mean number of keys under the causal mask: (s + 1)/2, or the window's sum
  N i_a{};          ///< indexer heads (0: none)
  N i_d{};          ///< size of an indexer head
  // MLP
  N f{};         ///< dense width
  N E{};         ///< experts
  N k_top{};     ///< experts a token goes to
  N f_e{};       ///< width of an expert
  N f_s{};       ///< width of the shared experts together
  N f_p{};       ///< width of a dense MLP beside the experts
  N capacity{};  ///< rows sent over the dropless count: the capacity factor, or 1
  N u{};         ///< rows an expert rank computes over the balanced, dropless count: capacity x imbalance
  // Adapters
  N r{};    ///< rank of the low-rank adapters
  N w_a{};  ///< bytes of an adapter's activation
};

/// Mean number of keys that a query sees under a causal mask: sum over i < s of min(i + 1, window), over s.
constexpr double causal_keys(double s, double window) noexcept {
  if (window <= 0 || window >= s) return (s + 1) / 2;
  return (window * (window + 1) / 2 + (s - window) * window) / s;
}

}  // namespace shardplan
