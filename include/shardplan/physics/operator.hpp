// An operator of a layer as one GPU runs it for one microbatch, and the collectives between operators.
//
// Every answer is a sum over these: parameters, model states, activations, FLOP, time, communication volume.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <type_traits>

#include "shardplan/core/names.hpp"
#include "shardplan/physics/collective.hpp"
#include "shardplan/physics/matrices.hpp"

namespace shardplan {

enum class OperatorKind : std::uint8_t { gemm, grouped_gemm, attention, norm, elementwise, routing, loss, lookup };
template <>
inline constexpr std::array<std::string_view, 8> names_of<OperatorKind> = {
    "gemm", "grouped_gemm", "attention", "norm", "elementwise", "routing", "loss", "lookup"};

/// The part of the model that an operator's weights belong to (`model.parameters_by_part`).
enum class Part : std::uint8_t { embedding, attention, mlp, experts, router, norm, head };
inline constexpr std::size_t part_count = 7;

/// The recompute module that covers an operator's saved tensors (Megatron-Core's names; core_attn is "selective").
enum class Covered : std::uint8_t { none, core_attn, layernorm, mlp, moe_act, moe, mla_up_proj };

/// How a weight matrix is spread over the ranks of a layer.
enum class Shard : std::uint8_t { replicated, tensor, expert };

/// In Operator::adapted: one low-rank adapter serves the rows of the whole product, or a table.
inline constexpr std::uint8_t adapts_whole_product = 0x80;

template <class N>
struct Operator {
  std::string_view name;
  OperatorKind kind = OperatorKind::elementwise;
  Part part = Part::norm;
  Shard shard = Shard::replicated;
  Covered covered = Covered::none;       ///< module whose recomputation drops `saved` down to `saved_recomputed`
  Covered also_covered = Covered::none;  ///< a second one, down to `saved_also_recomputed`
  Covered rerun_by = Covered::none;      ///< module whose recomputation runs this operator again
  Covered also_rerun_by = Covered::none;
  bool trains = true;      ///< the base weights receive gradients
  bool quantized = false;  ///< the base weights are stored as peft.quant says
  bool vector = false;     ///< norms, biases, sinks: not a matrix

  // Weights of this rank, before any data sharding.
  N parameters{};                 ///< matrix and bias elements
  N biases{};                     ///< the bias elements among them (all of them, for a vector)
  N adapter_parameters{};         ///< low-rank adapters, always trained
  N rows{}, cols{};               ///< of one matrix (0: a vector)
  N matrices{};                   ///< how many of them
  std::array<N, 3> named_rows{};  ///< rows of each matrix as the model names them (q, k and v apart); none: `rows`
  std::uint8_t named = 0;         ///< how many names
  std::uint8_t adapted = 0;       ///< bit i: the i-th of them has a low-rank adapter; or all as one
  N adapter_rank{};
  std::uint8_t vectors = 1;  ///< tensors that `biases` is the sum of, per matrix

  // Saved for backward, bytes.
  N saved{};             ///< without recomputation
  N saved_recomputed{};  ///< of it, what stays when the module in `covered` is recomputed

  N saved_also_recomputed{};

  // Work. A matrix product is batch x (m x k) times (k x n).
  N m{}, n{}, k{}, batch{};
  N forward_flop{};  ///< scores in full
  N input_gradient_flop{};
  N weight_gradient_flop{};  ///< 0 where the weights are frozen
  N score_flop{};            ///< the part of forward_flop that is attention scores
  N forward_bytes{};         ///< element-wise HBM traffic
  N backward_bytes{};
};

enum class CollectiveName : std::uint8_t {
  tp_all_reduce,
  tp_all_gather,
  tp_reduce_scatter,
  tp_regather,
  cp_send,
  cp_all_gather,
  cp_reduce_scatter,
  cp_all_to_all,
  ep_all_to_all,
  etp_all_gather,
  etp_reduce_scatter
};
template <>
inline constexpr std::array<std::string_view, 11> names_of<CollectiveName> = {
    "tp_all_reduce",     "tp_all_gather", "tp_reduce_scatter", "tp_regather",    "cp_send",           "cp_all_gather",
    "cp_reduce_scatter", "cp_all_to_all", "ep_all_to_all",     "etp_all_gather", "etp_reduce_scatter"};

/// A collective that a layer makes for one microbatch.
template <class N>
struct LayerCollective {
  CollectiveName name = CollectiveName::tp_all_reduce;
  Collective op = Collective::all_reduce;
  GroupKind group = GroupKind::tensor;
  N message{};  ///< bytes of the whole tensor over its group
  N sent{};     ///< bytes one GPU sends per call
  int forward_calls = 0;
  int backward_calls = 0;
  Covered covered = Covered::none;  ///< repeated in the forward part when this module (or the layer) is recomputed
};

/// A list that never allocates and leaves what it does not hold uninitialised: a layer's list is ten kilobytes.
template <class T, std::size_t Capacity>
class FixedList {
  static_assert(std::is_trivially_destructible_v<T>);

 public:
  std::size_t count = 0;

  FixedList() noexcept {}  // NOLINT(modernize-use-equals-default): a defaulted one would clear the storage
  FixedList(const FixedList& other) { *this = other; }
  FixedList& operator=(const FixedList& other) {
    if (this == &other) return *this;
    count = 0;
    for (const T& item : other) add(item);
    return *this;
  }
  ~FixedList() = default;

  /// Appends a copy; a full list stays as it is.
  void add(const T& item) {
    if (count < Capacity) std::construct_at(storage_.items + count++, item);
  }
  const T* begin() const noexcept { return storage_.items; }
  const T* end() const noexcept { return storage_.items + count; }
  T* begin() noexcept { return storage_.items; }
  T* end() noexcept { return storage_.items + count; }

 private:
  union Storage {
    Storage() noexcept {}
    T items[Capacity];
  } storage_;
};

template <class N>
struct OperatorList {
  FixedList<Operator<N>, 36> operators;
  FixedList<LayerCollective<N>, 16> collectives;
};

}  // namespace shardplan
