// The list of topics, and what a card is filled with.
#include <algorithm>
#include <array>

#include "shardplan/explain/named_symbols.hpp"
#include "subjects.hpp"
#include "topics.hpp"

namespace shardplan::explain {
namespace {

using E = Example;

constexpr std::array<Topic, 51> all = {{
    {"model-states", "adam 16p 16phi 16Φ 16φ states", "memory",
     "parameters, gradients and optimizer states: 16 bytes each", E::pretraining, model_states},
    {"activations", "", "memory", "what a layer keeps for backward", E::pretraining, activations},
    {"checkpointing", "recompute recomputation gradient-checkpointing selective", "memory",
     "recomputation: memory against time", E::pretraining, checkpointing},
    {"logits", "loss-memory", "memory", "logits and loss of a large vocabulary", E::fine_tuning, logits},
    {"transients", "transient", "memory", "what a pass holds for a moment", E::pretraining, transients},
    {"reserved", "fragmentation", "memory", "allocated, reserved, CUDA context", E::pretraining, reserved},
    {"ddp", "dp data-parallel data-parallelism", "data parallelism", "replicas, and DP against DDP", E::pretraining,
     ddp},
    {"ring-allreduce", "ring all-reduce allreduce", "data parallelism", "bytes and hops of a ring", E::pretraining,
     ring_all_reduce},
    {"bucketing", "buckets gradient-bucketing", "data parallelism", "gradients reduced while backward runs",
     E::pretraining, bucketing},
    {"zero", "zero-1 zero-2 zero-3 zero-stage", "ZeRO", "what each stage divides", E::pretraining, zero},
    {"zero-traffic", "zero-communication", "ZeRO", "bytes each stage sends, with accumulation", E::pretraining,
     zero_traffic},
    {"zeropp", "zero++ hpz qwz qgz", "ZeRO", "qwZ, hpZ, qgZ", E::pretraining, zeropp},
    {"offload", "zero-offload", "ZeRO", "states in host memory: what the step waits for", E::pretraining, offload},
    {"infinity", "zero-infinity nvme", "ZeRO", "states on NVMe: time per step", E::pretraining, infinity},
    {"ddp-or-zero", "", "ZeRO", "which one when", E::pretraining, ddp_or_zero},
    {"fsdp", "full-shard", "FSDP", "shards, gathered units, strategies", E::pretraining, fsdp},
    {"hsdp", "hybrid-shard hybrid-sharding", "FSDP", "sharded in a node, replicated across", E::pretraining, hsdp},
    {"fsdp-or-zero3", "zero3-or-fsdp", "FSDP", "buffers of the two", E::pretraining, fsdp_or_zero3},
    {"tensor-parallel", "tp tensor-parallelism", "tensor parallelism", "all-reduces of a layer", E::pretraining,
     tensor_parallel},
    {"column-parallel", "row-parallel", "tensor parallelism", "columns, then rows: worked on numbers", E::none,
     column_parallel},
    {"sequence-parallel", "sp sequence-parallelism", "tensor parallelism", "norms and dropout cut too", E::pretraining,
     sequence_parallel},
    {"context-parallel", "cp ulysses ring-attention", "long sequences and experts", "rings of keys and values",
     E::pretraining, context_parallel},
    {"expert-parallel", "ep moe expert-parallelism", "long sequences and experts", "dispatch and combine",
     E::pretraining, expert_parallel},
    {"pipeline", "pp gpipe pipeline-parallel", "pipeline parallelism", "schedules side by side", E::pretraining,
     pipeline},
    {"bubble", "pipeline-bubble", "pipeline parallelism", "idle share of the step", E::pretraining, bubble},
    {"1f1b", "one-f-one-b", "pipeline parallelism", "microbatches in flight", E::pretraining, one_f_one_b},
    {"interleaved", "vpp", "pipeline parallelism", "v chunks a rank", E::pretraining, interleaved},
    {"zero-bubble", "zb zb-h1 zb-h2 zb-v", "pipeline parallelism", "B and W apart", E::pretraining, zero_bubble},
    {"dualpipe", "dualpipe-v", "pipeline parallelism", "both directions at once", E::pretraining, dualpipe},
    {"3d", "3d-parallel", "layouts", "degrees multiply to the GPUs", E::pretraining, three_d},
    {"rank-order", "order", "layouts", "which ranks are neighbours", E::pretraining, rank_order},
    {"lora", "", "adapters", "trained parameters, zero start, alpha and rank", E::fine_tuning, lora},
    {"qlora", "", "adapters", "bits of a quantised weight", E::fine_tuning, qlora},
    {"dora", "", "adapters", "magnitude and direction", E::fine_tuning, dora},
    {"rslora", "", "adapters", "alpha over the root of the rank", E::fine_tuning, rslora},
    {"nf4", "", "adapters", "sixteen quantiles of a normal", E::none, nf4},
    {"double-quantisation", "double-quant double-quantization", "adapters", "constants quantised again", E::fine_tuning,
     double_quantisation},
    {"paged-optimizers", "paged", "adapters", "states that leave the card", E::fine_tuning, paged_optimizers},
    {"lora-or-full", "full-or-lora", "adapters", "states of the two", E::fine_tuning, lora_or_full},
    {"flash-attention", "flash fa fa1", "attention", "HBM traffic for SRAM of size M", E::pretraining, flash_attention},
    {"flash-versions", "flash-2 flash-3 fa2 fa3 flash-v1 flash-v2 flash-v3", "attention", "what versions 1, 2, 3 reach",
     E::pretraining, flash_versions},
    {"online-softmax", "", "attention", "running maximum and sum, worked on numbers", E::none, online_softmax},
    {"bf16", "fp16 fp8 fp8-e4m3 fp8-e5m2 fp32 tf32 formats", "precision", "ranges and steps from the bits",
     E::pretraining, number_formats_card},
    {"loss-scaling", "loss-scale", "precision", "small gradients in fp16", E::pretraining, loss_scaling},
    {"grad-accum", "accumulation gradient-accumulation", "the step", "global batch of a step", E::pretraining,
     grad_accum},
    {"grad-clipping", "clipping", "the step", "one norm over all ranks", E::none, grad_clipping},
    {"loss-spike", "spike", "the step", "what to check, in order", E::none, loss_spike},
    {"throughput", "tokens", "speed and size", "tokens a second", E::pretraining, throughput},
    {"mfu", "hfu", "speed and size", "model FLOP over the peak, four conventions", E::pretraining, mfu},
    {"peak-flops", "peak", "speed and size", "the dense rate of a GPU", E::pretraining, peak_flops},
    {"gpu-count", "70b gpus", "speed and size", "how many GPUs a model needs", E::pretraining, gpu_count},
}};

/// Lower case, without dashes and spaces: "ZeRO 3", "zero-3" and "zero3" are one word.
std::string key(std::string_view word) {
  std::string letters;
  for (const char c : word) {
    if (c == '-' || c == '_' || c == ' ') continue;
    letters += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return letters;
}

/// Calls with each of the words.
template <class Each>
void each_word(std::string_view words, Each&& each) {
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    each(words.substr(0, end));
    words.remove_prefix(std::min(end + 1, words.size()));
  }
}

bool has_word(std::string_view words, std::string_view wanted) {
  bool found = false;
  each_word(words, [&](std::string_view word) { found = found || key(word) == wanted; });
  return found;
}

}  // namespace

std::span<const Topic> topics() { return all; }

const Topic* find_topic(std::string_view word) {
  const std::string wanted = key(word);
  for (const Topic& topic : all) {
    if (key(topic.name) == wanted || has_word(topic.aliases, wanted)) return &topic;
  }
  return nullptr;
}

std::vector<const Topic*> find_topics(std::string_view word) {
  if (const Topic* const topic = find_topic(word)) return {topic};
  std::string wanted = key(word);
  bool question = true, section = true;  // a number alone is either
  for (const std::string_view front : {"section", "chapter", "question"}) {
    if (wanted.rfind(front, 0) == 0 && wanted.size() > front.size()) {
      wanted = wanted.substr(front.size());
      question = front == "question";
      section = !question;
      break;
    }
  }
  std::vector<const Topic*> found;
  const auto take = [&found](std::string_view name) {
    const Topic* const topic = find_topic(name);
    if (std::find(found.begin(), found.end(), topic) == found.end()) found.push_back(topic);
  };
  for (const Subject& place : places) {
    const std::string name = key(place.words);
    if ((question && name == "q" + wanted) || (section && name == wanted)) each_word(place.topics, take);
  }
  for (const Subject& subject : subjects) {
    if (has_word(subject.words, wanted)) each_word(subject.topics, take);
  }
  if (!found.empty()) return found;
  for (const Topic& topic : all) {
    if (key(topic.section) == wanted) found.push_back(&topic);
  }
  return found;
}

std::string places_of(const Topic& topic) {
  std::string text;
  for (const Subject& place : places) {
    const bool whole =
        place.words.size() < 3 && place.words.front() != 'Q' && place.words != "7" && place.words != "11";
    if (!whole && has_word(place.topics, key(topic.name)))
      text += fmt::format("{}{}", text.empty() ? "" : " ", place.words);
  }
  return text;
}

Card::Card(const Topic& topic, const TopicInput& input) : input_(input) {
  out.topic = topic.name;
  out.title = topic.summary;
  out.run = topic.example == Example::none ? "a worked example" : input.run_name;
}

namespace {

/// What breaks a domain's rule; empty: nothing does.
std::string broken_rule(Domain domain, double value) {
  const bool whole = value == std::floor(value);
  switch (domain) {
    case Domain::amount: return value < 0 ? "is not below 0" : "";
    case Domain::positive: return value <= 0 ? "is above 0" : "";
    case Domain::count: return !whole || value < 1 ? "is a whole number from 1 on" : "";
    case Domain::index: return !whole || value < 0 ? "is a whole number from 0 on" : "";
    case Domain::fraction: return value < 0 || value > 1 ? "is a share, 0 to 1" : "";
    case Domain::any: break;
  }
  return "";
}

/// Symbols of a layer's formulas and of the run's terms: dimensions and degrees, but for a few.
Domain domain_of(std::string_view name) {
  if (name == "capacity" || name == "u" || name == "keys_causal") return Domain::positive;
  constexpr std::array<std::string_view, 24> counts = {"s", "b",     "t",      "c",    "e",   "x",    "h",   "V",
                                                       "a", "k",     "d",      "d_v",  "r_q", "r_kv", "f",   "E",
                                                       "r", "k_top", "d_rope", "keys", "f_e", "f_s",  "f_p", "live"};
  return std::find(counts.begin(), counts.end(), name) == counts.end() ? Domain::amount : Domain::count;
}

}  // namespace

double Card::given_or(std::string_view name, std::string_view meaning, double value, Domain domain) {
  for (const auto& [other, given] : input_.values) {
    if (other != name) continue;
    if (const std::string rule = broken_rule(domain, given); !rule.empty()) {
      expect(false, name, fmt::format("{} {}", meaning.substr(0, meaning.find(" (")), rule),
             fmt::format("this run has {}", number(value)));
    } else {
      value = given;
    }
  }
  return value;
}

void Card::expect(bool holds, std::string_view name, std::string rule, std::string way_out) {
  if (holds) return;
  for (const auto& [other, given] : input_.values) {
    if (other != name) continue;
    const std::string message = fmt::format("--let {}={}: {}", name, number(given), rule);
    const bool known = std::any_of(wrong_.begin(), wrong_.end(), [&](const auto& w) { return w.message == message; });
    if (!known) wrong_.push_back({message, std::move(way_out)});
    return;
  }
}

Sym Card::index(std::string_view name, std::string_view meaning, double value, double below) {
  const Sym place = symbol(name, meaning, value, {}, Domain::index);
  expect(place.value() < below, name, fmt::format("{} is below {}", meaning, number(below)),
         fmt::format("0 to {}", number(below - 1)));
  return place;
}

void Card::next(std::string text) {
  constexpr std::string_view stands_for_run = "RUN.json";
  if (const std::size_t at = text.find(stands_for_run); at != std::string::npos) {
    text.replace(at, stands_for_run.size(), input_.run_words);
  }
  out.next = std::move(text);
}

Sym Card::symbol(std::string_view name, std::string_view meaning, double value, std::string_view unit, Domain domain) {
  names_.emplace_back(name);
  value = given_or(name, meaning, value, domain);
  return expressions_.kept_symbol({std::string(name), std::string(meaning), std::string(unit), "", "", value});
}

Symbols<Sym> Card::layer(const Symbols<double>& numbers) {
  const auto make = [this](std::string_view name, std::string_view meaning, double value, double without_trace) {
    const bool replaced = std::any_of(input_.values.begin(), input_.values.end(),
                                      [name](const auto& given) { return given.first == name; });
    value = given_or(name, meaning, value, domain_of(name));
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
  const Written written = write(expression);
  for (std::size_t i = 0; i < written.names.size(); ++i) {
    names_.push_back(written.names[i]);
    given_or(written.names[i], written.symbols[i]->meaning, written.symbols[i]->value, domain_of(written.names[i]));
  }
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

TopicCheck Card::check() const {
  TopicCheck check;
  for (const auto& each : input_.values) {
    const std::string& name = each.first;
    const bool in_formula = std::any_of(out.symbols.begin(), out.symbols.end(),
                                        [&name](const ExplainedSymbol& symbol) { return symbol.symbol == name; });
    if (!in_formula && std::find(names_.begin(), names_.end(), name) == names_.end()) check.unused.push_back(name);
  }
  check.wrong = wrong_;
  return check;
}

Explanation explain_topic(const Topic& topic, const TopicInput& input, TopicCheck* check) {
  Card card(topic, input);
  topic.fill(card);
  if (topic.example == Example::none && input.stated) {
    card.remark("this run", "changes nothing here: the numbers are a worked example's");
  }
  if (check != nullptr) *check = card.check();
  return std::move(card.out);
}

}  // namespace shardplan::explain
