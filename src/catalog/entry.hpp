// The tables that cmake/EmbedCatalog.cmake writes.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace shardplan::catalog {

struct Entry {
  std::string_view name;  ///< as printed
  std::string_view text;  ///< JSON
};

/// A name or alias in lower case.
struct Key {
  std::string_view text;
  std::uint16_t entry = 0;  ///< index of the entry
};

/// One kind: entries in the order of lists, keys sorted by their bytes.
struct Shelf {
  std::span<const Entry> entries;
  std::span<const Key> keys;
};

Shelf models_shelf() noexcept;
Shelf gpus_shelf() noexcept;
Shelf clusters_shelf() noexcept;
Shelf stacks_shelf() noexcept;
Shelf runs_shelf() noexcept;

}  // namespace shardplan::catalog
