#include "shardplan/physics/optimizers.hpp"

#include <array>

namespace shardplan {
namespace {

// bitsandbytes block-wise 8-bit: one byte and 4/256 of an fp32 block maximum per state tensor.
constexpr double eight_bit_state = 1.0 + 4.0 / 256.0;

constexpr std::array<Optimizer, 12> table = {{
    {"sgd", StateForm::elementwise, 0, 0, false, true, "no state", "torch.optim.SGD"},
    {"sgd-momentum", StateForm::elementwise, 1, 0, false, true, "one momentum", "torch.optim.SGD"},
    {"adam", StateForm::elementwise, 2, 0, false, true, "first and second moment", "Kingma, Ba 2015 (1412.6980)"},
    {"adamw", StateForm::elementwise, 2, 0, false, true, "first and second moment",
     "Loshchilov, Hutter 2019 (1711.05101)"},
    {"adamw-8bit", StateForm::elementwise, 0, 2 * eight_bit_state, false, true, "moments in blocks of 256 bytes",
     "Dettmers et al. 2022 (2110.02861); bitsandbytes, blocksize 256"},
    {"paged-adamw-8bit", StateForm::elementwise, 0, 2 * eight_bit_state, true, true, "8-bit moments, paged to the host",
     "Dettmers et al. 2023 (2305.14314)"},
    {"paged-adamw-32bit", StateForm::elementwise, 2, 0, true, true, "moments, paged to the host",
     "Dettmers et al. 2023 (2305.14314)"},
    {"lion", StateForm::elementwise, 1, 0, false, true, "one momentum", "Chen et al. 2023 (2302.06675)"},
    {"lion-8bit", StateForm::elementwise, 0, eight_bit_state, false, true, "one momentum in blocks of 256 bytes",
     "Chen et al. 2023 (2302.06675); bitsandbytes"},
    {"adagrad", StateForm::elementwise, 1, 0, false, true, "sum of squares", "torch.optim.Adagrad"},
    {"adafactor", StateForm::factored, 0, 0, false, true, "row and column statistics, no momentum",
     "Shazeer, Stern 2018 (1804.04235)"},
    {"muon", StateForm::matrix_momentum, 1, 0, false, true,
     "momentum on hidden matrices, Adam on embeddings, head and vectors", "Jordan et al. 2024 (Muon); Megatron-LM"},
}};

}  // namespace

std::span<const Optimizer> optimizers() noexcept { return table; }

const Optimizer* find_optimizer(std::string_view name) noexcept {
  for (const Optimizer& optimizer : table) {
    if (optimizer.name == name) return &optimizer;
  }
  return nullptr;
}

}  // namespace shardplan
