#include "rows.hpp"

namespace shardplan {

#define SHARDPLAN_ROW(word) &frameworks::word,
constinit const std::array<const FrameworkFacts*, framework_count> framework_table = {
    SHARDPLAN_FRAMEWORKS(SHARDPLAN_ROW)};
#undef SHARDPLAN_ROW

Framework implied_framework(bool fsdp, bool splits_model, bool zero) noexcept {
  if (fsdp) return Framework::fsdp;
  if (splits_model) return Framework::megatron;
  return zero ? Framework::deepspeed : Framework::ddp;
}

}  // namespace shardplan
