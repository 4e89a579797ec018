// Levers by the field that they move.
#pragma once

#include "shardplan/advise/levers.hpp"

namespace shardplan::advise {

/// A field and its new value.
template <class Value>
Lever lever(plan::Field field, Value value, std::string_view reason) {
  Lever lever;
  lever.change.set(field, value);
  lever.reason = reason;
  return lever;
}

/// Chunks a rank; the schedule follows, stated again where the run states another.
Lever chunks_lever(const plan::Draft& draft, const Run& run, int chunks, std::string_view reason);
/// FSDP in place of whatever ZeRO stage was stated. `keep`: a framework that then has to be stated, for `fsdp` alone
/// would bring its own.
Lever fsdp_lever(const plan::Draft& draft, Fsdp mode, std::string_view reason, Framework keep);
Lever recompute_lever(Recompute recompute, std::string_view reason);

/// Context parallelism needs an attention kernel that goes block by block.
bool splits_sequences(const Run& run) noexcept;
/// Whether data-parallel ranks could share out the states.
bool shards_over_something(const Run& run) noexcept;
/// The framework in which this run's FSDP would go on: its own where it has one, torch's elsewhere.
Framework fsdp_framework(const Run& run) noexcept;
/// Whether the schedule is one that chunks alone decide.
bool has_plain_order(const Run& run) noexcept;

}  // namespace shardplan::advise
