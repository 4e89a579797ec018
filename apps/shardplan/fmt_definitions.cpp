// fmt's compiled functions for the statically linked program: Debian ships libfmt as a shared library only. This file
// is built with fmt's header-only target, whose headers hold the definitions; what vformat() reaches is what the other
// files refer to. Built without inlining, so that each function is emitted.
#include <fmt/format.h>

namespace shardplan::cli {

/// Refers to vformat() and to fmt's exception from outside any function, which keeps their definitions.
using Format = std::string (*)(fmt::string_view, fmt::format_args);
extern const Format fmt_vformat;
const Format fmt_vformat = &fmt::vformat;

}  // namespace shardplan::cli
