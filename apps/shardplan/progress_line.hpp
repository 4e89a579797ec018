// A line of standard error that is written over and over while a long command lasts.
#pragma once

#include <string_view>

namespace shardplan::cli {

/// Silent for the first second, then about ten times a second at most; gone when it is destroyed.
class ProgressLine {
 public:
  /// Shown where standard error is a terminal.
  ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine() { clear(); }

  /// Whether a line at this time would be written: what it says need not be worked out otherwise.
  bool is_due(double elapsed_s) const noexcept;
  /// `share`: of the work that is done, above 0. "12%, DONE, about 3 s left"
  void show(double elapsed_s, double share, std::string_view done);
  void clear();

 private:
  bool shown_;
  bool drawn_ = false;
  double next_s_ = 1;
};

}  // namespace shardplan::cli
