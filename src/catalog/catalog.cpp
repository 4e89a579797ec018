#include "shardplan/catalog/catalog.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "entry.hpp"

namespace shardplan::catalog {
namespace {

using io::CatalogKind;

std::string lower_case(std::string_view name) {
  std::string key(name);
  for (char& c : key) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return key;
}

std::optional<std::string_view> find_in(const Shelf& shelf, std::string_view name) {
  const std::string key = lower_case(name);
  const auto before = [](const Key& row, std::string_view word) { return row.text < word; };
  const auto found = std::lower_bound(shelf.keys.begin(), shelf.keys.end(), std::string_view(key), before);
  if (found == shelf.keys.end() || found->text != key) return std::nullopt;
  return shelf.entries[found->entry].text;
}

/// Stacks named so hold what a framework does where no stack is named: not for lists.
bool is_listed(const Entry& entry) { return entry.name.substr(0, 10) != "framework-"; }

std::vector<std::string_view> names_in(const Shelf& shelf) {
  std::vector<std::string_view> names;
  names.reserve(shelf.entries.size());
  for (const Entry& entry : shelf.entries) {
    if (is_listed(entry)) names.push_back(entry.name);
  }
  return names;
}

std::vector<std::string_view> aliases_in(const Shelf& shelf) {
  std::vector<std::string_view> aliases;
  for (const Key& key : shelf.keys) {
    const Entry& entry = shelf.entries[key.entry];
    if (is_listed(entry) && key.text != lower_case(entry.name)) aliases.push_back(key.text);
  }
  return aliases;
}

Shelf shelf_of(CatalogKind kind) {
  switch (kind) {
    case CatalogKind::models: return models_shelf();
    case CatalogKind::gpus: return gpus_shelf();
    case CatalogKind::clusters: return clusters_shelf();
    case CatalogKind::stacks: return stacks_shelf();
  }
  return {};
}

struct BuiltinCatalog final : io::CatalogSource {
  std::optional<std::string_view> find(CatalogKind kind, std::string_view name) const override {
    return find_in(shelf_of(kind), name);
  }
  std::vector<std::string_view> names(CatalogKind kind) const override { return names_in(shelf_of(kind)); }
  std::vector<std::string_view> aliases(CatalogKind kind) const override { return aliases_in(shelf_of(kind)); }
};

}  // namespace

const io::CatalogSource& builtin_catalog() {
  static const BuiltinCatalog catalog;
  return catalog;
}

std::optional<std::string_view> find_run(std::string_view name) { return find_in(runs_shelf(), name); }

std::vector<std::string_view> run_names() { return names_in(runs_shelf()); }

}  // namespace shardplan::catalog
