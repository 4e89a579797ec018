// A number that knows how it was computed: the operator lists and other formulas, instantiated with it in the place of
// double, give the expression that the code evaluates, with symbols, with numbers, and its value.
//
// Values are computed in the same order as with double, so they are the same to the last bit. A symbol that is 0, and a
// divisor or factor that is the number 1, leave no trace in the text: branches that a run does not take are not shown.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardplan::explain {

/// What a symbol stands for.
struct Symbol {
  std::string name;     ///< letters, digits and '_': an identifier of any expression library
  std::string meaning;  ///< a few words
  std::string unit;     ///< "B", "s", "FLOP"; empty: a count or a ratio
  std::string address;  ///< of the term that explains it; empty: a plain input
  std::string source;   ///< of an input: where its value comes from
  double value = 0;
};

enum class Operation : std::uint8_t {
  symbol,
  add,
  subtract,
  multiply,
  divide,
  maximum,
  minimum,
  ceiling,
  floor,
  round,
  power,
  exponential
};

struct Node;

/// A number, or a node of an expression that lives in an Expressions. Trivially copyable.
class Sym {
 public:
  constexpr Sym() noexcept = default;
  constexpr Sym(double number) noexcept : value_(number) {}  // NOLINT(google-explicit-constructor): as double is
  Sym(double value, const Node* node) noexcept : value_(value), node_(node) {}

  double value() const noexcept { return value_; }
  const Node* node() const noexcept { return node_; }  ///< nullptr: a plain number
  bool is(double number) const noexcept { return node_ == nullptr && value_ == number; }

 private:
  double value_ = 0;
  const Node* node_ = nullptr;
};

inline double value_of(Sym x) noexcept { return x.value(); }

class Expressions;

struct Node {
  Operation operation = Operation::symbol;
  Sym left, right;
  const Symbol* symbol = nullptr;
  Expressions* owner = nullptr;
};

/// Owns nodes and symbols; what it hands out lives as long as it does.
class Expressions {
 public:
  Expressions() = default;
  Expressions(const Expressions&) = delete;
  Expressions& operator=(const Expressions&) = delete;

  /// A symbol; the number 0 where its value is 0.
  Sym symbol(Symbol what);
  /// Even where its value is 0.
  Sym kept_symbol(Symbol what);
  const Node* node(Operation operation, Sym left, Sym right);

 private:
  std::deque<Symbol> symbols_;
  std::deque<Node> nodes_;
};

Sym operator+(Sym left, Sym right);
Sym operator-(Sym left, Sym right);
Sym operator*(Sym left, Sym right);
Sym operator/(Sym left, Sym right);
inline Sym& operator+=(Sym& left, Sym right) { return left = left + right; }
inline Sym& operator-=(Sym& left, Sym right) { return left = left - right; }
inline Sym& operator*=(Sym& left, Sym right) { return left = left * right; }
Sym max(Sym left, Sym right);
Sym min(Sym left, Sym right);
/// The larger one alone: what loses leaves no trace.
inline Sym larger(Sym left, Sym right) noexcept { return left.value() < right.value() ? right : left; }
Sym ceil(Sym x);
Sym floor(Sym x);
Sym round(Sym x);
Sym pow(Sym base, Sym exponent);
Sym sqrt(Sym x);
Sym exp(Sym x);
inline bool operator<(Sym left, Sym right) noexcept { return left.value() < right.value(); }
inline bool operator>(Sym left, Sym right) noexcept { return left.value() > right.value(); }
inline bool operator<=(Sym left, Sym right) noexcept { return left.value() <= right.value(); }
inline bool operator>=(Sym left, Sym right) noexcept { return left.value() >= right.value(); }

/// The expression with other values for the symbols of these names.
Sym with_values(Sym x, const std::vector<std::pair<std::string, double>>& values, Expressions& owner);

/// An expression as text.
struct Written {
  std::string formula;                 ///< "(p - 1)/(m + p - 1)"
  std::string substitution;            ///< "(4 - 1)/(256 + 4 - 1)"
  std::vector<const Symbol*> symbols;  ///< in the order of the formula
  std::vector<std::string> names;      ///< theirs in the formula: a second symbol of a name gets a number
};

/// As the code has it.
Written write(Sym x);
/// Like terms collected and common factors in front, where that is shorter: "s*b/t*(8*h + 8 + 6*f)".
Written write_collected(Sym x);

/// Shortest text that reads back as the number: "0.5", "16", "1e+30".
std::string number(double value);

}  // namespace shardplan::explain
