// What the text and the picture of a sweep share.
#pragma once

#include <string>

#include "shardplan/plan/sweep.hpp"
#include "shardplan/report/style.hpp"

namespace shardplan::report {

/// A value of an axis: integers with commas, texts without quotes.
std::string axis_value(const std::string& value);

/// "tp 4, mbs 1"
std::string point_name(const plan::Sweep& sweep, std::size_t point);

/// "BEST  tp 4, mbs 1: MFU 52.1%, 59.1 of 79.65 GiB needed | 4 of 16 fit", or what is nearest to fitting.
std::string sweep_headline(const plan::Sweep& sweep, Units units);

/// "most tokens/s", "least step"
std::string best_words(const plan::ResultField& objective);

/// "MFU", "need GiB"
std::string head_of(const plan::ResultField& field, Units units);

/// Memory beyond the card: "+3.2".
std::string excess_text(const plan::SweepPoint& point, Units units);

/// The least and the most of a figure over the points that fit.
struct ValueSpan {
  double least = 0;
  double most = 0;
};
ValueSpan span_of(const plan::Sweep& sweep, const plan::ResultField& field);

/// Where a value lies in a span, 0 to 1 towards the better end.
double rank_in(const ValueSpan& span, const plan::ResultField& field, double value) noexcept;

}  // namespace shardplan::report
