// The members of a run file, read into a draft.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "shardplan/core/diagnostic.hpp"
#include "shardplan/plan/resolve.hpp"

namespace shardplan::io {

inline constexpr std::int64_t largest_degree = std::int64_t{1} << 20;
inline constexpr std::int64_t longest_sequence = std::int64_t{1} << 28;
inline constexpr std::int64_t largest_micro_batch = std::int64_t{1} << 20;
inline constexpr std::int64_t largest_global_batch = std::int64_t{1} << 30;

/// Takes unknown members out of a run's objects. Each is a problem, and where it looks like a known one that is absent
/// it is taken for that one, so that the checks behind it still run.
void remove_unknown_fields(nlohmann::json& root, std::string_view file, Diagnostics& problems);

/// Members that state a value land in `draft.run` and `draft.given`, those that cannot be read in `draft.unusable`.
/// Not read here: model, cluster, the stack's constants, peft.targets.
void read_parallel(const nlohmann::json& parallel, std::string_view file, plan::Draft& draft, Diagnostics& problems);
void read_training(const nlohmann::json& training, std::string_view file, plan::Draft& draft, Diagnostics& problems);
void read_requirements(const nlohmann::json& require, std::string_view file, plan::Draft& draft, Diagnostics& problems);

}  // namespace shardplan::io
