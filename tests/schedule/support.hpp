// Specs for the schedule tests: random ones, uniform ones, and their ops as text.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include "shardplan/schedule/legality.hpp"
#include "shardplan/schedule/simulate.hpp"
#include "shardplan/schedule/step.hpp"

namespace test {

using namespace shardplan;
using namespace shardplan::schedule;

inline constexpr std::size_t kinds = names_of<ScheduleKind>.size();

/// Owns the times that its spec views.
struct Times {
  std::vector<double> forward, backward, weight, bytes;

  PipelineSpec spec(const Shape& shape) const {
    PipelineSpec result;
    result.shape = shape;
    result.forward = forward;
    result.backward = backward;
    result.weight = weight;
    result.activation_bytes = bytes;
    return result;
  }
};

inline Times uniform_times(const Shape& shape, double f, double b, double w) {
  const auto stages = static_cast<std::size_t>(shape.virtual_stages());
  return {std::vector<double>(stages, f), std::vector<double>(stages, b), std::vector<double>(stages, w), {}};
}

inline Shape shape_of(ScheduleKind kind, int p, int m, int v = 1, int group = 0) {
  return {kind, p, m, v, group, BackwardOrder::fifo};
}

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  int from(int low, int high) { return std::uniform_int_distribution<int>(low, high)(engine_); }
  bool coin() { return from(0, 1) == 1; }

  /// A legal shape of this kind.
  Shape shape(ScheduleKind kind, int max_p = 8, int max_m = 30) {
    for (;;) {
      Shape shape;
      shape.kind = kind;
      shape.p = from(1, max_p);
      shape.m = from(1, max_m);
      const bool two = kind == ScheduleKind::zb_v || kind == ScheduleKind::dualpipe_v;
      const bool free = kind == ScheduleKind::interleaved || kind == ScheduleKind::bfs;
      shape.v = two ? 2 : free ? from(1, 5) : 1;
      if (kind == ScheduleKind::interleaved && coin()) shape.group = from(1, max_m);
      if (kind == ScheduleKind::gpipe || kind == ScheduleKind::bfs) {
        shape.backward = coin() ? BackwardOrder::fifo : BackwardOrder::lifo;
      }
      if (is_legal(shape)) return shape;
    }
  }

  /// Whole numbers from `least` to 60, different for every virtual stage.
  Times times(const Shape& shape, int least = 0) {
    Times result;
    for (int i = 0; i < shape.virtual_stages(); ++i) {
      result.forward.push_back(from(least, 60));
      result.backward.push_back(from(least, 60));
      result.weight.push_back(from(least, 60));
      result.bytes.push_back(from(1, 9));
    }
    return result;
  }

 private:
  std::mt19937 engine_;
};

inline std::string text_of(const Op& op) {
  const auto one = [](const char* kind, int microbatch, int stage) {
    return kind + std::to_string(microbatch) + "@" + std::to_string(stage);
  };
  switch (op.kind) {
    case OpKind::F: return one("F", op.microbatch, op.stage);
    case OpKind::B: return one("B", op.microbatch, op.stage);
    case OpKind::W: return one("W", op.microbatch, op.stage);
    case OpKind::BW: return one("BW", op.microbatch, op.stage);
    case OpKind::F_BW:
      return one("F", op.microbatch, op.stage) + "&" + one("BW", op.backward_microbatch, op.backward_stage);
  }
  return {};
}

/// The rank's ops separated by spaces.
inline std::string order_of(const Shape& shape, int rank) {
  Program program;
  write_program(shape, program);
  std::string text;
  for_each_op(program, rank, [&](const Op& op) { text += (text.empty() ? "" : " ") + text_of(op); });
  return text;
}

}  // namespace test
