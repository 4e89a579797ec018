#include "shardplan/explain/sym.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "symbol_names.hpp"

namespace shardplan::explain {

Sym Expressions::symbol(Symbol what) {
  if (what.value == 0) return Sym(0.0);
  return kept_symbol(std::move(what));
}

Sym Expressions::kept_symbol(Symbol what) {
  symbols_.push_back(std::move(what));
  Node node;
  node.symbol = &symbols_.back();
  node.owner = this;
  nodes_.push_back(node);
  return Sym(symbols_.back().value, &nodes_.back());
}

const Node* Expressions::node(Operation operation, Sym left, Sym right) {
  nodes_.push_back({operation, left, right, nullptr, this});
  return &nodes_.back();
}

namespace {

Sym joined(Operation operation, double value, Sym left, Sym right) {
  Expressions* const owner = left.node() != nullptr    ? left.node()->owner
                             : right.node() != nullptr ? right.node()->owner
                                                       : nullptr;
  return owner == nullptr ? Sym(value) : Sym(value, owner->node(operation, left, right));
}

}  // namespace

Sym operator+(Sym left, Sym right) {
  if (left.is(0)) return right;
  if (right.is(0)) return left;
  return joined(Operation::add, left.value() + right.value(), left, right);
}

Sym operator-(Sym left, Sym right) {
  if (right.is(0)) return left;
  return joined(Operation::subtract, left.value() - right.value(), left, right);
}

Sym operator*(Sym left, Sym right) {
  if (left.is(0) || right.is(0)) return Sym(0.0);
  if (left.is(1)) return right;
  if (right.is(1)) return left;
  return joined(Operation::multiply, left.value() * right.value(), left, right);
}

Sym operator/(Sym left, Sym right) {
  if (left.is(0)) return Sym(0.0);
  if (right.is(1)) return left;
  return joined(Operation::divide, left.value() / right.value(), left, right);
}

Sym max(Sym left, Sym right) {
  // A count is never below 0; of a difference or a product one cannot tell.
  const auto is_count = [](Sym x) {
    return x.value() >= 0 && (x.node() == nullptr || x.node()->operation == Operation::symbol);
  };
  if (left.is(0) && is_count(right)) return right;
  if (right.is(0) && is_count(left)) return left;
  return joined(Operation::maximum, std::max(left.value(), right.value()), left, right);
}

Sym min(Sym left, Sym right) { return joined(Operation::minimum, std::min(left.value(), right.value()), left, right); }

Sym ceil(Sym x) {
  return std::ceil(x.value()) == x.value() ? x : joined(Operation::ceiling, std::ceil(x.value()), x, Sym());
}

Sym round(Sym x) {
  return std::round(x.value()) == x.value() ? x : joined(Operation::round, std::round(x.value()), x, Sym());
}

Sym floor(Sym x) {
  return std::floor(x.value()) == x.value() ? x : joined(Operation::floor, std::floor(x.value()), x, Sym());
}

Sym pow(Sym base, Sym exponent) {
  return joined(Operation::power, std::pow(base.value(), exponent.value()), base, exponent);
}
Sym sqrt(Sym x) { return joined(Operation::power, std::sqrt(x.value()), x, Sym(0.5)); }

std::string number(double value) {
  const double whole = std::nearbyint(value);
  if (value == whole && std::fabs(value) < 1e15) return fmt::format("{}", static_cast<std::int64_t>(whole));
  return fmt::format("{}", value);
}

Sym exp(Sym x) { return joined(Operation::exponential, std::exp(x.value()), x, Sym()); }

namespace {

enum Precedence : int { sum = 1, product = 2, atom = 3 };

struct Piece {
  std::string formula, substitution;
  int precedence = atom;

  Piece in(int least) const {
    if (precedence >= least) return *this;
    return {"(" + formula + ")", "(" + substitution + ")", atom};
  }
};

Piece joined_text(const Piece& left, std::string_view sign, const Piece& right, int precedence) {
  return {fmt::format("{}{}{}", left.formula, sign, right.formula),
          fmt::format("{}{}{}", left.substitution, sign, right.substitution), precedence};
}

Piece number_piece(double value) {
  const std::string text = number(value);
  return {text, text, value < 0 ? sum : atom};
}

Piece function_text(std::string_view name, const std::vector<Piece>& arguments) {
  Piece call{fmt::format("{}(", name), fmt::format("{}(", name), atom};
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    call.formula += (i > 0 ? ", " : "") + arguments[i].formula;
    call.substitution += (i > 0 ? ", " : "") + arguments[i].substitution;
  }
  call.formula += ")";
  call.substitution += ")";
  return call;
}

Piece piece_of(Sym x, Names& names) {
  if (x.node() == nullptr) return number_piece(x.value());
  const Node& node = *x.node();
  if (node.operation == Operation::symbol) {
    const std::string value = number(node.symbol->value);
    return {names.of(node.symbol), value, atom};
  }
  const Piece left = piece_of(node.left, names);
  switch (node.operation) {
    case Operation::ceiling: return function_text("ceil", {left});
    case Operation::floor: return function_text("floor", {left});
    case Operation::exponential: return function_text("exp", {left});
    case Operation::round: return function_text("round", {left});
    default: break;
  }
  const Piece right = piece_of(node.right, names);
  switch (node.operation) {
    case Operation::add: return joined_text(left.in(sum), " + ", right.in(product), sum);
    case Operation::subtract: return joined_text(left.in(sum), " - ", right.in(product), sum);
    case Operation::multiply: return joined_text(left.in(product), "*", right.in(product), product);
    case Operation::divide: return joined_text(left.in(product), "/", right.in(atom), product);
    case Operation::maximum: return function_text("max", {left, right});
    case Operation::minimum: return function_text("min", {left, right});
    default:
      if (node.right.is(0.5)) return function_text("sqrt", {left});
      return joined_text(left.in(atom), "^", right.in(atom), product);
  }
}

/// A product of powers of symbols.
using Powers = std::vector<std::pair<const Symbol*, int>>;

struct Monomial {
  Powers powers;
  double factor = 0;
};

/// A sum of products, in the order in which they appeared.
using Polynomial = std::vector<Monomial>;

void add_power(Powers& powers, const Symbol* symbol, int by) {
  const auto at = std::find_if(powers.begin(), powers.end(), [&](const auto& each) { return each.first == symbol; });
  if (at == powers.end()) {
    powers.emplace_back(symbol, by);
  } else if ((at->second += by) == 0) {
    powers.erase(at);
  }
}

bool same_powers(Powers left, Powers right) {
  std::sort(left.begin(), left.end());
  std::sort(right.begin(), right.end());
  return left == right;
}

void add_monomial(Polynomial& sum, const Monomial& monomial) {
  for (Monomial& each : sum) {
    if (same_powers(each.powers, monomial.powers)) {
      each.factor += monomial.factor;
      return;
    }
  }
  sum.push_back(monomial);
}

Monomial multiplied(const Monomial& left, const Monomial& right, int sign) {
  Monomial product = left;
  for (const auto& [symbol, power] : right.powers) add_power(product.powers, symbol, sign * power);
  product.factor = sign > 0 ? left.factor * right.factor : left.factor / right.factor;
  return product;
}

/// Nothing where the expression is more than sums of products.
std::optional<Polynomial> polynomial_of(Sym x) {
  if (x.node() == nullptr) return x.value() == 0 ? Polynomial{} : Polynomial{{{}, x.value()}};
  const Node& node = *x.node();
  if (node.operation == Operation::symbol) return Polynomial{{{{node.symbol, 1}}, 1}};
  if (node.operation > Operation::divide) return std::nullopt;
  const std::optional<Polynomial> left = polynomial_of(node.left);
  const std::optional<Polynomial> right = polynomial_of(node.right);
  if (!left || !right) return std::nullopt;
  Polynomial result;
  switch (node.operation) {
    case Operation::add:
    case Operation::subtract:
      result = *left;
      for (Monomial each : *right) {
        if (node.operation == Operation::subtract) each.factor = -each.factor;
        add_monomial(result, each);
      }
      break;
    case Operation::multiply:
      if (left->size() * right->size() > 64) return std::nullopt;
      for (const Monomial& a : *left) {
        for (const Monomial& b : *right) add_monomial(result, multiplied(a, b, 1));
      }
      break;
    default:
      if (right->size() != 1) return std::nullopt;
      for (const Monomial& a : *left) add_monomial(result, multiplied(a, right->front(), -1));
  }
  return result;
}

/// Powers that every product has: what can stand in front.
Powers common_powers(const Polynomial& sum) {
  Powers common;
  for (const auto& [symbol, power] : sum.front().powers) {
    int least = power;
    for (const Monomial& each : sum) {
      const Symbol* const wanted = symbol;
      const auto at = std::find_if(each.powers.begin(), each.powers.end(),
                                   [wanted](const auto& item) { return item.first == wanted; });
      const int here = at == each.powers.end() ? 0 : at->second;
      if (least > 0) {
        least = std::clamp(here, 0, least);
      } else {
        least = std::clamp(here, least, 0);
      }
    }
    if (least != 0) common.emplace_back(symbol, least);
  }
  return common;
}

Piece product_text(const Monomial& monomial, Names& names) {
  Piece text = number_piece(std::fabs(monomial.factor));
  bool empty = std::fabs(monomial.factor) == 1;
  const auto append = [&](const Symbol* symbol, std::string_view sign) {
    const Piece next{names.of(symbol), number(symbol->value), atom};
    text = empty && sign == "*" ? next : joined_text(text, sign, next, product);
    empty = false;
  };
  for (const auto& [symbol, power] : monomial.powers) {
    for (int i = 0; i < power; ++i) append(symbol, "*");
  }
  for (const auto& [symbol, power] : monomial.powers) {
    for (int i = power; i < 0; ++i) append(symbol, "/");
  }
  return text;
}

Piece sum_text(const Polynomial& sum_of, Names& names) {
  Piece text;
  bool first = true;
  for (const Monomial& each : sum_of) {
    if (each.factor == 0) continue;
    const Piece next = product_text(each, names);
    if (first) {
      text = each.factor < 0 ? Piece{"-" + next.formula, "-" + next.substitution, sum} : next;
    } else {
      text = joined_text(text, each.factor < 0 ? " - " : " + ", next, sum);
    }
    first = false;
  }
  return first ? number_piece(0) : text;
}

}  // namespace

namespace {

using Values = std::vector<std::pair<std::string, double>>;

Sym revalued(Sym x, const Values& values, Expressions& owner, std::map<const Symbol*, Sym>& known) {
  if (x.node() == nullptr) return x;
  const Node& node = *x.node();
  if (node.operation == Operation::symbol) {
    Symbol symbol = *node.symbol;
    for (const auto& [name, value] : values) {
      if (name == symbol.name) symbol.value = value;
    }
    const auto at = known.find(node.symbol);
    if (at != known.end()) return at->second;
    return known.emplace(node.symbol, owner.kept_symbol(std::move(symbol))).first->second;
  }
  const Sym left = revalued(node.left, values, owner, known);
  const Sym right = revalued(node.right, values, owner, known);
  switch (node.operation) {
    case Operation::add: return left + right;
    case Operation::subtract: return left - right;
    case Operation::multiply: return left * right;
    case Operation::divide: return left / right;
    case Operation::maximum: return max(left, right);
    case Operation::minimum: return min(left, right);
    case Operation::ceiling: return ceil(left);
    case Operation::floor: return floor(left);
    case Operation::exponential: return exp(left);
    case Operation::power: return right.is(0.5) ? sqrt(left) : pow(left, right);
    default: return left;
  }
}

}  // namespace

Sym with_values(Sym x, const std::vector<std::pair<std::string, double>>& values, Expressions& owner) {
  std::map<const Symbol*, Sym> known;
  return revalued(x, values, owner, known);
}

Written write(Sym x) {
  Names names(x);
  const Piece text = piece_of(x, names);
  Written written = names.take();
  written.formula = text.formula;
  written.substitution = text.substitution;
  return written;
}

Written write_collected(Sym x) {
  Written plain = write(x);
  const std::optional<Polynomial> sum_of = polynomial_of(x);
  if (!sum_of || sum_of->empty()) return plain;
  const Powers common = common_powers(*sum_of);
  Names names(x);
  Piece text;
  if (sum_of->size() == 1 || common.empty()) {
    text = sum_text(*sum_of, names);
  } else {
    const Piece front = product_text({common, 1}, names);
    Polynomial rest;
    for (const Monomial& each : *sum_of) add_monomial(rest, multiplied(each, {common, 1}, -1));
    text = joined_text(front.in(product), "*", sum_text(rest, names).in(product), product);
  }
  if (text.formula.size() > plain.formula.size()) return plain;
  Written written = names.take();
  written.formula = text.formula;
  written.substitution = text.substitution;
  return written;
}

}  // namespace shardplan::explain
