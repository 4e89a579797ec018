// One run varied many times, as a sweep does: what the variations share is read once.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "shardplan/core/diagnostic.hpp"
#include "shardplan/core/run.hpp"
#include "shardplan/io/catalog_source.hpp"
#include "shardplan/io/overrides.hpp"
#include "shardplan/io/run_file.hpp"
#include "shardplan/plan/legality.hpp"
#include "shardplan/plan/resolve.hpp"

namespace shardplan::io {

/// A variation as read: illegal where `broken` names rules, and of no use where there are problems.
struct Variation {
  plan::Draft draft;
  Run run;
  plan::RuleSet broken;
  Diagnostics problems;  ///< values that cannot be read; they name the command line
};

/// The same runs that read_run() makes of the input with further overrides, in a few microseconds where they change
/// single fields of `parallel` and `training`.
class RunVariations {
 public:
  RunVariations(RunInput base, const CatalogSource& catalog) : base_(std::move(base)), catalog_(catalog) {}

  /// `out` is written whole; its buffers are reused.
  void read(std::span<const Override> changes, Variation& out);

 private:
  const ReadRun& shared(const std::vector<Override>& changes);
  void set(const Override& change, Variation& out);
  void follow(std::span<const Override> changes, plan::Draft& draft);

  RunInput base_;
  const CatalogSource& catalog_;
  std::map<std::string, std::unique_ptr<ReadRun>> read_;  ///< by what was changed beside single fields
  std::map<Framework, Stack> stacks_;                     ///< where none is named
};

}  // namespace shardplan::io
