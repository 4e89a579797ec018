// Typed access to the fields of one JSON object. Problems are collected, each once; nothing is thrown.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shardplan/core/diagnostic.hpp"

namespace shardplan::io {

/// The spellings of one field; the first that the object has with a value other than null counts.
class Keys {
 public:
  constexpr Keys(const char* key) : names_{key}, count_(1) {}       // NOLINT: implicit, for call sites
  constexpr Keys(std::string_view key) : names_{key}, count_(1) {}  // NOLINT
  constexpr Keys(std::initializer_list<std::string_view> keys) {    // NOLINT
    for (const std::string_view key : keys) names_[count_++] = key;
  }
  constexpr const std::string_view* begin() const noexcept { return names_.data(); }
  constexpr const std::string_view* end() const noexcept { return names_.data() + count_; }

 private:
  std::array<std::string_view, 8> names_{};
  std::size_t count_ = 0;
};

enum class State : std::uint8_t { absent, null, wrong, present };

struct Integer {
  State state = State::absent;
  std::int64_t value = 0;
  std::string_view key;  ///< the spelling found, else the first one

  /// The value, with what an absent and a null field stand for; 0 for a wrong one, which has been reported.
  std::int64_t value_or(std::int64_t if_absent, std::int64_t if_null) const noexcept {
    switch (state) {
      case State::absent: return if_absent;
      case State::null: return if_null;
      case State::wrong: return 0;
      case State::present: break;
    }
    return value;
  }
};

class Fields {
 public:
  /// `object` and `problems` must outlive this.
  Fields(const nlohmann::json& object, std::string_view file, std::string pointer, Diagnostics& problems);

  bool has(std::string_view key) const;
  bool is_list(std::string_view key) const;
  bool is_text(std::string_view key) const;
  /// Has the field, with a value other than null.
  bool given(const Keys& keys) const;

  Integer integer(const Keys& keys, std::int64_t least, std::int64_t most) const;
  /// A field that must be there, with a value.
  std::int64_t required(const Keys& keys, std::int64_t least, std::int64_t most) const;
  /// null reads as false.
  bool flag(const Keys& keys, bool if_absent) const;
  double number(const Keys& keys, double if_absent, double least, double most) const;
  std::string text(const Keys& keys, std::string_view if_absent) const;
  /// Nothing when absent, null or wrong.
  std::optional<std::vector<std::string>> texts(std::string_view key) const;
  std::optional<std::vector<std::int64_t>> integers(std::string_view key, std::int64_t least, std::int64_t most) const;
  std::optional<Fields> object(std::string_view key) const;
  /// The objects of a list of objects.
  std::vector<Fields> objects(std::string_view key) const;

  /// Reports every field that is not in `known`, with a "did you mean".
  void only(const std::vector<std::string_view>& known, std::string_view what) const;

  void problem(std::string_view key, std::string message, std::string way_out = {}) const;

 private:
  struct Found {
    const nlohmann::json* value = nullptr;
    std::string_view key;
  };
  Found find(const Keys& keys) const;
  void wrong_type(std::string_view key, const nlohmann::json& value, std::string_view rule) const;

  const nlohmann::json* object_;
  std::string file_;
  std::string pointer_;
  Diagnostics* problems_;
};

}  // namespace shardplan::io
