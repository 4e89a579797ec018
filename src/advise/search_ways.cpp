// Searches beside a search: what makes something fit, and what better hardware would bring.
#include <fmt/format.h>

#include <array>

#include "shardplan/advise/search_reasons.hpp"

namespace shardplan::advise {

std::vector<plan::WayToFit> ways_to_fit(const SearchQuestion& question, const plan::SearchOptions& options) {
  std::vector<plan::WayToFit> ways;
  const plan::SearchOptions again = plan::for_best_alone(options);
  const auto stopped = [&] { return options.stop != nullptr && options.stop->load(); };
  const auto try_space = [&](const std::string& flags, const plan::Draft& base, const Run& run,
                             const plan::SearchSpace& space) {
    const plan::SearchResult found = plan::search(base, run, space, again);
    if (found.best.empty()) return false;
    ways.push_back({flags, plan::row_of(base, found.best.front())});
    return true;
  };
  constexpr int most_doublings = 6;
  plan::SearchSpace space = question.space;
  const int most_gpus = space.num_gpus.back();
  for (int i = 0, gpus = most_gpus; i < most_doublings && gpus <= 32768 && !stopped(); ++i) {
    gpus *= 2;
    const int node = question.read.run.cluster.gpus_per_node;
    if (gpus > node && gpus % node != 0) gpus = (gpus + node - 1) / node * node;
    space.num_gpus = {gpus};
    if (try_space(fmt::format("--gpus {}", gpus), question.base, question.read.run, space)) break;
  }
  if (question.space.offload && !stopped()) {
    plan::SearchSpace host = question.space;
    host.offload.reset();
    try_space("--offload free", question.base, question.read.run, host);
  }
  constexpr std::int64_t shortest = 256;
  for (std::int64_t seq = question.read.run.training.seq_length / 2; seq >= shortest && !stopped(); seq /= 2) {
    plan::Draft base = question.base;
    base.run.training.seq_length = seq;
    Run run = question.read.run;
    run.training.seq_length = seq;
    if (try_space(fmt::format("--seq {}", seq), base, run, question.space)) break;
  }
  return ways;
}

std::vector<plan::Sensitivity> sensitivity_of(const SearchQuestion& question, const plan::SearchOptions& options,
                                              const plan::Found& best) {
  struct Part {
    std::string_view what;
    void (*twice)(Cluster&);
  };
  static constexpr std::array<Part, 5> parts = {{
      {"memory x2", [](Cluster& c) { c.gpu.memory_cuda_bytes *= 2; }},
      {"FLOP/s x2",
       [](Cluster& c) {
         for (double& rate : c.gpu.peak_flop_per_s) rate *= 2;
       }},
      {"memory bandwidth x2", [](Cluster& c) { c.gpu.memory_bandwidth *= 2; }},
      {"link in the node x2",
       [](Cluster& c) {
         c.intra_node.bandwidth *= 2;
         c.gpu.link_bandwidth *= 2;
       }},
      {"network x2", [](Cluster& c) { c.inter_node.bandwidth *= 2; }},
  }};
  std::vector<plan::Sensitivity> list;
  const plan::SearchOptions again = plan::for_best_alone(options);
  const auto cost = [](const plan::Found& found) { return found.step_s * found.layout.num_gpus; };
  for (const Part& part : parts) {
    plan::Draft changed = question.base;
    part.twice(changed.run.cluster);
    Run changed_run = question.read.run;
    part.twice(changed_run.cluster);
    const plan::SearchResult result = plan::search(changed, changed_run, question.space, again);
    if (!result.complete || result.best.empty()) break;
    plan::Sensitivity one;
    one.what = part.what;
    one.step_s = result.best.front().step_s;
    one.gain = cost(best) / cost(result.best.front()) - 1;
    one.layout = plan::flags_of(plan::change_between(best.layout, result.best.front().layout));
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace shardplan::advise
