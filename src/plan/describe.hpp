// Words for broken rules, by subject.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "shardplan/core/diagnostic.hpp"
#include "shardplan/core/run.hpp"
#include "shardplan/plan/fields.hpp"
#include "shardplan/plan/legality.hpp"

namespace shardplan::plan {

struct Words {
  std::string message;
  std::vector<WayOut> ways =
      {};  ///< the likeliest first; whoever knows the whole input may drop those that do not help
};

/// One or two fields to set; JSON values. "null" leaves a field out.
WayOut set(Field field, std::string value, std::string words = {});
WayOut set(Field field, std::string value, Field also, std::string also_value, std::string words = {});
/// Adds a setting to a way out.
WayOut with(WayOut way, Field field, std::string value);
/// Only words; no way at all where they are empty.
std::vector<WayOut> say(std::string words);
/// `words` first, then the ways.
std::vector<WayOut> say(std::string words, std::vector<WayOut> ways);
/// The ways in the words of a run file: "set /parallel/zero_stage to 1, or leave /parallel/fsdp out".
std::string text_of(const std::vector<WayOut>& ways);

struct Subject {
  const Run& run;
  const ModelFacts& facts;
  std::span<const int> layers_per_stage;
};

/// Each describes the rules of its subject and returns empty words for every other rule.
Words describe_world(Rule rule, const Subject& subject);
Words describe_model_split(Rule rule, const Subject& subject);
Words describe_sharding(Rule rule, const Subject& subject);
Words describe_schedule(Rule rule, const Subject& subject);
Words describe_training(Rule rule, const Subject& subject);

/// "1, 2, 4"
std::string join(const std::vector<std::int64_t>& values);
/// "1, 2 and 4"
std::string join_words(const std::vector<std::string>& words, const char* conjunction);
/// At most seven divisors of a number, those next to a value, ascending.
std::vector<std::int64_t> divisors_near(std::int64_t number, std::int64_t value);
/// "nearest: 96, 128": the multiples of a step below and above a value, within 1 to `most`.
std::string nearest_multiples(std::int64_t value, std::int64_t step, std::int64_t most);

}  // namespace shardplan::plan
