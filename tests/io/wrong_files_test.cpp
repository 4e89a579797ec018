// Files given in each other's place, numbers too large, words meant otherwise, rates that a model states.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "shardplan/catalog/catalog.hpp"
#include "shardplan/io/model_config.hpp"
#include "shardplan/io/run_file.hpp"
#include "shardplan/io/schedule_spec.hpp"
#include "support/catch.hpp"
#include "support/runs.hpp"

using namespace shardplan;

namespace {

std::string only_line(const Diagnostics& problems) {
  CAPTURE(test::problem_lines(problems));
  REQUIRE(problems.size() == 1);
  return problems.front().file + ": " + problems.front().message;
}

std::string run_problem(const char* text) {
  return only_line(io::read_run(io::run_input_from_json(text), catalog::builtin_catalog()).problems);
}

/// What a run says of a model with these fields more.
std::string dropout_warning(const char* fields, const char* training = "{}") {
  const std::string run = std::string(R"({"model": {"model_type": "gpt2", "vocab_size": 1000, "n_positions": 1024,
      "n_embd": 256, "n_layer": 2, "n_head": 4)") +
                          fields + R"(}, "training": )" + training + "}";
  const io::ReadRun read = test::read_snippet(run);
  CAPTURE(test::problem_lines(read.problems));
  REQUIRE(read.ok());
  for (const Warning& warning : read.warnings) {
    if (warning.code == "model_dropout_unused") return warning.message;
  }
  return {};
}

}  // namespace

TEST_CASE("a file in the place of another says in one line what it looks like and what to type") {
  CHECK(run_problem(R"({"model_type": "llama", "hidden_size": 64, "vocab_size": 10})") ==
        "run.json: looks like a model's config.json, not like a run file: shardplan estimate --model run.json "
        "--cluster NAME --gpus N");
  CHECK(run_problem(R"({"gpu": "h100", "gpus_per_node": 8})") ==
        "run.json: looks like a cluster file, not like a run file: shardplan estimate --model NAME --cluster run.json "
        "--gpus N");
  CHECK(run_problem(R"({"schedule": "1f1b", "p": 4, "m": 8, "F": 1, "B": 1, "W": 1})") ==
        "run.json: looks like a schedule with given times, not like a run file: shardplan schedule --spec run.json");
  CHECK(run_problem(R"({"schema": "shardplan/estimate/v1", "run": {}, "model": {}})") ==
        "run.json: looks like the output of estimate, not like a run file: its member \"run\" is a run file");
  const auto spec = io::parse_json(R"({"model": "gpt2", "num_gpus": 8})", "a.json");
  CHECK(only_line(io::read_schedule_spec(spec.value).problems) ==
        "a.json: looks like a run file, not like a schedule with given times: shardplan schedule a.json");
  CHECK(test::read_snippet("{}").ok());
}

TEST_CASE("a number that a double rounds is said as written") {
  io::RunInput input = io::run_input_from_json(test::run_text("{}"));
  input.overrides = {{"/training/seq_length", "123456789012345678901", "--seq"}};
  CHECK_THAT(only_line(io::read_run(input, catalog::builtin_catalog()).problems),
             test::Contains("123456789012345678901 is not a whole number"));
  const io::RunInput file =
      io::run_input_from_json(R"({"model": "gpt2", "cluster": "dgx-h100", "num_gpus": 123456789012345678901})");
  CHECK_THAT(only_line(io::read_run(file, catalog::builtin_catalog()).problems),
             test::Contains("123456789012345678901 is not a whole number"));
}

TEST_CASE("what was meant is what this program calls it") {
  CHECK_THAT(only_line(test::read_snippet(R"({"training": {"precision": "fp4"}})").problems),
             test::Contains("did you mean \"nvfp4\"?"));
  CHECK_THAT(only_line(test::read_snippet(R"({"training": {"loss": "chunked:0"}})").problems),
             test::Contains("N of chunked:N is a whole number from 1"));
  CHECK_THAT(
      only_line(test::read_snippet(R"({"model": "mixtral-8x7b", "num_gpus": 4, "parallel": {"expert": 3}})").problems),
      test::Contains("(1, 2, 4 do, and fit 4 GPUs)"));
}

TEST_CASE("an unknown model_type proposes no other family") {
  struct Row {
    const char* type;
    const char* meant;  ///< "": nobody knows
  };
  const Row rows[] = {{"qwen4", "qwen"}, {"lama", "llama"}, {"llamma", "llama"},
                      {"jemma", ""},     {"upt", ""},       {"opd", ""}};
  for (const Row& row : rows) {
    const nlohmann::json config = {{"model_type", row.type}, {"hidden_size", 64}};
    const Diagnostics problems = io::read_model(config, "config.json", "").problems;
    CAPTURE(row.type, test::problem_lines(problems));
    REQUIRE_FALSE(problems.empty());
    const bool proposes = problems.front().way_out.find("did you mean") != std::string::npos;
    CHECK(proposes == (*row.meant != '\0'));
    if (*row.meant != '\0')
      CHECK_THAT(problems.front().way_out, test::Contains(std::string("did you mean \"") + row.meant));
  }
}

TEST_CASE("the dropout that a model's config states and a run does not take is said") {
  CHECK(dropout_warning("").empty());
  CHECK(dropout_warning(R"(, "attn_pdrop": 0.0, "resid_pdrop": 0)").empty());
  CHECK(dropout_warning(R"(, "attn_pdrop": 0.1, "embd_pdrop": 0.1, "resid_pdrop": 0.2)") ==
        "the model's attn_pdrop 0.1, resid_pdrop 0.2 and embd_pdrop 0.1 are not used: a run drops nothing unless it "
        "says so; --set training.dropout=0.2");
  CHECK(dropout_warning(R"(, "attn_pdrop": 0.1)") ==
        "the model's attn_pdrop 0.1 is not used: a run drops nothing unless it says so; --set "
        "training.attention_dropout=0.1");
  CHECK(dropout_warning(R"(, "resid_pdrop": 0.1)", R"({"dropout": 0.1})").empty());
  CHECK(dropout_warning(R"(, "resid_pdrop": 0.1)", R"({"dropout": 0})").empty());
}
