#include "search_values.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "shardplan/io/ranges.hpp"
#include "shardplan/io/suggest.hpp"

namespace shardplan::advise {

using plan::Field;

namespace {

constexpr std::string_view free_word = "free";
constexpr std::string_view no_value = "null";

std::optional<Field> variable_of(std::string_view pointer) {
  if (pointer.rfind(name(Field::offload), 0) == 0) return Field::offload;
  for (const Field field : variables()) {
    if (name(field) == pointer) return field;
  }
  return std::nullopt;
}

}  // namespace

const std::vector<Field>& variables() {
  static const std::vector<Field> all = [] {
    std::vector<Field> fields = {Field::num_gpus, Field::data, Field::offload};
    plan::for_each_variable([&](Field field, auto, auto) { fields.push_back(field); });
    plan::for_each_overlap([&](Field field, auto, auto) { fields.push_back(field); });
    return fields;
  }();
  return all;
}

bool is_list(const io::Override& change) noexcept {
  if (change.value == free_word) return true;
  if (change.value.substr(0, 1) == "{" || change.value.substr(0, 1) == "[") return false;
  return change.value.find(',') != std::string::npos || change.value.find("..") != std::string::npos;
}

bool SearchValues::take(const io::Override& change) {
  const std::optional<Field> variable = variable_of(change.pointer);
  if (!variable) return false;
  if (change.value != free_word) {
    read(*variable, change);
    return true;
  }
  if (*variable == Field::num_gpus) {
    complain(fmt::format("{}: free has no end; give a range", change.flag), "for example --gpus 8..1024");
  }
  if (*variable == Field::attention) all_kernels();
  return true;
}

void SearchValues::complain(std::string message, std::string way_out) {
  problems_.push_back(usage_diagnostic(std::move(message), std::move(way_out)));
}

void SearchValues::all_kernels() {
  std::vector<AttentionKernel> kernels;
  for (std::size_t i = 0; i < names_of<AttentionKernel>.size(); ++i) kernels.push_back(static_cast<AttentionKernel>(i));
  space_.attention = kernels;
  every_kernel_ = true;
}

void SearchValues::read(Field variable, const io::Override& change) {
  if (variable == Field::num_gpus) {
    std::optional<std::vector<int>> list;
    values(change, list);
    if (list) space_.num_gpus = *list;
  }
  if (variable == Field::data) values(change, space_.data);
  if (variable == Field::offload) offload_.push_back(change);
  plan::for_each_variable([&](Field field, auto list, auto) {
    if (field == variable) values(change, space_.*list);
  });
  plan::for_each_overlap([&](Field field, auto value, auto) {
    if (field == variable) truth(change, space_.*value);
  });
}

std::vector<std::int64_t> SearchValues::integers(const io::Override& change, std::int64_t least) {
  Result<std::vector<std::int64_t>> list = io::parse_integers(change.flag, change.value, least);
  for (Diagnostic& found : list.problems) problems_.push_back(std::move(found));
  return std::move(list.value);
}

void SearchValues::values(const io::Override& change, std::optional<std::vector<int>>& to) {
  const bool stage = change.pointer == name(Field::zero_stage);
  if (stage && change.value == no_value) return;
  std::vector<int> list;
  for (const std::int64_t value : integers(change, stage ? 0 : 1)) {
    if (value <= plan::largest_degree) list.push_back(static_cast<int>(value));
  }
  if (!list.empty()) to = std::move(list);
}

void SearchValues::values(const io::Override& change, std::optional<std::vector<std::int64_t>>& to) {
  std::vector<std::int64_t> list = integers(change, 1);
  if (!list.empty()) to = std::move(list);
}

void SearchValues::values(const io::Override& change, std::optional<std::vector<bool>>& to) {
  std::optional<bool> value;
  truth(change, value);
  if (value) to = std::vector<bool>{*value};
}

/// "full", "full:4", "every:2"; a list of modules stands alone.
void SearchValues::values(const io::Override& change, std::optional<std::vector<Recompute>>&) {
  const bool object = change.value.substr(0, 1) == "{";
  const auto items = object ? std::vector<std::string_view>{change.value} : io::list_items(change.value);
  for (const std::string_view item : items) recomputes_.push_back({change.pointer, std::string(item), change.flag});
}

template <class Enum>
void SearchValues::values(const io::Override& change, std::optional<std::vector<Enum>>& to) {
  std::vector<Enum> list;
  if (change.pointer == name(Field::fsdp) && change.value == no_value) {
    to = std::move(list);
    return;
  }
  for (const std::string_view item : io::list_items(change.value)) {
    if (const std::optional<Enum> value = parse_name<Enum>(item)) {
      list.push_back(*value);
      continue;
    }
    std::vector<std::string_view> words(names_of<Enum>.begin(), names_of<Enum>.end());
    complain(fmt::format("{}: \"{}\" is not one of {}{}", change.flag, item, fmt::join(words, ", "),
                         io::did_you_mean(item, words)));
  }
  if (!list.empty()) to = std::move(list);
}

void SearchValues::truth(const io::Override& change, std::optional<bool>& to) {
  if (change.value == "true" || change.value == "false") {
    to = change.value == "true";
  } else {
    complain(fmt::format("{}: \"{}\" is not true, false or free", change.flag, change.value));
  }
}

}  // namespace shardplan::advise
