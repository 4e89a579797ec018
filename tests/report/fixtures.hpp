// Runs and estimates made by hand: the report layer is tested without the physics.
#pragma once

#include "shardplan/core/run.hpp"
#include "shardplan/plan/estimate.hpp"

namespace test {

struct Example {
  shardplan::Run run;
  shardplan::Estimate estimate;
};

/// Llama-3.1-70B on 128 H100, TP8 PP4 DP4, ZeRO-1: fits easily.
Example pipeline_of_four();
/// The same with eager attention and a larger microbatch: passes the card on stage 0.
Example out_of_memory();
/// QLoRA of an 8B model on one RTX 4090, times from the generic curve.
Example one_gpu();
/// Sixteen stages; those in the middle are equal where `equal`, else all differ.
Example sixteen_stages(bool equal);

/// GiB as bytes, to the nearest.
std::int64_t gib(double size);

}  // namespace test
