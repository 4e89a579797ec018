// Texts of enums: one static table per enum, beside the enum, in enumerator order.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace shardplan {

/// Specialise next to the enum: `template <> inline constexpr std::array names_of<Loss> = {...};`
template <class Enum>
inline constexpr int names_of = 0;

/// The text of an enumerator as files and output spell it.
template <class Enum>
constexpr std::string_view name(Enum value) noexcept {
  return names_of<Enum>[static_cast<std::size_t>(value)];
}

/// The enumerator that a text spells, or nothing. Exact match.
template <class Enum>
constexpr std::optional<Enum> parse_name(std::string_view text) noexcept {
  for (std::size_t i = 0; i < names_of<Enum>.size(); ++i) {
    if (names_of<Enum>[i] == text) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

}  // namespace shardplan
