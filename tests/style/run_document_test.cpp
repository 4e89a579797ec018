// docs/run.md names every field of a run file with its legal words and its flag, and no field that the reader refuses;
// docs/output.md names every member of estimate's JSON.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
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
#include "shardplan/plan/field_table.hpp"
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

/// A row of a table of fields ("| field | ..."): its cells by their column's head, and all of it.
struct DocumentRow {
  std::map<std::string, std::string> cells;
  std::string line;
};

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  for (std::size_t from = line.find("| "); from != std::string::npos; from = line.find("| ", from + 1)) {
    const std::size_t to = line.find(" |", from + 1);
    if (to == std::string::npos) break;
    cells.push_back(to < from + 2 ? "" : line.substr(from + 2, to - from - 2));
  }
  return cells;
}

/// Text without its links' targets: "[by the layout](#the-framework)" is "by the layout".
std::string without_links(std::string text) {
  for (std::size_t at = text.find("]("); at != std::string::npos; at = text.find("](")) {
    const std::size_t open = text.rfind('[', at);
    text.erase(at, text.find(')', at) - at + 1);
    text.erase(open, 1);
  }
  return text;
}

/// The rows of the tables of fields, by JSON pointer.
std::map<std::string, DocumentRow> field_rows() {
  std::istringstream in(document("run.md"));
  std::map<std::string, DocumentRow> rows;
  std::string section = "none";
  std::vector<std::string> heads;
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("## ", 0) == 0) section = section_of(line);
    if (line.rfind("| field |", 0) == 0) heads = cells_of(line);
    if (line.rfind('|', 0) != 0) heads.clear();
    if (heads.empty() || section == "none" || line.rfind("| `", 0) != 0) continue;
    DocumentRow row;
    row.line = line;
    const std::vector<std::string> cells = cells_of(line);
    for (std::size_t i = 0; i < std::min(cells.size(), heads.size()); ++i) row.cells[heads[i]] = cells[i];
    for (std::string name : quoted_words(line.substr(0, line.find('|', 1)))) {
      std::replace(name.begin(), name.end(), '.', '/');
      rows[section + "/" + name] = row;
    }
  }
  return rows;
}

/// A number as the tables write it: 2^20, 10^6, 65536.
std::string number_text(double value) {
  for (int power = 17; power < 53; ++power) {
    if (value == std::ldexp(1.0, power)) return fmt::format("2^{}", power);
  }
  return value == 1e6 ? "10^6" : fmt::format("{}", value);
}

/// What a value may be as the tables write it; words in their order.
std::string values_text(const ValueType& type) {
  const NumberRange& range = type.range;
  constexpr double endless = 1e6;
  switch (type.kind) {
    case ValueType::Kind::boolean: return "true, false";
    case ValueType::Kind::rate: return "0 to below 1";
    case ValueType::Kind::word: {
      std::string words;
      for (const std::string_view word : type.words) words += fmt::format("{}`{}`", words.empty() ? "" : " ", word);
      return words;
    }
    default: break;
  }
  if (range.above && range.to >= endless) return fmt::format("above {}", *range.above);
  if (range.above) return fmt::format("above {}, at most {}", *range.above, range.to);
  if (*range.from == 0 && range.to >= endless && type.kind == ValueType::Kind::number) return "0 and more";
  if (range.to == *range.from + 1 && type.kind == ValueType::Kind::integer)
    return fmt::format("{}, {}", *range.from, range.to);
  return fmt::format("{} to {}", number_text(*range.from), number_text(range.to));
}

/// Words in alphabetical order, so that a table may have its own.
std::string sorted(const std::string& values) {
  std::vector<std::string> words = quoted_words(values);
  if (words.empty()) return values;
  std::sort(words.begin(), words.end());
  return fmt::format("{}", fmt::join(words, " "));
}

std::string row_of(const std::map<std::string, DocumentRow>& rows, std::string_view pointer) {
  const auto found = rows.find(std::string(pointer));
  return found == rows.end() ? std::string() : found->second.line;
}

bool quotes(const std::string& text, std::string_view word) {
  return text.find("`" + std::string(word) + "`") != std::string::npos;
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
  const std::map<std::string, DocumentRow> rows = field_rows();
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

TEST_CASE("docs/run.md gives each field the values and the default of its row") {
  const std::map<std::string, DocumentRow> rows = field_rows();
  std::size_t values = 0;
  std::size_t defaults = 0;
  for (const plan::FieldRow& row : plan::field_rows()) {
    const DocumentRow& documented = rows.at(std::string(row.pointer));
    CAPTURE(row.pointer, documented.line);
    CHECK_FALSE(std::prev(cells_of(documented.line).end())->empty());
    const auto of_values = documented.cells.find("values");
    // A stage's layers, not the most that a number may be.
    const bool in_words = row.field == Field::activation_layers;
    if (of_values != documented.cells.end() && row.value.get != nullptr && !in_words) {
      CHECK(sorted(of_values->second) == sorted(values_text(row.value.type)));
      ++values;
    }
    const auto of_default = documented.cells.find("default");
    if (of_default != documented.cells.end()) {
      CHECK(without_links(of_default->second) == row.usual);
      ++defaults;
    }
  }
  CHECK(values > 60);
  CHECK(defaults > 60);
}

TEST_CASE("docs/run.md gives each requirement the values of its row") {
  const std::map<std::string, DocumentRow> rows = field_rows();
  for (const plan::RequirementRow& row : plan::requirement_rows()) {
    const DocumentRow& documented = rows.at("/require/" + std::string(name(row.requirement)));
    CAPTURE(documented.line);
    CHECK(documented.cells.at("values") == values_text(row.value.type));
  }
}

TEST_CASE("docs/run.md lists the words of recomputation and loss") {
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
  const std::map<std::string, DocumentRow> rows = field_rows();
  for (const std::string_view word : io::field_words()) {
    const std::string pointer = io::field_pointer(word).value_or("");
    if (pointer == "/" + std::string(word) || pointer == "/microbatches") continue;
    CAPTURE(word, pointer);
    CHECK(quotes(row_of(rows, pointer), "--" + std::string(word)));
  }
  for (const auto& [pointer, row] : rows) {
    for (const std::string& word : quoted_words(row.line)) {
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
