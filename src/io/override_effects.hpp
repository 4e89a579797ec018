// What flags do to a run beside setting their fields.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shardplan/core/diagnostic.hpp"
#include "shardplan/core/run.hpp"
#include "shardplan/io/overrides.hpp"
#include "shardplan/io/run_file.hpp"

namespace shardplan::io {

/// A `data` of the file that a flag made void.
struct DroppedData {
  std::string value;
  std::string flag;
};

/// A `data` of the file does not hold once a flag changes what it follows from: it is taken out of `root`.
std::optional<DroppedData> drop_derived_data(nlohmann::json& root, const std::vector<Override>& overrides);

/// A flag that states a built-in GPU's marketed memory and nothing else of it means another card: what it reports and
/// what a run can use keep their shares of it. `root`: overridden, the GPU an object.
void follow_memory(nlohmann::json& root, const std::vector<Override>& overrides, const nlohmann::json& built_in_gpu);

/// A flag for a part of the adapters of a run that has none would switch them on unasked, with a rank nobody chose: a
/// problem.
void require_adapters(nlohmann::json& root, const RunInput& input, std::string_view file, Diagnostics& problems);

/// A file may state everything; who types a flag expects that it does something.
void note_flags_without_effect(const Run& run, const std::vector<Override>& overrides, std::vector<std::string>& notes);

}  // namespace shardplan::io
