// Scores step times against measured runs, and fits the constants of configs/timing to them.
//   fit_timing CONFIGS ROWS.jsonl [--fit] [--leave-out GROUP] [--only PREFIX] [--rows] [--sweeps N]
// CONFIGS is the configs folder, ROWS.jsonl as in tests/evidence. Without --fit the constants stay as they are. Prints
// the mean error of every source; with --fit then the constants, one `name value` a line. The error that is minimised
// is the mean over sources of the mean |log(predicted / measured)|, capped at 0.3; distinct configurations count once.
// Constants move one at a time within their bounds, by factors that shrink: the result is reproducible.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "shardplan/catalog/catalog.hpp"
#include "shardplan/io/catalog_source.hpp"
#include "shardplan/io/run_file.hpp"
#include "shardplan/plan/estimate.hpp"
#include "shardplan/plan/workspace.hpp"

namespace {

using nlohmann::json;
using namespace shardplan;

struct Constant {
  std::string name;
  double value = 0, low = 0, high = 0, prior = 0, width = 0.3;
  std::vector<std::size_t> rows;  // that depend on it
};

struct Row {
  std::string id, group, dup;
  std::string run;
  double measured = 0;
  bool flagged = false;
  double predicted = 0;
};

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The built-in catalog, its GPUs and stacks read from the folder with the constants' present values put in.
class FittedCatalog final : public io::CatalogSource {
 public:
  explicit FittedCatalog(const std::filesystem::path& configs) {
    for (const auto& file : std::filesystem::directory_iterator(configs / "gpus")) {
      const json family = json::parse(text_of(file.path()));
      for (const json& gpu : family["gpus"]) {
        raw_[{io::CatalogKind::gpus, lower(gpu["name"])}] = gpu.dump();
      }
    }
    for (const auto& file : std::filesystem::directory_iterator(configs / "stacks")) {
      raw_[{io::CatalogKind::stacks, lower(file.path().stem().string())}] = text_of(file.path());
    }
  }

  void put(const std::vector<Constant>& constants) {
    filled_.clear();
    for (const auto& [key, raw] : raw_) {
      std::string text = raw;
      for (const Constant& constant : constants) {
        const std::string mark = "\"@" + constant.name + "\"";
        for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark)) {
          std::ostringstream value;
          value.precision(12);
          value << constant.value;
          text.replace(at, mark.size(), value.str());
        }
      }
      filled_[key] = text;
    }
  }

  std::optional<std::string_view> find(io::CatalogKind kind, std::string_view name) const override {
    const auto found = filled_.find({kind, lower(std::string(name))});
    if (found != filled_.end()) return found->second;
    return catalog::builtin_catalog().find(kind, name);
  }
  std::vector<std::string_view> names(io::CatalogKind kind) const override {
    return catalog::builtin_catalog().names(kind);
  }
  std::vector<std::string_view> aliases(io::CatalogKind kind) const override {
    return catalog::builtin_catalog().aliases(kind);
  }

 private:
  static std::string lower(std::string text) {
    for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
  }
  std::map<std::pair<io::CatalogKind, std::string>, std::string> raw_, filled_;
};

/// A term left out of the model, or put back to what a simpler model has.
struct Ablation {
  const char* what;
  void (*apply)(Run& run);
};

constexpr double unlimited = 1e18;

constexpr Ablation ablations[] = {
    {"nothing", [](Run&) {}},
    {"tables of matrix products (tile model)", [](Run& run) { run.cluster.gpu.gemm.table = -1; }},
    {"sustained rate of the GPU", [](Run& run) { run.cluster.gpu.gemm.sustained = 1; }},
    {"table of attention shapes", [](Run& run) { run.cluster.gpu.attention_table = -1; }},
    {"tables of collectives (latency and bandwidth)", [](Run& run) { run.cluster.gpu.collective_table = -1; }},
    {"traffic inside nodes",
     [](Run& run) {
       run.cluster.gpu.collective_table = -1;
       run.cluster.intra_node = {unlimited, 0};
     }},
    {"traffic between nodes",
     [](Run& run) {
       run.cluster.inter_node = {unlimited, 0};
     }},
    {"efficiency of fabrics", [](Run& run) { run.cluster.gpu.inter_node_efficiency.fill(1); }},
    {"contention of FSDP's traffic", [](Run& run) { run.training.stack.timing.fsdp_contention = 0; }},
    {"element-wise traffic", [](Run& run) { run.training.stack.timing.elementwise_factor = 0; }},
    {"traffic of the loss", [](Run& run) { run.training.stack.timing.loss_bytes_per_logit = 0; }},
    {"host floor",
     [](Run& run) {
       StackTiming& timing = run.training.stack.timing;
       timing.host_forward_s = timing.host_backward_s = timing.host_per_microbatch_s = timing.host_tensor_parallel_s =
           0;
     }},
    {"optimizer",
     [](Run& run) {
       run.training.stack.timing.optimizer_bytes_per_parameter = 0;
       run.training.stack.timing.optimizer_fixed_s = 0;
     }},
    {"early stop of recomputation", [](Run& run) { run.training.kernels.reentrant_checkpoint = true; }},
    {"misaligned heads", [](Run& run) { run.training.stack.timing.misaligned_head_slowdown = 1; }},
    {"grouped products and permutation",
     [](Run& run) {
       StackTiming& timing = run.training.stack.timing;
       timing.grouped_product_share = 1;
       timing.expert_start_s = timing.permutation_factor = 0;
     }},
};

double predict(const Row& row, const FittedCatalog& catalog, const Ablation& ablation = ablations[0]) {
  io::ReadRun read = io::read_run(io::run_input_from_json(row.run), catalog);
  if (!read.ok()) {
    std::cerr << row.id << ": " << read.problems.front().message << '\n';
    return 0;
  }
  ablation.apply(read.run);
  static EstimateWorkspace workspace;
  static Estimate out;
  estimate(read.run, workspace, out);
  return out.time.step_s;
}

struct Score {
  double capped_log = 0;  // mean over sources
  std::map<std::string, std::vector<double>> errors;
};

Score score(const std::vector<Row>& rows, const std::string& leave_out) {
  std::map<std::string, std::map<std::string, std::vector<double>>> groups;
  for (const Row& row : rows) {
    if (!row.flagged && row.group != leave_out) groups[row.group][row.dup].push_back(row.predicted / row.measured);
  }
  Score total;
  for (const auto& [group, dups] : groups) {
    double sum = 0;
    for (const auto& [dup, ratios] : dups) {
      double log = 0, error = 0;
      for (const double ratio : ratios) {
        log += std::log(std::max(ratio, 1e-3));
        error += ratio - 1;
      }
      sum += std::min(0.3, std::abs(log / static_cast<double>(ratios.size())));
      total.errors[group].push_back(error / static_cast<double>(ratios.size()));
    }
    total.capped_log += sum / static_cast<double>(dups.size()) / static_cast<double>(groups.size());
  }
  return total;
}

// What a value pays for one prior_width, in log, between it and what was known of it beforehand.
constexpr double prior_cost = 0.0005;

double distance_from_priors(const std::vector<Constant>& constants) {
  double sum = 0;
  for (const Constant& constant : constants) {
    const double units = std::log(constant.value / constant.prior) / constant.width;
    sum += prior_cost * units * units;
  }
  return sum;
}

void print(const Score& result) {
  double mean = 0;
  for (const auto& [group, errors] : result.errors) {
    double sum = 0, bias = 0, most = 0;
    for (const double error : errors) {
      sum += std::abs(error);
      bias += error;
      most = std::max(most, std::abs(error));
    }
    const double n = static_cast<double>(errors.size());
    std::printf("%-24s %4zu  mean %6.2f%%  bias %+6.2f%%  max %6.1f%%\n", group.c_str(), errors.size(), 100 * sum / n,
                100 * bias / n, 100 * most);
    mean += sum / n / static_cast<double>(result.errors.size());
  }
  std::printf("source mean %.2f%%\n", 100 * mean);
}

/// JSON: the mean error of every source, in percent, without one term at a time. Nothing is fitted again.
void print_ablations(std::vector<Row> rows, const FittedCatalog& catalog) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const Ablation& ablation : ablations) {
    for (Row& row : rows) row.predicted = predict(row, catalog, ablation);
    nlohmann::ordered_json errors = nlohmann::ordered_json::object();
    for (const auto& [group, values] : score(rows, "").errors) {
      double sum = 0;
      for (const double error : values) sum += std::abs(error);
      errors[group] = std::round(1000 * sum / static_cast<double>(values.size())) / 10;
    }
    out.push_back({{"without", ablation.what}, {"errors", errors}});
  }
  std::cout << out.dump(1) << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: fit_timing CONFIGS ROWS.jsonl [--fit] [--leave-out GROUP] [--only PREFIX] [--rows]\n";
    return 2;
  }
  const std::filesystem::path configs = argv[1];
  bool fit = false, write = false, from_priors = false, print_rows = false, ablate = false;
  std::string leave_out, only;
  int sweeps = 14;
  for (int i = 3; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--fit") fit = true;
    if (flag == "--write") write = true;
    if (flag == "--from-priors") from_priors = true;
    if (flag == "--ablate") ablate = true;
    if (flag == "--rows") print_rows = true;
    if (flag == "--leave-out" && i + 1 < argc) leave_out = argv[++i];
    if (flag == "--only" && i + 1 < argc) only = argv[++i];
    if (flag == "--sweeps" && i + 1 < argc) sweeps = std::atoi(argv[++i]);
  }
  std::vector<Constant> constants;
  nlohmann::ordered_json list = nlohmann::ordered_json::parse(text_of(configs / "timing" / "constants.json"));
  for (const auto& entry : list["constants"]) {
    constants.push_back({entry["name"],
                         entry["value"],
                         entry["low"],
                         entry["high"],
                         entry["prior"],
                         entry.value("prior_width", 0.3),
                         {}});
  }
  if (from_priors) {
    for (Constant& constant : constants) constant.value = constant.prior;
  }
  std::vector<Row> rows;
  std::ifstream file(argv[2]);
  for (std::string line; std::getline(file, line);) {
    const json row = json::parse(line);
    rows.push_back({row["id"], row["group"], row.value("dup_group", std::string(row["id"])), row["run"].dump(),
                    row["measured"]["step_s"], row.contains("flagged"), 0});
  }
  FittedCatalog catalog(configs);
  catalog.put(constants);
  for (Row& row : rows) row.predicted = predict(row, catalog);
  if (print_rows) {
    std::vector<Row> sorted = rows;
    std::sort(sorted.begin(), sorted.end(), [](const Row& a, const Row& b) { return a.id < b.id; });
    for (const Row& row : sorted) {
      std::printf("%+7.1f%%  %s%s  measured %.5g  predicted %.5g\n", 100 * (row.predicted / row.measured - 1),
                  row.id.c_str(), row.flagged ? " (flagged)" : "", row.measured, row.predicted);
    }
  }
  if (ablate) {
    print_ablations(rows, catalog);
    return 0;
  }
  print(score(rows, leave_out));
  if (!fit) return 0;

  const auto moves = [&](const Constant& c) { return only.empty() || c.name.rfind(only, 0) == 0; };
  for (Constant& constant : constants) {
    if (!moves(constant)) continue;
    const double before = constant.value;
    constant.value = before * 1.02 <= constant.high ? before * 1.02 : before * 0.98;
    catalog.put(constants);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (!rows[i].flagged && rows[i].group != leave_out && predict(rows[i], catalog) != rows[i].predicted) {
        constant.rows.push_back(i);
      }
    }
    constant.value = before;
    std::printf("%-36s moves %zu rows\n", constant.name.c_str(), constant.rows.size());
  }
  const auto predict_rows = [&](const Constant& constant) {
    catalog.put(constants);
    for (const std::size_t i : constant.rows) rows[i].predicted = predict(rows[i], catalog);
  };
  const auto cost = [&] { return score(rows, leave_out).capped_log + distance_from_priors(constants); };
  double best = cost();
  double step = 0.12;
  for (int sweep = 0; sweep < sweeps; ++sweep, step *= 0.8) {
    const double at_start = best;
    for (Constant& constant : constants) {
      if (constant.rows.empty()) continue;
      for (const double factor : {1 + step, 1 / (1 + step)}) {
        bool moved = false;
        while (true) {
          const double before = constant.value;
          constant.value = std::clamp(before * factor, constant.low, constant.high);
          if (constant.value == before) break;
          predict_rows(constant);
          const double now = cost();
          if (now < best - 1e-7) {
            best = now;
            moved = true;
            continue;
          }
          constant.value = before;
          predict_rows(constant);
          break;
        }
        if (moved) break;
      }
    }
    std::printf("sweep %d: %.3f%% -> %.3f%%\n", sweep + 1, 100 * at_start, 100 * best);
    std::fflush(stdout);
  }
  catalog.put(constants);
  for (Row& row : rows) row.predicted = predict(row, catalog);
  print(score(rows, ""));
  if (write) {
    for (std::size_t i = 0; i < constants.size(); ++i) {
      std::ostringstream rounded;
      rounded.precision(3);
      rounded << constants[i].value;
      list["constants"][i]["value"] = std::stod(rounded.str());
      std::map<std::string, int> groups;
      for (const std::size_t row : constants[i].rows) ++groups[rows[row].group];
      nlohmann::ordered_json sources = nlohmann::ordered_json::object();
      for (const auto& [group, count] : groups) sources[group] = count;
      list["constants"][i]["rows"] = sources;
    }
    std::ofstream out(configs / "timing" / "constants.json");
    out << list.dump(1) << '\n';
  }
  for (const Constant& constant : constants) {
    if (moves(constant)) std::printf("constant %s %.4g\n", constant.name.c_str(), constant.value);
  }
  return 0;
}
