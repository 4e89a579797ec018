// The members of a run file, read into a draft.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "shardplan/core/diagnostic.hpp"
#include "shardplan/plan/field_table.hpp"
#include "shardplan/plan/resolve.hpp"

namespace shardplan::io {

using plan::largest_degree;
using plan::largest_global_batch;

/// Takes unknown members out of a run's objects. Each is a problem, and where it looks like a known one that is absent
/// it is taken for that one, so that the checks behind it still run.
void remove_unknown_fields(nlohmann::json& root, std::string_view file, Diagnostics& problems);

/// The fields of the object at `pointer` ("/parallel") and of those in it. Members that state a value land in
/// `draft.run` and `draft.given`, those that cannot be read in `draft.unusable`. Not read here: model, cluster, the
/// stack's constants, peft.targets.
void read_section(const nlohmann::json& object, std::string_view file, std::string_view pointer, plan::Draft& draft,
                  Diagnostics& problems);
/// One field of an object that may hold others.
void read_field(const plan::FieldRow& row, const nlohmann::json& object, std::string_view file, plan::Draft& draft,
                Diagnostics& problems);
void read_requirements(const nlohmann::json& require, std::string_view file, plan::Draft& draft, Diagnostics& problems);

}  // namespace shardplan::io
