#include "timeline_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "shardplan/report/number.hpp"

namespace shardplan::report {
namespace {

using schedule::Op;
using schedule::OpKind;

bool all_equal(std::span<const double> values) {
  return std::all_of(values.begin(), values.end(), [&](double value) { return value == values.front(); });
}

/// The textbook formula of the bubble, where it holds for this very step.
std::optional<std::string> bubble_formula(const schedule::PipelineSpec& spec) {
  const schedule::Shape& shape = spec.shape;
  const bool equal = all_equal(spec.forward) && all_equal(spec.backward) && all_equal(spec.weight);
  if (spec.p2p != 0 || !equal || shape.p == 1) return std::nullopt;
  const int p = shape.p;
  const schedule::ScheduleFacts& facts = schedule::facts_of(shape.kind);
  if (facts.bubble.passes > 0 || (!facts.bubble.always && shape.m < p)) return std::nullopt;
  const int whole = facts.one_at_a_time ? p : shape.v * shape.m + p - 1;
  return fmt::format("{} = {}/{}", schedule::bubble_text(shape.kind), p - 1, whole);
}

std::string label(char letter, int microbatch) { return letter + std::to_string(microbatch); }

}  // namespace

std::vector<Piece> pieces_of(const schedule::StepView& step, int rank) {
  std::vector<Piece> pieces;
  std::size_t at = step.first_op(rank);
  schedule::for_each_op(step.program, rank, [&](const Op& op) {
    const double start = step.timeline.start[at];
    const double end = step.timeline.end[at++];
    switch (op.kind) {
      case OpKind::F: pieces.push_back({start, end, 'F', op.chunk, label('F', op.microbatch)}); break;
      case OpKind::B: pieces.push_back({start, end, 'B', op.chunk, label('B', op.microbatch)}); break;
      case OpKind::W: pieces.push_back({start, end, 'W', op.chunk, label('W', op.microbatch)}); break;
      case OpKind::BW: {
        const double turn = start + step.spec.backward[static_cast<std::size_t>(op.stage)];
        pieces.push_back({start, turn, 'B', op.chunk, label('B', op.microbatch)});
        pieces.push_back({turn, end, 'W', op.chunk, label('W', op.microbatch)});
        break;
      }
      case OpKind::F_BW:
        pieces.push_back({start, end, '&', op.chunk, fmt::format("F{}&B{}", op.microbatch, op.backward_microbatch)});
        break;
    }
  });
  return pieces;
}

std::string time_text(double time, const TimelineOptions& options) {
  return options.seconds ? seconds_text(time) : fmt::format("{:.10g}", time);
}

double most_held(const schedule::StepView& step) {
  return *std::max_element(step.result.peak_bytes.begin(), step.result.peak_bytes.end());
}

double stages_held(const schedule::StepView& step, std::size_t rank) {
  return step.result.peak_inflight[rank] / step.spec.shape.v;
}

std::string summary_of(const schedule::StepView& step, const TimelineOptions& options) {
  const schedule::PipelineResult& result = step.result;
  const bool sends = std::any_of(result.exposed_p2p.begin(), result.exposed_p2p.end(), [](double s) { return s > 0; });
  std::string line =
      fmt::format("bubble {} of makespan{}", percent_text(result.bubble_of_total()), sends ? " with sends" : "");
  if (const auto formula = bubble_formula(step.spec)) line += " = " + *formula;
  line += " | makespan " + time_text(result.makespan, options);
  line += " | in flight";
  constexpr std::size_t most_listed = 16;
  if (result.peak_inflight.size() <= most_listed) {
    for (std::size_t rank = 0; rank < result.peak_inflight.size(); ++rank) {
      line += fmt::format(" {:.4g}", stages_held(step, rank));
    }
  } else {
    line += fmt::format(" {:.4g}, last stage {:.4g}", stages_held(step, 0),
                        stages_held(step, result.peak_inflight.size() - 1));
  }
  if (chunks_per_rank(step.spec.shape) > 1) line += " full stages";
  line += " | p2p " + time_text(step.spec.p2p, options);
  if (step.spec.p2p > 0) line += fmt::format(" {}", name(step.spec.p2p_mode));
  return line;
}

}  // namespace shardplan::report
