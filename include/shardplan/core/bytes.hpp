// Units of bytes.
#pragma once

namespace shardplan {

inline constexpr double mib = 1024.0 * 1024.0;
inline constexpr double gib = 1024.0 * mib;

}  // namespace shardplan
