#include "shardplan/io/sweep_axis.hpp"

#include <string>
#include <vector>

#include "support/catch.hpp"

namespace {

using shardplan::io::parse_sweep_axis;

std::string joined(const std::vector<std::string>& values) {
  std::string text;
  for (const std::string& value : values) text += (text.empty() ? "" : " ") + value;
  return text;
}

}  // namespace

TEST_CASE("sweep axis: fields, lists and ranges") {
  struct Row {
    const char* text;
    const char* pointer;
    const char* label;
    const char* values;
  };
  for (const Row& row :
       std::vector<Row>{{"tp=1,2,4", "/parallel/tensor", "tp", "1 2 4"},
                        {"/parallel/tensor=8", "/parallel/tensor", "tp", "8"},
                        {"parallel.tensor=8", "/parallel/tensor", "tp", "8"},
                        {"zero=0..3", "/parallel/zero_stage", "zero", "0 1 2 3"},
                        {"seq=2048..32768*2", "/training/seq_length", "seq", "2048 4096 8192 16384 32768"},
                        {"seq=1000..5000*3", "/training/seq_length", "seq", "1000 3000"},
                        {"mbs=1,2,4..16+4", "/training/micro_batch_size", "mbs", "1 2 4 8 12 16"},
                        {"training.dropout=0..0.3+0.1", "/training/dropout", "training.dropout", "0 0.1 0.2 0.3"},
                        {"moe-imbalance=1..2*1.5", "/training/moe/imbalance", "moe-imbalance", "1 1.5"},
                        {"recompute=none,full,{\"modules\":[\"mlp\",\"moe\"]}", "/training/recompute", "recompute",
                         "none full {\"modules\":[\"mlp\",\"moe\"]}"},
                        {"parallel.layers_per_stage=[1,2],[2,1]", "/parallel/layers_per_stage",
                         "parallel.layers_per_stage", "[1,2] [2,1]"},
                        {"model=../a.json,b", "/model", "model", "../a.json b"},
                        {"sp=true,false", "/parallel/sequence_parallel", "sp", "true false"},
                        {"no-sp=true,false", "/parallel/sequence_parallel", "no-sp", "false true"},
                        {"offload=optimizer=cpu,{\"parameters\":\"nvme\"},null", "/training/offload",
                         "training.offload", "{\"optimizer\":\"cpu\"} {\"parameters\":\"nvme\"} null"},
                        {"model=a..b.json", "/model", "model", "a..b.json"},
                        {"microbatches=4..8*2", "/microbatches", "microbatches", "4 8"}}) {
    CAPTURE(row.text);
    const auto axis = parse_sweep_axis(row.text);
    REQUIRE(axis.ok());
    CHECK(axis.value.pointer == row.pointer);
    CHECK(axis.value.label == row.label);
    CHECK(joined(axis.value.values) == row.values);
  }
}

TEST_CASE("sweep axis: what is wrong is said") {
  struct Row {
    const char* text;
    const char* words;
  };
  for (const Row& row : std::vector<Row>{{"tp", "not FIELD=VALUES"},
                                         {"=1", "not FIELD=VALUES"},
                                         {"tp=", "not FIELD=VALUES"},
                                         {"tpp=1", "did you mean \"tp\""},
                                         {"tp=1,,2", "missing between two commas"},
                                         {"tp=1,2,1", "1 is there twice"},
                                         {"tp=1..4,2", "2 is there twice"},
                                         {"tp=4..1", "goes down"},
                                         {"tp=0..4*2", "first value above 0"},
                                         {"tp=1..4*1", "K above 1"},
                                         {"tp=1..4+0", "K above 0"},
                                         {"tp=1..", "\"1..\" is not a range"},
                                         {"tp=..8", "\"..8\" is not a range"},
                                         {"tp=1..8*2+1", "\"1..8*2+1\" is not a range"},
                                         {"tp=a..b", "\"a..b\" is not a range"},
                                         {"no-sp=1", "\"1\" is not true or false"},
                                         {"no-sp=0..1", "\"0..1\" is not true or false"},
                                         {"offload=optimizer", "\"optimizer\" is not PART=PLACE"},
                                         {"tp=1..1000000000", "more than 100000 values"}}) {
    CAPTURE(row.text);
    const auto axis = parse_sweep_axis(row.text);
    REQUIRE(axis.problems.size() == 1);
    CHECK_THAT(axis.problems.front().message, test::Contains(row.words));
  }
}
