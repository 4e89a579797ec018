// The run that a command line means: RUN.json, flags, or both.
#pragma once

#include "command.hpp"
#include "shardplan/io/run_file.hpp"

namespace shardplan::cli {

/// Reads RUN.json ("-": standard input) where one is given, applies the flags and reads the run. Without either it is
/// one problem that names what is needed.
io::ReadRun read_run_of(const Arguments& arguments);

/// The text and the flags, not read as a run yet.
Result<io::RunInput> run_input_of(const Arguments& arguments);

}  // namespace shardplan::cli
