// The frameworks that are known: the one list of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "shardplan/core/names.hpp"

namespace shardplan {

/// A row is a framework's word in files and output. What it does stands in src/physics/frameworks/<word>.cpp; a row
/// without that file does not link.
#define SHARDPLAN_FRAMEWORKS(ROW) ROW(textbook) ROW(megatron) ROW(deepspeed) ROW(fsdp) ROW(ddp) ROW(dp) ROW(nanotron)

#define SHARDPLAN_ENUMERATOR(word) word,
#define SHARDPLAN_WORD(word) #word,
enum class Framework : std::uint8_t { SHARDPLAN_FRAMEWORKS(SHARDPLAN_ENUMERATOR) };
template <>
inline constexpr std::array names_of<Framework> =
    std::to_array<std::string_view>({SHARDPLAN_FRAMEWORKS(SHARDPLAN_WORD)});
#undef SHARDPLAN_ENUMERATOR
#undef SHARDPLAN_WORD

inline constexpr std::size_t framework_count = names_of<Framework>.size();

}  // namespace shardplan
