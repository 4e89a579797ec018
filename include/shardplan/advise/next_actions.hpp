// The next best changes of a run: each one tried, none guessed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "shardplan/advise/trials.hpp"

namespace shardplan::advise {

struct NextAction {
  /// What the change is among those that were tried.
  enum class Rank : std::uint8_t {
    good,         ///< makes the run faster, or makes it fit
    fewest_gpus,  ///< of a run that nothing smaller makes fit: the fewest GPUs tried that do
    nearest       ///< nothing that was tried fits; this lacks least
  };
  Tried tried;
  Rank rank = Rank::good;
};

struct NextActions {
  std::vector<NextAction> list;
  std::size_t left_out = 0;  ///< legal changes that were not tried: steps of so many microbatches are long to simulate
};

/// At most three changes. Of a run that fits those single ones that make it faster and still fit, fastest first; of one
/// that does not, those that make it fit, fastest first: single ones, else pairs, else more GPUs, or else the nearest
/// to it. `draft` is what was stated, `run` its resolution.
NextActions next_actions(const plan::Draft& draft, const Run& run, const Estimate& estimate,
                         const io::CatalogSource& catalog);

}  // namespace shardplan::advise
