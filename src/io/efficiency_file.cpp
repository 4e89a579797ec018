#include "efficiency_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "calibration.hpp"

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
    block.problem(name, quoted(*list) + " is not a list of measurements", "scripts/measure_gpu.py writes them");
    return;
  }
  for (std::size_t i = 0; i < list->size(); ++i) {
    ObjectReader entry((*list)[i], block.file(), fmt::format("{}/{}", block.pointer_of(name), i), block.problems());
    if (entry.is_object()) read(entry);
    entry.finish();
  }
}

double size_of(ObjectReader& entry, std::string_view name, std::int64_t to = largest_size, std::int64_t from = 1) {
  entry.require(name);
  return static_cast<double>(entry.integer(name, from, to).value_or(from));
}

/// What a measurement is of: its work, in the unit of its rate, and the most that the hardware does of it a second.
struct Work {
  std::string_view rate_name;
  double amount = 0;
  double limit = 0;  ///< 0: not known
  std::string limit_text;
};

/// Published peaks and link rates are round numbers.
constexpr double rounding = 1.001;
constexpr double link_slack = 1.05;

/// A measurement is a time or a rate, whichever the user has.
double seconds_of(ObjectReader& entry, const Work& work) {
  const bool has_time = entry.member("seconds") != nullptr;
  const bool has_rate = entry.member(work.rate_name) != nullptr;
  const auto time = entry.number("seconds", positive);
  const auto rate = entry.number(work.rate_name, positive);
  if (has_time == has_rate) {
    entry.problem("seconds", fmt::format("either seconds or {} is required, not both", work.rate_name));
  }
  const double seconds = time ? *time : rate ? work.amount / *rate : 0;
  if (has_time != has_rate && seconds > 0 && work.limit > 0 && work.amount > work.limit * seconds) {
    entry.problem(has_time ? "seconds" : work.rate_name,
                  has_time ? fmt::format("{:g} s is {:.4g} {}, more than {}", seconds, work.amount / seconds,
                                         work.rate_name, work.limit_text)
                           : fmt::format("{:g} is more than {}", *rate, work.limit_text));
  }
  return seconds;
}

void read_gemm(ObjectReader& entry, Cluster& cluster) {
  EfficiencyPoint point;
  const double m = size_of(entry, "m");
  const double n = size_of(entry, "n");
  const double k = size_of(entry, "k");
  const Precision precision = entry.choice<Precision>("dtype").value_or(Precision::bf16);
  point.at = {m, n, k, static_cast<double>(precision)};
  const double peak = cluster.gpu.peak(precision) * 1e-12;
  point.value =
      seconds_of(entry, {"tflops", 2 * m * n * k * 1e-12, peak * rounding,
                         fmt::format("the {:.5g} dense {} TFLOP/s of {}", peak, name(precision), cluster.gpu.name)});
  cluster.measured.gemm.push_back(point);
}

void read_attention(ObjectReader& entry, Cluster& cluster) {
  EfficiencyPoint point;
  const double batch = size_of(entry, "batch");
  const double heads = size_of(entry, "heads");
  const double length = size_of(entry, "seq_length");
  const double width = size_of(entry, "head_dim");
  const bool backward = entry.word("pass", {"forward", "backward"}).value_or(0) == 1;
  // Causal: half of 4 b a s^2 d; the backward pass does 2.5 times as much.
  const double flop = 2 * batch * heads * length * length * width * (backward ? 2.5 : 1);
  point.at = {batch, heads, length, width};
  const double peak = std::max(cluster.gpu.peak(Precision::bf16), cluster.gpu.peak(Precision::fp16)) * 1e-12;
  point.value = seconds_of(entry, {"tflops", flop * 1e-12, peak * rounding,
                                   fmt::format("the {:.5g} dense 16-bit TFLOP/s of {}", peak, cluster.gpu.name)});
  (backward ? cluster.measured.attention_backward : cluster.measured.attention_forward).push_back(point);
}

/// The most that a rank can send of a collective, as nccl-tests count bus bandwidth: the link inside a domain, the
/// node's NICs together across nodes. A switch that adds up itself spares an all-reduce half of what a ring sends.
double bus_limit(const Cluster& cluster, std::size_t op, double ranks) {
  const bool inside = ranks <= cluster.scale_up_domain;
  const double link = inside ? cluster.intra_node.bandwidth : cluster.inter_node.bandwidth * cluster.gpus_per_node;
  return link * 1e-9 * std::max(1.0, sent_share(measured_collective(op), ranks));
}

void read_collective(ObjectReader& entry, Cluster& cluster) {
  EfficiencyPoint point;
  const std::vector<std::string_view> ops(measured_collective_names.begin(), measured_collective_names.end());
  entry.require("op");
  const std::size_t op = entry.word("op", ops).value_or(0);
  const double ranks = size_of(entry, "group_size", largest_size, 2);
  const double bytes = size_of(entry, "message_bytes", largest_message);
  // Bus bandwidth as nccl-tests count it: what each rank sends around a ring.
  const double sent = bytes * sent_share(measured_collective(op), ranks);
  point.at = {ranks, bytes, static_cast<double>(op), 0};
  const double limit = bus_limit(cluster, op, ranks);
  point.value = seconds_of(entry, {"bus_gb_s", sent * 1e-9, limit * link_slack,
                                   fmt::format("the {:.4g} GB/s that {} can reach over {}", limit, ops[op],
                                               ranks <= cluster.scale_up_domain ? "intra_node" : "inter_node")});
  cluster.measured.collectives.push_back(point);
}

}  // namespace

void read_efficiency(ObjectReader& reader, Cluster& cluster) {
  const nlohmann::json* value = reader.member("efficiency");
  if (value == nullptr) return;
  ObjectReader block(*value, reader.file(), reader.pointer_of("efficiency"), reader.problems());
  each(block, "gemm", [&](ObjectReader& entry) { read_gemm(entry, cluster); });
  each(block, "attention", [&](ObjectReader& entry) { read_attention(entry, cluster); });
  each(block, "collectives", [&](ObjectReader& entry) { read_collective(entry, cluster); });
  block.accept({"source"});
  block.finish();
}

}  // namespace shardplan::io
