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

constexpr ObjectReader::NoList no_list = {"is not a list of measurements", "scripts/measure_gpu.py writes them"};

double size_of(ObjectReader& entry, std::string_view name, std::string_view about, std::int64_t to = largest_size,
               std::int64_t from = 1) {
  const double size = static_cast<double>(entry.integer(name, from, to, about).value_or(from));
  entry.require(name);
  return size;
}

/// What a measurement is of: its work, in the unit of its rate, and the most that the hardware does of it a second.
struct Work {
  std::string_view rate_name;
  std::string_view rate_about;
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
  const auto time = entry.number("seconds", positive, "measured");
  const auto rate = entry.number(work.rate_name, positive, work.rate_about);
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
  const double m = size_of(entry, "m", "rows");
  const double n = size_of(entry, "n", "columns");
  const double k = size_of(entry, "k", "inner");
  const Precision precision = entry.choice<Precision>("dtype").value_or(Precision::bf16);
  point.at = {m, n, k, static_cast<double>(precision)};
  const double peak = cluster.gpu.peak(precision) * 1e-12;
  point.value =
      seconds_of(entry, {"tflops", "measured", 2 * m * n * k * 1e-12, peak * rounding,
                         fmt::format("the {:.5g} dense {} TFLOP/s of {}", peak, name(precision), cluster.gpu.name)});
  cluster.measured.gemm.push_back(point);
}

void read_attention(ObjectReader& entry, Cluster& cluster) {
  EfficiencyPoint point;
  const double batch = size_of(entry, "batch", "sequences");
  const double heads = size_of(entry, "heads", "heads");
  const double length = size_of(entry, "seq_length", "tokens");
  const double width = size_of(entry, "head_dim", "width");
  const bool backward = entry.word("pass", {"forward", "backward"}).value_or(0) == 1;
  // Causal: half of 4 b a s^2 d; the backward pass does 2.5 times as much.
  const double flop = 2 * batch * heads * length * length * width * (backward ? 2.5 : 1);
  point.at = {batch, heads, length, width};
  const double peak = std::max(cluster.gpu.peak(Precision::bf16), cluster.gpu.peak(Precision::fp16)) * 1e-12;
  point.value = seconds_of(entry, {"tflops", "measured", flop * 1e-12, peak * rounding,
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
  const double ranks = size_of(entry, "group_size", "ranks", largest_size, 2);
  const double bytes = size_of(entry, "message_bytes", "bytes", largest_message);
  // Bus bandwidth as nccl-tests count it: what each rank sends around a ring.
  const double sent = bytes * sent_share(measured_collective(op), ranks);
  point.at = {ranks, bytes, static_cast<double>(op), 0};
  const double limit = bus_limit(cluster, op, ranks);
  point.value = seconds_of(entry, {"bus_gb_s", "as nccl-tests count it", sent * 1e-9, limit * link_slack,
                                   fmt::format("the {:.4g} GB/s that {} can reach over {}", limit, ops[op],
                                               ranks <= cluster.scale_up_domain ? "intra_node" : "inter_node")});
  cluster.measured.collectives.push_back(point);
}

}  // namespace

void read_efficiency(ObjectReader& reader, Cluster& cluster) {
  reader.object("efficiency", "The user's own measured tables (docs/catalog.md).", [&](ObjectReader& block) {
    block.objects("gemm", "matrix products", no_list, [&](ObjectReader& entry) { read_gemm(entry, cluster); });
    block.objects("attention", "flash attention", no_list,
                  [&](ObjectReader& entry) { read_attention(entry, cluster); });
    block.objects("collectives", "of groups of ranks", no_list,
                  [&](ObjectReader& entry) { read_collective(entry, cluster); });
    block.accept({"source"});
  });
}

}  // namespace shardplan::io
