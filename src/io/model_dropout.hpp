// Dropout rates that a published config.json states and a run does not take.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "shardplan/core/diagnostic.hpp"

namespace shardplan::io {

/// Warning model_dropout_unused where a config has a rate above 0: a run's dropout is the run's own. A field is looked
/// for at the top, in text_config and in attn_config.
std::optional<Warning> unused_dropout(const nlohmann::json& config);

}  // namespace shardplan::io
