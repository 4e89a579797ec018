#include "term_builder.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "shardplan/explain/named_symbols.hpp"

namespace shardplan::explain {

std::string at_stage(std::string_view address, int stage) { return fmt::format("{}@{}", address, stage); }

Sym TermBuilder::add(std::string_view symbol, std::string address, std::string_view meaning, std::string_view unit,
                     Sym formula, std::string_view source, std::vector<std::string> parts) {
  Term term{std::move(address), std::string(meaning), std::string(unit), std::string(source), formula.value(), formula,
            std::move(parts)};
  return terms.add(symbol, std::move(term));
}

Sym TermBuilder::leaf(std::string_view symbol, std::string address, std::string_view meaning, std::string_view unit,
                      double value, std::string_view source) {
  return add(symbol, std::move(address), meaning, unit, Sym(value), source);
}

Sym TermBuilder::add_checked(std::string_view symbol, std::string address, std::string_view meaning,
                             std::string_view unit, Sym formula, double value, std::string_view source) {
  if (std::fabs(formula.value() - value) <= 1e-12 * std::fabs(value)) {
    return add(symbol, std::move(address), meaning, unit, formula, source);
  }
  const double rest = value - formula.value();
  const bool small_rest = rest > 0 && formula.node() != nullptr;
  if (!small_rest) return leaf(symbol, std::move(address), meaning, unit, value, source);
  const Sym more = leaf(fmt::format("{}_rest", symbol), address + ".rest",
                        fmt::format("{}: what the parts do not hold", meaning), unit, rest, source);
  return add(symbol, std::move(address), meaning, unit, formula + more, source);
}

Sym TermBuilder::whole_bytes(Sym x) {
  const double value = std::ceil(std::max(0.0, x.value()) - 1e-6);
  if (x.node() == nullptr || value == x.value()) return Sym(value, x.node());
  return Sym(value, terms.expressions().node(Operation::ceiling, x, Sym()));
}

Sym TermBuilder::rounded(Sym x) {
  const double value = std::round(x.value());
  if (x.node() == nullptr || value == x.value()) return Sym(value, x.node());
  return Sym(value, terms.expressions().node(Operation::round, x, Sym()));
}

Symbols<Sym> TermBuilder::symbols(const Symbols<double>& v, std::string_view config) {
  const auto model = [&](std::string_view name, std::string_view meaning, double value) {
    return value == 0 ? Sym(0.0) : terms.input(name, meaning, value, config);
  };
  const auto degree = [&](std::string_view name, std::string_view meaning, double value) {
    return value == 1 ? Sym(1.0) : terms.input(name, meaning, value, sources::run_file);
  };
  return named_symbols(v, model, degree);
}

std::unique_ptr<Terms> terms_of(const Run& run, EstimateWorkspace& w, const Estimate& estimate) {
  auto terms = std::make_unique<Terms>();
  TermBuilder builder(run, w, estimate, *terms);
  builder.add_layers();
  builder.add_stages();
  builder.add_memory();
  builder.add_communication();
  builder.add_pipeline_and_time();
  builder.add_model();
  builder.add_throughput();
  return terms;
}

}  // namespace shardplan::explain
