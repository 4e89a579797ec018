// How text for people looks: page width, colour, character set and the unit of sizes.
#pragma once

#include <cstdint>
#include <string_view>

namespace shardplan::report {

/// The unit that sizes are printed in: 2^30 or 10^9 bytes.
enum class Units : std::uint8_t { gib, gb };

struct Style {
  int width = 100;     ///< columns of the page; lines are folded to it
  bool color = false;  ///< SGR colours; without them the text is the same bytes everywhere
  bool ascii = false;  ///< no character beyond ASCII
  Units units = Units::gib;
  bool palette = false;  ///< the terminal has 256 colours: heat maps may use them
};

/// What a piece of text means. Colour repeats a meaning that the words carry, it never is the only carrier.
enum class Role : std::uint8_t {
  plain,
  good,     ///< fits, passes, better
  bad,      ///< does not fit, fails
  warning,  ///< near a limit
  heading,  ///< section heads, totals, the numbers of the first line
  dim,      ///< sources, hints, units
  // The parts of a GPU's memory, in bars and columns.
  parameters,
  gradients,
  optimizer,
  activations,
  transient,
  communication,
  framework,
  // Cells of a heat map, from the worst to the best: backgrounds, for terminals of 256 colours.
  heat1,
  heat2,
  heat3,
  heat4,
  heat5,
  heat6
};

/// Parameters of the SGR escape ("1;32"), from the 16 ANSI colours so that the user's theme decides, the heat
/// map's apart. Empty for plain.
std::string_view sgr(Role role) noexcept;

}  // namespace shardplan::report
