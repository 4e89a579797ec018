// One constant a framework, each defined in the file of its name.
#pragma once

#include "shardplan/physics/frameworks/facts.hpp"

namespace shardplan::frameworks {

#define SHARDPLAN_DECLARE(word) extern const FrameworkFacts word;
SHARDPLAN_FRAMEWORKS(SHARDPLAN_DECLARE)
#undef SHARDPLAN_DECLARE

}  // namespace shardplan::frameworks
