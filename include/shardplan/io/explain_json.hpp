// `explain --json` and `estimate --explain --json` (schema shardplan/explain/v1).
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "shardplan/explain/explanation.hpp"

namespace shardplan::explain {
class Terms;
struct Topic;
}  // namespace shardplan::explain

namespace shardplan::io {

/// One explanation as a document.
std::string explain_json(const explain::Explanation& explanation, std::string_view version);

/// Several, in "topics".
std::string explain_all_json(std::span<const explain::Explanation> explanations, std::string_view version);

/// Every address of a run's estimate, in "addresses".
std::string addresses_json(const explain::Terms& terms, std::string_view version);

/// Topics as a list (schema shardplan/list/v1, kind "topics").
std::string topics_json(std::string_view version, std::span<const explain::Topic* const> topics);

}  // namespace shardplan::io
