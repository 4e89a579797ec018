// The card of a topic, for the run and the symbols that a command line states.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "command.hpp"
#include "shardplan/explain/topics.hpp"

namespace shardplan::cli {

/// SYMBOL=VALUE as stated; a flag of the run is one of its fields.
struct Let {
  std::string name;
  std::string text;
  double value = 0;
  bool is_number = false;
};

/// Every --let of a command line.
Result<std::vector<Let>> lets_of(const Arguments& arguments);

/// What explain_topic makes of a run, and what was wrong on the way.
struct Card {
  explain::Explanation explanation;
  Diagnostics problems;
  std::vector<std::string> notes;
};

/// The card of a topic, of the stated run or of the topic's example. `word`: what the topic was asked for by.
Card card_of(const explain::Topic& topic, std::string_view word, Arguments arguments, const std::vector<Let>& lets);

}  // namespace shardplan::cli
