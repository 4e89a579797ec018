// A model as JSON: a Hugging Face config.json as published, or the generic model_type "transformer".
//
// docs/models.md lists the model types, their rules and the fields of the generic type.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shardplan/core/diagnostic.hpp"
#include "shardplan/core/model.hpp"
#include "shardplan/physics/matrices.hpp"

namespace shardplan::io {

/// Reads a config.json object. `file` and `pointer` say where it stands, for the messages. Every problem is reported;
/// nothing is thrown. Absent fields take the default of the model type's configuration class; null means "derive".
///
/// The result's `name` is that of the file (`name` of the generic type, or `shardplan.name`), or empty: the caller
/// knows better names. A learned position table without `max_position_embeddings` (generic type) has position_rows 0:
/// it has as many rows as the run's sequence is long.
Result<Model> read_model(const nlohmann::json& config, std::string_view file, std::string_view pointer);

/// The matrices that a `peft.targets` name stands for in this model: a module name of the model's family or a suffix
/// of one at a dot ("c_proj", "attn.c_proj"), one of our own names or an alias of the generic type, or "all-linear".
/// Nothing when the model has no such matrix.
std::optional<MatrixSet> module_matrices(const Model& model, std::string_view target);

/// The names that `module_matrices` knows for this model, for messages.
std::vector<std::string_view> module_names(const Model& model);

/// The weight matrices that the model has.
MatrixSet matrices_of(const Model& model);

/// Other names of a built-in model: `shardplan.aliases` of its file; empty when there are none.
std::vector<std::string> model_aliases(const nlohmann::json& config);

/// Every model_type that can be read, in order of the alphabet.
std::vector<std::string_view> supported_model_types();

}  // namespace shardplan::io
