// What each optimizer keeps between steps, as data.
#pragma once

#include <span>
#include <string_view>

namespace shardplan {

/// How an optimizer treats a weight matrix.
enum class StateForm : unsigned char {
  elementwise,      ///< `state_tensors` numbers per parameter
  factored,         ///< fp32 row and column statistics per matrix, full ones per vector (Adafactor, arXiv:1804.04235)
  matrix_momentum,  ///< one number per element of hidden matrices, two elsewhere (Muon)
};

struct Optimizer {
  std::string_view name;
  StateForm form = StateForm::elementwise;
  double state_tensors = 2;  ///< state numbers per parameter, each as wide as `optimizer_state_dtype`
  double fixed_bytes = 0;    ///< bytes per parameter whatever the dtype: 8-bit states and their block scales
  bool paged = false;        ///< states live in pages that move to the host
  bool timed = true;         ///< its step time is modelled; false: memory only
  std::string_view description;
  std::string_view source;
};

std::span<const Optimizer> optimizers() noexcept;

/// The optimizer of that name, or nullptr.
const Optimizer* find_optimizer(std::string_view name) noexcept;

}  // namespace shardplan
