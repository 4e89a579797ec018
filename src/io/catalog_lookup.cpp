#include "catalog_lookup.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "object_reader.hpp"
#include "shardplan/io/suggest.hpp"

namespace shardplan::io {
namespace {

std::string_view noun(CatalogKind kind) {
  constexpr std::array<std::string_view, 4> nouns = {"model", "GPU", "cluster", "stack"};
  return nouns[static_cast<std::size_t>(kind)];
}

}  // namespace

std::shared_ptr<const nlohmann::json> look_up(CatalogKind kind, std::string_view name, std::string_view file,
                                              std::string_view pointer, const CatalogSource& catalog,
                                              Diagnostics& problems) {
  const auto text = catalog.find(kind, name);
  if (!text) {
    const std::string word = quoted(nlohmann::json(std::string(name)));
    problems.push_back(
        {std::string(file), std::string(pointer),
         fmt::format("{} is not a built-in {}{}", word, noun(kind), did_you_mean(name, catalog.names(kind))),
         fmt::format("shardplan list {} shows them", shardplan::name(kind)), 0, 0});
    return nullptr;
  }
  auto object = std::make_shared<nlohmann::json>(nlohmann::json::parse(*text, nullptr, false));
  if (object->is_discarded()) {
    problems.push_back({std::string(file),
                        std::string(pointer),
                        fmt::format("the catalog's entry \"{}\" is not JSON", name),
                        {},
                        0,
                        0});
    return nullptr;
  }
  return object;
}

}  // namespace shardplan::io
