// What a JSON value may be: readers, schemas, flags and documents say it from one description.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace shardplan {

/// The numbers that a field takes. `above` and `from` are the lower ends without and with the end itself.
struct NumberRange {
  std::optional<double> above = std::nullopt;
  std::optional<double> from = std::nullopt;
  double to = 1e15;
};

struct ValueType {
  enum class Kind : std::uint8_t {
    integer,  ///< whole, from `range.from` to `range.to`
    number,   ///< in `range`
    rate,     ///< 0 and more, below 1
    boolean,
    word,  ///< one of `words`
    text,
    // Those with a syntax of their own. `words` are what one may spell among other things.
    phrase,  ///< a word, or a word and a number
    name,    ///< of a table or of the catalog
    list,    ///< of words or numbers
    object,  ///< whose members are fields
  };

  Kind kind = Kind::boolean;
  NumberRange range = {};
  std::span<const std::string_view> words = {};
};

}  // namespace shardplan
