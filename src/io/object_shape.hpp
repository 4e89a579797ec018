// What a reader asks an object for: the calls that read a file describe it as well.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "shardplan/core/value_type.hpp"

namespace shardplan::io {

struct ObjectShape {
  enum class Form : std::uint8_t { value, object, list, anything };

  struct Entry {
    std::string name;
    std::string about;
    Form form = Form::anything;
    ValueType type = {};
    std::vector<std::string> words = {};  ///< those of the type
    std::vector<ObjectShape> inner = {};  ///< the object's, or that of a list's entries
    bool required = false;
  };

  /// The entry of that name, made where there is none.
  Entry& entry(std::string_view name);

  std::vector<Entry> entries;
};

}  // namespace shardplan::io
