#include "shardplan/explain/terms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace shardplan::explain {
namespace {

/// Heads of columns and rows of the estimate, and what people type.
constexpr auto words = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"param", "memory.parameters"},
    {"grad", "memory.gradients"},
    {"optim", "memory.optimizer"},
    {"activ", "memory.activations"},
    {"trans", "memory.transient"},
    {"transient", "memory.transient"},
    {"comm", "memory.communication_buffers"},
    {"frame", "memory.framework"},
    {"cuda+nccl", "memory.framework"},
    {"cuda context", "memory.framework"},
    {"nccl", "memory.framework"},
    {"total", "memory.total"},
    {"memory", "memory.total"},
    {"memory.stages", "memory.total"},
    {"memory.moments", "memory.total"},
    {"live", "memory.in_flight_microbatches"},
    {"in flight", "memory.in_flight_microbatches"},
    {"in_flight", "memory.in_flight_microbatches"},
    {"layers", "memory.layers"},
    {"reserve", "memory.reserved"},
    {"headroom", "memory.headroom"},
    {"time", "time.step"},
    {"step", "time.step"},
    {"compute", "time.compute"},
    {"gemm", "time.gemm"},
    {"rest", "time.other_compute"},
    {"bubble", "time.bubble"},
    {"optimizer", "time.optimizer"},
    {"offload", "time.offload"},
    {"communication", "communication.sent_bytes_per_step.total"},
    {"sent", "communication.sent_bytes_per_step.total"},
    {"pipeline", "pipeline.bubble_fraction"},
    {"throughput", "throughput.tokens_per_s"},
    {"model", "model.parameters"},
    {"mfu", "throughput.mfu"},
    {"hfu", "throughput.hfu"},
    {"mfu_causal", "throughput.mfu_causal"},
    {"mfu_6n", "throughput.mfu_6n"},
    {"recompute", "time.recompute"},
    {"attention", "time.attention"},
    {"states", "memory.states"},
    {"peak", "memory.peak"},
    {"peak_memory", "memory.peak"},
    {"max_memory_allocated", "memory.allocated"},
    {"max_memory_reserved", "memory.reserved"},
    {"bytes_per_parameter", "memory.bytes_per_parameter"},
    {"price", "throughput.price_per_1e12_tokens"},
    {"cost", "throughput.price_per_1e12_tokens"},
    {"gpu_hours", "throughput.gpu_hours_per_1e12_tokens"},
    {"bubble_fraction", "pipeline.bubble_fraction"},
    {"ideal_bubble", "pipeline.ideal_bubble_fraction"},
    {"microbatches", "pipeline.num_microbatches"},
    {"links", "link"},
    {"nvlink", "link"},
    {"infiniband", "nic"},
    {"flops", "peak_rate"},
    {"peak_flops", "peak_rate"},
    {"hbm", "HBM"},
    {"tp", "t"},
    {"tensor", "t"},
    {"parallel.tensor", "t"},
    {"pp", "p"},
    {"parallel.pipeline", "p"},
    {"cp", "c"},
    {"context_parallel", "c"},
    {"parallel.context", "c"},
    {"ep", "e"},
    {"parallel.expert", "e"},
    {"etp", "x"},
    {"parallel.expert_tensor", "x"},
    {"dp", "D"},
    {"data", "D"},
    {"parallel.data", "D"},
    {"expert_data", "N_e"},
    {"exposed", "time.communication_exposed"},
    {"tp exchange", "time.exposed.tensor"},
    {"pp send", "time.exposed.pipeline"},
    {"dp exchange", "time.exposed.data"},
    {"cp exchange", "time.exposed.context"},
    {"ep exchange", "time.exposed.expert"},
    {"edp exchange", "time.exposed.expert_data"},
    {"tied weights", "time.exposed.embedding"},
    {"etp exchange", "time.exposed.expert_tensor"},
});

std::string canonical(std::string_view typed) {
  std::string path(typed.substr(0, typed.find('@')));
  std::string stage(typed.size() > path.size() ? typed.substr(path.size()) : std::string_view());
  for (char& letter : path) {
    if (letter == '/') letter = '.';
  }
  if (!path.empty() && path.front() == '.') path.erase(0, 1);
  constexpr std::string_view stages = "memory.stages.";
  if (path.rfind(stages, 0) == 0 && stage.empty()) {
    const std::size_t dot = path.find('.', stages.size());
    if (dot != std::string::npos) {
      stage = "@" + path.substr(stages.size(), dot - stages.size());
      path = "memory." + path.substr(dot + 1);
    }
  }
  std::string lower = path;
  for (char& letter : lower) letter = letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  for (const auto& [word, address] : words) {
    if (lower == word) return std::string(address) + stage;
  }
  return path + stage;
}

}  // namespace

void Terms::relate(std::string_view address, std::vector<std::string> related) {
  const auto at = by_address_.find(address);
  if (at != by_address_.end()) terms_[at->second].related = std::move(related);
}

const Term* Terms::find(std::string_view address) const {
  const auto exact = by_address_.find(address);
  if (exact != by_address_.end()) return &terms_[exact->second];
  std::string typed = canonical(address);
  const auto known = by_address_.find(typed);
  if (known != by_address_.end()) return &terms_[known->second];
  const std::size_t at = std::min(typed.find('@'), typed.size());
  if (at == typed.size()) {  // what exists on some stages only: the first that has it
    const auto on_stage = by_address_.lower_bound(typed + "@");
    if (!typed.empty() && on_stage != by_address_.end() && on_stage->first.rfind(typed + "@", 0) == 0) {
      return &terms_[on_stage->second];
    }
  }
  // A layer or an operator alone: its forward pass.
  const auto pass = by_address_.find(typed.substr(0, at) + ".forward" + typed.substr(at));
  if (at > 0 && pass != by_address_.end()) return &terms_[pass->second];
  if (typed.find(' ') != std::string::npos) {  // as the page has it: "bytes per parameter"
    std::string joined = typed;
    std::replace(joined.begin(), joined.end(), ' ', '_');
    return find(joined);
  }
  for (const std::string_view unit : {"_bytes", "_s", "_tflops_per_gpu"}) {
    const std::string path = typed.substr(0, at);
    if (path.size() <= unit.size() || path.substr(path.size() - unit.size()) != unit) continue;
    const auto without = by_address_.find(canonical(path.substr(0, path.size() - unit.size()) + typed.substr(at)));
    if (without != by_address_.end()) return &terms_[without->second];
  }
  return nullptr;
}

Sym Terms::add(std::string_view symbol, Term term) {
  by_address_.emplace(term.address, terms_.size());
  terms_.push_back(std::move(term));
  return symbol_of(symbol, terms_.back());
}

Sym Terms::symbol_of(std::string_view name, const Term& term) {
  if (term.value == 0) return Sym(0.0);
  std::string key(name);
  key += ' ';
  key += term.address;
  const auto known = symbols_.find(key);
  if (known != symbols_.end()) return known->second;
  const Sym made =
      expressions_.kept_symbol({std::string(name), term.meaning, term.unit, term.address, term.source, term.value});
  symbols_.emplace(std::move(key), made);
  return made;
}

Sym Terms::input(std::string_view symbol, std::string_view meaning, double value, std::string_view source,
                 std::string_view unit) {
  std::string name(symbol);
  for (int i = 2;; ++i) {
    const auto known = inputs_.find(name);
    if (known == inputs_.end() && !has(name)) break;
    if (known != inputs_.end() && known->second.value() == value) return known->second;
    name = fmt::format("{}_{}", symbol, i);
  }
  Term term{name, std::string(meaning), std::string(unit), std::string(source), value, Sym(value), {},
            {},   TermKind::input};
  by_address_.emplace(name, terms_.size());
  terms_.push_back(term);
  const Sym result = expressions_.kept_symbol({name, term.meaning, term.unit, name, term.source, value});
  inputs_.emplace(name, result);
  return result;
}

std::vector<std::string> Terms::beside(const Term& term) const {
  std::vector<std::string> found = term.related;
  const std::size_t dot = term.address.rfind('.');
  constexpr std::array<std::string_view, 5> of_units = {"layers.", "embedding.", "final_norm.", "head.", "mtp."};
  const auto of_unit = [&](std::string_view prefix) { return term.address.rfind(prefix, 0) == 0; };
  if (std::none_of(of_units.begin(), of_units.end(), of_unit)) return found;
  const std::string stem = term.address.substr(0, dot + 1);
  for (auto each = by_address_.lower_bound(stem); each != by_address_.end(); ++each) {
    if (each->first.rfind(stem, 0) != 0) break;
    if (each->first != term.address && each->first.find('.', stem.size()) == std::string::npos) {
      found.push_back(each->first);
    }
  }
  return found;
}

std::string_view Terms::meant(std::string_view typed) {
  for (const auto& [word, address] : words) {
    if (typed == word) return address;
  }
  return {};
}

void Terms::alias(std::string_view other, std::string_view address) {
  const auto at = by_address_.find(address);
  if (at != by_address_.end()) by_address_.emplace(std::string(other), at->second);
}

void Explanation::set(const Written& written, double result) {
  value = result;
  formula = written.formula;
  substitution = written.substitution;
  for (std::size_t i = 0; i < written.symbols.size(); ++i) {
    const Symbol& symbol = *written.symbols[i];
    symbols.push_back({written.names[i], symbol.meaning, symbol.value, symbol.unit, symbol.address});
  }
}

namespace {

/// The addends of a sum whose every addend has an address; none where one has not.
void collect_addends(Sym x, std::vector<const Symbol*>& addends, bool& whole) {
  const Node* const node = x.node();
  if (node != nullptr && node->operation == Operation::add) {
    collect_addends(node->left, addends, whole);
    collect_addends(node->right, addends, whole);
  } else if (node != nullptr && node->operation == Operation::symbol && !node->symbol->address.empty()) {
    addends.push_back(node->symbol);
  } else {
    whole = false;
  }
}

}  // namespace

Explanation explain_term(const Terms& terms, const Term& term) {
  Explanation out;
  out.topic = term.address;
  out.title = term.meaning;
  out.unit = term.unit;
  out.set(write_collected(term.formula), term.value);
  if (term.formula.node() == nullptr) out.formula = out.substitution = number(term.value);
  for (const std::string& address : term.parts) {
    if (const Term* const part = terms.find(address)) out.parts.push_back({address, part->meaning, part->value});
  }
  if (out.parts.empty()) {
    std::vector<const Symbol*> addends;
    bool whole = true;
    collect_addends(term.formula, addends, whole);
    if (whole && addends.size() > 1) {
      for (const Symbol* const each : addends) out.parts.push_back({each->address, each->meaning, each->value});
    }
  }
  out.sources.push_back(term.source);
  std::string beside;
  for (const std::string& address : terms.beside(term)) beside += (beside.empty() ? "" : "  ") + address;
  if (!beside.empty()) out.remarks.push_back({"beside", beside});
  return out;
}

std::string value_text(double value, std::string_view unit) {
  const double size = std::fabs(value);
  if (unit == "B") {
    constexpr std::array<std::string_view, 5> names = {"B", "KiB", "MiB", "GiB", "TiB"};
    std::size_t i = 0;
    double scaled = value;
    for (; std::fabs(scaled) >= 1024 && i + 1 < names.size(); ++i) scaled /= 1024;
    return i == 0 ? fmt::format("{} B", number(value)) : fmt::format("{:.2f} {}", scaled, names[i]);
  }
  if (unit == "s") {
    if (size >= 1 || size == 0) return fmt::format("{:.2f} s", value);
    if (size >= 1e-3) return fmt::format("{:.2f} ms", value * 1e3);
    return fmt::format("{:.2f} us", value * 1e6);
  }
  if (unit == "fraction") return fmt::format("{:.{}f}%", value * 100, size < 0.1 ? 2 : 1);
  const std::string tail = unit.empty() ? std::string() : fmt::format(" {}", unit);
  if (value == std::nearbyint(value) && size < 1e15) {
    return fmt::format("{}{}{}", value < 0 ? "-" : "", fmt::group_digits(static_cast<std::uint64_t>(size)), tail);
  }
  return fmt::format("{:.6g}{}", value, tail);
}

}  // namespace shardplan::explain
