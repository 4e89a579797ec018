// Runs a program and collects what it says.
#pragma once

#include <string>
#include <vector>

namespace test {

struct ProcessResult {
  int status = -1;  ///< exit status; 128 + signal when a signal ended it; -1 when it could not be started
  std::string out;
  std::string err;
  double seconds = 0;  ///< of processor time, so that a busy machine does not count
};

/// Runs `arguments[0]` with the rest, `input` on its standard input, in `folder` ("" = here). Both streams are captured
/// whole. `environment` entries ("NAME=value") are added to a minimal environment (PATH, HOME, LC_ALL=C.UTF-8).
ProcessResult run_process(const std::vector<std::string>& arguments, const std::string& input = {},
                          const std::string& folder = {}, const std::vector<std::string>& environment = {});

/// Whether this machine has pseudo-terminals: a bare chroot has none.
bool has_terminals();

/// A file's bytes; empty when it cannot be read.
std::string read_file(const std::string& path);

/// A folder of its own, removed with everything in it at the end of the scope.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string path() const { return path_; }
  /// Writes a file into it; its path.
  std::string write(const std::string& name, const std::string& bytes) const;

 private:
  std::string path_;
};

}  // namespace test
