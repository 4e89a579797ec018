#include "search_node.hpp"

#include <algorithm>
#include <cmath>

#include "shardplan/core/bytes.hpp"
#include "shardplan/physics/frameworks/facts.hpp"
#include "shardplan/plan/requirements.hpp"
#include "shardplan/schedule/closed_form.hpp"

namespace shardplan::plan {
namespace {

// A bound and the step that it bounds are sums of the same numbers in another order.
constexpr double rounding = 1 - 1e-9;

double work_of(const Unit& unit) noexcept {
  return unit.time.forward_s + unit.forward_exposed_s + unit.time.backward_s + unit.time.recompute_s +
         unit.backward_exposed_s;
}

bool pages_states(const EstimateWorkspace& w) noexcept { return w.optimizer->paged; }

}  // namespace

Folds::Slot& Folds::slot_of(const WorkKey& key) noexcept {
  std::uint64_t hash = 1469598103934665603ULL;  // FNV-1a
  for (const int value : key) hash = (hash ^ static_cast<std::uint64_t>(value)) * 1099511628211ULL;
  const std::size_t mask = slots_.size() - 1;
  auto at = static_cast<std::size_t>(hash ^ (hash >> 32)) & mask;
  while (slots_[at].work_s != empty && slots_[at].key != key) at = (at + 1) & mask;
  return slots_[at];
}

double& Folds::work(const WorkKey& key) {
  if (2 * used_ >= slots_.size()) grow();
  Slot& slot = slot_of(key);
  if (slot.work_s == empty) {
    slot = {key, unknown};
    ++used_;
  }
  return slot.work_s;
}

void Folds::grow() {
  constexpr std::size_t first = 64;
  std::vector<Slot> old(std::max(first, 2 * slots_.size()));
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.work_s != empty) slot_of(slot.key) = slot;
  }
}

NodeSearch::NodeSearch(const SearchTask& task) : task_(task), tree_(task.tree), run_(task.tree.run()) {}

std::int64_t NodeSearch::layouts(const Node& node, std::int64_t& without_overlap, RuleCounts& illegal) {
  // Schedules follow from the grid and the microbatches, and from layers that recomputation counts.
  const ScheduleKey key{node.grid, node.micro_batch_size, node.recompute.n};
  if (!(key == counted_)) {
    tree_.pipelinings(node, pipelinings_, illegal);
    counted_ = key;
    counted_schedules_ = 0;
    for (const Pipelining& pipelining : pipelinings_) counted_schedules_ += pipelining.overlap_p2p_values;
  }
  std::int64_t shardings = 0;
  for (const Sharding& sharding : tree_.shardings(node)) shardings += sharding.overlap_values;
  without_overlap += static_cast<std::int64_t>(pipelinings_.size() * tree_.shardings(node).size());
  return node.overlap_tp_values * counted_schedules_ * shardings;
}

const std::vector<Node>& NodeSearch::nodes(std::size_t grid, RuleCounts& illegal) {
  nodes_.clear();
  tree_.nodes(grid, run_, nodes_, illegal);
  return nodes_;
}

double NodeSearch::bound(const Node& node, Folds& folds) {
  tree_.set(node, run_);
  const int p = run_.parallel.pipeline;
  // As far overlapped as any schedule of the node lets it be: an expert exchange beside another chunk.
  run_.parallel.schedule = p > 1 ? ScheduleKind::interleaved : ScheduleKind::one_f_one_b;
  run_.parallel.virtual_pipeline = p > 1 ? 2 : 1;
  tree_.set(tree_.shardings(node).front(), run_);
  double& work_s = folds.work(work_key(node));
  if (work_s < 0) work_s = model_work();
  return static_cast<double>(run_.microbatches()) * work_s / p * rounding;
}

WorkKey NodeSearch::work_key(const Node& node) const noexcept {
  const Parallel& parallel = run_.parallel;
  const Topology topology = topology_of(run_);
  WorkKey key{parallel.tensor,
              parallel.context,
              parallel.expert,
              parallel.expert_tensor,
              parallel.pipeline > 1 ? 1 : 0,
              static_cast<int>(parallel.fsdp),
              static_cast<int>(node.micro_batch_size),
              static_cast<int>(node.recompute_index),
              static_cast<int>(node.attention),
              node.sequence_parallel ? 1 : 0,
              node.overlap_tp ? 1 : 0,
              run_.microbatches() == 1 ? 1 : 0};
  std::size_t at = 12;
  for (const GroupKind kind : {GroupKind::tensor, GroupKind::context, GroupKind::expert, GroupKind::expert_tensor}) {
    const RankGroup& group = topology.group(kind);
    key[at++] = group.size;
    key[at++] = group.per_domain;
  }
  key[at] = static_cast<int>(topology.group(GroupKind::tensor).scope) +
            4 * static_cast<int>(topology.group(GroupKind::context).scope) +
            16 * static_cast<int>(topology.group(GroupKind::expert).scope) +
            64 * static_cast<int>(topology.group(GroupKind::expert_tensor).scope);
  return key;
}

double NodeSearch::model_work() {
  build_units(run_, w_);
  const auto layer_work = [&](std::size_t kind) {
    double work = work_of(w_.kinds[kind]);
    if (!w_.frozen_input.empty()) work = std::min(work, work_of(w_.frozen_input[kind]));
    if (!w_.not_recomputed.empty()) work = std::min(work, work_of(w_.not_recomputed[kind]));
    return work;
  };
  double work = 0;
  for (const std::uint8_t kind : run_.model.layer_kinds) work += layer_work(kind);
  const Ends& ends = w_.ends;
  work += work_of(ends.embedding) + work_of(ends.final_norm) + work_of(ends.head);
  if (ends.mtp.time.forward_s > 0) work += work_of(ends.mtp);
  return work;
}

double NodeSearch::bound(const Node& node, const Pipelining& pipelining) {
  tree_.set(node, run_);
  tree_.set(node, pipelining, run_);
  tree_.set(tree_.shardings(node).front(), run_);
  build_units(run_, w_);
  build_chunks(run_, w_);
  build_pipeline_spec(run_, w_);
  return makespan_bound();
}

double NodeSearch::makespan_bound() const noexcept {
  if (run_.parallel.pipeline > 1) return schedule::makespan_lower_bound(w_.spec) * rounding;
  return static_cast<double>(run_.microbatches()) * (w_.forward[0] + w_.backward[0] + w_.weight[0]) * rounding;
}

bool NodeSearch::wanted(double step_s, std::optional<std::int64_t> headroom, const Harvest& before,
                        const Harvest& harvest) const noexcept {
  const SearchOptions& options = task_.options;
  Found bound;
  bound.layout.num_gpus = run_.num_gpus;
  bound.step_s = step_s;
  // Without a verdict on memory all of the card may be free.
  bound.headroom_bytes = headroom.value_or(static_cast<std::int64_t>(run_.cluster.gpu.memory_cuda_bytes));
  const SearchKey key = key_of(options.objective, bound);
  if (key <= before.best.bar() && key <= harvest.best.bar()) return true;
  if (options.rank_of != nullptr && key <= task_.rank_key) return true;
  return options.pareto && before.front.open_to(step_s, bound.headroom_bytes, run_.num_gpus) &&
         harvest.front.open_to(step_s, bound.headroom_bytes, run_.num_gpus);
}

void NodeSearch::prepare_shardings(const Node& node, bool fsdp) {
  prepared_.clear();
  for (const Sharding& sharding : tree_.shardings(node)) {
    if ((sharding.fsdp != Fsdp::none) != fsdp) continue;
    tree_.set(sharding, run_);
    Prepared prepared;
    prepared.sharding = &sharding;
    prepared.rule = state_rule(run_);
    prepared.topology = topology_of(run_);
    prepared.overheads = memory_overheads(run_, prepared.topology);
    prepared_.push_back(prepared);
  }
}

void NodeSearch::visit(const Node& node, const Harvest& before, Harvest& harvest) {
  tree_.set(node, run_);
  tree_.pipelinings(node, pipelinings_, harvest.counts.illegal);
  counted_ = {};
  for (const bool fsdp : {false, true}) {
    prepare_shardings(node, fsdp);
    if (prepared_.empty()) continue;
    int folded = -1;
    for (const Pipelining& pipelining : pipelinings_) {
      tree_.set(node, pipelining, run_);
      tree_.set(*prepared_.front().sharding, run_);
      // Of a schedule a layer's fold knows whether another chunk's work runs beside its expert exchange.
      const int fold = run_.model.has_experts() && overlaps_expert_exchange(pipelining.schedule) ? 1 : 0;
      if (fold != folded) build_units(run_, w_);
      folded = fold;
      visit_stages(node, pipelining, before, harvest);
    }
  }
}

void NodeSearch::list_representatives() {
  // Ranks in a row that are made of the same units differ in what is in flight alone, and memory grows with that: the
  // one that holds most stands for all of them.
  representatives_.clear();
  const std::size_t per_rank = w_.chunks.size() / w_.stages.size();
  const bool all = run_.training.offload.activations != OffloadDevice::none;
  const auto alike = [&](std::size_t a, std::size_t b) {
    for (std::size_t c = 0; c < per_rank; ++c) {
      const Chunk& left = w_.chunks[a * per_rank + c];
      const Chunk& right = w_.chunks[b * per_rank + c];
      if (left.has_head || right.has_head || left.kept != right.kept || left.first_kept != right.first_kept ||
          left.layers != right.layers || left.unit_runs != right.unit_runs) {
        return false;
      }
      for (std::size_t i = 0; i < left.unit_runs; ++i) {
        const UnitRunOf<double>& one = w_.unit_runs[left.first_unit_run + i];
        const UnitRunOf<double>& other = w_.unit_runs[right.first_unit_run + i];
        if (one.unit != other.unit || one.count != other.count) return false;
      }
    }
    return true;
  };
  for (std::size_t rank = 0; rank < w_.stages.size(); ++rank) {
    if (rank > 0 && !all && alike(rank - 1, rank)) {
      Representative& group = representatives_.back();
      group.ranks += 1;
      if (w_.simulated.peak_bytes[rank] > w_.simulated.peak_bytes[group.rank]) group.rank = rank;
      continue;
    }
    representatives_.push_back({rank, 1});
  }
}

void NodeSearch::visit_stages(const Node& node, const Pipelining& pipelining, const Harvest& before, Harvest& harvest) {
  const std::int64_t per_sharding = std::int64_t{pipelining.overlap_p2p_values} * node.overlap_tp_values;
  build_chunks(run_, w_);
  w_.topology = prepared_.front().topology;
  build_pipeline_spec(run_, w_);
  const double bound = makespan_bound();
  if (!wanted(bound, std::nullopt, before, harvest)) {
    for (const Prepared& prepared : prepared_) {
      harvest.counts.cut_by_bound += per_sharding * prepared.sharding->overlap_values;
    }
    return;
  }
  fold_pipeline_memory(run_, w_);
  list_representatives();
  simulated_ = false;
  for (const Prepared& prepared : prepared_) {
    const std::int64_t layouts = per_sharding * prepared.sharding->overlap_values;
    harvest.counts.estimated += layouts;
    tree_.set(*prepared.sharding, run_);
    if (!estimate_sharding_memory(prepared)) {
      harvest.counts.does_not_fit += layouts;
      count_excess(layouts, harvest.counts.excess);
      if (!before.best.empty() || !harvest.best.empty()) continue;
      const Host& host = run_.cluster.host;
      Lack lack;
      lack.card = std::max<std::int64_t>(0, -out_.headroom_bytes);
      lack.host = 0;
      if (host.memory_bytes > 0) {
        lack.host += std::max<std::int64_t>(0, out_.host_bytes_per_node - static_cast<std::int64_t>(host.memory_bytes));
      }
      if (host.nvme_bytes > 0) {
        lack.host += std::max<std::int64_t>(0, out_.nvme_bytes_per_node - static_cast<std::int64_t>(host.nvme_bytes));
      }
      if (harvest.nearest && harvest.lack < lack) continue;
      Found found;
      found.layout = tree_.layout(node, pipelining, *prepared.sharding);
      found.peak_bytes = out_.peak_bytes;
      found.reserved_bytes = out_.reserved_bytes;
      found.headroom_bytes = out_.headroom_bytes;
      if (!harvest.nearest || lack < harvest.lack || order_of(found.layout, harvest.nearest->layout) < 0) {
        harvest.lack = lack;
        harvest.nearest = found;
      }
      continue;
    }
    const std::optional<double>& least = task_.options.require.min_headroom_gib;
    if (least && !(static_cast<double>(out_.headroom_bytes) / gib >= *least)) {
      harvest.counts.misses += layouts;
      continue;
    }
    harvest.counts.fit += layouts;
    if (!wanted(bound, out_.headroom_bytes, before, harvest)) continue;
    time_sharding(node, pipelining, prepared, before, harvest);
  }
}

void NodeSearch::count_excess(std::int64_t layouts, ExcessCounts& counts) const noexcept {
  const std::int64_t over = -out_.headroom_bytes, card = out_.capacity_bytes;
  if (over <= 0) {
    counts.host += layouts;
  } else if (over <= card / 10) {
    counts.tenth += layouts;
  } else if (over <= card) {
    counts.whole += layouts;
  } else {
    counts.more += layouts;
  }
}

bool NodeSearch::estimate_sharding_memory(const Prepared& prepared) {
  w_.rule = prepared.rule;
  w_.topology = prepared.topology;
  if (rounds_per_unit(run_.training.framework)) build_unit_states(run_, w_);
  const bool replicated = facts_of(run_.training.framework).single_process && run_.num_gpus > 1;
  if (replicated) {
    build_stage_states(run_, w_);
    estimate_memory(run_, w_, out_);
    return out_.fits;
  }
  out_.stages.resize(representatives_.size());
  double host = 0, nvme = 0;
  for (std::size_t i = 0; i < representatives_.size(); ++i) {
    const auto& [rank, ranks] = representatives_[i];
    build_stage_states(run_, w_, rank);
    estimate_stage_memory(run_, w_, rank, prepared.overheads, out_.stages[i]);
    host += ranks * static_cast<double>(out_.stages[i].host_bytes);
    nvme += ranks * static_cast<double>(out_.stages[i].nvme_bytes);
  }
  conclude_memory(run_, host, nvme, w_.stages.size(), out_);
  return out_.fits;
}

void NodeSearch::time_sharding(const Node& node, const Pipelining& pipelining, const Prepared& prepared,
                               const Harvest& before, Harvest& harvest) {
  Found found;
  found.layout = tree_.layout(node, pipelining, *prepared.sharding);
  found.peak_bytes = out_.peak_bytes;
  found.reserved_bytes = out_.reserved_bytes;
  found.headroom_bytes = out_.headroom_bytes;
  if (!simulated_) {
    simulate_pipeline(run_, w_);
    simulated_ = true;
  }
  // What a step takes beyond its pipeline is not negative.
  if (!wanted(w_.simulated.makespan * rounding, found.headroom_bytes, before, harvest)) return;
  build_stage_states(run_, w_);
  if (pages_states(w_) || facts_of(run_.training.framework).single_process) {
    estimate_memory(run_, w_, out_);
  } else {
    out_.stages.assign(w_.stages.size(), StageEstimate{});  // of memory, time reads what is paged alone
  }
  estimate_communication(run_, w_, out_);
  estimate_time(run_, w_, out_);
  found.step_s = out_.time.step_s;
  ++harvest.counts.simulated;
  if (task_.requires_time) {
    estimate_throughput(run_, w_, out_);
    out_.fits = true;
    if (!meets(task_.options.require, out_)) return;
  }
  const SearchKey key = key_of(task_.options.objective, found);
  if (task_.options.rank_of != nullptr && key < task_.rank_key) ++harvest.better;
  harvest.best.add(key, found);
  if (task_.options.pareto) harvest.front.add(found);
}

}  // namespace shardplan::plan
