// Drawings of a step, and the trace: against pictures written by hand and against the simulation's own totals.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "shardplan/io/chrome_trace.hpp"
#include "shardplan/report/timeline.hpp"
#include "support.hpp"
#include "support/catch.hpp"

namespace {

using namespace test;
using nlohmann::json;
using report::TimelineOptions;

struct Drawn {
  Times times;
  PipelineSpec spec;
  PipelineWorkspace workspace;
  PipelineResult result;
  Timeline timeline;

  explicit Drawn(const Shape& shape) : times(uniform_times(shape, 1, 1, 1)), spec(times.spec(shape)) { run(); }
  Drawn(const Shape& shape, Times given) : times(std::move(given)), spec(times.spec(shape)) { run(); }
  void run() { simulate(spec, workspace, result, timeline); }
  StepView view() const { return {spec, result, workspace.program, timeline}; }
};

std::vector<std::string> lines_of(const std::vector<report::Text>& texts) {
  std::vector<std::string> lines;
  for (const report::Text& text : texts) lines.push_back(text.render({}));
  return lines;
}

TEST_CASE("1f1b, drawn") {
  const Drawn drawn(shape_of(ScheduleKind::one_f_one_b, 4, 8));
  TimelineOptions options;
  std::vector<report::Text> texts = report::timeline_lines(drawn.view(), options);
  for (auto& line : report::next_lines(drawn.view(), legal_alternatives(4, 8, 1, {}), options)) texts.push_back(line);
  const std::vector<std::string> want = {
      "bubble 27.3% of makespan = (p-1)/(m+p-1) = 3/11 | makespan 33 | in flight 4 3 2 1 | p2p 0",
      "stage 0 |F0F1F2F3············B0W0F4B1W1F5B2W2F6B3W3F7B4W4··B5W5··B6W6··B7W7| in flight 4",
      "        |▂▂▄▄▆▆██████████████████████████████████████████▆▆▆▆▆▆▄▄▄▄▄▄▂▂▂▂▂▂|",
      "stage 1 |··F0F1F2········B0W0F3B1W1F4B2W2F5B3W3F6B4W4F7B5W5··B6W6··B7W7····| in flight 3",
      "        |  ▂▂▄▄▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▄▄▄▄▄▄▂▂▂▂▂▂    |",
      "stage 2 |····F0F1····B0W0F2B1W1F3B2W2F4B3W3F5B4W4F6B5W5F7B6W6··B7W7········| in flight 2",
      "        |    ▂▂▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▂▂▂▂▂▂        |",
      "stage 3 |······F0B0W0F1B1W1F2B2W2F3B3W3F4B4W4F5B5W5F6B6W6F7B7W7············| in flight 1",
      "        |      ▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂            |",
      "         F forward  B input gradient  W weight gradient  · bubble   bars: activations held (█ = 4)",
      "Next  --schedule zb-h1   bubble 11.1%, makespan 27, in flight 4 4 4 4: W fills the drain",
      "      m >= 57 for a bubble <= 5% (19(p-1)); the common \"m >= 20p\" asks for 80",
  };
  CHECK(lines_of(texts) == want);
}

TEST_CASE("zb-h1, drawn in ASCII") {
  const Drawn drawn(shape_of(ScheduleKind::zb_h1, 4, 8));
  TimelineOptions options;
  options.style.ascii = true;
  std::string text = report::render(report::timeline_lines(drawn.view(), options), options.style);
  CHECK_THAT(text, test::StartsWith("bubble 11.1% of makespan | makespan 27 | in flight 4 4 4 4 | p2p 0\n"
                                    "stage 0 |F0F1F2F3......B0W0F4B1W1F5B2W2F6B3W3F7B4W4B5W5B6W6B7W7| in flight 4\n"
                                    "        |112233444444444444444444444444444444444444333322221111|\n"
                                    "stage 1 |..F0F1F2....B0F3B1W0F4B2W1F5B3W2F6B4W3F7B5W4B6W5B7W6W7| in flight 4\n"));
  CHECK(std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80U; }));
}

TEST_CASE("pairs and the second chunk") {
  const Drawn drawn(shape_of(ScheduleKind::dualpipe, 2, 4));
  const auto lines = lines_of(report::timeline_lines(drawn.view(), {}));
  CHECK_THAT(lines[1], test::Contains("|F0f2F1b2w2f3&b0-b3w3B1W1|"));
}

TEST_CASE("every row is as wide as the others and fits the page, whatever the step") {
  Random random(7);
  for (int round = 0; round < 300; ++round) {
    const auto kind = static_cast<ScheduleKind>(random.from(0, static_cast<int>(kinds) - 1));
    const Shape shape = random.shape(kind, 20, 80);
    Drawn drawn(shape, random.coin() ? random.times(shape) : uniform_times(shape, 1, 1, random.from(0, 2)));
    drawn.spec.p2p = random.from(0, 20);
    drawn.run();
    TimelineOptions options;
    options.style.width = random.coin() ? 100 : 60;
    options.style.ascii = random.coin();
    if (random.coin()) {
      options.from = drawn.result.makespan * 0.3;
      options.to = drawn.result.makespan * 0.5;
    }
    CAPTURE(name(kind), shape.p, shape.m, shape.v, options.style.width, options.from);
    const auto lines = report::timeline_lines(drawn.view(), options);
    std::size_t width = 0;
    for (const report::Text& line : lines) {
      REQUIRE(line.width() <= static_cast<std::size_t>(options.style.width));
      const std::string text = line.plain();
      if (text.find('|') == std::string::npos || text.rfind("stage", 0) != 0) continue;
      const std::size_t bar = report::display_width(text.substr(0, text.rfind('|')));
      if (width == 0) width = bar;
      REQUIRE(bar == width);
    }
  }
}

TEST_CASE("the steady state of a long step is left out and counted") {
  const Drawn drawn(shape_of(ScheduleKind::one_f_one_b, 4, 256));
  const auto lines = lines_of(report::timeline_lines(drawn.view(), {}));
  CHECK_THAT(lines[1], test::Contains("F0F1F2F3············B0W0F4"));
  CHECK_THAT(lines[1], test::Contains(" x F B ... "));
  CHECK_THAT(lines[1], test::Contains("B-W-··B-W-| in flight 4"));
}

TEST_CASE("only the answer") {
  const Drawn drawn(shape_of(ScheduleKind::gpipe, 2, 3));
  TimelineOptions options;
  options.quiet = true;
  const auto lines = lines_of(report::timeline_lines(drawn.view(), options));
  CHECK(lines == std::vector<std::string>{
                     "bubble 25.0% of makespan = (p-1)/(m+p-1) = 1/4 | makespan 12 | in flight 3 3 | p2p 0"});
}

TEST_CASE("schedules side by side") {
  const auto all = legal_alternatives(4, 8, 1, {});
  REQUIRE(all.size() == kinds);
  for (const Alternative& row : all) {
    CAPTURE(name(row.shape.kind));
    // A rank does the same work under each: 24 units.
    CHECK_THAT(row.bubble, test::WithinAbs(1 - 24 / row.makespan, 1e-12));
    CHECK(row.parameter_copies == (row.shape.kind == ScheduleKind::dualpipe ? 2 : 1));
  }
  CHECK(legal_alternatives(3, 4, 1, {}).size() == kinds - 3);  // no interleaved, dualpipe, dualpipe-v
  const auto own = legal_alternatives(4, 8, 1, {}, ScheduleKind::bfs);
  const auto bfs =
      std::find_if(own.begin(), own.end(), [](const auto& row) { return row.shape.kind == ScheduleKind::bfs; });
  REQUIRE(bfs != own.end());
  CHECK(bfs->shape.v == 1);  // the schedule that is drawn stands as it is
  const std::string text = report::alternatives_table(all, ScheduleKind::zb_h1, {}).text({});
  CHECK_THAT(text, test::Contains("zb-h1 *        1   11.1%        27                 4                   1"));
}

TEST_CASE("activations over time end with nothing, and peak where the simulation says") {
  Random random(13);
  for (int round = 0; round < 200; ++round) {
    const auto kind = static_cast<ScheduleKind>(random.from(0, static_cast<int>(kinds) - 1));
    const Shape shape = random.shape(kind);
    Drawn drawn(shape, random.times(shape, 1));
    drawn.spec.retain = random.from(0, 2) / 2.0;
    drawn.run();
    CAPTURE(name(kind), shape.p, shape.m, shape.v);
    for (int rank = 0; rank < shape.p; ++rank) {
      const auto points = held_over_time(drawn.view(), rank);
      double most = 0;
      double most_bytes = 0;
      double before = -1;
      for (const HeldPoint& point : points) {
        REQUIRE(point.time > before);
        before = point.time;
        most = std::max(most, point.count);
        most_bytes = std::max(most_bytes, point.bytes);
      }
      // An op that starts as another ends finds its activations freed: never more than the simulation's peak.
      REQUIRE(most == drawn.result.peak_inflight[static_cast<std::size_t>(rank)]);
      REQUIRE(most_bytes == drawn.result.peak_bytes[static_cast<std::size_t>(rank)]);
      REQUIRE(points.back().count == 0);
    }
  }
}

TEST_CASE("the trace is JSON that adds up to the simulation") {
  Random random(17);
  for (int round = 0; round < 30; ++round) {
    const auto kind = static_cast<ScheduleKind>(random.from(0, static_cast<int>(kinds) - 1));
    const Shape shape = random.shape(kind);
    const Drawn drawn(shape, random.times(shape, 1));
    CAPTURE(name(kind), shape.p, shape.m, shape.v);
    const json trace = json::parse(io::chrome_trace(drawn.view(), 1000, "title"));
    std::map<int, double> busy;
    std::map<std::string, double> held;
    std::map<std::string, double> most;
    std::map<int, std::string> tracks;
    double end = 0;
    std::size_t ops = 0;
    for (const json& event : trace["traceEvents"]) {
      const std::string phase = event["ph"];
      if (phase == "M" && event["name"] == "thread_name") tracks[event["tid"]] = event["args"]["name"];
      if (phase == "X") {
        ++ops;
        busy[event["tid"]] += event["dur"].get<double>();
        end = std::max(end, event["ts"].get<double>() + event["dur"].get<double>());
      }
      if (phase == "C") {
        double& now = held[event["name"]];
        now = event["args"]["bytes"];
        most[event["name"]] = std::max(most[event["name"]], now);
      }
    }
    REQUIRE(end == 1000 * drawn.result.makespan);
    REQUIRE(ops == drawn.timeline.start.size());
    REQUIRE(trace["otherData"]["makespan"] == drawn.result.makespan);
    for (int rank = 0; rank < shape.p; ++rank) {
      const auto i = static_cast<std::size_t>(rank);
      const std::string stage = "stage " + std::to_string(rank);
      REQUIRE(tracks[rank] == stage);
      REQUIRE(busy[rank] == 1000 * drawn.result.busy[i]);
      REQUIRE(most["activations, " + stage] == drawn.result.peak_bytes[i]);
      REQUIRE(held["activations, " + stage] == 0);
    }
  }
}

TEST_CASE("the picture has a block for every piece and is well formed") {
  const Drawn drawn(shape_of(ScheduleKind::dualpipe, 4, 8));
  const std::string svg = report::timeline_svg(drawn.view(), {});
  CHECK_THAT(svg, test::StartsWith("<svg "));
  const auto count = [&](const std::string& what) {
    std::size_t found = 0;
    for (std::size_t at = svg.find(what); at != std::string::npos; at = svg.find(what, at + 1)) ++found;
    return found;
  };
  std::size_t pieces = 0;
  for (int rank = 0; rank < 4; ++rank) {
    for_each_op(drawn.workspace.program, rank, [&](const Op& op) { pieces += op.kind == OpKind::BW ? 2 : 1; });
  }
  CHECK(count("<title>") == pieces);
  CHECK(count("<text") == count("</text>"));
  CHECK(count("<path") == 4);
  CHECK(count("& ") == 0);
  CHECK(svg.substr(svg.size() - 7) == "</svg>\n");
}

}  // namespace
