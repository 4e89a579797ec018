// Other names of optimizers: transformers' OptimizerNames, bitsandbytes, DeepSpeed, Megatron-LM.
#include <array>

#include "shardplan/physics/optimizers.hpp"

namespace shardplan {
namespace {

constexpr std::array<OptimizerAlias, 33> aliases = {{
    {"adamw-torch", "adamw"},
    {"adamw-torch-xla", "adamw"},
    {"adamw-torch-fused", "adamw", OptimizerImpl::fused},
    {"adamw-torch-npu-fused", "adamw", OptimizerImpl::fused},
    {"adamw-apex-fused", "adamw", OptimizerImpl::fused},
    {"fused-adam", "adamw", OptimizerImpl::fused},
    {"adamw-bnb-8bit", "adamw-8bit"},
    {"adam-8bit", "adamw-8bit"},
    {"adamw-torch-8bit", "adamw-8bit"},
    {"adamw-torch-4bit", "adamw-4bit"},
    {"paged-adamw", "paged-adamw-32bit"},
    {"paged-adam-32bit", "paged-adamw-32bit"},
    {"paged-adam-8bit", "paged-adamw-8bit"},
    {"lion-32bit", "lion"},
    {"paged-lion", "paged-lion-32bit"},
    {"adamw-anyprecision", "kahan-adamw"},
    {"anyprecision-adamw", "kahan-adamw"},
    {"amsgrad", "adamw-amsgrad"},
    {"galore-adamw", "galore"},
    {"galore-adamw-8bit", "galore-8bit"},
    {"apollo-adamw", "apollo"},
    {"qgalore", "q-galore"},
    {"q-galore-adamw-8bit", "q-galore"},
    {"onebitadam", "one-bit-adam"},
    {"1-bit-adam", "one-bit-adam"},
    {"schedulefree-adamw", "schedule-free-adamw"},
    {"msamp", "fp8-lm"},
    {"ms-amp", "fp8-lm"},
    {"dist-muon", "muon"},
    {"distributed-shampoo", "shampoo"},
    {"rmsprop-bnb-32bit", "rmsprop"},
    {"rmsprop-bnb", "rmsprop"},
    {"sgd-nesterov", "sgd-momentum"},
}};

char plain(char c) noexcept {
  if (c == '_') return '-';
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

/// Whether `text` is `name`, which is lower case with hyphens.
bool is_name(std::string_view text, std::string_view name) noexcept {
  if (text.size() != name.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (plain(text[i]) != name[i]) return false;
  }
  return true;
}

}  // namespace

std::span<const OptimizerAlias> optimizer_aliases() noexcept { return aliases; }

NamedOptimizer parse_optimizer(std::string_view text) noexcept {
  for (const Optimizer& optimizer : optimizers()) {
    if (is_name(text, optimizer.name)) return {&optimizer, std::nullopt};
  }
  for (const OptimizerAlias& alias : aliases) {
    if (is_name(text, alias.name)) return {find_optimizer(alias.optimizer), alias.impl};
  }
  return {};
}

}  // namespace shardplan
