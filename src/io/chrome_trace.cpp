#include "shardplan/io/chrome_trace.hpp"

#include <fmt/format.h>

#include "json_writer.hpp"
#include "shardplan/io/schedule_spec.hpp"

namespace shardplan::io {
namespace {

using schedule::Op;
using schedule::OpKind;

void name_track(JsonWriter& json, std::string_view what, int rank, std::string_view value) {
  json.begin_object("", JsonWriter::Lines::one);
  json.text("name", what);
  json.text("ph", "M");
  json.integer("pid", 0);
  json.integer("tid", rank);
  json.begin_object("args");
  json.text("name", value);
  json.end_object();
  json.end_object();
}

std::string_view category(OpKind kind) {
  switch (kind) {
    case OpKind::F: return "forward";
    case OpKind::B: return "input gradient";
    case OpKind::W: return "weight gradient";
    case OpKind::BW: return "backward";
    case OpKind::F_BW: return "forward and backward";
  }
  return {};
}

}  // namespace

std::string chrome_trace(const schedule::StepView& step, double microseconds, std::string_view title) {
  JsonWriter json;
  json.begin_object();
  json.begin_array("traceEvents");
  name_track(json, "process_name", 0, title);
  for (int rank = 0; rank < step.ranks(); ++rank) name_track(json, "thread_name", rank, fmt::format("stage {}", rank));
  for (int rank = 0; rank < step.ranks(); ++rank) {
    std::size_t at = step.first_op(rank);
    schedule::for_each_op(step.program, rank, [&](const Op& op) {
      const double start = step.timeline.start[at];
      const double end = step.timeline.end[at++];
      json.begin_object("", JsonWriter::Lines::one);
      json.text("name", op_name(op));
      json.text("cat", category(op.kind));
      json.text("ph", "X");
      json.integer("pid", 0);
      json.integer("tid", rank);
      json.real("ts", start * microseconds);
      json.real("dur", (end - start) * microseconds);
      json.end_object();
    });
    const bool bytes = !step.spec.activation_bytes.empty();
    const std::string counter = fmt::format("activations, stage {}", rank);
    for (const schedule::HeldPoint& point : schedule::held_over_time(step, rank)) {
      json.begin_object("", JsonWriter::Lines::one);
      json.text("name", counter);
      json.text("ph", "C");
      json.integer("pid", 0);
      json.real("ts", point.time * microseconds);
      json.begin_object("args");
      json.real(bytes ? "bytes" : "chunks", point.bytes);
      json.end_object();
      json.end_object();
    }
  }
  json.end_array();
  json.text("displayTimeUnit", "ms");
  json.begin_object("otherData");
  json.text("schedule", name(step.spec.shape.kind));
  json.real("makespan", step.result.makespan);
  json.real("bubble_of_total", step.result.bubble_of_total());
  json.begin_array("busy", JsonWriter::Lines::one);
  for (const double busy : step.result.busy) json.real("", busy);
  json.end_array();
  json.begin_array("peak_inflight", JsonWriter::Lines::one);
  for (const double peak : step.result.peak_inflight) json.real("", peak);
  json.end_array();
  json.end_object();
  json.end_object();
  return json.str() + "\n";
}

}  // namespace shardplan::io
