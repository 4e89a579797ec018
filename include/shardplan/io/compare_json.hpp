// Runs side by side for programs: schema shardplan/compare/v1, and the fields in which resolved runs differ.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shardplan/io/catalog_source.hpp"
#include "shardplan/plan/compare.hpp"

namespace shardplan::io {

/// Every field of the runs as resolved_run_json() writes them; lists are values. Where one run states a cluster's
/// members and another the name of a built-in one, the latter's members stand for it.
std::vector<plan::InputRow> input_rows(std::span<const std::string_view> resolved, const CatalogSource& catalog);

/// One object with a line feed at its end: the inputs, then the results; `all`: equal ones too. A result that is not
/// known is null.
std::string compare_json(const plan::Comparison& comparison, bool all);

}  // namespace shardplan::io
