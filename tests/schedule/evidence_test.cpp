// Cases of an independent simulator: the carried ones, and all of them where SHARDPLAN_EVIDENCE names the folder.
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "support.hpp"
#include "support/catch.hpp"

namespace {

using namespace test;
using nlohmann::json;

Shape shape_of_row(const json& row) {
  Shape shape;
  shape.kind = parse_name<ScheduleKind>(row["schedule"].get<std::string>()).value();
  shape.p = row["p"];
  shape.m = row["m"];
  shape.v = row["v"];
  if (row["group"].is_number()) shape.group = row["group"];
  if (row.contains("bwd") && row["bwd"] == "lifo") shape.backward = BackwardOrder::lifo;
  return shape;
}

void check_ops(const json& row, const Program& program, const Timeline& timeline) {
  for (int rank = 0; rank < program.shape.p; ++rank) {
    const json& want = row["ops"][static_cast<std::size_t>(rank)];
    const std::size_t first = timeline.first_op[static_cast<std::size_t>(rank)];
    REQUIRE(want.size() == count_ops(program, rank));
    std::size_t i = 0;
    for_each_op(program, rank, [&](const Op& op) {
      const json got = {text_of(op), timeline.start[first + i], timeline.end[first + i]};
      if (got != want[i]) {
        CAPTURE(rank, i);
        CHECK(got == want[i]);
      }
      ++i;
    });
  }
}

void check_row(const json& row) {
  CAPTURE(row["id"].get<std::string>());
  const Shape shape = shape_of_row(row);
  if (!row["legal"].get<bool>()) {
    CHECK(check_schedule(shape).has_value());
    return;
  }
  REQUIRE(is_legal(shape));
  Times times;
  times.forward = row["F"].get<std::vector<double>>();
  times.backward = row["B"].get<std::vector<double>>();
  times.weight = row["W"].get<std::vector<double>>();
  PipelineSpec spec = times.spec(shape);
  spec.p2p = row["p2p"];
  spec.p2p_mode = parse_name<P2pMode>(row["p2p_mode"].get<std::string>()).value();
  spec.retain = row["retain"];
  spec.alpha = row["alpha"];
  PipelineWorkspace workspace;
  PipelineResult result;
  Timeline timeline;
  simulate(spec, workspace, result, timeline);

  CHECK(result.makespan == row["makespan"].get<double>());
  CHECK(result.max_span == row["max_span"].get<double>());
  CHECK(result.busy == row["busy"].get<std::vector<double>>());
  CHECK(result.idle == row["bubble_time"].get<std::vector<double>>());
  CHECK(result.exposed_p2p == row["exposed_comm"].get<std::vector<double>>());
  CHECK(result.peak_inflight == row["peak_inflight"].get<std::vector<double>>());
  CHECK_THAT(result.bubble_of_total(), test::WithinAbs(row["bubble_of_total"].get<double>(), 1e-12));
  CHECK_THAT(result.bubble_of_ideal(), test::WithinAbs(row["bubble_of_ideal"].get<double>(), 1e-12));
  const auto chunks = static_cast<std::size_t>(chunks_per_rank(shape));
  for (std::size_t i = 0; i < result.grad_ready.size(); ++i) {
    const int stage = stage_of(shape, static_cast<int>(i / chunks), static_cast<int>(i % chunks));
    CHECK(result.grad_ready[i] == row["grad_ready"][i / chunks][std::to_string(stage)].get<double>());
  }
  if (row.contains("grad_sync_megatron_aligned")) {
    const StepView step{spec, result, workspace.program, timeline};
    for (int rank = 0; rank < shape.p; ++rank) {
      const std::vector<double> starts = aligned_grad_sync(step, rank);
      for (std::size_t chunk = 0; chunk < starts.size(); ++chunk) {
        const std::string stage = std::to_string(stage_of(shape, rank, static_cast<int>(chunk)));
        CHECK(starts[chunk] == row["grad_sync_megatron_aligned"][static_cast<std::size_t>(rank)][stage].get<double>());
      }
    }
  }
  if (row.contains("ops")) check_ops(row, workspace.program, timeline);
}

int check_file(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  int rows = 0;
  while (std::getline(in, line)) {
    const json row = json::parse(line);
    if (!row.contains("schedule")) continue;  // the line that names the source
    check_row(row);
    ++rows;
  }
  return rows;
}

TEST_CASE("carried cases of an independent simulator") {
  CHECK(check_file(std::string(SHARDPLAN_SOURCE_DIR) + "/tests/evidence/schedules.jsonl") >= 60);
}

TEST_CASE("all cases of the independent simulator") {
  const char* folder = std::getenv("SHARDPLAN_EVIDENCE");
  if (folder == nullptr) {
    WARN("SHARDPLAN_EVIDENCE is not set: only the carried cases were checked");
    return;
  }
  CHECK(check_file(std::string(folder) + "/evidence/schedules/golden.jsonl") > 200);
}

}  // namespace
