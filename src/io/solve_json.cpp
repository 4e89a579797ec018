#include "shardplan/io/solve_json.hpp"

#include <algorithm>
#include <array>

#include "describe_outputs.hpp"
#include "json_writer.hpp"
#include "shardplan/io/estimate_json.hpp"
#include "shardplan/version.hpp"

namespace shardplan::io {

namespace {

constexpr std::array<std::string_view, 2> goals = {"largest", "smallest"};

using Lines = JsonWriter::Lines;
using Whole = JsonWriter::Whole;

void write_next(JsonWriter& out, const plan::SolveAnswer& answer) {
  const plan::Solution& solution = answer.solution;
  const Estimate& next = solution.value ? answer.next_estimate : answer.estimate;
  out.object_or_null("next", solution.next.has_value(), Lines::many, [&] {
    out.integer("value", solution.next.value_or(0), Whole::any);
    out.integer("over_bytes", std::max<std::int64_t>(0, -next.headroom_bytes));
    out.text("why", answer.why);
  });
}

/// `estimate`: as estimate_json() has it; empty where no value holds.
void write_answer(JsonWriter& out, const plan::SolveAnswer& answer, std::string_view estimate) {
  out.begin_object();
  out.constant("schema", "shardplan/solve/v1");
  out.text("version", SHARDPLAN_VERSION);
  out.text("field", answer.field);
  out.word("goal", goals[answer.largest ? 0 : 1], goals);
  out.integer_or_null("value", answer.solution.value, Whole::any);
  out.integer("step", answer.step, Whole::from_1);
  write_next(out, answer);
  out.list("otherwise", answer.otherwise, [&](const plan::Otherwise& other) {
    out.begin_object();
    out.text("flags", other.flags);
    out.integer_or_null("value", other.value, Whole::any);
    out.end_object();
  });
  out.like("estimate");
  out.json_or_null("estimate", estimate);
  out.end_object();
}

}  // namespace

std::string solve_json(const plan::SolveAnswer& answer) {
  std::string estimate;
  if (answer.solution.value) {
    EstimateContext context;
    context.run_json = answer.run_json;
    context.warnings = &answer.warnings;
    estimate = estimate_json(answer.run, answer.estimate, context);
    while (!estimate.empty() && estimate.back() == '\n') estimate.pop_back();
  }
  JsonWriter out;
  write_answer(out, answer, estimate);
  return out.str() + "\n";
}

void describe_solve(JsonWriter& out) { write_answer(out, {}, {}); }

}  // namespace shardplan::io
