#include "shardplan/physics/measured.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "tables/tables.hpp"

namespace shardplan {
namespace {

const tables::MeasuredTables& at(int table) noexcept {
  return tables::measured_tables()[static_cast<std::size_t>(table)];
}

bool same_name(std::string_view lower, std::string_view name) noexcept {
  return std::equal(lower.begin(), lower.end(), name.begin(), name.end(),
                    [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? static_cast<char>(b - 'A' + 'a') : b); });
}

/// A place on one axis of a grid: the point below, and how far to the next.
struct Place {
  int below = 0;
  double part = 0;
};

Place place(double position, int points) noexcept {
  const double inside = std::clamp(position, 0.0, static_cast<double>(points - 1));
  const int below = std::min(static_cast<int>(inside), points - 2);
  return {below, inside - below};
}

std::size_t row_of(Collective op) noexcept {
  switch (op) {
    case Collective::all_reduce: return 0;
    case Collective::reduce_scatter: return 2;
    case Collective::all_to_all: return 3;
    default: return 1;
  }
}

/// log2 of the microseconds at one measured number of ranks.
double log_microseconds(const std::int16_t* row, double log_message) noexcept {
  const double position = log_message - tables::collective_first;
  const Place p = place(position, tables::collective_sizes);
  const double low = row[p.below], high = row[p.below + 1];
  const double inside = (low + p.part * (high - low)) / tables::collective_unit;
  // Larger messages take as long as their bytes; smaller ones take the start-up alone.
  return inside + std::max(0.0, position - (tables::collective_sizes - 1));
}

}  // namespace

int measured_table(std::string_view gpu) noexcept {
  const auto all = tables::measured_tables();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (same_name(all[i].gpu, gpu)) return static_cast<int>(i);
  }
  return no_measured_table;
}

std::string measured_gpus() {
  std::string names;
  for (const tables::MeasuredTables& each : tables::measured_tables()) {
    if (!names.empty()) names += ", ";
    names += each.gpu;
  }
  return names;
}

std::string_view measured_gpu(int table) noexcept { return at(table).gpu; }

bool has_gemm_table(int table) noexcept { return table != no_measured_table && at(table).gemm != nullptr; }
bool has_collective_table(int table) noexcept { return table != no_measured_table && at(table).collectives != nullptr; }

double measured_gemm_share(int table, double m, double n, double k) noexcept {
  using namespace tables;
  const std::int16_t* values = at(table).gemm;
  const Place x = place(2 * (std::log2(m) - gemm_first), gemm_rows);
  const Place y = place(2 * (std::log2(n) - gemm_first), gemm_cols);
  const Place z = place(2 * (std::log2(k) - gemm_first), gemm_cols);
  const auto line = [&](int i, int j) {
    const std::int16_t* from = values + (i * gemm_cols + j) * gemm_cols + z.below;
    return from[0] + z.part * (from[1] - from[0]);
  };
  const auto plane = [&](int i) {
    const double low = line(i, y.below), high = line(i, y.below + 1);
    return low + y.part * (high - low);
  };
  const double low = plane(x.below), high = plane(x.below + 1);
  return std::exp2((low + x.part * (high - low)) / gemm_unit);
}

bool has_attention_table(int table) noexcept { return table != no_measured_table && at(table).attention != nullptr; }

double measured_attention_share(int table, double head_dim, double length, double heads) noexcept {
  using namespace tables;
  const std::int16_t* values = at(table).attention;
  const Place x = place(std::log2(head_dim) - attention_first_head, attention_head_sizes);
  const Place y = place(2 * (std::log2(length) - attention_first_length), attention_lengths);
  const Place z = place(2 * (std::log2(heads) - attention_first_heads), tables::attention_heads);
  const auto line = [&](int i, int j) {
    const std::int16_t* from = values + (i * attention_lengths + j) * tables::attention_heads + z.below;
    return from[0] + z.part * (from[1] - from[0]);
  };
  const auto plane = [&](int i) {
    const double low = line(i, y.below), high = line(i, y.below + 1);
    return low + y.part * (high - low);
  };
  const double low = plane(x.below), high = plane(x.below + 1);
  return std::exp2((low + x.part * (high - low)) / attention_unit);
}

double measured_link_bandwidth(int table) noexcept { return at(table).link_bandwidth; }

double measured_collective_seconds(int table, Collective op, double ranks, double message) noexcept {
  using namespace tables;
  const std::int16_t* rows = at(table).collectives + row_of(op) * collective_ranks * collective_sizes;
  int most = collective_ranks;
  while (most > 1 && rows[(most - 1) * collective_sizes] == missing) --most;
  const double measured_ranks = std::exp2(most);
  const double log_message = std::log2(std::max(message, 1.0));
  const double inside = std::clamp(ranks, 2.0, measured_ranks);
  const double position = std::log2(inside) - 1;
  const int below = std::min(static_cast<int>(position), std::max(0, most - 2));
  const std::int16_t* row = rows + below * collective_sizes;
  double log_us = log_microseconds(row, log_message);
  const double part = position - below;
  if (part > 0) log_us += part * (log_microseconds(row + collective_sizes, log_message) - log_us);
  double seconds = std::exp2(log_us) * 1e-6;
  if (ranks > measured_ranks) seconds *= (ranks - 1) / ranks * measured_ranks / (measured_ranks - 1);
  return seconds;
}

}  // namespace shardplan
