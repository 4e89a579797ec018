// What both drawings of a step share.
#pragma once

#include <string>
#include <vector>

#include "shardplan/report/timeline.hpp"

namespace shardplan::report {

/// A stretch of time in which a rank does one thing; a whole backward is two pieces, an F&B pair is one.
struct Piece {
  double start = 0;
  double end = 0;
  char letter = 'F';  ///< F, B, W, or & for a pair
  int chunk = 0;
  std::string label;  ///< "F3", "F3&B5"
};

std::vector<Piece> pieces_of(const schedule::StepView& step, int rank);

/// "bubble 27.3% = (p-1)/(m+p-1) = 3/11 | makespan 33 | in flight 4 3 2 1 | p2p 0"
std::string summary_of(const schedule::StepView& step, const TimelineOptions& options);

/// A time, in the unit that the options ask for.
std::string time_text(double time, const TimelineOptions& options);

/// The largest amount of activations held by any rank: of bytes where the spec has weights, else of chunks.
double most_held(const schedule::StepView& step);

/// Most microbatches of which a rank holds activations, in full stages.
double stages_held(const schedule::StepView& step, std::size_t rank);

}  // namespace shardplan::report
