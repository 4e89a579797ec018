// A simulated pipeline step, drawn: as text, and as a picture.
#pragma once

#include <string>
#include <vector>

#include "shardplan/report/style.hpp"
#include "shardplan/report/table.hpp"
#include "shardplan/report/text.hpp"
#include "shardplan/schedule/step.hpp"

namespace shardplan::report {

struct TimelineOptions {
  Style style;
  bool quiet = false;      ///< the first line only
  bool seconds = false;    ///< times are seconds and activations bytes; else plain numbers
  bool from_spec = false;  ///< other schedules are named by the fields of a spec, not by flags
  double from = 0;         ///< the part of the step that is drawn
  double to = 0;           ///< 0: to the end
};

/// The answer in one line, then two lines a rank: what runs (F, B, W with the microbatch, `·` for waiting; lower case
/// for odd chunks) and the activations held, then a legend. Where the whole step does not fit at a readable scale, the
/// steady state between warm-up and drain is left out and counted, or (with from and to) the scale shrinks.
std::vector<Text> timeline_lines(const schedule::StepView& step, const TimelineOptions& options);

/// The same as SVG, a document of its own: one row of blocks a rank, the activations held as a step curve below it.
std::string timeline_svg(const schedule::StepView& step, const TimelineOptions& options);

/// What would shorten the step, for a pipeline whose ranks are alike: the best other schedule, of as many chunks and no
/// more memory where there is one, and how many microbatches make the bubble small. May be empty.
std::vector<Text> next_lines(const schedule::StepView& step, const std::vector<schedule::Alternative>& all,
                             const TimelineOptions& options);

/// All legal schedules side by side, the current one marked. `data`: plain numbers, for programs.
Table alternatives_table(const std::vector<schedule::Alternative>& all, ScheduleKind current,
                         const TimelineOptions& options, bool data = false);

}  // namespace shardplan::report
