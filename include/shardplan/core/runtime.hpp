// What runs on a vendor's accelerators, as messages name it.
#pragma once

#include <string_view>

namespace shardplan {

struct Runtime {
  std::string_view name;     ///< what reports a card's memory
  std::string_view context;  ///< what it holds of the card before the first tensor
  std::string_view collectives;
};

/// Of the vendor as the catalog spells it; of another "the driver".
constexpr Runtime runtime_of(std::string_view vendor) noexcept {
  if (vendor == "NVIDIA") return {"CUDA", "CUDA context", "NCCL"};
  if (vendor == "AMD") return {"HIP", "HIP context", "RCCL"};
  if (vendor == "Intel") return {"SynapseAI", "SynapseAI runtime", "HCCL"};
  if (vendor == "AWS") return {"the Neuron runtime", "Neuron runtime", "its collectives"};
  if (vendor == "Google") return {"libtpu", "libtpu", "its collectives"};
  return {"the driver", "runtime", "collectives"};
}

}  // namespace shardplan
