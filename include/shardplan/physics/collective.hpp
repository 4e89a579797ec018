// Kinds of collectives and the groups of ranks that make them.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "shardplan/core/names.hpp"

namespace shardplan {

enum class Collective : std::uint8_t { all_reduce, all_gather, reduce_scatter, all_to_all, send, broadcast };
template <>
inline constexpr std::array<std::string_view, 6> names_of<Collective> = {"all_reduce", "all_gather", "reduce_scatter",
                                                                         "all_to_all", "send",       "broadcast"};
enum class GroupKind : std::uint8_t { tensor, pipeline, data, context, expert, expert_data, embedding, expert_tensor };
template <>
inline constexpr std::array<std::string_view, 8> names_of<GroupKind> = {
    "tensor", "pipeline", "data", "context", "expert", "expert_data", "embedding", "expert_tensor"};

/// Share of a collective's tensor that one of n ranks sends around a ring (nccl-tests' bus bandwidth counts the same).
template <class N>
constexpr N sent_share_of(Collective op, N n) {
  switch (op) {
    case Collective::all_reduce: return 2.0 * (n - 1.0) / n;
    case Collective::send:
    case Collective::broadcast: return N(1.0);
    default: return (n - 1.0) / n;
  }
}
constexpr double sent_share(Collective op, double n) noexcept { return sent_share_of(op, n); }

}  // namespace shardplan
