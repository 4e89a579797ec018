// `shardplan schedule --spec FILE`: a schedule with given times.
#pragma once

#include <string>

#include "command.hpp"

namespace shardplan::cli {

/// Reads the spec ("-": standard input), simulates it and answers with JSON, or with every problem of the file.
Outcome schedule_spec(const std::string& path);

}  // namespace shardplan::cli
