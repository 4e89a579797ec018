#include "shardplan/io/schedule_spec.hpp"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "describe_outputs.hpp"
#include "file_kind.hpp"
#include "json_writer.hpp"
#include "object_reader.hpp"
#include "shardplan/schedule/legality.hpp"

namespace shardplan::io {
namespace {

using schedule::BackwardOrder;
using schedule::Op;
using schedule::OpKind;
using schedule::P2pMode;

const NumberRange not_negative = {std::nullopt, 0, 1e15};
const NumberRange share = {std::nullopt, 0, 1};
constexpr std::int64_t most = max_schedule_ops;

bool is_time(const nlohmann::json& value) {
  if (!value.is_number()) return false;
  const double time = value.get<double>();
  return time >= 0 && time <= not_negative.to;
}

/// One number for all, or one for each virtual stage. `stages` 0: not known, whatever length is right.
std::vector<double> read_times(ObjectReader& reader, std::string_view name, std::size_t stages) {
  std::vector<double> times;
  const nlohmann::json* value = reader.member(name);
  if (value == nullptr) {
    reader.require(name);
    return times;
  }
  if (!value->is_array()) {
    if (is_time(*value)) {
      times.assign(stages, value->get<double>());
    } else {
      reader.problem(name, fmt::format("{} is neither a number from 0 to {:g} nor a list of them", quoted(*value),
                                       not_negative.to));
    }
    return times;
  }
  if (stages != 0 && value->size() != stages) {
    reader.problem(name, fmt::format("{} numbers are not p x v = {}, one per virtual stage", value->size(), stages),
                   "one number alone is taken for all of them");
    return times;
  }
  for (std::size_t i = 0; i < value->size(); ++i) {
    const nlohmann::json& entry = (*value)[i];
    if (is_time(entry)) {
      times.push_back(entry.get<double>());
    } else {
      reader.problems().push_back({std::string(reader.file()),
                                   fmt::format("{}/{}", reader.pointer_of(name), i),
                                   fmt::format("{} is not a number from 0 to {:g}", quoted(entry), not_negative.to),
                                   {},
                                   0,
                                   0});
      return {};
    }
  }
  return times;
}

void read_shape(ObjectReader& reader, schedule::Shape& shape) {
  const std::size_t before = reader.problems().size();
  if (const auto kind = reader.choice<ScheduleKind>("schedule")) shape.kind = *kind;
  reader.require("schedule");
  shape.p = static_cast<int>(reader.integer("p", 1, most).value_or(0));
  reader.require("p");
  shape.m = static_cast<int>(reader.integer("m", 1, most).value_or(0));
  reader.require("m");
  shape.v = static_cast<int>(reader.integer("v", 1, most).value_or(1));
  shape.group = static_cast<int>(reader.integer("group", 1, most).value_or(0));
  const auto backward = reader.choice<BackwardOrder>("bwd");
  if (reader.problems().size() != before) return;

  if (backward) {
    shape.backward = *backward;
    if (shape.kind != ScheduleKind::gpipe && shape.kind != ScheduleKind::bfs) {
      reader.problem("bwd", fmt::format("{} fixes the order of its backward passes: only gpipe and bfs have a choice",
                                        name(shape.kind)));
    }
  }
  if (const auto problem = schedule::check_schedule(shape)) {
    const std::string nearest = problem->nearest_text();
    reader.problem(name(problem->field), fmt::format("{}: {}", problem->value, problem->rule),
                   nearest.empty() ? "" : "nearest: " + nearest);
    return;
  }
  const double ops = 3.0 * shape.p * shape.v * shape.m;
  if (ops > static_cast<double>(most)) {
    reader.problem(
        "m", fmt::format("{}: 3 x p x v x m = {:.0f} ops are more than the {} that are simulated", shape.m, ops, most));
  }
}

/// Numbers of virtual stages, while they are few enough to be looked at; else 0.
std::size_t stages_of(const schedule::Shape& shape) {
  const std::int64_t stages = std::int64_t{shape.p} * shape.v;
  return stages * 3 <= most ? static_cast<std::size_t>(stages) : 0;
}

/// Integers stay integers: beyond 2^53 a double is no exact one any more.
void write_number(JsonWriter& out, std::string_view name, double value) {
  constexpr double exact = 9007199254740992.0;
  const bool whole = std::floor(value) == value && std::abs(value) < exact;
  if (whole && !out.describes()) return out.integer(name, static_cast<std::int64_t>(value));
  out.real(name, value);
}

void write_numbers(JsonWriter& out, std::string_view name, const std::vector<double>& values) {
  out.list(name, values, JsonWriter::Lines::one, [&](double value) { write_number(out, "", value); });
}

void append_op_name(std::string& out, const Op& op) {
  constexpr std::array<std::string_view, 5> letters = {"F", "B", "W", "BW", "F"};
  fmt::format_to(std::back_inserter(out), "{}{}@{}", letters[static_cast<std::size_t>(op.kind)], op.microbatch,
                 op.stage);
  if (op.kind == OpKind::F_BW) {
    fmt::format_to(std::back_inserter(out), "&BW{}@{}", op.backward_microbatch, op.backward_stage);
  }
}

/// What a rank runs: name, start and end of each op.
void write_rank(JsonWriter& out, const schedule::Program& program, const schedule::Timeline& timeline, int rank) {
  std::size_t at = timeline.first_op[static_cast<std::size_t>(rank)];
  std::string op_name;
  out.begin_array("", JsonWriter::Lines::one);
  schedule::for_each_op(program, rank, [&](const Op& op) {
    op_name.clear();
    append_op_name(op_name, op);
    out.begin_array("", JsonWriter::Lines::one, {.in_turn = true});
    out.text("", op_name);
    write_number(out, "", timeline.start[at]);
    write_number(out, "", timeline.end[at]);
    out.end_array();
    ++at;
  });
  out.end_array();
}

void write_schedule(JsonWriter& out, const schedule::PipelineResult& result, const schedule::Program& program,
                    const schedule::Timeline& timeline) {
  out.begin_object();
  out.constant("schema", "shardplan/schedule/v1");
  write_number(out, "makespan", result.makespan);
  write_numbers(out, "busy", result.busy);
  write_numbers(out, "bubble_time", result.idle);
  out.real("bubble_of_total", result.bubble_of_total());
  out.real("bubble_of_ideal", result.bubble_of_ideal());
  write_number(out, "max_span", result.max_span);
  write_numbers(out, "peak_inflight", result.peak_inflight);
  out.begin_array("ops");
  for (int rank = 0; rank < program.shape.p; ++rank) write_rank(out, program, timeline, rank);
  out.end_array();
  out.end_object();
}

}  // namespace

schedule::PipelineSpec ScheduleSpec::view() const noexcept {
  schedule::PipelineSpec spec;
  spec.shape = shape;
  spec.forward = forward;
  spec.backward = backward;
  spec.weight = weight;
  spec.p2p = p2p;
  spec.p2p_mode = p2p_mode;
  spec.alpha = alpha;
  spec.retain = retain;
  return spec;
}

Result<ScheduleSpec> read_schedule_spec(const JsonText& text) {
  Result<ScheduleSpec> result;
  ScheduleSpec& spec = result.value;
  result.problems = wrong_kind(*text.value, FileKind::schedule, text.file);
  if (!result.ok()) return result;
  ObjectReader reader(*text.value, text.file, "", result.problems);
  read_shape(reader, spec.shape);
  const std::size_t stages = stages_of(spec.shape);
  spec.forward = read_times(reader, "F", stages);
  spec.backward = read_times(reader, "B", stages);
  spec.weight = read_times(reader, "W", stages);
  spec.p2p = reader.number("p2p", not_negative).value_or(0);
  spec.p2p_mode = reader.choice<P2pMode>("p2p_mode").value_or(P2pMode::overlap);
  spec.retain = reader.number("retain", share).value_or(1);
  spec.alpha = reader.number("alpha", share).value_or(1);
  reader.finish();
  locate(text, result.problems);
  return result;
}

std::string op_name(const Op& op) {
  std::string name;
  append_op_name(name, op);
  return name;
}

std::string schedule_json(const schedule::PipelineResult& result, const schedule::Program& program,
                          const schedule::Timeline& timeline) {
  JsonWriter out;
  write_schedule(out, result, program, timeline);
  return out.str() + "\n";
}

void describe_schedule(JsonWriter& out) {
  schedule::Shape shape;
  shape.kind = ScheduleKind::naive;
  shape.p = 1;
  shape.m = 1;
  schedule::Program program;
  schedule::write_program(shape, program);
  schedule::Timeline timeline;
  timeline.first_op = {0};
  timeline.start.resize(3);
  timeline.end.resize(3);
  write_schedule(out, {}, program, timeline);
}

}  // namespace shardplan::io
