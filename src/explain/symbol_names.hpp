// Names of the symbols of one formula: no two have the same.
#pragma once

#include <map>
#include <set>
#include <string>

#include "shardplan/explain/sym.hpp"

namespace shardplan::explain {

/// Gives each symbol of a text its name. Symbols that share one are told apart by where they stand ("dense_forward",
/// "compute_2"), else with numbers.
class Names {
 public:
  explicit Names(Sym x);

  const std::string& of(const Symbol* symbol);
  /// The symbols that were asked for, in that order.
  Written take() { return std::move(written_); }

 private:
  /// The name, with a number behind it where another symbol has it.
  std::string unused(const std::string& name);

  std::map<const Symbol*, std::string> names_;
  std::set<std::string> taken_;
  Written written_;
};

}  // namespace shardplan::explain
