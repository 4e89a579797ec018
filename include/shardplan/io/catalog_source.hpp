// Where built-in names are looked up. The readers know this interface only; the catalog implements it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "shardplan/core/names.hpp"

namespace shardplan::io {

enum class CatalogKind : std::uint8_t { models, gpus, clusters, stacks };
}  // namespace shardplan::io

namespace shardplan {
template <>
inline constexpr std::array<std::string_view, 4> names_of<io::CatalogKind> = {"models", "gpus", "clusters", "stacks"};
}  // namespace shardplan

namespace shardplan::io {

/// JSON texts by name. Texts and names live as long as the source.
struct CatalogSource {
  CatalogSource() = default;
  CatalogSource(const CatalogSource&) = default;
  CatalogSource& operator=(const CatalogSource&) = default;
  virtual ~CatalogSource() = default;

  /// The JSON text of an entry; case of ASCII letters is ignored and aliases count. Nothing when there is none.
  virtual std::optional<std::string_view> find(CatalogKind kind, std::string_view name) const = 0;

  /// The names (not the aliases) of a kind, in the order in which `list` prints them.
  virtual std::vector<std::string_view> names(CatalogKind kind) const = 0;

  /// The other names by which find() knows the entries of a kind, in lower case.
  virtual std::vector<std::string_view> aliases(CatalogKind kind) const = 0;
};

}  // namespace shardplan::io
