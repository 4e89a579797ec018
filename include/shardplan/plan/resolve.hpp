// From what a user states to a complete run: every default of the run file, as data.
#pragma once

#include <cstdint>
#include <vector>

#include "shardplan/core/diagnostic.hpp"
#include "shardplan/core/run.hpp"
#include "shardplan/plan/fields.hpp"

namespace shardplan::plan {

/// What was stated. Of `run`, the fields in `given` hold what was said; the others hold nothing to rely on, but for
/// `training.framework` (stated or default_framework()) and `training.stack` (the stack's constants, or those of the
/// framework), which must be filled. Degrees are at least 1, stated or not.
struct Draft {
  Run run;
  FieldSet given;
  FieldSet unusable;  ///< stated, but not readable: nothing that needs them can be checked
  /// `layers_per_stage` as stated, when it was.
  std::vector<int> layers_per_stage;
  /// Microbatches of a step, when they were stated in place of the global batch; 0: they were not.
  std::int64_t microbatches = 0;
};

/// The framework that holds when none was stated: fsdp where `fsdp` is set, megatron where tensor, pipeline, context or
/// expert is above 1, deepspeed where zero_stage is stated, else ddp.
Framework default_framework(const Draft& draft) noexcept;

/// Writes the complete run to `run`, whose buffers are reused: stated fields as stated, every other one its default,
/// `layers_per_chunk` filled (empty where the layers cannot be shared out so). The result is complete, not yet legal.
/// Returns what the user should know about stated values without effect and about surprising defaults.
Warnings resolve(const Draft& draft, Run& run);

/// The fields that took a default and that mean something for this run, in the order of Field.
std::vector<Field> defaults_taken(const Draft& draft);

/// The fields that a field's value rests on, itself included: derived values rest on what they are derived from.
FieldSet inputs_of(FieldSet fields, const FieldSet& given) noexcept;

/// Types in which the states of the trained parameters are kept.
struct StateTypes {
  DType parameter = DType::bf16;
  DType gradient = DType::bf16;
  bool master = true;
  DType optimizer_state = DType::fp32;

  bool operator==(const StateTypes&) const = default;
};

/// A framework's own choice. `parameter`: as stated for the weights that train, or nothing.
StateTypes default_state_types(Framework framework, Precision precision, int zero_stage,
                               std::optional<DType> parameter) noexcept;

/// Ranks of one data x context group that lie in one node, at least 1; the largest number up to it that divides the
/// group.
int default_shard_group(const Parallel& parallel, int gpus_per_node) noexcept;

/// Decoder layers of each chunk in model order, when `layers` are shared out equally; empty when they cannot be.
std::vector<int> equal_chunks(std::int64_t layers, int pipeline, int virtual_pipeline);

}  // namespace shardplan::plan
