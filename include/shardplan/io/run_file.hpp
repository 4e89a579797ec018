// From text and flags to a complete, legal run.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shardplan/core/diagnostic.hpp"
#include "shardplan/core/run.hpp"
#include "shardplan/io/catalog_source.hpp"
#include "shardplan/io/json_text.hpp"
#include "shardplan/io/overrides.hpp"
#include "shardplan/plan/resolve.hpp"

namespace shardplan::io {

/// What a user states: a run file (or standard input), then flags in order. Flags win over the file.
struct RunInput {
  std::optional<JsonText> text;     ///< nothing: flags alone
  Diagnostics text_problems;        ///< of reading the text; read_run() reports them with the others
  std::vector<Override> overrides;  ///< the later one wins
};

/// Everything that reading a run gives. Of a run with problems only these are to be used.
struct ReadRun {
  Run run;
  plan::Draft draft;     ///< what was stated; change it and resolve() again for a variation
  std::string run_json;  ///< the run as resolved, with `defaults`: one JSON object, reads back as the same run
  Warnings warnings;     ///< known from the run alone
  std::vector<std::string> files;  ///< that were read beside the run file itself
  std::vector<std::string> notes;  ///< for standard error: what was done beyond the letter of the input
  Diagnostics problems;            ///< sorted by place; of flags last
  bool readable = false;           ///< everything stated could be read: the problems are rules that the run breaks

  bool ok() const noexcept { return problems.empty(); }
};

/// Reads, completes and checks a run: every problem at once. Nothing is thrown.
/// A model or cluster is a built-in name, a path (relative to the run file's folder when the file states it, to the
/// working directory when a flag does), "-" for a model on standard input, or an object. A flag that sets a member of
/// a named one (`--set /cluster/gpus_per_node=4`) changes a copy. Members named by a `defaults` list at the top, as the
/// resolved run has one, count as not stated.
ReadRun read_run(const RunInput& input, const CatalogSource& catalog);

/// The run as resolved: the fields of a run file, every default filled in, and "defaults", the pointers of those that
/// were not stated. `model` and `cluster` are JSON values as stated.
std::string resolved_run_json(const plan::Draft& draft, const Run& run, std::string_view model,
                              std::string_view cluster);

/// Whether a document has fields that only run files have, or names their schema.
bool looks_like_run(const JsonText& text);

/// A run file's text as input, for tests and examples: a file called run.json.
RunInput run_input_from_json(std::string_view json);

}  // namespace shardplan::io
