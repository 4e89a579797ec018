// The layouts that a search chooses from.
//
// A layout is a value of every free variable. Ranges that nobody stated are the framework's legal ones, without values
// that would only repeat another layout under a second name (docs/search.md lists them).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "shardplan/core/layout.hpp"
#include "shardplan/core/run.hpp"
#include "shardplan/plan/legality.hpp"
#include "shardplan/plan/resolve.hpp"

namespace shardplan::plan {

/// Values that a user stated for the variables of a search. A variable without has its default range:
///   tensor         divisors of the GPUs, to the scale-up domain
///   pipeline       divisors of what is left, as far as the layers go. Where the chunks do not divide the layers, they
///                  share out layers + 2, embedding and head counting as a layer each (layers_of_chunks)
///   context        divisors of what is left
///   expert         divisors of the experts; expert_tensor divisors of the GPUs, to the scale-up domain
///   micro_batch    divisors of global_batch_size / data
///   schedule       those that the framework has, with the chunks that each can have; one where pipeline is 1
///   zero, fsdp     all of the framework; of fsdp one where nothing shares the weights. shard_group: between 1 and the
///                  ranks
///   recompute      none and full, selective with eager attention
///   sequence_parallel  with tensor > 1 on and off, but on with experts under Megatron-LM, which asks for it
///   offload        nothing, and what the framework can keep on the host; NVMe where the cluster has some
///   overlap        on and off, where it changes anything
struct SearchSpace {
  std::vector<int> num_gpus;
  std::optional<std::vector<int>> tensor, pipeline, virtual_pipeline, context, expert, expert_tensor, data;
  std::optional<std::vector<std::int64_t>> micro_batch;
  std::optional<std::vector<ScheduleKind>> schedule;
  std::optional<std::vector<int>> zero;
  std::optional<std::vector<Fsdp>> fsdp;  ///< empty: none of them
  std::optional<std::vector<int>> shard_group;
  std::optional<std::vector<Recompute>> recompute;
  std::optional<std::vector<AttentionKernel>> attention;
  std::optional<std::vector<bool>> sequence_parallel;
  std::optional<std::vector<Offload>> offload;  ///< devices alone
  std::optional<bool> overlap_grad_reduce, overlap_param_gather, overlap_tp, overlap_p2p;
};

/// Calls visit(field, list of SearchSpace, member of Layout) for each variable that has a list of values of the
/// layout's own type: all but num_gpus, which has no default, data, which follows from the others, offload, whose parts
/// go together, and the overlaps.
template <class Visit>
void for_each_variable(Visit&& visit) {
  visit(Field::tensor, &SearchSpace::tensor, &Layout::tensor);
  visit(Field::pipeline, &SearchSpace::pipeline, &Layout::pipeline);
  visit(Field::virtual_pipeline, &SearchSpace::virtual_pipeline, &Layout::virtual_pipeline);
  visit(Field::context, &SearchSpace::context, &Layout::context);
  visit(Field::expert, &SearchSpace::expert, &Layout::expert);
  visit(Field::expert_tensor, &SearchSpace::expert_tensor, &Layout::expert_tensor);
  visit(Field::micro_batch_size, &SearchSpace::micro_batch, &Layout::micro_batch_size);
  visit(Field::zero_stage, &SearchSpace::zero, &Layout::zero_stage);
  visit(Field::schedule, &SearchSpace::schedule, &Layout::schedule);
  visit(Field::fsdp, &SearchSpace::fsdp, &Layout::fsdp);
  visit(Field::shard_group, &SearchSpace::shard_group, &Layout::shard_group);
  visit(Field::recompute, &SearchSpace::recompute, &Layout::recompute);
  visit(Field::attention, &SearchSpace::attention, &Layout::attention);
  visit(Field::sequence_parallel, &SearchSpace::sequence_parallel, &Layout::sequence_parallel);
}

/// The same for the overlaps, of which a space states one value or none.
template <class Visit>
void for_each_overlap(Visit&& visit) {
  visit(Field::overlap_grad_reduce, &SearchSpace::overlap_grad_reduce, &Layout::overlap_grad_reduce);
  visit(Field::overlap_param_gather, &SearchSpace::overlap_param_gather, &Layout::overlap_param_gather);
  visit(Field::overlap_tp, &SearchSpace::overlap_tp, &Layout::overlap_tp);
  visit(Field::overlap_p2p, &SearchSpace::overlap_p2p, &Layout::overlap_p2p);
}

/// What a search starts from: the statement of a run, with what it left to defaults that would follow the layout
/// (framework, batch, sequence) stated as in `run`, its resolution.
Draft search_base(const Draft& draft, const Run& run);

/// The statement of a run with a layout in place of whatever it said of the free variables. `base`: of search_base().
Draft with_layout(const Draft& base, const Layout& layout);

/// Decoder layers of each of `chunks` model chunks: equal where the layers divide; else layers + 2 are shared out, the
/// embedding and the head taking the place of a layer each, larger shares in front. Empty where a chunk between the
/// ends would have none.
void layers_of_chunks(std::int64_t layers, int pipeline, int virtual_pipeline, std::vector<int>& chunks);

/// Divisors in ascending order.
std::vector<int> divisors(std::int64_t number);

/// How often each rule stopped an enumeration: once for each partial layout that breaks it first.
using RuleCounts = std::array<std::int64_t, rule_count>;

/// Calls visit(const Layout&) for each legal layout, one by one: what search() answers over. Returns what was
/// refused. For tests and small spaces.
RuleCounts for_each_layout(const Draft& base, const SearchSpace& space,
                           const std::function<void(const Layout&)>& visit);

}  // namespace shardplan::plan
