#include "term_builder.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "degrees.hpp"
#include "recorder.hpp"
#include "shardplan/explain/named_symbols.hpp"
#include "shardplan/physics/timing_formulas.hpp"

namespace shardplan::explain {

std::string at_stage(std::string_view address, int stage) { return fmt::format("{}@{}", address, stage); }

Sym TermBuilder::add(std::string_view symbol, std::string address, std::string_view meaning, std::string_view unit,
                     Sym formula, std::string_view source, std::vector<std::string> parts) {
  Term term{std::move(address), std::string(meaning),
            std::string(unit),  std::string(source),
            formula.value(),    formula,
            std::move(parts),   {}};
  return terms.add(symbol, std::move(term));
}

Sym TermBuilder::leaf(TermKind kind, std::string_view symbol, std::string address, std::string_view meaning,
                      std::string_view unit, double value, std::string_view source) {
  Term term{std::move(address),
            std::string(meaning),
            std::string(unit),
            std::string(source),
            value,
            Sym(value),
            {},
            {},
            kind};
  return terms.add(symbol, std::move(term));
}

Sym TermBuilder::kept(std::string_view symbol, std::string_view address) {
  const Term* const term = terms.find(address);
  return terms.expressions().kept_symbol(
      {std::string(symbol), term->meaning, term->unit, term->address, term->source, term->value});
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

Sym TermBuilder::data_degree() { return explain::data_degree(terms, run); }

Sym TermBuilder::ranks_of(GroupKind group, int size) { return explain::ranks_of(terms, run, group, size); }

Sym TermBuilder::stage_count() {
  const double ranks = static_cast<double>(w.stages.size());
  return ranks > 1 ? terms.input("p", "pipeline stages", ranks, sources::run_file) : Sym(1.0);
}

/// What people ask for by its name, whether a formula of this run has it or not.
void TermBuilder::add_run() {
  const Parallel& parallel = run.parallel;
  const auto input = [this](std::string_view symbol, std::string_view meaning, int value) {
    terms.input(symbol, meaning, value, sources::run_file);
  };
  input("G", "GPUs (num_gpus)", run.num_gpus);
  input("t", "tensor parallel (parallel.tensor)", parallel.tensor);
  input("c", "context parallel (parallel.context)", parallel.context);
  input("p", "pipeline stages", parallel.pipeline);
  if (run.model.has_experts()) {
    input("e", "expert parallel (parallel.expert)", parallel.expert);
    input("x", "expert tensor parallel (parallel.expert_tensor)", parallel.expert_tensor);
    named_degree("N_e", GroupKind::expert_data, parallel.expert_replicas());
  }
  named_degree("D", GroupKind::data, parallel.data);
  named_degree("N", GroupKind::data, parallel.dense_replicas());
  const Recorder trace(terms, run);
  trace.gpu(timing_names::peak(run.training.precision), run.cluster.gpu.peak(run.training.precision));
  trace.gpu(timing_names::hbm, run.cluster.gpu.memory_bandwidth);
  intra_node_bandwidth(trace, run.cluster);
  inter_node_bandwidth(trace, run.cluster);
}

void TermBuilder::named_degree(std::string_view symbol, GroupKind group, int value) {
  if (value == 1) {
    leaf(TermKind::input, symbol, std::string(symbol),
         group == GroupKind::data ? "data-parallel ranks" : "ranks that hold the same experts", "", 1, sources::grid);
  } else if (symbol == "D") {
    data_degree();
  } else {
    ranks_of(group, value);
  }
}

std::unique_ptr<Terms> terms_of(const Run& run, EstimateWorkspace& w, const Estimate& estimate) {
  auto terms = std::make_unique<Terms>();
  TermBuilder builder(run, w, estimate, *terms);
  builder.add_run();
  builder.add_layers();
  builder.add_stages();
  builder.add_memory();
  builder.add_time();
  builder.add_model();
  builder.add_throughput();
  return terms;
}

}  // namespace shardplan::explain
