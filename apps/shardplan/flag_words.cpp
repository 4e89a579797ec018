#include "flag_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "shardplan/catalog/catalog.hpp"
#include "shardplan/explain/topics.hpp"
#include "shardplan/io/overrides.hpp"
#include "shardplan/physics/optimizers.hpp"
#include "shardplan/plan/field_table.hpp"
#include "shardplan/plan/requirements.hpp"
#include "shardplan/plan/results.hpp"
#include "shardplan/plan/search.hpp"

namespace shardplan::cli {
namespace {

template <class Names>
std::vector<std::string> texts(const Names& names) {
  return std::vector<std::string>(names.begin(), names.end());
}

std::vector<std::string> catalog_names(io::CatalogKind kind) { return texts(catalog::builtin_catalog().names(kind)); }

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const Optimizer& optimizer : optimizers()) names.emplace_back(optimizer.name);
  return names;
}

std::vector<std::string> result_names() {
  std::vector<std::string> names;
  for (const plan::ResultField& field : plan::usual_results()) names.emplace_back(field.word);
  return names;
}

/// "tp=" for every flag that sets a field.
std::vector<std::string> field_assignments() {
  std::vector<std::string> words;
  for (const Flag& flag : run_flags()) {
    if (!flag.pointer.empty() && flag.kind != ValueKind::none) words.push_back(std::string(flag.name) + "=");
  }
  return words;
}

/// "a, b or c" as words; a text that is no such list gives none.
std::vector<std::string> listed(std::string_view help) {
  std::vector<std::string> words;
  std::string word;
  std::string all(help.substr(0, help.find('(')));
  const std::size_t last = all.rfind(" or ");
  if (last == std::string::npos) return {};
  all.replace(last, 4, ", ");
  all += ",";
  for (const char c : all) {
    if (c == ',') {
      if (word.find(' ') == std::string::npos && !word.empty()) words.push_back(word);
      word.clear();
    } else if (c != ' ' || !word.empty()) {
      word += c;
    }
  }
  return words;
}

WordList words_of(const plan::FieldRow& row) {
  const ValueType& type = row.value.type;
  if (row.field == plan::Field::model) return {catalog_names(io::CatalogKind::models), true};
  if (row.field == plan::Field::cluster) return {catalog_names(io::CatalogKind::clusters), true};
  if (row.field == plan::Field::stack) return {catalog_names(io::CatalogKind::stacks)};
  if (row.field == plan::Field::optimizer) return {optimizer_names()};
  WordList list{texts(type.words)};
  std::replace(list.words.begin(), list.words.end(), std::string("chunked"), std::string("chunked:8"));
  constexpr double few = 10;
  const double from = type.range.from.value_or(0);
  if (type.kind == ValueType::Kind::integer && type.range.to - from < few) {
    for (double n = from; n <= type.range.to; ++n) list.words.push_back(fmt::format("{}", n));
  }
  return list;
}

}  // namespace

WordList words_of(const Flag& flag, const Command& command) {
  const std::string_view name = flag.name;
  if (flag.kind == ValueKind::none) return {};
  if (const plan::FlagOfField of_run = plan::find_flag(name); of_run.row != nullptr) return words_of(*of_run.row);
  if (name == "format") {
    std::vector<std::string> words = texts(names_of<Format>);
    words.insert(words.end(), command.pictures.begin(), command.pictures.end());
    return {std::move(words)};
  }
  if (name == "units") return {{"gib", "gb"}};
  if (name == "color") return {{"auto", "always", "never"}};
  if (name == "show") return {result_names()};
  if (name == "vary" || name == "set" || name == "why-not") return {field_assignments()};
  if (name == "objective") return {texts(names_of<plan::Objective>)};
  if (name == "keep") return {{"tokens", "gpus"}};
  if (name == "spec" || name == "baseline") return {{}, true};
  if (name == "output" || name == "plot") return {{}, false, true};
  if (name == "measured") return {{"tokens_per_s_per_gpu=", "step_s=", "tflops_per_gpu="}};
  if (name == "constraint") {
    std::vector<std::string> words;
    words.reserve(names_of<plan::Requirement>.size());
    for (const std::string_view requirement : names_of<plan::Requirement>)
      words.push_back(std::string(requirement) + "=");
    return {std::move(words)};
  }
  return {listed(flag.help)};
}

WordList words_of(const Command& command) {
  if (command.most_words == 0) return {};
  const std::string_view arguments = command.arguments;
  WordList list;
  list.files = arguments.find(".json") != std::string_view::npos;
  if (command.name == "explain") {
    for (const explain::Topic& topic : explain::topics()) list.words.emplace_back(topic.name);
    return list;
  }
  if (command.name == "solve") {
    for (const Flag& flag : run_flags()) {
      if (!flag.pointer.empty() && flag.kind == ValueKind::integer) list.words.emplace_back(flag.name);
    }
    return list;
  }
  if (arguments.find('|') == std::string_view::npos) return list;
  for (std::string_view rest = arguments;;) {
    const std::size_t end = std::min(rest.find('|'), rest.size());
    list.words.emplace_back(rest.substr(0, end));
    if (end == rest.size()) return list;
    rest.remove_prefix(end + 1);
  }
}

}  // namespace shardplan::cli
