#include "shardplan/io/stack_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "catalog_lookup.hpp"
#include "object_reader.hpp"
#include "shardplan/physics/frameworks/facts.hpp"
#include "stack_members.hpp"

namespace shardplan::io {
namespace {

Result<Stack> read_whole_stack(const nlohmann::json& object, std::string_view file, std::string_view pointer) {
  Result<Stack> result;
  ObjectReader reader(object, file, std::string(pointer), result.problems);
  read_stack_members(reader, result.value);
  reader.finish();
  return result;
}

/// What a stack does not take over from the one that it is like: who it is, and what was measured of the other.
void forget_own(nlohmann::json& base) {
  for (const char* own : {"name", "description", "source", "like"}) base.erase(own);
  const auto timing = base.find("timing");
  if (timing != base.end() && timing->is_object()) timing->erase("measured");
}

/// `object` over all that it is like. `chain`: the names on the way here.
std::optional<nlohmann::json> merge(const nlohmann::json& object, std::vector<std::string> chain, std::string_view file,
                                    std::string_view pointer, const CatalogSource& catalog, Diagnostics& problems) {
  if (!object.is_object() || !object.contains("like")) return object;
  const std::string where = std::string(pointer) + "/like";
  const nlohmann::json& like = object["like"];
  if (!like.is_string()) {
    problems.push_back({std::string(file), where, quoted(like) + " is not a stack's name",
                        "a name in quotes (shardplan list stacks)", 0, 0});
    return std::nullopt;
  }
  const std::string& other = like.get_ref<const std::string&>();
  chain.push_back(object.value("name", ""));
  if (std::find(chain.begin(), chain.end(), other) != chain.end()) {
    problems.push_back({std::string(file), where,
                        fmt::format("stack {} is like itself: {}, {}", other, fmt::join(chain, ", "), other),
                        "one of them has to state its values", 0, 0});
    return std::nullopt;
  }
  const auto found = look_up(CatalogKind::stacks, other, file, where, catalog, problems);
  if (!found) return std::nullopt;
  std::optional<nlohmann::json> whole = merge(*found, std::move(chain), file, pointer, catalog, problems);
  if (!whole) return std::nullopt;
  forget_own(*whole);
  whole->merge_patch(object);
  whole->erase("like");
  return whole;
}

}  // namespace

Result<nlohmann::json> whole_stack(const nlohmann::json& object, std::string_view file, std::string_view pointer,
                                   const CatalogSource& catalog) {
  Result<nlohmann::json> result;
  std::optional<nlohmann::json> whole = merge(object, {}, file, pointer, catalog, result.problems);
  if (whole) result.value = std::move(*whole);
  return result;
}

Result<Stack> read_stack(const nlohmann::json& object, std::string_view file, std::string_view pointer,
                         const CatalogSource& catalog) {
  const Result<nlohmann::json> whole = whole_stack(object, file, pointer, catalog);
  if (whole.ok()) return read_whole_stack(whole.value, file, pointer);
  Result<Stack> result;
  result.problems = whole.problems;
  return result;
}

Result<Stack> find_stack(std::string_view name, std::string_view file, std::string_view pointer,
                         const CatalogSource& catalog) {
  Result<Stack> result;
  const auto object = look_up(CatalogKind::stacks, name, file, pointer, catalog, result.problems);
  if (object) result = read_stack(*object, name, "", catalog);
  return result;
}

Stack default_stack(Framework framework, const CatalogSource& catalog) {
  Diagnostics problems;
  const std::string_view entry = facts_of(framework).default_stack;
  const auto object = look_up(CatalogKind::stacks, entry, "", "", catalog, problems);
  Stack stack;
  if (object) stack = read_stack(*object, entry, "", catalog).value;
  stack.framework = framework;
  stack.name.clear();
  return stack;
}

}  // namespace shardplan::io
