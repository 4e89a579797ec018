#include "shardplan/report/style.hpp"

#include <array>

namespace shardplan::report {

std::string_view sgr(Role role) noexcept {
  static constexpr std::array<std::string_view, 19> codes = {
      "",   "1;32", "1;31", "33",         "1",          "2",          "34",         "36",         "35",        "33",
      "37", "32",   "90",   "97;48;5;17", "97;48;5;18", "97;48;5;24", "97;48;5;30", "97;48;5;29", "97;48;5;28"};
  return codes[static_cast<std::size_t>(role)];
}

}  // namespace shardplan::report
