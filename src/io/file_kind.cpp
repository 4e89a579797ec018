#include "file_kind.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string_view>

namespace shardplan::io {
namespace {

bool has_any(const nlohmann::json& object, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), [&](const char* name) { return object.contains(name); });
}

bool has_all(const nlohmann::json& object, std::initializer_list<const char*> names) {
  return std::all_of(names.begin(), names.end(), [&](const char* name) { return object.contains(name); });
}

constexpr std::array<std::string_view, 6> kind_names = {
    "",
    "a run file",
    "a model's config.json",
    "a cluster file",
    "a schedule with given times",
    "the output of estimate",
};

/// How a file of this kind is typed.
std::string command_for(FileKind kind, const std::string& file) {
  switch (kind) {
    case FileKind::run: return fmt::format("shardplan estimate {}", file);
    case FileKind::model: return fmt::format("shardplan estimate --model {} --cluster NAME --gpus N", file);
    case FileKind::cluster: return fmt::format("shardplan estimate --model NAME --cluster {} --gpus N", file);
    case FileKind::schedule: return fmt::format("shardplan schedule --spec {}", file);
    default: return "its member \"run\" is a run file";
  }
}

}  // namespace

FileKind kind_of(const nlohmann::json& object) {
  if (!object.is_object()) return FileKind::unknown;
  const auto schema = object.find("schema");
  if (schema != object.end() && *schema == "shardplan/estimate/v1") return FileKind::estimate;
  if (object.contains("model_type")) return FileKind::model;
  if (has_any(object, {"model", "num_gpus", "parallel", "training"})) return FileKind::run;
  if (has_all(object, {"schedule", "p", "m"})) return FileKind::schedule;
  if (has_any(object, {"architectures", "hidden_size", "num_hidden_layers", "n_embd"})) {
    return FileKind::model;
  }
  if (has_any(object, {"gpus_per_node", "intra_node", "inter_node"}) ||
      (object.contains("gpu") && has_any(object, {"host", "num_nodes", "name"}))) {
    return FileKind::cluster;
  }
  return FileKind::unknown;
}

Diagnostics wrong_kind(const nlohmann::json& object, FileKind wanted, const std::string& file) {
  const FileKind kind = kind_of(object);
  if (kind == FileKind::unknown || kind == wanted) return {};
  const auto word = [](FileKind k) { return kind_names[static_cast<std::size_t>(k)]; };
  // A run has a pipeline of its own to draw.
  const std::string command = kind == FileKind::run && wanted == FileKind::schedule
                                  ? fmt::format("shardplan schedule {}", file)
                                  : command_for(kind, file);
  return {{file, "", fmt::format("looks like {}, not like {}: {}", word(kind), word(wanted), command), "", 0, 0}};
}

}  // namespace shardplan::io
