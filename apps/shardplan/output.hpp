// Where a result goes: standard output, or a file that appears whole or not at all.
#pragma once

#include <string>
#include <string_view>

#include "system.hpp"

namespace shardplan::cli {

/// Whether two names mean one regular file that exists.
bool is_same_file(const std::string& left, const std::string& right);

/// Opened before the work, so that a path that cannot be written fails at once. A file is written beside its final
/// place and renamed by commit(); without commit() nothing is left behind and an old file stays as it was.
class OutputFile {
 public:
  OutputFile() = default;
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  /// "-": standard output. What is no regular file (a pipe, a device, /dev/stdout wherever that leads) is written
  /// through; it cannot appear whole.
  /// Returns what went wrong, or "".
  std::string open(const std::string& path);

  /// Writes and puts the file in its place. Returns what went wrong (a full disk, say), or "".
  std::string commit(std::string_view text);

 private:
  Descriptor descriptor_ = static_cast<Descriptor>(Stream::output);
  std::string path_;       ///< final place; empty: standard output
  std::string temporary_;  ///< empty: written in place (a device or a pipe)
};

}  // namespace shardplan::cli
