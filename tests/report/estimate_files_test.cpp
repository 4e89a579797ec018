#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "fixtures.hpp"
#include "shardplan/report/estimate_text.hpp"
#include "support/catch.hpp"

using namespace shardplan::report;

namespace {

/// RFC 4180.
std::vector<std::vector<std::string>> parse_csv(const std::string& text) {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> row = {""};
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c != '"') {
        row.back() += c;
      } else if (i + 1 < text.size() && text[i + 1] == '"') {
        row.back() += text[++i];
      } else {
        quoted = false;
      }
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',') {
      row.emplace_back();
    } else if (c == '\n') {
      rows.push_back(row);
      row = {""};
    } else {
      row.back() += c;
    }
  }
  return rows;
}

}  // namespace

TEST_CASE("CSV has a row a stage, exact bytes, and the totals in each row") {
  test::Example example = test::pipeline_of_four();
  example.run.model.name = "a,b\"c";
  const auto rows = parse_csv(estimate_csv(example.run, example.estimate));
  REQUIRE(rows.size() == 5);
  std::map<std::string, std::string> last;
  for (std::size_t i = 0; i < rows[0].size(); ++i) {
    CHECK(last.count(rows[0][i]) == 0);
    for (const auto& row : rows) REQUIRE(row.size() == rows[0].size());
    last[rows[0][i]] = rows[4][i];
  }
  CHECK(last["stage"] == "3");
  CHECK(last["parameters_bytes"] == "4543086592");
  CHECK(last["activations_bytes"] == std::to_string(20ll * 150081536));
  CHECK(last["total_bytes"] == std::to_string(example.estimate.stages[3].peak().total()));
  CHECK(last["memory.peak_bytes"] == std::to_string(example.estimate.peak_bytes));
  CHECK(last["memory.fits"] == "true");
  CHECK(last["run.model"] == "a,b\"c");
  CHECK(std::stod(last["time.step_s"]) == example.estimate.time.step_s);
  CHECK(last["throughput.price_per_1e12_tokens"].empty());
}

TEST_CASE("markdown tables have as many cells in each row as in their head") {
  for (const test::Example& example : {test::pipeline_of_four(), test::one_gpu(), test::sixteen_stages(false)}) {
    EstimateTextOptions options;
    options.detail = true;
    options.actions = {{"--tp 4", "faster | smaller", "a|b"}};
    const std::string text = estimate_markdown(example.run, example.estimate, options);
    CHECK_THAT(text, test::StartsWith("**FITS** "));
    std::size_t expected = 0;
    std::size_t start = 0;
    while (start < text.size()) {
      const std::size_t end = text.find('\n', start);
      const std::string line = text.substr(start, end - start);
      start = end + 1;
      if (line.empty() || line[0] != '|') {
        expected = 0;
        continue;
      }
      std::size_t bars = 0;
      for (std::size_t i = 0; i < line.size(); ++i) bars += line[i] == '|' && (i == 0 || line[i - 1] != '\\') ? 1 : 0;
      if (expected == 0) expected = bars;
      CAPTURE(line);
      CHECK(bars == expected);
    }
  }
}

TEST_CASE("docs/output.md names every CSV column") {
  std::ifstream in(std::string(SHARDPLAN_SOURCE_DIR) + "/docs/output.md");
  REQUIRE(in.good());
  std::ostringstream text;
  text << in.rdbuf();
  const std::string docs = text.str().substr(text.str().find("## CSV"));
  const test::Example example = test::one_gpu();
  const auto rows = parse_csv(estimate_csv(example.run, example.estimate));
  for (const std::string& column : rows.front()) {
    if (column.rfind("throughput.", 0) == 0) continue;  // "as in JSON"
    const std::string leaf = column.substr(column.rfind('.') + 1);
    CAPTURE(column);
    const bool whole = docs.find("`" + column + "`") != std::string::npos;
    CHECK((whole || docs.find("`" + leaf + "`") != std::string::npos ||
           docs.find("`." + leaf + "`") != std::string::npos));
  }
}
