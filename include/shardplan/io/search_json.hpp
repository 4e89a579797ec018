// A search's answer as JSON: schema shardplan/search/v1.
#pragma once

#include <string>

#include "shardplan/plan/search_report.hpp"

namespace shardplan::io {

/// One object, members in the schema's order. An entry's `parallel` and `training`, put over the run file, give the
/// run whose estimate has the entry's numbers, to the last bit.
std::string search_json(const plan::SearchReport& report);

}  // namespace shardplan::io
