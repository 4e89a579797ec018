// Parts of a change: one field of a run set to another value, with the flags that say so.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "shardplan/plan/resolve.hpp"

namespace shardplan::cli {

/// A part of a change: flags, the fields that then count as stated, and how they are set.
struct Lever {
  std::string flags;
  std::string_view reason;
  plan::FieldSet fields;
  std::function<void(plan::Draft&)> set;
};

Lever tensor_lever(int tensor, std::string_view reason);
Lever pipeline_lever(int pipeline, std::string_view reason);
/// Chunks a rank; the schedule follows, stated again where the run states another.
Lever chunks_lever(const plan::Draft& draft, const Run& run, int chunks, std::string_view reason);
Lever context_lever(int context, std::string_view reason);
Lever expert_lever(int expert, std::string_view reason);
Lever zero_lever(int stage, std::string_view reason);
/// FSDP in place of whatever ZeRO stage was stated. `keep`: a framework that then has to be stated, for `fsdp` alone
/// would bring its own.
Lever fsdp_lever(const plan::Draft& draft, Fsdp mode, std::string_view reason, Framework keep);
/// `word`: as typed, "full:4".
Lever recompute_lever(std::string word, Recompute recompute, std::string_view reason);
Lever micro_batch_lever(std::int64_t batch, std::string_view reason);
Lever attention_lever(AttentionKernel kernel, std::string_view reason);
/// More GPUs with the layout of a replica as it is.
Lever more_gpus(int num_gpus);

}  // namespace shardplan::cli
