// Requirements as people read them.
#pragma once

#include <string>

#include "shardplan/plan/requirements.hpp"
#include "shardplan/report/style.hpp"

namespace shardplan::report {

/// A value with its unit: "45.9%", "17.0 GiB", "32.45 s". `more` decimals beyond the usual.
std::string requirement_value(plan::Requirement requirement, double value, Units units, int more = 0);

/// "45.9% < 50.0%", "17.0 GiB >= 4 GiB": with as many decimals as the comparison needs to be seen. Of `fits`: "fits",
/// "does not fit".
std::string comparison(const plan::Verdict& verdict, Units units);

/// The same with what is compared: "MFU 45.9% < 50.0%", "bubble 0.5% <= 10%".
std::string requirement_sentence(const plan::Verdict& verdict, Units units);

}  // namespace shardplan::report
