#include "shardplan/io/solve_json.hpp"

#include <algorithm>

#include "json_writer.hpp"
#include "shardplan/io/estimate_json.hpp"
#include "shardplan/version.hpp"

namespace shardplan::io {

std::string solve_json(const plan::SolveAnswer& answer) {
  JsonWriter out;
  out.begin_object();
  out.text("schema", "shardplan/solve/v1");
  out.text("version", SHARDPLAN_VERSION);
  out.text("field", answer.field);
  out.text("goal", answer.largest ? "largest" : "smallest");
  const plan::Solution& solution = answer.solution;
  if (solution.value) {
    out.integer("value", *solution.value);
  } else {
    out.null("value");
  }
  out.integer("step", answer.step);
  if (solution.next) {
    const Estimate& next = solution.value ? answer.next_estimate : answer.estimate;
    out.begin_object("next");
    out.integer("value", *solution.next);
    out.integer("over_bytes", std::max<std::int64_t>(0, -next.headroom_bytes));
    out.text("why", answer.why);
    out.end_object();
  } else {
    out.null("next");
  }
  out.begin_array("otherwise");
  for (const plan::Otherwise& other : answer.otherwise) {
    out.begin_object();
    out.text("flags", other.flags);
    if (other.value) {
      out.integer("value", *other.value);
    } else {
      out.null("value");
    }
    out.end_object();
  }
  out.end_array();
  if (solution.value) {
    EstimateContext context;
    context.run_json = answer.run_json;
    context.warnings = &answer.warnings;
    std::string estimate = estimate_json(answer.run, answer.estimate, context);
    while (!estimate.empty() && estimate.back() == '\n') estimate.pop_back();
    out.json("estimate", estimate);
  } else {
    out.null("estimate");
  }
  out.end_object();
  return out.str() + "\n";
}

}  // namespace shardplan::io
