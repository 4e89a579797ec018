// One number opened: formula, symbols, the numbers put in, where it comes from, what is often got wrong.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "shardplan/explain/sym.hpp"

namespace shardplan::explain {

struct ExplainedSymbol {
  std::string symbol;  ///< as the formula has it
  std::string meaning;
  double value = 0;
  std::string unit;
  std::string address;  ///< what `--explain` takes to open it; empty: an input of a topic
};

/// A labelled line of a card, e.g. {"here", "3/259; simulated 4.43%"}.
struct Remark {
  std::string label;
  std::string text;
};

/// An addend of the value, with its own address.
struct PartOf {
  std::string address;
  std::string meaning;
  double value = 0;
};

struct Explanation {
  std::string run;    ///< whose number it is, where several runs are explained; else empty
  std::string topic;  ///< or a term's address
  std::string title;  ///< what the number is
  double value = 0;
  std::string unit;
  std::string shown;  ///< the value as people write it; empty: from value and unit
  std::string head;   ///< the formula as people write it; empty: `formula`
  std::string note;   ///< at the right end of the first line
  std::string formula;
  std::string substitution;
  std::vector<ExplainedSymbol> symbols;
  std::vector<PartOf> parts;  ///< their sum is the value; empty: the formula is no sum of terms
  std::vector<Remark> remarks;
  std::vector<std::string> sources;
  std::string beware;
  std::string next;  ///< a command to try

  /// Takes formula, substitution, symbols and value from an expression.
  void set(const Written& written, double result);
};

/// A value with its unit: bytes in binary units, times in s or ms, fractions in percent.
std::string value_text(double value, std::string_view unit);

}  // namespace shardplan::explain
