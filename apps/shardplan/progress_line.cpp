#include "progress_line.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <string>

#include "system.hpp"

namespace shardplan::cli {
namespace {

void write(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace

ProgressLine::ProgressLine() : shown_(is_terminal(Stream::error)) {}

bool ProgressLine::is_due(double elapsed_s) const noexcept { return shown_ && elapsed_s >= next_s_; }

void ProgressLine::show(double elapsed_s, double share, std::string_view done) {
  constexpr double pause_s = 0.1;
  next_s_ = elapsed_s + pause_s;
  write(fmt::format("\r\033[K{:.0f}%, {}, about {:.0f} s left", 100 * share, done, elapsed_s * (1 / share - 1)));
  drawn_ = true;
}

void ProgressLine::clear() {
  if (drawn_) write("\r\033[K");
  drawn_ = false;
}

}  // namespace shardplan::cli
