// Text as UTF-8: what files and the names of files may fail to be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace shardplan {

/// Length of the UTF-8 character that starts here, 0 when it is none (overlong forms and surrogates included).
inline std::size_t utf8_length(std::string_view text, std::size_t at) noexcept {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<std::uint8_t>(text[i]) : std::uint8_t{0};
  };
  const auto continues = [&](std::size_t i) {
    return i < text.size() && (static_cast<std::uint8_t>(text[i]) & 0xC0U) == 0x80U;
  };
  const std::uint8_t b = byte(at);
  if (b < 0x80) return 1;
  if (b >= 0xC2 && b <= 0xDF) return continues(at + 1) ? 2 : 0;
  if (b >= 0xE0 && b <= 0xEF) {
    const std::uint8_t second = byte(at + 1);
    if ((b == 0xE0 && second < 0xA0) || (b == 0xED && second > 0x9F)) return 0;
    return continues(at + 1) && continues(at + 2) ? 3 : 0;
  }
  if (b >= 0xF0 && b <= 0xF4) {
    const std::uint8_t second = byte(at + 1);
    if ((b == 0xF0 && second < 0x90) || (b == 0xF4 && second > 0x8F)) return 0;
    return continues(at + 1) && continues(at + 2) && continues(at + 3) ? 4 : 0;
  }
  return 0;
}

/// The text with U+FFFD for every byte that belongs to no character.
inline std::string as_utf8(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    out += length == 0 ? std::string_view("\xEF\xBF\xBD") : text.substr(at, length);
    at += length == 0 ? 1 : length;
  }
  return out;
}

}  // namespace shardplan
