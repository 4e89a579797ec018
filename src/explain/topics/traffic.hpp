// What the cards of data parallelism share: what a rank moves, and the step's traffic in words.
#pragma once

#include <string>

#include "shardplan/plan/data_volumes.hpp"
#include "topics.hpp"

namespace shardplan::explain {

/// Dense weights of stage 0 as data parallelism moves them.
struct Moved {
  double trained = 0;   ///< elements, adapters included
  double gradient = 0;  ///< bytes of one of them as it is reduced
  double weight = 0;    ///< and as it is gathered
  double frozen = 0;    ///< bytes of frozen and quantised weights as they are gathered
};

Moved moved(Card& c, const Weights& weights);
/// Of stage 0's dense weights.
Moved moved(Card& c);

/// The step's data-parallel traffic as the estimate has it, by collective; empty: there is none.
std::string data_traffic(Card& c);

/// How the run shares out its states.
std::string sharding(const Run& run);

}  // namespace shardplan::explain
