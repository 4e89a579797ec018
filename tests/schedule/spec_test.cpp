// Spec files: what is read, what is refused, what is printed.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "shardplan/io/schedule_spec.hpp"
#include "support/catch.hpp"

namespace {

using namespace shardplan;
using nlohmann::json;

Result<io::ScheduleSpec> read(const std::string& text) {
  Result<io::JsonText> parsed = io::parse_json(text, "spec.json");
  REQUIRE(parsed.ok());
  return io::read_schedule_spec(parsed.value);
}

json run(const std::string& text) {
  const Result<io::ScheduleSpec> spec = read(text);
  REQUIRE(spec.ok());
  schedule::PipelineWorkspace workspace;
  schedule::PipelineResult result;
  schedule::Timeline timeline;
  schedule::simulate(spec.value.view(), workspace, result, timeline);
  return json::parse(io::schedule_json(result, workspace.program, timeline));
}

TEST_CASE("defaults, and one number for all stages") {
  const auto spec = read(R"({"schedule": "1f1b", "p": 2, "m": 3, "F": 1, "B": [2, 3], "W": 0.5, "group": null})");
  REQUIRE(spec.ok());
  CHECK(spec.value.forward == std::vector<double>{1, 1});
  CHECK(spec.value.backward == std::vector<double>{2, 3});
  CHECK(spec.value.weight == std::vector<double>{0.5, 0.5});
  CHECK(spec.value.shape.v == 1);
  CHECK(spec.value.p2p == 0);
  CHECK(spec.value.p2p_mode == schedule::P2pMode::overlap);
  CHECK(spec.value.retain == 1);
  CHECK(spec.value.alpha == 1);
}

TEST_CASE("the whole answer") {
  const json answer = run(R"({"schedule": "1f1b", "p": 2, "m": 2, "F": 1, "B": 1, "W": 1})");
  CHECK(answer == json::parse(R"({
    "schema": "shardplan/schedule/v1", "makespan": 9, "busy": [6, 6], "bubble_time": [3, 3],
    "bubble_of_total": 0.3333333333333333, "bubble_of_ideal": 0.5, "max_span": 9, "peak_inflight": [2, 1],
    "ops": [[["F0@0", 0, 1], ["F1@0", 1, 2], ["BW0@0", 4, 6], ["BW1@0", 7, 9]],
            [["F0@1", 1, 2], ["BW0@1", 2, 4], ["F1@1", 4, 5], ["BW1@1", 5, 7]]]})"));
}

TEST_CASE("whole numbers have no point, fractions have one") {
  const Result<io::ScheduleSpec> spec =
      read(R"({"schedule": "dualpipe-v", "p": 1, "m": 2, "v": 2, "F": 5, "B": 2, "W": 1, "alpha": 0.5})");
  REQUIRE(spec.ok());
  schedule::PipelineWorkspace workspace;
  schedule::PipelineResult result;
  schedule::Timeline timeline;
  schedule::simulate(spec.value.view(), workspace, result, timeline);
  const std::string text = io::schedule_json(result, workspace.program, timeline);
  CHECK_THAT(text, test::Contains("\"makespan\": 30.5,"));  // 4 x 8 less half of one BW
  CHECK_THAT(text, test::Contains("\"bubble_of_total\": 0.0,"));
  CHECK_THAT(text, test::Contains("[\"F1@1&BW0@0\", 18, 24.5]"));
}

TEST_CASE("waiting for messages alone has no ratio to work") {
  const json answer = run(R"({"schedule": "gpipe", "p": 2, "m": 1, "F": 0, "B": 0, "W": 0, "p2p": 1})");
  CHECK(answer["makespan"] == 2);
  CHECK(answer["bubble_of_total"] == 1.0);
  CHECK(answer["bubble_of_ideal"].is_null());
}

struct Row {
  std::string text;
  std::string pointer;
  std::string message;  ///< a part of it
  std::string way_out = "";
};

TEST_CASE("what is refused, and where") {
  const Row row = GENERATE(values<Row>({
      {R"({"p": 2, "m": 3, "F": 1, "B": 1, "W": 1})", "/schedule", "required"},
      {R"({"schedule": "1f1b", "m": 3, "F": 1, "B": 1, "W": 1})", "/p", "required"},
      {R"({"schedule": "1f1b", "p": 2, "F": 1, "B": 1, "W": 1})", "/m", "required"},
      {R"({"schedule": "1f1b", "p": 2, "m": 3, "B": 1, "W": 1})", "/F", "required"},
      {R"({"schedule": "1f1b", "p": 2, "m": 3, "F": null, "B": 1, "W": 1})", "/F", "required"},
      {R"({"schedule": "1f1", "p": 2, "m": 3, "F": 1, "B": 1, "W": 1})", "/schedule", "1f1b"},
      {R"({"schedule": "1f1b", "p": 0, "m": 3, "F": 1, "B": 1, "W": 1})", "/p", "0"},
      {R"({"schedule": "1f1b", "p": 2.5, "m": 3, "F": 1, "B": 1, "W": 1})", "/p", "2.5"},
      {R"({"schedule": "1f1b", "p": 2, "m": 3, "F": [1, 1, 1], "B": 1, "W": 1})", "/F", "3 numbers"},
      {R"({"schedule": "1f1b", "p": 2, "m": 3, "F": [1, -1], "B": 1, "W": 1})", "/F/1", "-1"},
      {R"({"schedule": "1f1b", "p": 2, "m": 3, "F": "1", "B": 1, "W": 1})", "/F", "neither"},
      {R"({"schedule": "1f1b", "p": 2, "m": 3, "F": 1, "B": 1, "W": 1e300})", "/W", "neither"},
      {R"({"schedule": "1f1b", "p": 2, "m": 3, "F": 1, "B": 1, "W": 1, "p2p": -1})", "/p2p", "-1"},
      {R"({"schedule": "1f1b", "p": 2, "m": 3, "F": 1, "B": 1, "W": 1, "p2p_mode": "both"})", "/p2p_mode", "exposed"},
      {R"({"schedule": "1f1b", "p": 2, "m": 3, "F": 1, "B": 1, "W": 1, "retain": 2})", "/retain", "2"},
      {R"({"schedule": "1f1b", "p": 2, "m": 3, "F": 1, "B": 1, "W": 1, "alpha": -0.5})", "/alpha", "-0.5"},
      {R"({"schedule": "1f1b", "p": 2, "m": 3, "F": 1, "B": 1, "W": 1, "stages": 4})", "/stages", "unknown"},
      {R"({"schedule": "1f1b", "p": 2, "m": 3, "F": 1, "B": 1, "W": 1, "bwd": "lifo"})", "/bwd", "gpipe and bfs"},
      {R"({"schedule": "1f1b", "p": 2, "m": 3, "F": 1, "B": 1, "W": 1, "group": 2})", "/group", "only interleaved"},
      {R"({"schedule": "1f1b", "p": 2, "m": 3, "v": 2, "F": 1, "B": 1, "W": 1})", "/v", "2: 1f1b", "nearest: 1"},
      {R"({"schedule": "dualpipe", "p": 8, "m": 14, "F": 1, "B": 1, "W": 1})", "/m", "14: dualpipe", "nearest: 16"},
      {R"({"schedule": "dualpipe", "p": 3, "m": 14, "F": 1, "B": 1, "W": 1})", "/p", "3: dualpipe", "nearest: 2 or 4"},
      {R"({"schedule": "interleaved", "p": 4, "m": 8, "v": 2, "group": 3, "F": 1, "B": 1, "W": 1})", "/group", "3: "},
      {R"({"schedule": "1f1b", "p": 1000000, "m": 1000000, "F": 1, "B": 1, "W": 1})", "/m", "10000000"},
  }));
  CAPTURE(row.text);
  const auto spec = read(row.text);
  REQUIRE(spec.problems.size() == 1);
  const Diagnostic& problem = spec.problems.front();
  CHECK(problem.pointer == row.pointer);
  CHECK_THAT(problem.message, test::Contains(row.message));
  if (!row.way_out.empty()) CHECK(problem.way_out == row.way_out);
  CHECK(problem.file == "spec.json");
}

TEST_CASE("every problem is reported at once") {
  const auto spec = read(R"({"schedule": "zb-v", "p": 2, "m": 3, "F": [1], "B": "x", "colour": 1, "p2p": -2})");
  CHECK(spec.problems.size() == 6);  // /v, /F, /B, /W, /p2p, /colour
}

}  // namespace
