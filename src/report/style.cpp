#include "shardplan/report/style.hpp"

#include <array>

namespace shardplan::report {

std::string_view sgr(Role role) noexcept {
  static constexpr std::array<std::string_view, 13> codes = {"",   "1;32", "1;31", "33", "1",  "2", "34",
                                                             "36", "35",   "33",   "37", "32", "90"};
  return codes[static_cast<std::size_t>(role)];
}

}  // namespace shardplan::report
