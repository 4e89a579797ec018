// What runs were before: the other side of a check.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "shardplan/core/diagnostic.hpp"
#include "shardplan/io/catalog_source.hpp"
#include "shardplan/io/json_text.hpp"
#include "shardplan/io/overrides.hpp"
#include "shardplan/plan/check.hpp"

namespace shardplan::advise {

/// How files are looked at; the caller's, so that they may lie anywhere.
struct Files {
  std::function<bool(const std::string& path)> is_folder;
  std::function<bool(const std::string& path)> is_file;
  std::function<Result<io::JsonText>(const std::string& path)> read;
};

/// A folder that holds the run files under the same paths or names, the output of an earlier `check --json`, or one run
/// file that every run is compared with.
class Baseline {
 public:
  /// `overrides`: the flags of the runs that are checked. The baseline's files are what they are without them; only one
  /// that is no run by itself (it names no cluster, say) is completed by them.
  static Result<Baseline> open(const std::string& place, const std::vector<io::Override>& overrides,
                               const io::CatalogSource& catalog, Files files);

  /// The figures of the run file at `path`; nothing where the baseline has none, or (`problem`) none that can be read.
  /// The longest end of the path that the baseline has counts: of new/runs/a.json old/runs/a.json before old/a.json.
  std::optional<plan::Figures> of(const std::string& path, std::string& problem) const;

 private:
  Files files_;
  const io::CatalogSource* catalog_ = nullptr;
  std::string folder_;
  std::vector<io::Override> overrides_;
  std::map<std::string, plan::Figures> figures_;  ///< of an earlier answer, by normal paths
  std::optional<plan::Figures> one_;
};

}  // namespace shardplan::advise
