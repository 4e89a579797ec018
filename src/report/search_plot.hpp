// The front of a search, drawn with characters.
#pragma once

#include <vector>

#include "shardplan/plan/search_report.hpp"
#include "shardplan/report/style.hpp"
#include "shardplan/report/text.hpp"

namespace shardplan::report {

/// What the card has to hold from left to right, tokens/s upwards; one mark a layout of the front, the best one `*`.
std::vector<Text> front_plot(const plan::SearchReport& report, const Style& style);

}  // namespace shardplan::report
