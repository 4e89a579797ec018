// What each optimizer keeps between steps, as data.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "shardplan/core/dtype.hpp"
#include "shardplan/core/stack.hpp"

namespace shardplan {

/// What a tensor's states are a function of.
enum class StateForm : std::uint8_t {
  elementwise,       ///< its elements
  block_quantized,   ///< its elements and blocks: an fp32 scale a block, small tensors in fp32
  factored,          ///< a matrix' rows and columns; the elements of a vector (Adafactor, arXiv:1804.04235)
  row_blocks,        ///< a matrix' elements and rows (Adam-mini, arXiv:2406.16793)
  momentum,          ///< a matrix' elements: one momentum that is orthogonalised (Muon)
  low_rank_factor,   ///< a matrix' elements and a factor of its smaller side (Dion, arXiv:2504.05295)
  preconditioned,    ///< a matrix' elements and the squares of its sides (Shampoo, SOAP)
  projected,         ///< a matrix' sides and a rank (GaLore, arXiv:2403.03507; APOLLO, arXiv:2412.05270)
  block_coordinate,  ///< the layer that is being trained: everything else has neither gradient nor state (BAdam)
};

/// Which trained tensors the form treats as matrices; the others have `state_tensors` numbers an element.
enum class MatrixScope : std::uint8_t {
  none,
  all,     ///< every tensor of two dimensions
  hidden,  ///< not embeddings, head, vectors
  linear,  ///< attention and MLP, experts included, routers apart
};

/// The copy of 16-bit weights that the optimizer steps.
enum class MasterCopy : std::uint8_t {
  framework,  ///< as the framework keeps it
  none,
  fp16,
  remainder,  ///< of bf16 weights: the low 16 bits of their fp32 value
};

/// The rank that a gradient is projected to.
enum class ProjectionRank : std::uint8_t { none, one, quarter_of_hidden, smaller_side };

/// What runs the update.
enum class StepKernel : std::uint8_t {
  torch,         ///< torch.optim: `optimizer_impl` says how
  bitsandbytes,  ///< one kernel a tensor, nothing on the side; small tensors keep fp32 states
  fused,         ///< compiled or a kernel of its own, nothing on the side
  loop,          ///< Python over tensors, with temporaries of one tensor
};

/// Products that the update of a matrix needs.
enum class MatrixWork : std::uint8_t { none, newton_schulz, project, project_and_back };

struct Optimizer {
  std::string_view name{};
  StateForm form = StateForm::elementwise;
  double state_tensors = 2;  ///< numbers per element, each as wide as `optimizer_state_dtype`
  double fixed_bytes = 0;    ///< bytes per element whatever the dtype

  // Block-quantised states.
  double quantized_tensors = 0;  ///< how many of them
  double quantized_bytes = 1;    ///< of an element of one
  double block = 0;              ///< elements that share an fp32 scale

  // Matrices in the scope.
  MatrixScope scope = MatrixScope::none;
  double matrix_tensors = 0;  ///< numbers per element, as wide as `optimizer_state_dtype`
  double side_numbers = 0;    ///< fp32 numbers per row and per column
  double side_squares = 0;    ///< fp32 numbers per squared side
  double block_side = 0;      ///< sides are cut into blocks of this, 0: whole
  double longest_side = 0;    ///< longer sides have no squares, 0: no limit
  ProjectionRank rank = ProjectionRank::none;
  double projector_bytes = 0;       ///< per element of the smaller side x rank
  double low_rank_tensors = 0;      ///< numbers per element of rank x larger side
  double low_rank_fixed_bytes = 0;  ///< bytes per such element whatever the dtype
  double weight_bytes = 0;          ///< such weights are stored in this many bytes, 0: as `param_dtype`

  MasterCopy master = MasterCopy::framework;
  std::optional<DType> gradient{};   ///< the gradient's dtype where the run does not say
  bool sixteen_bit_weights = false;  ///< made for 16-bit weights, which are the default then
  bool keeps_gradients = true;       ///< false: the update runs inside the backward pass, tensor by tensor
  double replica_share_bytes = 0;    ///< per element, cut over the data-parallel ranks whatever else is
  bool paged = false;                ///< states live in pages that move to the host

  StepKernel kernel = StepKernel::torch;
  double foreach_copies = 1;  ///< copies of what trains that torch's foreach makes
  MatrixWork work = MatrixWork::none;
  bool timed = true;  ///< its step time is modelled; false: memory only, time by bytes moved

  std::string_view description{};
  std::string_view source{};

  /// Whether its states are counted tensor by tensor.
  bool per_tensor() const noexcept { return form != StateForm::elementwise || paged; }
};

std::span<const Optimizer> optimizers() noexcept;

/// The optimizer of exactly that name, or nullptr.
const Optimizer* find_optimizer(std::string_view name) noexcept;

/// Another name, as a framework spells it.
struct OptimizerAlias {
  std::string_view name;  ///< lower case, with hyphens
  std::string_view optimizer;
  std::optional<OptimizerImpl> impl{};  ///< what it says about the implementation
};

std::span<const OptimizerAlias> optimizer_aliases() noexcept;

struct NamedOptimizer {
  const Optimizer* optimizer = nullptr;  ///< nullptr: no such name
  std::optional<OptimizerImpl> impl{};
};

/// By name or alias; case is ignored, and hyphens and underscores are the same.
NamedOptimizer parse_optimizer(std::string_view text) noexcept;

}  // namespace shardplan
