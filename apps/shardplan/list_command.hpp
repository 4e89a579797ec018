// `shardplan list KIND`: what is built in.
#pragma once

#include "command.hpp"

namespace shardplan::cli {

/// The words of a `list` line and how the answer is to look.
struct ListOptions {
  std::string kind;    ///< empty: the kinds themselves
  std::string vendor;  ///< of GPUs; empty: all
  OutputStyle style;
};

/// Unknown kinds and vendors are problems that name the legal ones.
Outcome run_list(const ListOptions& options);

Command list_command();

}  // namespace shardplan::cli
