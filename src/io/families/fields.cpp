#include "fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "object_reader.hpp"
#include "shardplan/io/suggest.hpp"

namespace shardplan::io {

using nlohmann::json;

namespace {

/// A JSON pointer's token: RFC 6901 escapes ~ and /.
std::string escaped(std::string_view key) {
  std::string out;
  for (const char c : key) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out += c;
    }
  }
  return out;
}

/// " is a text, not" for scalars, whose text shows what they are; " is not" for the rest.
std::string_view kind_of(const json& value) {
  if (value.is_string()) return " is a text, not";
  return " is not";
}

/// A whole number, also one written with a fraction of zero (4096.0).
std::optional<std::int64_t> whole(const json& value) {
  constexpr double exact = 9007199254740992.0;  // 2^53
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    return static_cast<std::int64_t>(std::min(number, most));
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (!value.is_number_float()) return std::nullopt;
  const double number = value.get<double>();
  if (!(std::abs(number) <= exact) || number != std::floor(number)) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

}  // namespace

Fields::Fields(const json& object, std::string_view file, std::string pointer, Diagnostics& problems)
    : object_(&object), file_(file), pointer_(std::move(pointer)), problems_(&problems) {}

bool Fields::has(std::string_view key) const { return object_->find(key) != object_->end(); }

bool Fields::is_list(std::string_view key) const {
  const Found found = find(key);
  return found.value != nullptr && found.value->is_array();
}

bool Fields::is_text(std::string_view key) const {
  const Found found = find(key);
  return found.value != nullptr && found.value->is_string();
}

Fields::Found Fields::find(const Keys& keys) const {
  Found found;
  for (const std::string_view key : keys) {
    const auto at = object_->find(key);
    if (at == object_->end()) continue;
    if (!at->is_null()) return {&*at, key};
    if (found.value == nullptr) found = {&*at, key};
  }
  if (found.value == nullptr) found.key = *keys.begin();
  return found;
}

bool Fields::given(const Keys& keys) const {
  const Found found = find(keys);
  return found.value != nullptr && !found.value->is_null();
}

void Fields::problem(std::string_view key, std::string message, std::string way_out) const {
  Diagnostic diagnostic;
  diagnostic.file = file_;
  diagnostic.pointer = key.empty() ? pointer_ : pointer_ + "/" + escaped(key);
  diagnostic.message = std::move(message);
  diagnostic.way_out = std::move(way_out);
  // A field may be looked at more than once; it is reported once.
  const bool known = std::any_of(problems_->begin(), problems_->end(), [&diagnostic](const Diagnostic& other) {
    return other.pointer == diagnostic.pointer && other.message == diagnostic.message;
  });
  if (!known) problems_->push_back(std::move(diagnostic));
}

void Fields::wrong_type(std::string_view key, const json& value, std::string_view rule) const {
  problem(key, fmt::format("{}{} {}", quoted(value), kind_of(value), rule));
}

Integer Fields::integer(const Keys& keys, std::int64_t least, std::int64_t most) const {
  const Found found = find(keys);
  Integer result;
  result.key = found.key;
  if (found.value == nullptr) return result;
  if (found.value->is_null()) {
    result.state = State::null;
    return result;
  }
  result.state = State::wrong;
  if (!found.value->is_number()) {
    wrong_type(found.key, *found.value, "a whole number");
    return result;
  }
  const std::optional<std::int64_t> number = whole(*found.value);
  if (!number) {
    problem(found.key, fmt::format("{} is not a whole number", quoted(*found.value)));
  } else if (*number < least || *number > most) {
    problem(found.key, fmt::format("{} is not between {} and {}", quoted(*found.value), least, most));
  } else {
    result.state = State::present;
    result.value = *number;
  }
  return result;
}

std::int64_t Fields::required(const Keys& keys, std::int64_t least, std::int64_t most) const {
  const Integer found = integer(keys, least, most);
  if (found.state == State::absent) {
    problem(found.key, fmt::format("{} is missing", found.key), fmt::format("a whole number of at least {}", least));
  } else if (found.state == State::null) {
    problem(found.key, "null is not a whole number", fmt::format("a whole number of at least {}", least));
  }
  return found.value;
}

bool Fields::flag(const Keys& keys, bool if_absent) const {
  const Found found = find(keys);
  if (found.value == nullptr) return if_absent;
  if (found.value->is_null()) return false;
  if (found.value->is_boolean()) return found.value->get<bool>();
  wrong_type(found.key, *found.value, "true or false");
  return if_absent;
}

double Fields::number(const Keys& keys, double if_absent, double least, double most) const {
  const Found found = find(keys);
  if (found.value == nullptr || found.value->is_null()) return if_absent;
  if (!found.value->is_number()) {
    wrong_type(found.key, *found.value, "a number");
    return if_absent;
  }
  const double value = found.value->get<double>();
  if (!(value >= least && value <= most)) {
    problem(found.key, fmt::format("{} is not between {} and {}", quoted(*found.value), least, most));
    return if_absent;
  }
  return value;
}

std::string Fields::text(const Keys& keys, std::string_view if_absent) const {
  const Found found = find(keys);
  if (found.value == nullptr || found.value->is_null()) return std::string(if_absent);
  if (found.value->is_string()) return found.value->get<std::string>();
  wrong_type(found.key, *found.value, "a text");
  return std::string(if_absent);
}

std::optional<std::vector<std::string>> Fields::texts(std::string_view key) const {
  const Found found = find(key);
  if (found.value == nullptr || found.value->is_null()) return std::nullopt;
  if (!found.value->is_array()) {
    wrong_type(key, *found.value, "a list of texts");
    return std::nullopt;
  }
  std::vector<std::string> list;
  for (std::size_t i = 0; i < found.value->size(); ++i) {
    const json& entry = (*found.value)[i];
    if (!entry.is_string()) {
      problem(key, fmt::format("entry {} is {}, not a text", i, quoted(entry)));
      return std::nullopt;
    }
    list.push_back(entry.get<std::string>());
  }
  return list;
}

std::optional<std::vector<std::int64_t>> Fields::integers(std::string_view key, std::int64_t least,
                                                          std::int64_t most) const {
  const Found found = find(key);
  if (found.value == nullptr || found.value->is_null()) return std::nullopt;
  if (!found.value->is_array()) {
    wrong_type(key, *found.value, "a list of whole numbers");
    return std::nullopt;
  }
  std::vector<std::int64_t> list;
  for (std::size_t i = 0; i < found.value->size(); ++i) {
    const std::optional<std::int64_t> number = whole((*found.value)[i]);
    if (!number || *number < least || *number > most) {
      problem(key, fmt::format("entry {}, {}, is not a whole number between {} and {}", i, quoted((*found.value)[i]),
                               least, most));
      return std::nullopt;
    }
    list.push_back(*number);
  }
  return list;
}

std::optional<Fields> Fields::object(std::string_view key) const {
  const Found found = find(key);
  if (found.value == nullptr || found.value->is_null()) return std::nullopt;
  if (!found.value->is_object()) {
    wrong_type(key, *found.value, "an object");
    return std::nullopt;
  }
  return Fields(*found.value, file_, pointer_ + "/" + escaped(key), *problems_);
}

std::vector<Fields> Fields::objects(std::string_view key) const {
  std::vector<Fields> list;
  const Found found = find(key);
  if (found.value == nullptr || found.value->is_null()) return list;
  if (!found.value->is_array()) {
    wrong_type(key, *found.value, "a list of objects");
    return list;
  }
  for (std::size_t i = 0; i < found.value->size(); ++i) {
    if (!(*found.value)[i].is_object()) {
      problem(key, fmt::format("entry {} is {}, not an object", i, quoted((*found.value)[i])));
      return {};
    }
    list.emplace_back((*found.value)[i], file_, fmt::format("{}/{}/{}", pointer_, escaped(key), i), *problems_);
  }
  return list;
}

void Fields::only(const std::vector<std::string_view>& known, std::string_view what) const {
  for (const auto& [key, value] : object_->items()) {
    const bool legal = std::find(known.begin(), known.end(), std::string_view(key)) != known.end();
    if (legal) continue;
    const std::string_view near = closest(key, known);
    problem(key, fmt::format("unknown field of {}", what),
            near.empty() ? fields_here(known) : fmt::format("did you mean \"{}\"?", near));
  }
}

}  // namespace shardplan::io
