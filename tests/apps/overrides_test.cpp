// Flags as overrides of fields.
#include "overrides.hpp"

#include <string>
#include <vector>

#include "command_line.hpp"
#include "support/catch.hpp"

namespace {

using shardplan::cli::Flag;
using shardplan::cli::run_flags;
using shardplan::cli::ValueKind;

/// "pointer=value" of each override.
std::vector<std::string> overrides(std::vector<const char*> words) {
  shardplan::cli::Command command;
  command.flags = {run_flags()};
  const auto line = shardplan::cli::parse_command_line(command, words);
  REQUIRE(line.problems.empty());
  const auto result = shardplan::cli::overrides_of(line.arguments);
  std::vector<std::string> texts;
  for (const auto& one : result.value) texts.push_back(one.pointer + "=" + one.value);
  for (const auto& one : result.problems) texts.push_back(one.message);
  return texts;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("a flag's name without dashes means the field that the flag sets") {
  for (const Flag& flag : run_flags()) {
    CAPTURE(std::string(flag.name));
    if (flag.kind == ValueKind::any_field || flag.name == "microbatches" || flag.name == "no-sp") continue;
    const auto pointer = shardplan::io::field_pointer(flag.name);
    REQUIRE(pointer.has_value());
    CHECK(*pointer == flag.pointer);
  }
}

TEST_CASE("flags become overrides in their order") {
  CHECK(overrides({"--tp", "8", "--no-sp", "--model", "llama-3.1-70b"}) ==
        Texts{"/parallel/tensor=8", "/parallel/sequence_parallel=false", "/model=llama-3.1-70b"});
  CHECK(overrides({"--microbatches", "32"}) == Texts{"/microbatches=32"});
  CHECK(overrides({"--set", "/training/loss=liger", "--set", "training.seq_length=8192", "--set", "tp=4"}) ==
        Texts{"/training/loss=liger", "/training/seq_length=8192", "/parallel/tensor=4"});
  CHECK(overrides({"--set", "/training/offload={\"optimizer\": \"cpu\"}"}) ==
        Texts{"/training/offload={\"optimizer\": \"cpu\"}"});
}

TEST_CASE("lists and pairs") {
  CHECK(overrides({"--lora-targets", "q_proj,v_proj"}) == Texts{R"(/training/peft/targets=["q_proj","v_proj"])"});
  CHECK(overrides({"--lora-targets", "q_proj, v_proj"}) == Texts{R"(/training/peft/targets=["q_proj","v_proj"])"});
  CHECK(overrides({"--lora-targets", "c_attn"}) == Texts{R"(/training/peft/targets=["c_attn"])"});
  CHECK(overrides({"--lora-targets", "a\"b"}) == Texts{R"(/training/peft/targets=["a\"b"])"});
  CHECK(overrides({"--lora-targets", "all-linear"}) == Texts{"/training/peft/targets=all-linear"});
  CHECK(overrides({"--lora-targets", ""}) == Texts{"/training/peft/targets=[]"});
  CHECK(overrides({"--offload", "optimizer=cpu,parameters=nvme"}) ==
        Texts{"/training/offload/optimizer=cpu", "/training/offload/parameters=nvme"});
  CHECK(overrides({"--offload", "null"}) == Texts{"/training/offload=null"});
}

TEST_CASE("what is no pair and no field is a problem") {
  CHECK(overrides({"--offload", "cpu"}) == Texts{"--offload: \"cpu\" is not PART=PLACE"});
  CHECK(overrides({"--set", "loss"}) == Texts{"--set: \"loss\" is not FIELD=VALUE"});
  CHECK(overrides({"--set", "=3"}) == Texts{"--set: \"=3\" is not FIELD=VALUE"});
  CHECK_THAT(overrides({"--set", "xyzzy=3"}).at(0), test::StartsWith("--set: unknown field \"xyzzy\""));
}

TEST_CASE("two flags for one field contradict, and an object does not drop what a flag set") {
  const auto last = [](std::vector<const char*> words) { return overrides(std::move(words)).back(); };
  CHECK(last({"--gbs", "64", "--microbatches", "8"}) ==
        "--gbs and --microbatches both set /training/global_batch_size; only one can count");
  CHECK(last({"--sp", "--no-sp"}) == "--sp and --no-sp both set /parallel/sequence_parallel; only one can count");
  CHECK(last({"--tp", "4", "--set", "parallel.tensor=2"}) ==
        "--tp and --set /parallel/tensor both set /parallel/tensor; only one can count");
  CHECK(last({"--tp", "4", "--set", R"(parallel={"pipeline":2})"}) ==
        "--set /parallel replaces /parallel, and with it what --tp set before");
  CHECK(last({"--set", R"(parallel={"pipeline":2})", "--tp", "4"}) == "/parallel/tensor=4");
}
