// Ctrl-C as a flag that long work looks at.
#pragma once

#include <atomic>

namespace shardplan::cli {

/// Takes SIGINT while it lives: the first sets `pressed`, a second ends the program as usual.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  static const std::atomic<bool>& pressed() noexcept;
};

}  // namespace shardplan::cli
