// Build-time tool: resamples the measured points of configs/measured onto uniform grids and writes them as C++.
//   resample OUTPUT.cpp FILE.csv...
// Matrix products: log2 of the share of the peak on half-octave axes of m, n and k; between the points the six nearest
// count, by inverse squared distance in log space. Collectives: microseconds at every power of two of the message.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "grid.hpp"

namespace {

using namespace shardplan::tables;

[[noreturn]] void fail(const std::string& message) {
  std::cerr << "resample: " << message << '\n';
  std::exit(1);
}

std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> out;
  std::istringstream stream(line);
  for (std::string cell; std::getline(stream, cell, ',');) out.push_back(cell);
  return out;
}

struct Measurements {
  double scale = 0;  // what the comment `# <name> <number>` states of the GPU
  std::vector<std::vector<std::string>> rows;
};

/// A CSV file: comments, a head, rows.
Measurements read(const std::filesystem::path& path, std::size_t columns, const std::string& scale_name) {
  std::ifstream file(path);
  if (!file) fail("cannot read " + path.string());
  Measurements all;
  std::vector<std::vector<std::string>>& rows = all.rows;
  const std::string comment = "# " + scale_name + " ";
  bool head = true;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(comment, 0) == 0) all.scale = std::stod(line.substr(comment.size()));
    if (line.empty() || line.front() == '#') continue;
    if (head) {
      head = false;
      continue;
    }
    rows.push_back(cells(line));
    if (rows.back().size() != columns) fail(path.string() + ": not " + std::to_string(columns) + " columns: " + line);
  }
  if (rows.empty()) fail(path.string() + ": no rows");
  if (all.scale <= 0) fail(path.string() + ": no comment " + comment);
  return all;
}

struct Point {
  std::array<double, 3> at{};  // log2
  double value = 0;            // log2 of the rate over the dense peak
};

double six_nearest(const std::vector<Point>& points, const std::array<double, 3>& at) {
  constexpr std::size_t count = 6;
  std::array<std::pair<double, double>, count> nearest{};
  nearest.fill({1e30, 0});
  for (const Point& point : points) {
    double distance = 0;
    for (std::size_t i = 0; i < 3; ++i) distance += (point.at[i] - at[i]) * (point.at[i] - at[i]);
    if (distance >= nearest.back().first) continue;
    nearest.back() = {distance, point.value};
    for (std::size_t i = count - 1; i > 0 && nearest[i].first < nearest[i - 1].first; --i) {
      std::swap(nearest[i], nearest[i - 1]);
    }
  }
  double sum = 0, weights = 0;
  for (const auto& [distance, value] : nearest) {
    const double weight = 1 / (distance + 1e-9);
    sum += weight * value;
    weights += weight;
  }
  return sum / weights;
}

void write_gemm(const std::filesystem::path& path, std::ostream& out) {
  std::vector<Point> points;
  const Measurements measured = read(path, 4, "dense_tflops");
  for (const auto& row : measured.rows) {
    const double m = std::stod(row[0]), n = std::stod(row[1]), k = std::stod(row[2]), us = std::stod(row[3]);
    points.push_back(
        {{std::log2(m), std::log2(n), std::log2(k)}, std::log2(2 * m * n * k / us * 1e-6 / measured.scale)});
  }
  out << "constexpr std::array<std::int16_t, gemm_values> gemm = {";
  for (int m = 0; m < gemm_rows; ++m) {
    for (int n = 0; n < gemm_cols; ++n) {
      for (int k = 0; k < gemm_cols; ++k) {
        const double rate = six_nearest(points, {gemm_first + m / 2.0, gemm_first + n / 2.0, gemm_first + k / 2.0});
        out << (k % 15 == 0 ? "\n" : "") << std::lround(rate * gemm_unit) << ',';
      }
    }
  }
  out << "};\n";
}

/// Causal FLOP of a forward pass count half of the score matrix. Where only one head size was measured, it stands for
/// both.
void write_attention(const std::filesystem::path& path, std::ostream& out) {
  std::vector<Point> points;
  const Measurements measured = read(path, 6, "dense_tflops");
  double least_head = 1e9;
  for (const auto& row : measured.rows) {
    const double d = std::stod(row[0]), s = std::stod(row[1]), heads = std::stod(row[2]) * std::stod(row[3]);
    points.push_back({{std::log2(d), std::log2(s), std::log2(heads)},
                      std::log2(2 * heads * s * s * d / std::stod(row[5]) * 1e-6 / measured.scale)});
    least_head = std::min(least_head, std::log2(d));
  }
  out << "constexpr std::array<std::int16_t, attention_values> attention = {";
  for (int d = 0; d < attention_head_sizes; ++d) {
    for (int s = 0; s < attention_lengths; ++s) {
      out << '\n';
      for (int heads = 0; heads < attention_heads; ++heads) {
        // Head sizes are apart: a point of the other one never counts.
        std::vector<Point> same;
        const double size = std::max(attention_first_head + d, least_head);
        for (const Point& point : points) {
          if (std::abs(point.at[0] - size) < 0.01) same.push_back(point);
        }
        const double rate =
            six_nearest(same, {size, attention_first_length + s / 2.0, attention_first_heads + heads / 2.0});
        out << std::lround(rate * attention_unit) << ',';
      }
    }
  }
  out << "};\n";
}

/// Returns the link's bandwidth in bytes/s.
double write_collectives(const std::filesystem::path& path, std::ostream& out) {
  // Mean of log2(us) at each measured size.
  std::map<std::array<int, 3>, std::pair<double, int>> sums;
  const Measurements measured = read(path, 4, "link_gb_s");
  for (const auto& row : measured.rows) {
    const auto op = std::find(collective_names.begin(), collective_names.end(), row[0]);
    if (op == collective_names.end()) fail(path.string() + ": no collective " + row[0]);
    const int ranks = static_cast<int>(std::lround(std::log2(std::stod(row[1])))) - 1;
    const int size = static_cast<int>(std::lround(std::log2(std::stod(row[2])))) - collective_first;
    auto& sum = sums[{static_cast<int>(op - collective_names.begin()), ranks, size}];
    sum.first += std::log2(std::stod(row[3]));
    ++sum.second;
  }
  out << "constexpr std::array<std::int16_t, collective_values> collectives = {";
  for (int op = 0; op < static_cast<int>(collective_names.size()); ++op) {
    for (int ranks = 0; ranks < collective_ranks; ++ranks) {
      out << '\n';
      for (int size = 0; size < collective_sizes; ++size) {
        const auto found = sums.find({op, ranks, size});
        const long value =
            found == sums.end() ? missing : std::lround(found->second.first / found->second.second * collective_unit);
        out << value << ',';
      }
    }
  }
  out << "};\n";
  return measured.scale * 1e9;
}

std::string identifier(std::string name) {
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) fail("usage: resample OUTPUT.cpp FILE.csv...");
  std::map<std::string, std::array<std::filesystem::path, 3>> gpus;  // gemm, collectives, attention
  for (int i = 2; i < argc; ++i) {
    const std::filesystem::path path = argv[i];
    const std::string stem = path.stem().string();
    constexpr std::array<std::string_view, 3> kinds = {"gemm", "collectives", "attention"};
    const auto kind = std::find(kinds.begin(), kinds.end(), stem.substr(0, stem.find('-')));
    if (kind == kinds.end()) fail(path.string() + ": neither gemm-, collectives- nor attention-");
    gpus[stem.substr(stem.find('-') + 1)][static_cast<std::size_t>(kind - kinds.begin())] = path;
  }
  std::ostringstream out;
  out << "// Generated from configs/measured by src/physics/tables/resample.cpp.\n#include \"tables.hpp\"\n\n"
         "namespace shardplan::tables {\nnamespace {\n\n";
  std::map<std::string, double> links;
  for (const auto& [gpu, files] : gpus) {
    out << "namespace gpu_" << identifier(gpu) << " {\n";
    if (!files[0].empty()) write_gemm(files[0], out);
    if (!files[2].empty()) write_attention(files[2], out);
    if (!files[1].empty()) links[gpu] = write_collectives(files[1], out);
    out << "}\n\n";
  }
  out << "constexpr MeasuredTables all[] = {\n";
  for (const auto& [gpu, files] : gpus) {
    const std::string space = "gpu_" + identifier(gpu);
    out << "    {\"" << gpu << "\", " << (files[0].empty() ? "nullptr" : space + "::gemm.data()") << ", "
        << (files[1].empty() ? "nullptr" : space + "::collectives.data()") << ", "
        << (files[2].empty() ? "nullptr" : space + "::attention.data()") << ", " << links[gpu] << "},\n";
  }
  out << "};\n\n}  // namespace\n\nstd::span<const MeasuredTables> measured_tables() noexcept { return all; }\n\n"
         "}  // namespace shardplan::tables\n";
  std::ofstream file(argv[1], std::ios::trunc);
  file << out.str();
  if (!file.flush()) fail(std::string("cannot write ") + argv[1]);
  return 0;
}
