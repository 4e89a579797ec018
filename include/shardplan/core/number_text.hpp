// Numbers of texts: the whole text is the number, whatever the locale.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace shardplan {

/// What std::from_chars takes, as a whole and finite: no space, no plus sign, no hexadecimal digits. Apart because the
/// standard library of clang reads floating numbers from version 20 on only.
std::optional<double> double_from_chars(std::string_view text);

/// The whole text as a number; nothing where it is anything else or the number does not fit.
template <class Number>
std::optional<Number> number_of(std::string_view text, int base = 10) {
  static_assert(std::is_integral_v<Number>);
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}
template <>
inline std::optional<double> number_of<double>(std::string_view text, int /*base*/) {
  return double_from_chars(text);
}

}  // namespace shardplan
