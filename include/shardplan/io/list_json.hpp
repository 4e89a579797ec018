// What is built in, as JSON: `list KIND --json`.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "shardplan/core/model.hpp"

namespace shardplan::explain {
struct Topic;
}

namespace shardplan::io {

/// {"schema":"shardplan/list/v1","version":...,"kind":...,"items":[...]}, one item a line.
std::string list_json(std::string_view kind, std::string_view version, const std::vector<std::string>& items);

/// An entry of configs/gpus with every field that a cluster file may hold; what the entry leaves out is filled in
/// (memory_cuda_gib, marked by memory_is_estimated). A cluster file accepts it as `gpu`.
std::string gpu_item(const nlohmann::json& entry);

/// An entry of configs/clusters with the defaults filled in. It is a cluster file.
std::string cluster_item(const nlohmann::json& entry, int scale_up_domain);

/// An entry of configs/stacks.
std::string stack_item(const nlohmann::json& entry);

std::string model_item(const Model& model, const std::vector<std::string>& aliases, std::string_view source);

std::vector<std::string> schedule_items();
std::vector<std::string> optimizer_items();
std::vector<std::string> dtype_items();
std::string topic_item(const explain::Topic& topic);
/// A kind itself.
std::string kind_item(std::string_view name, std::string_view description);

}  // namespace shardplan::io
