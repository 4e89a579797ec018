// What holds for every estimate of a legal run.
#pragma once

#include <string>
#include <vector>

#include "shardplan/plan/estimate.hpp"

namespace test {

/// Every rule that an estimate breaks, in words; empty when it is sane.
///   Bytes: no part is negative; parts sum to totals; the peak is the largest stage's largest moment; headroom is what
///   capacity leaves; allocated <= reserved.
///   Counts: parts of the model sum to its parameters; stages hold all layers.
///   Communication: rows sum to the totals by group; no row sends more than its ring volume.
///   Time: parts sum to the step; nothing is negative or infinite; MFU conventions keep their order.
std::vector<std::string> violations(const shardplan::Run& run, const shardplan::Estimate& estimate);

/// The same rules about the JSON document, from its own numbers: integers where bytes are, sums exact.
std::vector<std::string> json_violations(const std::string& document);

}  // namespace test
