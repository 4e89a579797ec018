#include "degrees.hpp"

#include <fmt/format.h>

#include <string>

namespace shardplan::explain {
namespace {

constexpr std::string_view grid = "the layout: GPUs over the other degrees (docs/run.md, parallel)";
constexpr std::string_view run_file = "the run file";

std::string_view size_symbol(GroupKind group) {
  switch (group) {
    case GroupKind::tensor: return "t";
    case GroupKind::context: return "c";
    case GroupKind::expert: return "e";
    case GroupKind::expert_tensor: return "x";
    case GroupKind::pipeline: return "p";
    default: return "ranks";
  }
}

Sym stated(Terms& terms, std::string_view symbol, std::string_view meaning, int value) {
  return value == 1 ? Sym(1.0) : terms.input(symbol, meaning, value, run_file);
}

Sym derived(Terms& terms, std::string_view symbol, std::string_view meaning, Sym formula, int value) {
  if (value == 1) return Sym(1.0);
  std::string address(symbol);
  for (int i = 2; terms.has(address); ++i) {
    const Term& known = *terms.at(address);
    if (known.value == value) {
      return terms.symbol_of(symbol, known);
    }
    address = fmt::format("{}_{}", symbol, i);
  }
  const double ranks = value;
  return terms.add(symbol,
                   Term{std::move(address), std::string(meaning), {}, std::string(grid), ranks, formula, {}, {}});
}

Sym gpus(Terms& terms, const Run& run) { return terms.input("G", "GPUs (num_gpus)", run.num_gpus, run_file); }
Sym stages(Terms& terms, const Run& run) { return stated(terms, "p", "pipeline stages", run.parallel.pipeline); }
Sym context(Terms& terms, const Run& run) {
  return stated(terms, "c", "context parallel (parallel.context)", run.parallel.context);
}

}  // namespace

Sym data_degree(Terms& terms, const Run& run) {
  const Parallel& parallel = run.parallel;
  const Sym others = stated(terms, "t", "tensor parallel (parallel.tensor)", parallel.tensor) * context(terms, run) *
                     stages(terms, run);
  return derived(terms, "D", "data parallel (parallel.data)", gpus(terms, run) / others, parallel.data);
}

Sym ranks_of(Terms& terms, const Run& run, GroupKind group, int size) {
  if (size <= 1) return Sym(static_cast<double>(size));
  const Parallel& parallel = run.parallel;
  if (group == GroupKind::data && size == parallel.dense_replicas()) {
    return derived(terms, "N", "ranks that hold the same weights: data x context",
                   data_degree(terms, run) * context(terms, run), size);
  }
  if (group == GroupKind::expert_data && size == parallel.expert_replicas()) {
    const Sym others = stages(terms, run) * stated(terms, "e", "expert parallel (parallel.expert)", parallel.expert) *
                       stated(terms, "x", "expert tensor parallel (parallel.expert_tensor)", parallel.expert_tensor);
    return derived(terms, "N_e", "ranks that hold the same experts", gpus(terms, run) / others, size);
  }
  if (group == GroupKind::data || group == GroupKind::expert_data) {
    if (size == parallel.shard_group) {
      return terms.input("S", "ranks of a shard set (parallel.shard_group)", size, run_file);
    }
    const int all = group == GroupKind::data ? parallel.dense_replicas() : parallel.expert_replicas();
    if (parallel.shard_group > 1 && size * parallel.shard_group == all) {
      return derived(terms, "R", "shard sets that hold the same weights",
                     ranks_of(terms, run, group, all) / ranks_of(terms, run, group, parallel.shard_group), size);
    }
  }
  if (group == GroupKind::embedding || (group == GroupKind::pipeline && size != parallel.pipeline)) {
    return terms.input("holders", "ranks that hold the same weights twice: sums of their gradients", size, run_file);
  }
  return terms.input(size_symbol(group), fmt::format("ranks of a {} group", name(group)), size, run_file);
}

}  // namespace shardplan::explain
