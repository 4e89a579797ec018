// Evaluates printed formulas with printed symbol values.
#pragma once

#include <muParser.h>

#include <cmath>
#include <string>

#include "shardplan/explain/explanation.hpp"

namespace test {

/// The value that an expression library gives a formula, its symbols as they are printed.
class Evaluator {
 public:
  Evaluator() {
    parser_.DefineFun("ceil", [](double x) { return std::ceil(x - 1e-6); });
    parser_.DefineFun("floor", [](double x) { return std::floor(x); });
    parser_.DefineFun("round", [](double x) { return std::round(x); });
  }

  double operator()(const shardplan::explain::Explanation& explanation) {
    parser_.ClearVar();
    parser_.ClearConst();
    for (const shardplan::explain::ExplainedSymbol& symbol : explanation.symbols) {
      parser_.DefineConst(symbol.symbol, symbol.value);
    }
    parser_.SetExpr(explanation.formula);
    return parser_.Eval();
  }

  /// Of a substitution: numbers only.
  double numbers(const std::string& text) {
    parser_.ClearVar();
    parser_.ClearConst();
    parser_.SetExpr(text);
    return parser_.Eval();
  }

 private:
  mu::Parser parser_;
};

/// Equal to rounding: whole bytes within one, others to 12 digits.
inline bool agrees(double evaluated, double printed) {
  return std::fabs(evaluated - printed) <= 1e-9 * std::fabs(printed) ||
         (std::nearbyint(printed) == printed && std::fabs(evaluated - printed) <= 1);
}

}  // namespace test
