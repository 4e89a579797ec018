// docs/run.md names every field of a run file with its legal words and its flag, and no field that the reader refuses;
// docs/output.md names every member of estimate's JSON.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "shardplan/catalog/catalog.hpp"
#include "shardplan/io/overrides.hpp"
#include "shardplan/io/run_file.hpp"
#include "shardplan/io/stack_file.hpp"
#include "shardplan/plan/fields.hpp"
#include "support/catch.hpp"
#include "support/process.hpp"

using namespace shardplan;
using plan::Field;

namespace {

std::string document(const std::string& file) { return test::read_file(SHARDPLAN_SOURCE_DIR "/docs/" + file); }

/// The texts between backticks.
std::vector<std::string> quoted_words(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t from = text.find('`'); from != std::string::npos; from = text.find('`', from)) {
    const std::size_t to = text.find('`', from + 1);
    if (to == std::string::npos) break;
    words.push_back(text.substr(from + 1, to - from - 1));
    from = to + 1;
  }
  return words;
}

/// The section of a run file that a heading is about: "## `training.fp8`" is /training/fp8.
std::string section_of(const std::string& heading) {
  const std::vector<std::string> words = quoted_words(heading);
  if (words.empty()) return heading == "## The top level" ? "" : "none";
  std::string pointer = "/" + words.front();
  std::replace(pointer.begin(), pointer.end(), '.', '/');
  return pointer;
}

/// The rows of the tables of fields ("| field | ..."), by JSON pointer.
std::map<std::string, std::string> field_rows() {
  std::istringstream in(document("run.md"));
  std::map<std::string, std::string> rows;
  std::string section = "none";
  bool in_table = false;
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("## ", 0) == 0) section = section_of(line);
    if (line.rfind("| field |", 0) == 0) in_table = true;
    if (line.rfind('|', 0) != 0) in_table = false;
    if (!in_table || section == "none" || line.rfind("| `", 0) != 0) continue;
    for (std::string name : quoted_words(line.substr(0, line.find('|', 1)))) {
      std::replace(name.begin(), name.end(), '.', '/');
      rows[section + "/" + name] = line;
    }
  }
  return rows;
}

std::string row_of(const std::map<std::string, std::string>& rows, std::string_view pointer) {
  const auto found = rows.find(std::string(pointer));
  return found == rows.end() ? std::string() : found->second;
}

bool quotes(const std::string& text, std::string_view word) {
  return text.find("`" + std::string(word) + "`") != std::string::npos;
}

template <class Enum>
void check_words(const std::map<std::string, std::string>& rows, Field field) {
  for (const std::string_view word : names_of<Enum>) {
    CAPTURE(name(field), word);
    CHECK(quotes(row_of(rows, name(field)), word));
  }
}

/// Every key of a JSON value, those of objects that hold data under `skipped` left out.
void collect_keys(const nlohmann::json& value, std::string_view skipped, std::set<std::string>& keys) {
  for (const auto& [key, member] : value.items()) {
    if (value.is_object()) keys.insert(key);
    if (key != skipped && member.is_structured()) collect_keys(member, skipped, keys);
  }
}

}  // namespace

TEST_CASE("docs/run.md names every field of a run file") {
  const std::map<std::string, std::string> rows = field_rows();
  for (const std::string_view pointer : names_of<Field>) {
    CAPTURE(pointer);
    CHECK(rows.count(std::string(pointer)) == 1);
  }
}

TEST_CASE("docs/run.md names no field that the reader does not know") {
  for (const auto& [pointer, row] : field_rows()) {
    nlohmann::json run = nlohmann::json::object();
    run[nlohmann::json::json_pointer(pointer)] = nullptr;
    const io::ReadRun read = io::read_run(io::run_input_from_json(run.dump()), catalog::builtin_catalog());
    for (const Diagnostic& problem : read.problems) {
      CAPTURE(pointer, problem.pointer, problem.message);
      CHECK(problem.message.find("unknown field") == std::string::npos);
    }
  }
}

TEST_CASE("docs/run.md lists the legal words of each field") {
  const std::map<std::string, std::string> rows = field_rows();
  check_words<Fsdp>(rows, Field::fsdp);
  check_words<GradSync>(rows, Field::grad_sync);
  check_words<ContextComm>(rows, Field::context_comm);
  check_words<ScheduleKind>(rows, Field::schedule);
  check_words<Precision>(rows, Field::precision);
  check_words<Fp8Recipe>(rows, Field::fp8_recipe);
  check_words<Framework>(rows, Field::framework);
  check_words<OptimizerImpl>(rows, Field::optimizer_impl);
  check_words<AttentionKernel>(rows, Field::attention);
  check_words<NormKernel>(rows, Field::kernel_norm);
  check_words<MlpKernel>(rows, Field::kernel_mlp);
  check_words<QkvLayout>(rows, Field::kernel_qkv);
  check_words<SoftmaxKernel>(rows, Field::kernel_softmax);
  check_words<SequenceParallelInput>(rows, Field::kernel_sp_input);
  check_words<WeightGradient>(rows, Field::kernel_wgrad);
  check_words<MoeDispatch>(rows, Field::moe_dispatch);
  check_words<MoeProbs>(rows, Field::moe_probs);
  check_words<MoeCombine>(rows, Field::moe_combine);
  for (const Field field : {Field::param_dtype, Field::grad_dtype, Field::optimizer_state_dtype}) {
    check_words<DType>(rows, field);
  }
  check_words<Quantization>(rows, Field::peft_quant);
  check_words<OffloadDevice>(rows, Field::offload_optimizer);
  check_words<OffloadDevice>(rows, Field::offload_parameters);
  const std::string text = document("run.md");
  for (const std::string_view loss : names_of<LossKind>) {
    CAPTURE(loss);
    CHECK(text.find("| `" + std::string(loss) + (loss == "chunked" ? ":N` |" : "` |")) != std::string::npos);
  }
  for (const std::string_view module : recompute_module_names) {
    CAPTURE(module);
    CHECK(quotes(text, module));
  }
}

TEST_CASE("docs/run.md gives each field its flag") {
  const std::map<std::string, std::string> rows = field_rows();
  for (const std::string_view word : io::field_words()) {
    const std::string pointer = io::field_pointer(word).value_or("");
    if (pointer == "/" + std::string(word) || pointer == "/microbatches") continue;
    CAPTURE(word, pointer);
    CHECK(quotes(row_of(rows, pointer), "--" + std::string(word)));
  }
  for (const auto& [pointer, row] : rows) {
    for (const std::string& word : quoted_words(row)) {
      if (word.rfind("--", 0) != 0) continue;
      CAPTURE(pointer, word);
      CHECK(io::field_pointer(word.substr(2)) == pointer);
    }
  }
}

TEST_CASE("docs/run.md says what each stack sets") {
  const std::string text = document("run.md");
  const io::CatalogSource& catalog = catalog::builtin_catalog();
  for (const std::string_view stack_name : catalog.names(io::CatalogKind::stacks)) {
    if (stack_name.rfind("framework-", 0) == 0) continue;
    const Stack stack = io::find_stack(stack_name, "", "", catalog).value;
    const Stack plain = io::default_stack(stack.framework, catalog);
    const std::string begin = "| `" + std::string(stack_name) + "` | " + std::string(name(stack.framework)) + " | `" +
                              std::string(name(stack.loss)) + "` |";
    CAPTURE(begin);
    const std::size_t from = text.find(begin);
    REQUIRE(from != std::string::npos);
    const std::string row = text.substr(from, text.find('\n', from) - from);
    const auto check = [&row](bool differs, const std::string& words) {
      CAPTURE(row, words);
      CHECK((row.find(words) != std::string::npos) == differs);
    };
    const auto word = [&](const std::string& key, auto value, auto usual) {
      check(value != usual, key + " " + std::string(name(value)));
    };
    const auto flag = [&](const std::string& key, bool value, bool usual) {
      check(value != usual, key + (value ? " true" : " false"));
    };
    word("optimizer_impl", stack.optimizer_impl, plain.optimizer_impl);
    word("`flash` is", stack.flash, plain.flash);
    flag("compile", stack.compile, plain.compile);
    flag("autocast", stack.autocast, plain.autocast);
    flag("sequence_parallel", stack.tensor_is_sequence_parallel, plain.tensor_is_sequence_parallel);
    word("norm", stack.kernels.norm, plain.kernels.norm);
    word("mlp", stack.kernels.mlp, plain.kernels.mlp);
    word("qkv", stack.kernels.qkv, plain.kernels.qkv);
    word("softmax", stack.kernels.softmax, plain.kernels.softmax);
    word("sp_input", stack.kernels.sp_input, plain.kernels.sp_input);
    word("wgrad", stack.kernels.wgrad, plain.kernels.wgrad);
    flag("attention_output_copy", stack.kernels.attention_output_copy, plain.kernels.attention_output_copy);
    flag("kv_expanded", stack.kernels.kv_expanded, plain.kernels.kv_expanded);
    flag("reentrant_checkpoint", stack.kernels.reentrant_checkpoint, plain.kernels.reentrant_checkpoint);
    flag("te_dummy_wgrad", stack.kernels.te_dummy_wgrad, plain.kernels.te_dummy_wgrad);
    word("moe_dispatch", stack.kernels.moe_dispatch, plain.kernels.moe_dispatch);
    word("moe_probs", stack.kernels.moe_probs, plain.kernels.moe_probs);
    word("moe_combine", stack.kernels.moe_combine, plain.kernels.moe_combine);
    flag("overlap.grad_reduce", stack.overlap.grad_reduce, plain.overlap.grad_reduce);
    flag("overlap.param_gather", stack.overlap.param_gather, plain.overlap.param_gather);
    flag("overlap.tp", stack.overlap.tp, plain.overlap.tp);
    flag("overlap.p2p", stack.overlap.p2p, plain.overlap.p2p);
  }
}

TEST_CASE("docs/output.md names every member of the JSON") {
  const test::ProcessResult ran =
      test::run_process({SHARDPLAN_BINARY, "estimate", "configs/runs/mixtral-8x7b-64xh100.json", "--json", "--detail",
                         "--measured", "tflops_per_gpu=400", "--sp"},
                        {}, SHARDPLAN_SOURCE_DIR);
  CAPTURE(ran.err);
  REQUIRE(ran.status <= 1);
  std::set<std::string> keys;
  collect_keys(nlohmann::json::parse(ran.out), "run", keys);
  const std::string text = document("output.md");
  for (const std::string& key : keys) {
    CAPTURE(key);
    CHECK(quotes(text, key));
  }
  CHECK(keys.size() > 90);
}
