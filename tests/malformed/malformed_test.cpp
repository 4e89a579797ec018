// Bad input gets one clear answer: exit status 2, nothing on standard output, one error that names the place and the
// value, and quickly. inputs/ holds one fault a file, cases.txt what the error has to say.
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/process.hpp"

namespace {

#if defined(SHARDPLAN_INSTRUMENTED)
constexpr double time_limit_s = 20;  // instrumented
#else
constexpr double time_limit_s = 1;
#endif

const std::string folder = SHARDPLAN_SOURCE_DIR "/tests/malformed/";

struct Case {
  std::string input;
  std::string where;
  std::vector<std::string> words;
};

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(trimmed(part));
  return parts;
}

std::vector<Case> cases() {
  std::vector<Case> result;
  std::ifstream in(folder + "cases.txt");
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line.front() == '#') continue;
    const std::vector<std::string> cells = split(line, '|');
    result.push_back(
        {cells.at(0), cells.at(1), cells.size() > 2 ? split(cells.at(2), ',') : std::vector<std::string>{}});
  }
  return result;
}

/// The lines of `err` that state an error: they start with the file's name.
std::vector<std::string> error_lines(const std::string& err, const std::string& file) {
  std::vector<std::string> lines;
  std::istringstream in(err);
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(file, 0) == 0) lines.push_back(line);
  }
  return lines;
}

/// What every refusal has in common.
void check_refusal(const test::ProcessResult& result) {
  CHECK(result.status == 2);
  CHECK(result.out.empty());
  CHECK(result.seconds < time_limit_s);
  CHECK(result.err.size() < 4000);
  for (const char* const leak :
       {"terminate called", "exception", "nlohmann", "std::", "json.", "Assertion", "Sanitizer"}) {
    CAPTURE(leak);
    CHECK(result.err.find(leak) == std::string::npos);
  }
}

}  // namespace

TEST_CASE("there are at least forty malformed inputs, and every file is a case") {
  const std::vector<Case> all = cases();
  CHECK(all.size() >= 40);
  for (const Case& each : all) {
    CAPTURE(each.input);
    CHECK(std::ifstream(folder + "inputs/" + each.input).good());
  }
}

TEST_CASE("each malformed input is one clear error") {
  for (const Case& each : cases()) {
    const test::ProcessResult result =
        test::run_process({SHARDPLAN_BINARY, "estimate", each.input}, {}, folder + "inputs");
    CAPTURE(each.input, result.out, result.err);
    check_refusal(result);
    const std::vector<std::string> errors = error_lines(result.err, each.input);
    CHECK(errors.size() == 1);
    if (!errors.empty()) CHECK_THAT(errors.front(), test::Contains(each.where));
    for (const std::string& word : each.words) CHECK_THAT(result.err, test::Contains(word));
  }
}

TEST_CASE("the same inputs are refused on standard input") {
  for (const char* const name : {"empty.json", "missing-comma.json", "binary.bin", "heads-not-divided.json"}) {
    const test::ProcessResult result =
        test::run_process({SHARDPLAN_BINARY, "estimate", "-"}, test::read_file(folder + "inputs/" + name));
    CAPTURE(name, result.err);
    check_refusal(result);
    CHECK_THAT(result.err, test::Contains("<stdin>"));
  }
}

TEST_CASE("a file of 100 MB is refused without being read whole") {
  const test::TemporaryFolder temporary;
  const std::size_t size = 100'000'000;
  for (const char filler : {' ', '[', '1'}) {
    const std::string file = temporary.write("large.json", std::string(size, filler));
    const test::ProcessResult result = test::run_process({SHARDPLAN_BINARY, "estimate", file});
    CAPTURE(filler, result.err);
    check_refusal(result);
    CHECK_THAT(result.err, test::Contains("16 MiB"));
  }
}

TEST_CASE("what is not a readable file is refused by name") {
  const test::TemporaryFolder temporary;
  for (const std::string& path : {temporary.path(), temporary.path() + "/absent.json", std::string("/dev/null")}) {
    const test::ProcessResult result = test::run_process({SHARDPLAN_BINARY, "estimate", path});
    CAPTURE(path, result.err);
    check_refusal(result);
    CHECK_THAT(result.err, test::Contains(path));
  }
}

TEST_CASE("every problem of a file is reported in one go") {
  const test::TemporaryFolder temporary;
  const std::string file = temporary.write("many.json", R"({
    "model": "llama-3.1-70b", "cluster": "dgx-h100", "num_gpus": 128,
    "parallel": { "tenosr": 8, "schedule": "2f2b", "zero_stage": 4 },
    "training": { "precision": "bf61", "dropout": 2, "micro_batch_size": 0 } })");
  const test::ProcessResult result = test::run_process({SHARDPLAN_BINARY, "estimate", file});
  CAPTURE(result.err);
  check_refusal(result);
  for (const char* const pointer : {"/parallel/tenosr", "/parallel/schedule", "/parallel/zero_stage",
                                    "/training/precision", "/training/dropout", "/training/micro_batch_size"}) {
    CAPTURE(pointer);
    CHECK_THAT(result.err, test::Contains(pointer));
  }
}
