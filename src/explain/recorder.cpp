#include "recorder.hpp"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <utility>

#include "degrees.hpp"
#include "shardplan/explain/named_symbols.hpp"
#include "shardplan/physics/frameworks/facts.hpp"

namespace shardplan::explain {

Recorder::Recorder(Terms& terms, const Run& run, std::string path, std::string label)
    : terms_(&terms), run_(&run), path_(std::move(path)), label_(std::move(label)) {}

Sym Recorder::named(const InputName& name, double value, const std::string& source) const {
  return terms_->input(name.symbol, name.meaning, value, source, name.unit);
}

Sym Recorder::input(const InputName& name, double value) const {
  if (value == 1) return Sym(1.0);
  return named(name, value,
               name.field.empty() ? "the model of the step's time (docs/validation.md)" : std::string(name.field));
}

Sym Recorder::gpu(const InputName& name, double value) const {
  if (value == 1) return Sym(1.0);
  return named(
      name, value,
      fmt::format("GPU {}: {} (configs/gpus; configs/timing/constants.json)", run_->cluster.gpu.name, name.field));
}

Sym Recorder::cluster(const InputName& name, double value) const {
  return value == 1 ? Sym(1.0) : named(name, value, fmt::format("cluster {}: {}", run_->cluster.name, name.field));
}

Sym Recorder::stack(const InputName& name, double value) const {
  if (value == 1) return Sym(1.0);
  const Stack& stack = run_->training.stack;
  const std::string whose =
      std::string(stack.name.empty() ? facts_of(run_->training.framework).default_stack : stack.name);
  const bool of_memory = name.field.substr(0, 7) == "memory.";
  return named(name, value,
               of_memory ? fmt::format("stack {}: {} (configs/stacks; docs/catalog.md)", whose, name.field)
                         : fmt::format("stack {}: timing.{} (configs/stacks; configs/timing/constants.json)", whose,
                                       name.field));
}

Sym Recorder::degree(const InputName& name, double value) const { return value == 1 ? Sym(1.0) : run(name, value); }

Sym Recorder::run(const InputName& name, double value) const { return named(name, value, "the run file"); }

Sym Recorder::config(const InputName& name, double value) const {
  return named(name, value, "config.json of the model");
}

Symbols<Sym> Recorder::symbols(const Symbols<double>& v) const {
  const auto model = [this](std::string_view name, std::string_view meaning, double value) {
    return value == 0 ? Sym(0.0) : config({name, meaning}, value);
  };
  const auto of_run = [this](std::string_view name, std::string_view meaning, double value) {
    return degree({name, meaning}, value);
  };
  return named_symbols(v, model, of_run);
}

Sym Recorder::ranks(GroupKind group, double size) const {
  return ranks_of(*terms_, *run_, group, static_cast<int>(size));
}

Sym Recorder::known(const StepName& name, Sym formula) const {
  const Term* const term = terms_->at(address(name.field));
  if (term == nullptr || std::fabs(term->value - formula.value()) > 1e-12 * std::fabs(formula.value())) return formula;
  const Sym symbol = terms_->symbol_of(name.symbol, *term);
  return Sym(formula.value(), symbol.node());
}

namespace {

/// The addresses of a sum's addends; none where one has no address, or there is but one.
std::vector<std::string> parts_of(Sym sum) {
  std::vector<std::string> parts;
  const std::function<bool(Sym)> collect = [&](Sym x) {
    const Node* const node = x.node();
    if (node == nullptr) return false;
    if (node->operation == Operation::add) return collect(node->left) && collect(node->right);
    if (node->operation != Operation::symbol || node->symbol->address.empty()) return false;
    parts.push_back(node->symbol->address);
    return true;
  };
  if (!collect(sum)) parts.clear();
  return parts;
}

}  // namespace

Sym Recorder::add(const StepName& name, Sym formula, std::string meaning, std::string_view source, Sym addends,
                  TermKind kind) const {
  if (formula.is(0)) return formula;
  std::string where = address(name.field);
  // The same step again is the same term; another value at its address gets a number.
  for (int i = 2;; ++i) {
    const Term* const taken = terms_->at(where);
    if (taken == nullptr) break;
    if (taken->value == formula.value()) {
      return terms_->symbol_of(name.symbol, *taken);
    }
    where = address(fmt::format("{}_{}", name.field, i));
  }
  Term term{std::move(where),
            std::move(meaning),
            std::string(name.unit),
            std::string(source),
            formula.value(),
            formula,
            parts_of(addends),
            {},
            kind};
  return terms_->add(name.symbol, std::move(term));
}

Sym Recorder::zero(const StepName& name, std::string meaning) const {
  const std::string where = address(name.field);
  if (terms_->at(where) != nullptr) return Sym(0.0);
  Term term{where, std::move(meaning), std::string(name.unit), std::string(name.source), 0, Sym(0.0), {}, {}};
  return terms_->add(name.symbol, std::move(term));
}

Recorder Recorder::in(std::string_view word, std::string_view label) const {
  Recorder inner = *this;
  inner.path_ = path_.empty() ? std::string(word) : fmt::format("{}.{}", path_, word);
  if (!label.empty()) inner.label_ = label_.empty() ? std::string(label) : fmt::format("{}: {}", label_, label);
  return inner;
}

Recorder Recorder::at_stage(std::size_t rank) const {
  Recorder inner = *this;
  inner.stage_ = fmt::format("@{}", rank);
  const std::string stage = fmt::format("stage {}", rank);
  inner.label_ = label_.empty() ? stage : fmt::format("{}: {}", stage, label_);
  return inner;
}

Recorder Recorder::at_chunk(int chunk) const {
  Recorder inner = *this;
  inner.stage_ = fmt::format(".chunk{}{}", chunk, stage_);
  inner.label_ = fmt::format("{}, chunk {}", label_, chunk);
  return inner;
}

Sym Recorder::simulated(const StepName& name, double value, Sym formula) const {
  if (std::fabs(formula.value() - value) <= 1e-12 * std::fabs(value)) return Sym(value, formula.node());
  return simulated(name, value);
}

Sym Recorder::add_same(const StepName& name, Sym formula, std::string meaning) const {
  const Node* const node = formula.node();
  const bool one = node != nullptr && node->operation == Operation::symbol;
  const Term* const only = one ? terms_->at(node->symbol->address) : nullptr;
  if (only == nullptr && !formula.is(0)) return add(name, formula, std::move(meaning), name.source);
  Term term = only != nullptr ? *only : Term{};
  term.address = address(name.field);
  term.meaning = std::move(meaning);
  term.unit = name.unit;
  term.value = formula.value();
  if (only == nullptr) term.source = name.source;
  if (only == nullptr || only->formula.node() == nullptr || only->value != formula.value()) {
    term.formula = formula;
    if (formula.node() != nullptr) term.kind = TermKind::formula;
  }
  return terms_->add(name.symbol, std::move(term));
}

Sym Recorder::whole(Sym bytes) const {
  const double value = std::ceil(std::max(0.0, bytes.value()) - 1e-6);
  if (bytes.node() == nullptr || value == bytes.value()) return Sym(value, bytes.node());
  return Sym(value, terms_->expressions().node(Operation::ceiling, bytes, Sym()));
}

std::string Recorder::address(std::string_view field) const {
  std::string_view path = path_;
  while (field.substr(0, 3) == "../") {
    field.remove_prefix(3);
    path = path.substr(0, path.rfind('.'));
  }
  return fmt::format("{}{}{}{}", path, path.empty() ? "" : ".", field, stage_);
}

std::string Recorder::source_of(const MeasuredTable& table) {
  return fmt::format("configs/measured/{}-{}.csv, between measured sizes", table.kind, table.gpu);
}

void Recorder::append(std::string& text, std::string_view piece) { text += piece; }
void Recorder::append(std::string& text, double piece) { text += number(piece); }
void Recorder::append(std::string& text, Bytes piece) { text += value_text(piece.count, "B"); }

}  // namespace shardplan::explain
