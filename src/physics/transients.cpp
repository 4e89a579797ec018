#include "shardplan/physics/transients.hpp"

#include "shardplan/physics/transient_formulas.hpp"

namespace shardplan {

double op_level_kept_bytes(const Symbols<double>& v, const LayerKind& kind) noexcept {
  return op_level_kept(NoTrace{}, v, kind);
}

LayerTransient layer_transient(const Symbols<double>& v, const LayerOptions& o, const LayerKind& kind,
                               const OperatorList<double>& list, const Recompute& recompute,
                               MadeGradient made) noexcept {
  return layer_transient(NoTrace{}, v, o, kind, list, recompute, made);
}

}  // namespace shardplan
