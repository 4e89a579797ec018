// The flag table against the documented names and fields.
#include "flags.hpp"

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "support/catch.hpp"

namespace {

using shardplan::cli::Flag;
using shardplan::cli::output_flags;
using shardplan::cli::run_flags;
using shardplan::cli::ValueKind;

}  // namespace

TEST_CASE("every documented flag sets its documented field") {
  const std::map<std::string_view, std::string_view> documented = {{"model", "/model"},
                                                                   {"cluster", "/cluster"},
                                                                   {"gpus", "/num_gpus"},
                                                                   {"tp", "/parallel/tensor"},
                                                                   {"pp", "/parallel/pipeline"},
                                                                   {"vpp", "/parallel/virtual_pipeline"},
                                                                   {"cp", "/parallel/context"},
                                                                   {"ep", "/parallel/expert"},
                                                                   {"etp", "/parallel/expert_tensor"},
                                                                   {"dp", "/parallel/data"},
                                                                   {"sp", "/parallel/sequence_parallel"},
                                                                   {"no-sp", "/parallel/sequence_parallel"},
                                                                   {"zero", "/parallel/zero_stage"},
                                                                   {"fsdp", "/parallel/fsdp"},
                                                                   {"schedule", "/parallel/schedule"},
                                                                   {"seq", "/training/seq_length"},
                                                                   {"mbs", "/training/micro_batch_size"},
                                                                   {"gbs", "/training/global_batch_size"},
                                                                   {"precision", "/training/precision"},
                                                                   {"recompute", "/training/recompute"},
                                                                   {"attention", "/training/attention"},
                                                                   {"optimizer", "/training/optimizer"},
                                                                   {"framework", "/training/framework"},
                                                                   {"stack", "/training/stack"},
                                                                   {"loss", "/training/loss"},
                                                                   {"lora-rank", "/training/peft/rank"},
                                                                   {"lora-alpha", "/training/peft/alpha"},
                                                                   {"lora-targets", "/training/peft/targets"},
                                                                   {"quant", "/training/peft/quant"},
                                                                   {"offload", "/training/offload"},
                                                                   {"moe-imbalance", "/training/moe/imbalance"}};
  std::map<std::string_view, std::string_view> rows;
  for (const Flag& flag : run_flags()) rows.emplace(flag.name, flag.pointer);
  for (const auto& [name, pointer] : documented) {
    CAPTURE(std::string(name));
    REQUIRE(rows.count(name) == 1);
    CHECK(rows[name] == pointer);
  }
  CHECK(rows.count("set") == 1);
  CHECK(rows.count("microbatches") == 1);
}

TEST_CASE("rows are complete and no two flags share a name") {
  std::set<std::string_view> names;
  std::set<char> letters;
  for (const auto rows : {run_flags(), output_flags()}) {
    for (const Flag& flag : rows) {
      CAPTURE(std::string(flag.name));
      CHECK(names.insert(flag.name).second);
      CHECK((flag.letter == 0 || letters.insert(flag.letter).second));
      CHECK_FALSE(flag.help.empty());
      CHECK((flag.kind == ValueKind::none) == flag.value.empty());
      CHECK((flag.kind == ValueKind::none) == !flag.fixed.empty());
      CHECK((flag.pointer.empty() || flag.pointer.front() == '/'));
    }
  }
}
