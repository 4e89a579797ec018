// What a JSON file is, by the fields that only one kind of file has: files are easily given in each other's place.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "shardplan/core/diagnostic.hpp"

namespace shardplan::io {

enum class FileKind : std::uint8_t { unknown, run, model, cluster, schedule, estimate };

FileKind kind_of(const nlohmann::json& object);

/// The one problem of a file that is another kind than `wanted`: what it looks like and what to type. Nothing to say
/// where it may be what is wanted.
Diagnostics wrong_kind(const nlohmann::json& object, FileKind wanted, const std::string& file);

}  // namespace shardplan::io
