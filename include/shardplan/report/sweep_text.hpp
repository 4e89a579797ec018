// A sweep for people: a table or a heat map, and as a picture.
#pragma once

#include <string>

#include "shardplan/plan/sweep.hpp"
#include "shardplan/report/style.hpp"

namespace shardplan::report {

/// A figure as it is printed in tables: "59.8", "52.4%", "28.05 s", "149.6k".
std::string figure_text(const plan::ResultField& field, double value, Units units);

/// The best point first. One axis: a row a value with a bar of its memory; two: a heat map for each shown figure; more,
/// or more columns than the page has: a row a point. Below it the rules that illegal points break.
std::string sweep_text(const plan::Sweep& sweep, const Style& style, bool quiet);

std::string sweep_markdown(const plan::Sweep& sweep, const Style& style, bool quiet);

/// Every figure of every point, plain numbers.
std::string sweep_csv(const plan::Sweep& sweep);

/// One axis: curves of the shown figures; two: a heat map of the first. A document of its own.
std::string sweep_svg(const plan::Sweep& sweep, Units units);

}  // namespace shardplan::report
