#include "efficiency_file.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace shardplan::io {
namespace {

constexpr std::int64_t largest_size = 1'000'000'000;
constexpr std::int64_t largest_message = 1'000'000'000'000'000;
const NumberRange positive = {0, std::nullopt, 1e12};

/// The entries of a list member, each as a reader with its own pointer.
template <class Read>
void each(ObjectReader& block, std::string_view name, const Read& read) {
  const nlohmann::json* list = block.member(name);
  if (list == nullptr) return;
  if (!list->is_array()) {
    block.problem(name, quoted(*list) + " is not a list");
    return;
  }
  for (std::size_t i = 0; i < list->size(); ++i) {
    ObjectReader entry((*list)[i], block.file(), fmt::format("{}/{}", block.pointer_of(name), i), block.problems());
    if (entry.is_object()) read(entry);
    entry.finish();
  }
}

double size_of(ObjectReader& entry, std::string_view name, std::int64_t to = largest_size) {
  entry.require(name);
  return static_cast<double>(entry.integer(name, 1, to).value_or(1));
}

/// A measurement is a time or a rate, whichever the user has.
double seconds_of(ObjectReader& entry, std::string_view rate_name, double work) {
  const bool has_time = entry.member("seconds") != nullptr;
  const bool has_rate = entry.member(rate_name) != nullptr;
  const auto time = entry.number("seconds", positive);
  const auto rate = entry.number(rate_name, positive);
  if (has_time == has_rate) {
    entry.problem("seconds", fmt::format("either seconds or {} is required, not both", rate_name));
  }
  if (time) return *time;
  return rate ? work / *rate : 0;
}

void read_gemm(ObjectReader& entry, MeasuredEfficiency& measured) {
  EfficiencyPoint point;
  const double m = size_of(entry, "m");
  const double n = size_of(entry, "n");
  const double k = size_of(entry, "k");
  const Precision precision = entry.choice<Precision>("dtype").value_or(Precision::bf16);
  point.at = {m, n, k, static_cast<double>(precision)};
  point.value = seconds_of(entry, "tflops", 2 * m * n * k * 1e-12);
  measured.gemm.push_back(point);
}

void read_attention(ObjectReader& entry, MeasuredEfficiency& measured) {
  EfficiencyPoint point;
  const double batch = size_of(entry, "batch");
  const double heads = size_of(entry, "heads");
  const double length = size_of(entry, "seq_length");
  const double width = size_of(entry, "head_dim");
  const bool backward = entry.word("pass", {"forward", "backward"}).value_or(0) == 1;
  // Causal: half of 4 b a s^2 d; the backward pass does 2.5 times as much.
  const double flop = 2 * batch * heads * length * length * width * (backward ? 2.5 : 1);
  point.at = {batch, heads, length, width};
  point.value = seconds_of(entry, "tflops", flop * 1e-12);
  (backward ? measured.attention_backward : measured.attention_forward).push_back(point);
}

void read_collective(ObjectReader& entry, MeasuredEfficiency& measured) {
  EfficiencyPoint point;
  const std::vector<std::string_view> ops(measured_collective_names.begin(), measured_collective_names.end());
  entry.require("op");
  const std::size_t op = entry.word("op", ops).value_or(0);
  const double ranks = size_of(entry, "group_size");
  const double bytes = size_of(entry, "message_bytes", largest_message);
  // Bus bandwidth as nccl-tests count it: what each rank sends around a ring.
  const double sent = bytes * (ranks - 1) / ranks * (op == 0 ? 2 : 1);
  point.at = {ranks, bytes, static_cast<double>(op), 0};
  point.value = seconds_of(entry, "bus_gb_s", sent * 1e-9);
  measured.collectives.push_back(point);
}

}  // namespace

void read_efficiency(ObjectReader& cluster, MeasuredEfficiency& measured) {
  const nlohmann::json* value = cluster.member("efficiency");
  if (value == nullptr) return;
  ObjectReader block(*value, cluster.file(), cluster.pointer_of("efficiency"), cluster.problems());
  each(block, "gemm", [&](ObjectReader& entry) { read_gemm(entry, measured); });
  each(block, "attention", [&](ObjectReader& entry) { read_attention(entry, measured); });
  each(block, "collectives", [&](ObjectReader& entry) { read_collective(entry, measured); });
  block.accept({"source"});
  block.finish();
}

}  // namespace shardplan::io
