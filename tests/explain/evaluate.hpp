// Evaluates printed formulas with printed symbol values.
#pragma once

#include <muParserDLL.h>

#include <cmath>
#include <stdexcept>
#include <string>

#include "shardplan/explain/explanation.hpp"

namespace test {

/// The value that an expression library gives a formula, its symbols as they are printed. What it cannot read throws.
/// Its C functions: those of C++ take strings of the standard library that it was built with.
class Evaluator {
 public:
  Evaluator() : parser_(mupCreate(muBASETYPE_FLOAT)) {
    mupDefineFun1(
        parser_, "ceil", [](double x) { return std::ceil(x - 1e-6); }, 1);
    mupDefineFun1(
        parser_, "floor", [](double x) { return std::floor(x); }, 1);
    mupDefineFun1(
        parser_, "round", [](double x) { return std::round(x); }, 1);
  }
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;
  ~Evaluator() { mupRelease(parser_); }

  double operator()(const shardplan::explain::Explanation& explanation) {
    clear();
    for (const shardplan::explain::ExplainedSymbol& symbol : explanation.symbols) {
      mupDefineConst(parser_, symbol.symbol.c_str(), symbol.value);
    }
    return value_of(explanation.formula);
  }

  /// Of a substitution: numbers only.
  double numbers(const std::string& text) {
    clear();
    return value_of(text);
  }

 private:
  void clear() {
    mupErrorReset(parser_);
    mupClearVar(parser_);
    mupClearConst(parser_);
  }

  double value_of(const std::string& text) {
    mupSetExpr(parser_, text.c_str());
    const double value = mupEval(parser_);
    if (mupError(parser_) != 0) throw std::runtime_error(mupGetErrorMsg(parser_));
    return value;
  }

  muParserHandle_t parser_;
};

/// Equal to rounding: whole bytes within one, others to 12 digits.
inline bool agrees(double evaluated, double printed) {
  return std::fabs(evaluated - printed) <= 1e-9 * std::fabs(printed) ||
         (std::nearbyint(printed) == printed && std::fabs(evaluated - printed) <= 1);
}

}  // namespace test
