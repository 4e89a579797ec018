// JSON pointers as people type and read them.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace shardplan {

/// "/parallel/tensor" as "parallel.tensor".
inline std::string dotted(std::string_view pointer) {
  std::string path(pointer.substr(pointer.empty() ? 0 : 1));
  std::replace(path.begin(), path.end(), '/', '.');
  return path;
}

}  // namespace shardplan
