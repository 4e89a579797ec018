// docs/interview.md answers every section and question, each with a command; the commands print the numbers that a
// hand derives.
#include <algorithm>
#include <map>
#include <sstream>

#include "shardplan/explain/topics.hpp"
#include "support/catch.hpp"
#include "support/process.hpp"

using namespace shardplan;

namespace {

const std::string source = SHARDPLAN_SOURCE_DIR;
const std::string a_json = "configs/runs/llama-3.1-70b-128xh100.json";

/// A section or question, the command that answers it, and what its output must hold.
struct Row {
  std::string where;
  std::string command;
  std::vector<std::string> prints;
};

const std::vector<Row> rows = {
    {"1.1",
     "explain model-states --let P=7e9",
     {"112 GB", "weights 14 + gradients 14 + master 28 + m 28 + v 28", "107.8 GB"}},
    {"1.2", "explain activations " + a_json, {"143.13 MiB a layer", "11.18 GiB"}},
    {"2.1", "explain ddp", {"16 B", "2 B of autocast copies"}},
    {"2.2", "explain ring-allreduce", {"13.63 GB", "2 (N-1)/N"}},
    {"2.2", "explain bucketing", {"226 buckets"}},
    {"3.1", "explain zero", {"112 GB; N = 8: stage 1 38.5, stage 2 26.25, stage 3 14 GB", "19.04 GiB"}},
    {"3.2", "explain offload", {"26 GB", "39%", "8,192"}},
    {"3.3", "explain infinity", {"960 s"}},
    {"4.1", "explain fsdp", {"14.96 GiB"}},
    {"4.2", "explain hsdp", {"7.528 GB"}},
    {"5.1", "explain tensor-parallel", {"448 MiB", "2 a block, 4 a layer"}},
    {"5.2", "explain column-parallel", {"rank 1", "rank 2"}},
    {"6.1", "schedule --schedule 1f1b --pp 4 --microbatches 8", {"in flight 4", "in flight 1"}},
    {"6.1", "schedule --schedule gpipe --pp 4 --microbatches 8", {"in flight 8"}},
    {"6.2", "explain bubble", {"15.8%", "57 exactly", "3.6%"}},
    {"7", "estimate " + a_json, {"TP8+SP PP4 DP4"}},
    {"8.1", "explain lora", {"41,943,040", "0.52%", "167,772,160"}},
    {"8.2", "explain qlora", {"4.127", "3.35 GiB", "backward dequantises W again"}},
    {"8.3", "explain rslora", {"8", "alpha / r = 2"}},
    {"9.1", "explain flash-attention", {"56.7 MB", "37.8 MB", "1107 MB"}},
    {"9.2", "explain flash-versions", {"50 to 73%"}},
    {"9.3", "explain flash-versions", {"TMA", "pingpong"}},
    {"10.1", "explain bf16", {"65504", "57344", "448"}},
    {"10.2", "explain loss-scaling", {"9.1e-13", "6.0e-08"}},
    {"11", "explain grad-accum " + a_json, {"gbs 1024", "4,194,304 tokens"}},
    {"11", "explain grad-clipping", {"0.3125"}},
    {"Q1", "explain ddp-or-zero", {"stage 2"}},
    {"Q2", "explain fsdp-or-zero3", {"3.82 GiB"}},
    {"Q3", "estimate " + a_json + " --explain communication", {"TiB", "GiB"}},
    {"Q4", "explain online-softmax", {"1.5032"}},
    {"Q5", "explain lora --let r=8", {"20,971,520"}},
    {"Q6", "explain nf4", {"0.72296", "-0.69619", "-0.09105"}},
    {"Q7", "explain fp16", {"max 65504", "least 6.0e-08", "max 3.3895e+38"}},
    {"Q8", "explain grad-accum", {"optimizer steps"}},
    {"Q9", "explain gpu-count", {"1129 GB", "= 1120 GB", "14 GPUs at least"}},
    {"Q10", "explain checkpointing", {"0.63 GiB", "was 11.18 GiB"}},
    {"Q11", "explain ring-allreduce", {"36 us", "12.3 ms"}},
    {"Q12", "explain sequence-parallel", {"224 MiB", "one more all-gather"}},
    {"Q13", "explain loss-spike", {"data", "checkpoint"}},
    {"Q14", "explain lora-or-full", {"128.5 GB", "16.06 GB"}},
    {"Q15", "explain mfu", {"causal", "6N", "HFU", "47.7%"}},
};

const std::vector<std::string> all_sections = {"1.1",  "1.2",  "2.1", "2.2", "3.1", "3.2", "3.3", "4.1", "4.2", "5.1",
                                               "5.2",  "6.1",  "6.2", "7",   "8.1", "8.2", "8.3", "9.1", "9.2", "9.3",
                                               "10.1", "10.2", "11",  "Q1",  "Q2",  "Q3",  "Q4",  "Q5",  "Q6",  "Q7",
                                               "Q8",   "Q9",   "Q10", "Q11", "Q12", "Q13", "Q14", "Q15"};

test::ProcessResult run(const std::string& command) {
  std::istringstream in(command);
  std::vector<std::string> words = {SHARDPLAN_BINARY};
  for (std::string word; in >> word;) words.push_back(word);
  return test::run_process(words, {}, source);
}

/// The commands below each heading "## 1.1 ..." of the document.
std::map<std::string, std::vector<std::string>> answered(const std::string& text) {
  std::map<std::string, std::vector<std::string>> commands;
  std::istringstream in(text);
  std::string where;
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("## ", 0) == 0) where = line.substr(3, line.find(' ', 3) - 3);
    if (line.rfind("$ shardplan ", 0) == 0) commands[where].push_back(line.substr(12));
  }
  return commands;
}

}  // namespace

TEST_CASE("every section and question has a line in docs/interview.md with a command, and a topic") {
  const auto commands = answered(test::read_file(source + "/docs/interview.md"));
  for (const std::string& where : all_sections) {
    CAPTURE(where);
    const auto found = commands.find(where);
    REQUIRE(found != commands.end());
    CHECK_FALSE(found->second.empty());
    CHECK(std::any_of(rows.begin(), rows.end(), [&](const Row& row) { return row.where == where; }));
    const std::vector<const explain::Topic*> meant = explain::find_topics(where);
    CHECK_FALSE(meant.empty());
    for (const std::string& command : found->second) {
      if (command.rfind("explain ", 0) != 0) continue;
      const std::string topic = command.substr(8, command.find(' ', 8) - 8);
      CAPTURE(topic);
      REQUIRE(explain::find_topic(topic) != nullptr);
      CHECK(std::find(meant.begin(), meant.end(), explain::find_topic(topic)) != meant.end());
    }
  }
}

TEST_CASE("what answers a section prints the numbers that a hand derives") {
  for (const Row& row : rows) {
    const test::ProcessResult ran = run(row.command);
    CAPTURE(row.where, row.command, ran.err);
    CHECK(ran.status == 0);
    std::string joined;  // as one line: pages fold where they are narrow
    std::istringstream in(ran.out);
    for (std::string word; in >> word;) joined += (joined.empty() ? "" : " ") + word;
    for (const std::string& wanted : row.prints) {
      CAPTURE(wanted, ran.out);
      CHECK(joined.find(wanted) != std::string::npos);
    }
  }
}
