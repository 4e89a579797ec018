#include "object_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "shardplan/io/suggest.hpp"

namespace shardplan::io {
namespace {

std::string number_rule(const NumberRange& range) {
  if (range.above) return fmt::format("a number above {} and at most {}", *range.above, range.to);
  return fmt::format("a number from {} to {}", range.from.value_or(0), range.to);
}

bool in_range(double value, const NumberRange& range) {
  if (range.above && !(value > *range.above)) return false;
  if (range.from && !(value >= *range.from)) return false;
  return value <= range.to;
}

}  // namespace

std::string quoted(const nlohmann::json& value) {
  constexpr std::size_t longest = 60;
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  std::string text = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (text.size() <= longest) return text;
  std::size_t end = longest - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;  // whole characters
  return text.substr(0, end) + "...";
}

ObjectReader::ObjectReader(const nlohmann::json& object, std::string_view file, std::string pointer,
                           Diagnostics& problems)
    : file_(file), pointer_(std::move(pointer)), problems_(problems) {
  if (object.is_object()) {
    object_ = &object;
  } else {
    problems_.push_back({std::string(file_), pointer_, quoted(object) + " is not an object", {}, 0, 0});
  }
}

std::string ObjectReader::pointer_of(std::string_view name) const {
  std::string pointer = pointer_ + "/";
  for (const char c : name) {
    if (c == '~') {
      pointer += "~0";
    } else if (c == '/') {
      pointer += "~1";
    } else {
      pointer += c;
    }
  }
  return pointer;
}

void ObjectReader::problem(std::string_view name, std::string message, std::string way_out) {
  problems_.push_back({std::string(file_), pointer_of(name), std::move(message), std::move(way_out), 0, 0});
}

ObjectShape::Entry& ObjectShape::entry(std::string_view name) {
  const auto found =
      std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) { return entry.name == name; });
  if (found != entries.end()) return *found;
  entries.push_back({std::string(name), {}});
  return entries.back();
}

bool ObjectReader::described(std::string_view name, const ValueType& type, std::string_view about) {
  if (shape_ == nullptr) return false;
  ObjectShape::Entry& entry = shape_->entry(name);
  entry.form = ObjectShape::Form::value;
  entry.type = {type.kind, type.range};
  entry.words.assign(type.words.begin(), type.words.end());
  entry.about = about;
  return true;
}

std::vector<ObjectReader::ListEntry> ObjectReader::entries_of(std::string_view name, const NoList& otherwise) {
  std::vector<ListEntry> entries;
  const nlohmann::json* list = member(name);
  if (list == nullptr) return entries;
  if (!list->is_array()) {
    problem(name, fmt::format("{} {}", quoted(*list), otherwise.rule), std::string(otherwise.way_out));
    return entries;
  }
  for (std::size_t i = 0; i < list->size(); ++i) {
    entries.push_back({fmt::format("{}/{}", pointer_of(name), i), &(*list)[i]});
  }
  return entries;
}

const nlohmann::json* ObjectReader::member(std::string_view name) {
  if (shape_ != nullptr) shape_->entry(name);
  known_.push_back(name);
  if (object_ == nullptr) return nullptr;
  const auto found = object_->find(std::string(name));
  if (found == object_->end() || found->is_null()) return nullptr;
  return &*found;
}

void ObjectReader::require(std::string_view name) {
  if (shape_ != nullptr) shape_->entry(name).required = true;
  if (object_ != nullptr && member(name) == nullptr) problem(name, "is required");
}

std::optional<double> ObjectReader::value(std::string_view name, const ValueType& type, std::string_view about) {
  if (described(name, type, about)) return std::nullopt;
  const auto as_number = [](const auto& read) {
    return read ? std::optional(static_cast<double>(*read)) : std::nullopt;
  };
  switch (type.kind) {
    case ValueType::Kind::integer:
      return as_number(integer(name, static_cast<std::int64_t>(type.range.from.value_or(0)),
                               static_cast<std::int64_t>(type.range.to)));
    case ValueType::Kind::rate: {
      const std::optional<double> rate = number(name, type.range);
      if (!rate || *rate < 1) return rate;
      problem(name, "1 drops everything; a number from 0 to below 1");
      return std::nullopt;
    }
    case ValueType::Kind::boolean: return as_number(boolean(name));
    case ValueType::Kind::word: return as_number(word(name, {type.words.begin(), type.words.end()}));
    default: return number(name, type.range);
  }
}

std::optional<double> ObjectReader::number(std::string_view name, const NumberRange& range, std::string_view about) {
  if (described(name, {ValueType::Kind::number, range}, about)) return std::nullopt;
  const nlohmann::json* value = member(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_number() && std::isfinite(value->get<double>()) && in_range(value->get<double>(), range)) {
    return value->get<double>();
  }
  problem(name, fmt::format("{} is not {}", quoted(*value), number_rule(range)));
  return std::nullopt;
}

std::optional<std::int64_t> ObjectReader::integer(std::string_view name, std::int64_t from, std::int64_t to,
                                                  std::string_view about) {
  const NumberRange range = {std::nullopt, static_cast<double>(from), static_cast<double>(to)};
  if (described(name, {ValueType::Kind::integer, range}, about)) return std::nullopt;
  const nlohmann::json* value = member(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_number()) {
    const double real = value->get<double>();
    if (real >= static_cast<double>(from) && real <= static_cast<double>(to) && std::floor(real) == real) {
      return static_cast<std::int64_t>(real);
    }
  }
  problem(name, fmt::format("{} is not a whole number from {} to {}", quoted(*value), from, to));
  return std::nullopt;
}

std::optional<bool> ObjectReader::boolean(std::string_view name, std::string_view about) {
  if (described(name, {ValueType::Kind::boolean}, about)) return std::nullopt;
  const nlohmann::json* value = member(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_boolean()) return value->get<bool>();
  problem(name, quoted(*value) + " is not true or false");
  return std::nullopt;
}

std::optional<std::string> ObjectReader::text(std::string_view name, std::string_view about) {
  if (described(name, {ValueType::Kind::text}, about)) return std::nullopt;
  const nlohmann::json* value = member(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return value->get<std::string>();
  problem(name, quoted(*value) + " is not a text");
  return std::nullopt;
}

std::optional<std::size_t> ObjectReader::word(std::string_view name, const std::vector<std::string_view>& words,
                                              std::string_view about, std::string_view way_out) {
  if (described(name, {ValueType::Kind::word, {}, words}, about)) return std::nullopt;
  const nlohmann::json* value = member(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) {
    const std::string& text = value->get_ref<const std::string&>();
    const auto found = std::find(words.begin(), words.end(), text);
    if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
    problem(name, fmt::format("{} is not {}{}", quoted(*value), list_of(words), did_you_mean(text, words)),
            std::string(way_out));
    return std::nullopt;
  }
  problem(name, fmt::format("{} is not {}", quoted(*value), list_of(words)), std::string(way_out));
  return std::nullopt;
}

void ObjectReader::accept(std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) member(name);
}

void ObjectReader::finish() {
  if (object_ == nullptr) return;
  constexpr std::size_t most_unknown = 20;  // a flood would take its time and help nobody
  std::size_t unknown = 0;
  for (const auto& [name, value] : object_->items()) {
    if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
    if (++unknown > most_unknown) continue;
    const std::string near = did_you_mean(name, known_);
    problem(name, "unknown field" + near, near.empty() ? fields_here(known_) : std::string());
  }
  if (unknown <= most_unknown) return;
  problems_.push_back(
      {std::string(file_), pointer_, fmt::format("{} more unknown fields", unknown - most_unknown), {}, 0, 0});
}

}  // namespace shardplan::io
