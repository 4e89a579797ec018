#include "rate_terms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "shardplan/physics/frameworks/facts.hpp"
#include "shardplan/physics/measured.hpp"
#include "shardplan/physics/timing_parts.hpp"

namespace shardplan::explain {

using namespace timing_constants;

namespace {

std::string size_text(double m, double n, double k) {
  return fmt::format("{} x {} x {}", number(m), number(n), number(k));
}

Sym padded(Sym size, double below) { return size.value() < below ? ceil(size / 128.0) * 128.0 : size; }

std::string_view precision_word(Precision precision) { return name(precision); }

}  // namespace

Sym Rates::gpu(std::string_view symbol, std::string_view meaning, double value, std::string_view field,
               std::string_view unit) {
  if (value == 1) return Sym(1.0);
  return b_.terms.input(symbol, meaning, value,
                        fmt::format("GPU {}: {} (configs/gpus; configs/timing/constants.json)", gpu_.name, field),
                        unit);
}

Sym Rates::cluster(std::string_view symbol, std::string_view meaning, double value, std::string_view field,
                   std::string_view unit) {
  if (value == 1) return Sym(1.0);
  return b_.terms.input(symbol, meaning, value, fmt::format("cluster {}: {}", b_.run.cluster.name, field), unit);
}

Sym Rates::stack(std::string_view symbol, std::string_view meaning, double value, std::string_view field,
                 std::string_view unit) {
  if (value == 1) return Sym(1.0);
  const Stack& stack = b_.run.training.stack;
  const std::string whose =
      std::string(stack.name.empty() ? facts_of(b_.run.training.framework).default_stack : stack.name);
  return b_.terms.input(
      symbol, meaning, value,
      fmt::format("stack {}: timing.{} (configs/stacks; configs/timing/constants.json)", whose, field), unit);
}

Sym Rates::rule(std::string_view symbol, std::string_view meaning, double value, std::string_view unit) {
  if (value == 1) return Sym(1.0);
  return b_.terms.input(symbol, meaning, value, "the model of the step's time (docs/validation.md)", unit);
}

Sym Rates::peak(Precision precision) {
  return gpu("peak_rate", fmt::format("dense peak of the GPU in {}", precision_word(precision)), gpu_.peak(precision),
             "peak_tflops", "FLOP/s");
}

Sym Rates::sustained() {
  return gpu("sustained", "training rate over the rate of a short benchmark", gpu_.gemm.sustained, "gemm.sustained");
}

Sym Rates::hbm() { return gpu("HBM", "HBM bandwidth", gpu_.memory_bandwidth, "memory_bandwidth", "B/s"); }

Sym Rates::memory(Sym bytes) {
  if (bytes.value() <= 0) return Sym(0.0);
  const Sym share =
      rule("HBM_share", "of the HBM bandwidth, what element-wise kernels reach", elementwise_bandwidth_share);
  return bytes / (share * hbm()) + rule("launch", "start of a kernel", launch_s, "s");
}

Sym Rates::tile(Precision precision, double width, Sym m, Sym n, Sym k, Sym batch) {
  const GemmEfficiency& efficiency = gpu_.gemm;
  const Sym processors =
      gpu("SM", "multiprocessors", gpu_.multiprocessors > 0 ? gpu_.multiprocessors : 108, "multiprocessors");
  const Sym fraction =
      gpu("tile_rate", "of the peak, what large tiles reach", efficiency.peak_fraction, "gemm.peak_fraction");
  const Sym k0 = gpu("k_0", "extra depth that a tile's start costs", efficiency.k0, "gemm.k0");
  const double q = efficiency.wave_quantisation;
  Sym best;
  for (int i = 0; i < 3; ++i) {
    const Sym tiles = batch * ceil(m / tile_rows[i]) * ceil(n / 128.0);
    const Sym waves = tiles / processors;
    const Sym rounds = Sym(q) * ceil(waves) + Sym(1 - q) * max(waves, Sym(1.0));
    const Sym rate = peak(precision) / processors * fraction * Sym(tile_share[i]);
    const Sym seconds = rounds * Sym(2 * tile_rows[i] * 128) * (k + k0) / rate;
    if (i == 0 || seconds < best) best = seconds;
  }
  const Sym bytes = Sym(width) * batch * (m * k + k * n + m * n);
  const Sym share = gpu("gemm_HBM_share", "of the HBM bandwidth, what a product reaches", efficiency.memory_fraction,
                        "gemm.memory_fraction");
  return max(best, bytes / (hbm() * share)) +
         gpu("gemm_launch", "start of a product", efficiency.launch_s, "gemm.launch_s", "s");
}

Sym Rates::product(const std::string& path, const std::string& label, Precision precision, Sym m, Sym n, Sym k,
                   Sym batch, Sym flop) {
  if (m.value() <= 0 || n.value() <= 0 || k.value() <= 0 || batch.value() <= 0) return Sym(0.0);
  if (gpu_.peak(precision) <= 0) return Sym(0.0);
  const bool narrow_enough = is_16_bit_or_less(precision);
  if (!has_gemm_table(gpu_.gemm.table) || !narrow_enough) {
    return tile(precision, narrow_enough ? 2 : 4, m, n, k, batch) / sustained();
  }
  const double rows = std::clamp(m.value(), least_measured_size, most_measured_rows);
  const double columns = std::clamp(n.value(), least_measured_size, most_measured_columns);
  const double depth = std::clamp(k.value(), least_measured_size, most_measured_columns);
  const bool inside = rows == m.value() && columns == n.value() && depth == k.value();
  const Sym wide = inside ? padded(m, padded_rows_below) : Sym(rows);
  const Sym high = inside ? padded(n, padded_columns_below) : Sym(columns);
  const Sym deep = inside ? k : Sym(depth);
  const std::string source =
      fmt::format("configs/measured/gemm-{}.csv, between measured sizes", measured_gpu(gpu_.gemm.table));
  const Sym share =
      b_.leaf("share", b_.unused(path + ".share"),
              fmt::format("{}: of the dense peak, what a product of {} reaches", label,
                          size_text(wide.value(), high.value(), deep.value())),
              "fraction", measured_gemm_share(gpu_.gemm.table, wide.value(), high.value(), deep.value()), source);
  if (inside) {
    Sym work = 2.0 * batch * wide * high * k;
    if (flop.node() != nullptr && std::fabs(flop.value() - work.value()) <= 1e-12 * work.value()) work = flop;
    return work / (peak(precision) * share) / sustained();
  }
  // Beyond the measured sizes: the nearest that was measured, and how a model of tiles goes on from there.
  const Sym edge = b_.add("edge", b_.unused(path + ".edge"), label + ": the nearest product that was measured", "s",
                          2.0 * wide * high * deep / (peak(precision) * share), source);
  const std::string_view model = "tile model of a product (physics/timing.cpp); the GPU's gemm constants";
  const Sym here = b_.add("tiles", b_.unused(path + ".tiles"), label + ": by the tile model", "s",
                          tile(precision, 2, m, n, k, batch), model);
  const Sym there =
      b_.add("tiles_edge", b_.unused(path + ".tiles_edge"), label + ": the nearest measured product by the tile model",
             "s", tile(precision, 2, Sym(rows), Sym(columns), Sym(depth), Sym(1.0)), model);
  return edge * here / there / sustained();
}

Sym Rates::nic() {
  const Cluster& c = b_.run.cluster;
  return cluster("nic", "bandwidth between nodes, one GPU and direction", c.inter_node.bandwidth,
                 "inter_node.bandwidth", "B/s") *
         gpu("nic_share", "of it, what collectives reach", c.inter_node_efficiency(), "fabrics");
}

Sym Rates::links(const RankGroup& group) {
  const Cluster& c = b_.run.cluster;
  const Sym inside =
      cluster("link", "bandwidth inside a node, one GPU and direction", c.intra_node.bandwidth, "intra_node.bandwidth",
              "B/s") *
      cluster("link_share", "of it, what large collectives reach", c.intra_node_efficiency, "intra_node.efficiency");
  if (group.scope != Scope::inter_node) return inside;
  const Sym across = Sym(static_cast<double>(group.per_domain)) * nic();
  return group.per_domain > 1 ? min(inside, across) : across;
}

Sym Rates::measured_collective(const std::string& path, const std::string& label, Collective op, const RankGroup& group,
                               Sym sent) {
  const Cluster& c = b_.run.cluster;
  const int table = c.gpu.collective_table;
  const double ranks = group.size;
  const double message = op == Collective::broadcast ? sent.value() : sent.value() * ranks / (ranks - 1);
  const double looked_up = op == Collective::all_reduce ? message / 2 : message;
  const std::string source =
      fmt::format("configs/measured/collectives-{}.csv, between measured sizes", measured_gpu(table));
  const double seconds = measured_collective_seconds(table, op, ranks, looked_up);
  const Sym bandwidth = b_.leaf("bandwidth", b_.unused(path + ".bandwidth"),
                                fmt::format("{}: bytes sent over time, {} of {} over {} ranks", label, name(op),
                                            value_text(looked_up, "B"), group.size),
                                "B/s", sent.value() / seconds, source);
  const double ratio = measured_link_bandwidth(table) / c.intra_node.bandwidth;
  const Sym slower =
      cluster("slowdown", "own collectives over the built-in table", c.collective_slowdown, "efficiency.collectives");
  const Sym times = cluster("link_ratio", "link of the table's GPU over this cluster's", ratio, "intra_node.bandwidth");
  if (ratio >= 1) return slower * times * sent / bandwidth;
  const Sym small = b_.leaf("small", b_.unused(path + ".small"), label + ": the same of 64 KiB, the start of a call",
                            "s", measured_collective_seconds(table, op, ranks, small_message_bytes), source);
  const Sym start = min(sent / bandwidth, small);
  return slower * (start + times * (sent / bandwidth - start));
}

Sym Rates::collective(const std::string& path, const std::string& label, Collective op, const RankGroup& group,
                      Sym sent) {
  if (group.size <= 1 || sent.value() <= 0) return Sym(0.0);
  const Cluster& c = b_.run.cluster;
  const auto latency_inside = [&] {
    return cluster("latency", "start of a message inside a node", c.intra_node.latency_s, "intra_node.latency", "s");
  };
  const auto latency_across = [&] {
    return cluster("nic_latency", "start of a message between nodes", c.inter_node.latency_s, "inter_node.latency",
                   "s");
  };
  const bool across = group.scope == Scope::inter_node;
  if (op == Collective::send) {
    // One message: the link of the two ranks, a NIC each.
    return group.scope == Scope::intra_node ? latency_inside() + sent / links({2, 2, Scope::intra_node})
                                            : latency_across() + sent / nic();
  }
  if (group.scope == Scope::intra_node && has_collective_table(c.gpu.collective_table)) {
    return measured_collective(path, label, op, group, sent);
  }
  Sym latency;
  if (!across) latency = latency_inside();
  if (across) {
    const double nodes = std::ceil(static_cast<double>(group.size) / group.per_domain);
    const Sym steps = b_.terms.input("log2_nodes", fmt::format("log2 of the nodes that {} ranks span", group.size),
                                     std::log2(std::max(nodes, 2.0)), "the layout (docs/run.md, parallel.order)");
    latency =
        latency_across() + rule("node_step", "start of a pass, per log2 of the nodes", inter_node_step_s, "s") * steps;
  }
  const Sym ranks(static_cast<double>(group.size));
  if (op == Collective::all_to_all && across) {
    const Sym remote = sent * (ranks - static_cast<double>(group.per_domain)) / (ranks - 1.0);
    const Sym local = sent - remote;
    return latency + remote / nic() + local / links({2, 2, Scope::intra_node});
  }
  const Sym passes(op == Collective::all_reduce ? 2.0 : 1.0);
  const Sym bandwidth = links(group);
  Sym seconds = passes * latency + sent / bandwidth;
  if (group.scope == Scope::intra_node) {
    seconds += passes * rule("half_rate", "message at which NVLink reaches half of its rate", half_rate_bytes, "B") /
               bandwidth;
  }
  return seconds;
}

}  // namespace shardplan::explain
