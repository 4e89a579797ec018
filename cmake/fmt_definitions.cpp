// fmt's compiled functions, a part of the library: distributions ship libfmt as a shared library for one standard
// library only. This file alone includes fmt as header-only, where the headers hold the definitions; what vformat()
// reaches is what the other files refer to. Built without inlining, so that each function is emitted.
#define FMT_HEADER_ONLY 1
#include <fmt/format.h>

namespace shardplan {

/// Refers to vformat() and to fmt's exception from outside any function, which keeps their definitions.
using Format = std::string (*)(fmt::string_view, fmt::format_args);
extern const Format fmt_vformat;
const Format fmt_vformat = &fmt::vformat;

}  // namespace shardplan
