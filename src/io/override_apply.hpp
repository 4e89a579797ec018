// Sets one field of a document from outside.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "shardplan/core/diagnostic.hpp"
#include "shardplan/io/overrides.hpp"

namespace shardplan::io {

inline constexpr std::string_view command_line = "command line";

/// Whether a pointer is that of `outer` or of something in it.
constexpr bool is_inside(std::string_view pointer, std::string_view outer) noexcept {
  return pointer.substr(0, outer.size()) == outer && (pointer.size() == outer.size() || pointer[outer.size()] == '/');
}

/// The value of an override as JSON.
nlohmann::json override_value(const Override& change);

/// Sets the field, making objects on the way; a problem where a list has no such place.
void apply_override(nlohmann::json& root, const Override& change, Diagnostics& problems);

/// zero_stage and fsdp exclude each other: a flag for one takes the place of what the file says of the other, with a
/// note. Not where the framework is torch's fsdp, whose sharding no zero_stage replaces. `root`: overridden.
void drop_other_sharding(nlohmann::json& root, const std::vector<Override>& overrides, std::string_view file,
                         std::vector<std::string>& notes);

/// The member at a pointer, or nullptr.
const nlohmann::json* find_pointer(const nlohmann::json& root, std::string_view pointer);
nlohmann::json* find_pointer(nlohmann::json& root, std::string_view pointer);
/// Removes the member at a pointer, where there is one.
void erase_pointer(nlohmann::json& root, std::string_view pointer);

}  // namespace shardplan::io
