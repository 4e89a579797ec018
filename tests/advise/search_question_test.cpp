// Several values of a field on the command line, and what a search line makes of them.
#include "shardplan/advise/search_question.hpp"

#include <map>
#include <string>
#include <vector>

#include "shardplan/catalog/catalog.hpp"
#include "shardplan/io/ranges.hpp"
#include "support/catch.hpp"

using namespace shardplan;
using io::parse_integers;

namespace {

using Numbers = std::vector<std::int64_t>;

/// The search input of flags, as if typed.
advise::SearchQuestion input_of(const std::vector<std::pair<std::string, std::string>>& typed) {
  io::RunInput input;
  for (const auto& [name, value] : typed) {
    input.overrides.push_back({io::field_pointer(name).value(), value, "--" + name});
  }
  return advise::search_question(input, catalog::builtin_catalog());
}

const std::vector<std::pair<std::string, std::string>> base = {
    {"model", "llama-3.1-8b"}, {"cluster", "dgx-h100"}, {"gbs", "64"}, {"framework", "megatron"}};

advise::SearchQuestion with(std::vector<std::pair<std::string, std::string>> more) {
  more.insert(more.begin(), base.begin(), base.end());
  return input_of(more);
}

}  // namespace

TEST_CASE("numbers, lists and ranges") {
  const std::map<std::string, Numbers> good = {{"4", {4}},
                                               {"1,2,4,8", {1, 2, 4, 8}},
                                               {"8, 2,2", {2, 8}},
                                               {"3..6", {3, 4, 5, 6}},
                                               {"64..1024*2", {64, 128, 256, 512, 1024}},
                                               {"8..30+8", {8, 16, 24}},
                                               {"1,4..5,16..64*4", {1, 4, 5, 16, 64}}};
  for (const auto& [text, numbers] : good) {
    CAPTURE(text);
    const auto parsed = parse_integers("--tp", text);
    CHECK(parsed.ok());
    CHECK(parsed.value == numbers);
  }
  for (const char* const text : {"", "x", "4,", "5..3", "1..8*1", "1..8+0", "0", "-1", "1..", "..4", "1.5", "2e3",
                                 "0..4*2", "1..99999999", "9999999999999999999"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_integers("--tp", text).ok());
  }
  CHECK(parse_integers("--zero", "0..2", 0).value == Numbers{0, 1, 2});
}

TEST_CASE("flags of variables become ranges, the others stay") {
  const advise::SearchQuestion input = with({{"gpus", "8..64*2"},
                                             {"tp", "2"},
                                             {"pp", "1..4"},
                                             {"fsdp", "null"},
                                             {"schedule", "1f1b,interleaved"},
                                             {"recompute", "none,full:2"},
                                             {"seq", "2048"}});
  for (const Diagnostic& problem : input.problems) UNSCOPED_INFO(problem.message);
  REQUIRE(input.ok());
  CHECK(input.space.num_gpus == std::vector<int>{8, 16, 32, 64});
  CHECK(*input.space.tensor == std::vector<int>{2});
  CHECK(*input.space.pipeline == std::vector<int>{1, 2, 3, 4});
  CHECK(input.space.fsdp->empty());
  CHECK_FALSE(input.space.zero);
  CHECK(input.space.schedule->size() == 2);
  REQUIRE(input.space.recompute->size() == 2);
  CHECK(input.space.recompute->back().n == 2);
  CHECK(input.read.run.training.seq_length == 2048);
  CHECK_FALSE(input.space.micro_batch);
}

TEST_CASE("a range of GPUs is whole nodes, and free is the default range") {
  const advise::SearchQuestion input = with({{"gpus", "6..20"}, {"tp", "free"}, {"attention", "free"}});
  REQUIRE(input.ok());
  CHECK(input.space.num_gpus == std::vector<int>{6, 7, 8, 16});
  CHECK_FALSE(input.space.tensor);
  CHECK(input.space.attention->size() == 4);
}

TEST_CASE("what a search line cannot mean") {
  CHECK_FALSE(with({{"gpus", "9..15"}}).ok());  // no whole nodes
  CHECK_FALSE(with({{"gpus", "free"}}).ok());   // no end
  CHECK_FALSE(with({{"gpus", "8"}, {"tp", "two"}}).ok());
  CHECK_FALSE(with({{"gpus", "8"}, {"recompute", "some"}}).ok());
  CHECK_FALSE(with({{"gpus", "8"}, {"offload", "optimizer=disk"}}).ok());
  CHECK_FALSE(with({{"gpus", "8"}, {"precision", "fp9"}}).ok());
  CHECK_FALSE(with({}).ok());  // how many GPUs
}

TEST_CASE("the run as stated is kept apart, and need not be legal") {
  const advise::SearchQuestion legal = with({{"gpus", "8"}, {"tp", "2"}});
  REQUIRE(legal.ok());
  REQUIRE(legal.stated);
  CHECK(legal.stated->run.parallel.tensor == 2);
  const advise::SearchQuestion illegal = with({{"gpus", "8"}, {"tp", "3"}});
  REQUIRE(illegal.ok());
  CHECK_FALSE(illegal.stated);
  CHECK(*illegal.space.tensor == std::vector<int>{3});
}

TEST_CASE("a framework and a batch that were left open are said") {
  const advise::SearchQuestion input = input_of({{"model", "llama-3.1-8b"}, {"cluster", "dgx-h100"}, {"gpus", "16"}});
  REQUIRE(input.ok());
  CHECK(input.base.run.training.framework == Framework::megatron);
  CHECK(input.notes.size() == 2);
  const advise::SearchQuestion single = input_of({{"model", "llama-3.1-8b"}, {"cluster", "dgx-h100"}, {"gpus", "1"}});
  CHECK(single.base.run.training.framework == Framework::ddp);
}
