// Every number of an estimate as a term: an address, a formula over other terms and inputs, a source.
//
// Addresses are dotted paths of the JSON output without units ("memory.activations"), for one pipeline stage with
// "@stage". Leaves are inputs of the run, operators of a layer, look-ups in measured tables and the simulated schedule.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "shardplan/explain/explanation.hpp"
#include "shardplan/plan/workspace.hpp"

namespace shardplan::explain {

/// Where a term's value comes from.
enum class TermKind : std::uint8_t {
  formula,    ///< other terms
  input,      ///< a file or a constant that the source names
  looked_up,  ///< a measured table
  simulated   ///< the simulated schedule
};

struct Term {
  std::string address;
  std::string meaning;
  std::string unit;
  std::string source;
  double value = 0;
  Sym formula;                       ///< a plain number: an input, or a look-up that no formula gives
  std::vector<std::string> parts;    ///< addresses of the addends, where the formula is written in other symbols
  std::vector<std::string> related;  ///< addresses that readers look for next: what divides it
  TermKind kind = TermKind::formula;
};

class Terms {
 public:
  /// The term of an address: exact, a column's head ("activ@0"), with the JSON's units or as "memory.stages.0.x";
  /// without "@stage" the stage that the estimate names, else the first that has it. nullptr: there is none.
  const Term* find(std::string_view address) const;
  /// Notes what readers of a term look for next.
  void relate(std::string_view address, std::vector<std::string> related);
  /// Addresses to look at beside a term: what divides it, an operator's other numbers.
  std::vector<std::string> beside(const Term& term) const;
  /// The address that a word stands for, whether this estimate has it or not; empty: none.
  static std::string_view meant(std::string_view typed);
  /// Whether this very address is taken.
  bool has(std::string_view address) const { return by_address_.find(address) != by_address_.end(); }
  /// The term of this very address, or nullptr.
  const Term* at(std::string_view address) const {
    const auto known = by_address_.find(address);
    return known == by_address_.end() ? nullptr : &terms_[known->second];
  }

  const std::deque<Term>& all() const noexcept { return terms_; }
  Expressions& expressions() noexcept { return expressions_; }

  /// Adds a term and returns the symbol that stands for it in other formulas (the number 0 where it is 0).
  Sym add(std::string_view symbol, Term term);
  /// The symbol that stands for a term under a name: the same one whenever it is asked for.
  Sym symbol_of(std::string_view name, const Term& term);
  /// An input of the run: a term whose address is its symbol. One of the same name and another value gets a number.
  Sym input(std::string_view symbol, std::string_view meaning, double value, std::string_view source,
            std::string_view unit = {});
  /// Another address of a term.
  void alias(std::string_view other, std::string_view address);

 private:
  Expressions expressions_;
  std::deque<Term> terms_;
  std::map<std::string, std::size_t, std::less<>> by_address_;
  std::map<std::string, Sym, std::less<>> inputs_;
  std::map<std::string, Sym, std::less<>> symbols_;  ///< by name and address
};

/// The terms of a run that was estimated with this workspace.
std::unique_ptr<Terms> terms_of(const Run& run, EstimateWorkspace& w, const Estimate& estimate);

Explanation explain_term(const Terms& terms, const Term& term);

}  // namespace shardplan::explain
