// The list of topics, and what a card is filled with.
#include <algorithm>
#include <array>

#include "shardplan/explain/named_symbols.hpp"
#include "topics.hpp"

namespace shardplan::explain {
namespace {

using E = Example;

constexpr std::array<Topic, 51> all = {{
    {"model-states", "adam 16p 16phi states", "memory", "parameters, gradients and optimizer states: 16 bytes each",
     E::pretraining, model_states},
    {"activations", "", "memory", "what a layer keeps for backward", E::pretraining, activations},
    {"checkpointing", "recompute recomputation gradient-checkpointing selective", "memory",
     "recomputation: memory against time", E::pretraining, checkpointing},
    {"logits", "loss-memory", "memory", "logits and loss of a large vocabulary", E::fine_tuning, logits},
    {"transients", "transient", "memory", "what a pass holds for a moment", E::pretraining, transients},
    {"reserved", "fragmentation", "memory", "allocated, reserved, CUDA context", E::pretraining, reserved},
    {"ddp", "dp data-parallel", "data parallelism", "replicas, and DP against DDP", E::pretraining, ddp},
    {"ring-allreduce", "ring all-reduce allreduce", "data parallelism", "bytes and hops of a ring", E::pretraining,
     ring_all_reduce},
    {"bucketing", "buckets", "data parallelism", "gradients reduced while backward runs", E::pretraining, bucketing},
    {"zero", "zero-1 zero-2 zero-3", "ZeRO", "what each stage divides", E::pretraining, zero},
    {"zero-traffic", "zero-communication", "ZeRO", "bytes each stage sends, with accumulation", E::pretraining,
     zero_traffic},
    {"zeropp", "zero++", "ZeRO", "qwZ, hpZ, qgZ", E::pretraining, zeropp},
    {"offload", "zero-offload", "ZeRO", "states in host memory: what the step waits for", E::pretraining, offload},
    {"infinity", "zero-infinity nvme", "ZeRO", "states on NVMe: time per step", E::pretraining, infinity},
    {"ddp-or-zero", "", "ZeRO", "which one when", E::pretraining, ddp_or_zero},
    {"fsdp", "full-shard", "FSDP", "shards, gathered units, strategies", E::pretraining, fsdp},
    {"hsdp", "hpz hybrid-shard", "FSDP", "sharded in a node, replicated across", E::pretraining, hsdp},
    {"fsdp-or-zero3", "zero3-or-fsdp", "FSDP", "buffers of the two", E::pretraining, fsdp_or_zero3},
    {"tensor-parallel", "tp", "tensor parallelism", "all-reduces of a layer", E::pretraining, tensor_parallel},
    {"column-parallel", "row-parallel", "tensor parallelism", "columns, then rows: worked on numbers", E::pretraining,
     column_parallel},
    {"sequence-parallel", "sp", "tensor parallelism", "norms and dropout cut too", E::pretraining, sequence_parallel},
    {"context-parallel", "cp", "long sequences and experts", "rings of keys and values", E::pretraining,
     context_parallel},
    {"expert-parallel", "ep moe", "long sequences and experts", "dispatch and combine", E::pretraining,
     expert_parallel},
    {"pipeline", "pp", "pipeline parallelism", "schedules side by side", E::pretraining, pipeline},
    {"bubble", "", "pipeline parallelism", "idle share of the step", E::pretraining, bubble},
    {"1f1b", "one-f-one-b", "pipeline parallelism", "microbatches in flight", E::pretraining, one_f_one_b},
    {"interleaved", "vpp", "pipeline parallelism", "v chunks a rank", E::pretraining, interleaved},
    {"zero-bubble", "zb zb-h1 zb-v", "pipeline parallelism", "B and W apart", E::pretraining, zero_bubble},
    {"dualpipe", "", "pipeline parallelism", "both directions at once", E::pretraining, dualpipe},
    {"3d", "3d-parallel", "layouts", "degrees multiply to the GPUs", E::pretraining, three_d},
    {"rank-order", "order", "layouts", "which ranks are neighbours", E::pretraining, rank_order},
    {"lora", "", "adapters", "trained parameters, zero start, alpha and rank", E::fine_tuning, lora},
    {"qlora", "", "adapters", "bits of a quantised weight", E::fine_tuning, qlora},
    {"dora", "", "adapters", "magnitude and direction", E::fine_tuning, dora},
    {"rslora", "", "adapters", "alpha over the root of the rank", E::fine_tuning, rslora},
    {"nf4", "", "adapters", "sixteen quantiles of a normal", E::fine_tuning, nf4},
    {"double-quantisation", "double-quant double-quantization", "adapters", "constants quantised again", E::fine_tuning,
     double_quantisation},
    {"paged-optimizers", "paged", "adapters", "states that leave the card", E::fine_tuning, paged_optimizers},
    {"lora-or-full", "full-or-lora", "adapters", "states of the two", E::fine_tuning, lora_or_full},
    {"flash-attention", "flash", "attention", "HBM traffic for SRAM of size M", E::pretraining, flash_attention},
    {"flash-versions", "flash-2 flash-3", "attention", "what versions 1, 2, 3 reach", E::pretraining, flash_versions},
    {"online-softmax", "", "attention", "running maximum and sum, worked on numbers", E::pretraining, online_softmax},
    {"bf16", "fp16 fp8 formats", "precision", "ranges and steps from the bits", E::pretraining, number_formats_card},
    {"loss-scaling", "loss-scale", "precision", "small gradients in fp16", E::pretraining, loss_scaling},
    {"grad-accum", "accumulation gradient-accumulation", "the step", "global batch of a step", E::pretraining,
     grad_accum},
    {"grad-clipping", "clipping", "the step", "one norm over all ranks", E::pretraining, grad_clipping},
    {"loss-spike", "spike", "the step", "what to check, in order", E::pretraining, loss_spike},
    {"throughput", "tokens", "speed and size", "tokens a second", E::pretraining, throughput},
    {"mfu", "hfu", "speed and size", "model FLOP over the peak, four conventions", E::pretraining, mfu},
    {"peak-flops", "peak", "speed and size", "the dense rate of a GPU", E::pretraining, peak_flops},
    {"gpu-count", "70b gpus", "speed and size", "how many GPUs a model needs", E::pretraining, gpu_count},
}};

bool same_word(std::string_view left, std::string_view right) {
  const auto lower = [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c == '_' || c == ' ' ? '-' : c;
  };
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [&](char a, char b) { return lower(a) == lower(b); });
}

}  // namespace

std::span<const Topic> topics() { return all; }

const Topic* find_topic(std::string_view word) {
  for (const Topic& topic : all) {
    if (same_word(topic.name, word)) return &topic;
    for (std::string_view rest = topic.aliases; !rest.empty();) {
      const std::size_t end = std::min(rest.find(' '), rest.size());
      if (same_word(rest.substr(0, end), word)) return &topic;
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return nullptr;
}

Card::Card(const Topic& topic, const TopicInput& input) : input_(input) {
  out.topic = topic.name;
  out.title = topic.summary;
}

Sym Card::symbol(std::string_view name, std::string_view meaning, double value, std::string_view unit) {
  names_.emplace_back(name);
  for (const auto& [other, replacement] : input_.values) {
    if (other == name) value = replacement;
  }
  return expressions_.kept_symbol({std::string(name), std::string(meaning), std::string(unit), "", "", value});
}

Symbols<Sym> Card::layer(const Symbols<double>& numbers) {
  const auto make = [this](std::string_view name, std::string_view meaning, double value, double without_trace) {
    bool replaced = false;
    for (const auto& [other, replacement] : input_.values) {
      if (other != name) continue;
      value = replacement;
      replaced = true;
    }
    if (value == without_trace && !replaced) return Sym(value);
    for (const auto& [known, symbol] : layer_symbols_) {
      if (known == name && symbol.value() == value) return symbol;
    }
    const Sym symbol = expressions_.kept_symbol({std::string(name), std::string(meaning), "", "", "", value});
    layer_symbols_.emplace_back(name, symbol);
    return symbol;
  };
  const auto model = [&](std::string_view name, std::string_view meaning, double v) {
    return make(name, meaning, v, 0);
  };
  const auto degree = [&](std::string_view name, std::string_view meaning, double v) {
    return make(name, meaning, v, 1);
  };
  return named_symbols(numbers, model, degree);
}

Sym Card::adopt(Sym expression) {
  for (const std::string& name : write(expression).names) names_.push_back(name);
  return with_values(expression, input_.values, expressions_);
}

void Card::result(Sym value, std::string_view unit, std::string shown, std::string head) {
  out.unit = unit;
  out.symbols.clear();
  out.set(write(value), value.value());
  without_fields();
  out.shown = std::move(shown);
  out.head = std::move(head);
}

void Card::collected(Sym value, std::string_view unit, std::string shown, std::string head) {
  result(value, unit, std::move(shown), std::move(head));
  out.symbols.clear();
  out.set(write_collected(value), value.value());
  without_fields();
}

/// Cards say what a symbol is; where the run file states it, the term's page says.
void Card::without_fields() {
  for (ExplainedSymbol& symbol : out.symbols) {
    for (const std::string_view fields : {" (training.", " (parallel."}) {
      symbol.meaning.erase(std::min(symbol.meaning.find(fields), symbol.meaning.size()));
    }
  }
}

void Card::estimate_once() {
  if (estimated_) return;
  estimated_ = true;
  shardplan::estimate(*input_.run, workspace_, estimate_);
}

const Estimate& Card::estimate() {
  estimate_once();
  return estimate_;
}

const EstimateWorkspace& Card::workspace() {
  estimate_once();
  return workspace_;
}

const Terms& Card::terms() {
  estimate_once();
  if (terms_ == nullptr) terms_ = terms_of(*input_.run, workspace_, estimate_);
  return *terms_;
}

const Terms& Card::terms_of_variant(const Run& run) {
  EstimateWorkspace workspace;
  Estimate result;
  shardplan::estimate(run, workspace, result);
  variants_.push_back(terms_of(run, workspace, result));
  return *variants_.back();
}

std::vector<std::string> Card::unused() const {
  std::vector<std::string> left;
  for (const auto& each : input_.values) {
    const std::string& name = each.first;
    const bool in_formula = std::any_of(out.symbols.begin(), out.symbols.end(),
                                        [&name](const ExplainedSymbol& symbol) { return symbol.symbol == name; });
    if (!in_formula && std::find(names_.begin(), names_.end(), name) == names_.end()) left.push_back(name);
  }
  return left;
}

Explanation explain_topic(const Topic& topic, const TopicInput& input, std::vector<std::string>* unused) {
  Card card(topic, input);
  topic.fill(card);
  if (unused != nullptr) *unused = card.unused();
  return std::move(card.out);
}

}  // namespace shardplan::explain
