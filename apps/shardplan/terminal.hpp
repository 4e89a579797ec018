// What the terminal and the environment allow: colour, characters, columns.
#pragma once

#include "system.hpp"

namespace shardplan::cli {

enum class ColorChoice { automatic, always, never };

/// Colour on a stream: always, never, or where the stream is a terminal, NO_COLOR unset or empty and TERM not "dumb".
bool wants_color(ColorChoice choice, Stream stream);

/// Does TERM or COLORTERM name a terminal of 256 colours or more?
bool has_palette();

/// Does LC_ALL, else LC_CTYPE, else LANG name UTF-8?
bool locale_is_utf8();

/// COLUMNS where it is a positive number, else (`on_stdout`) the width of the terminal on standard output, else
/// `otherwise`.
int terminal_width(bool on_stdout, int otherwise = 100);

}  // namespace shardplan::cli
