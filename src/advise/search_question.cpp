#include "shardplan/advise/search_question.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "search_values.hpp"
#include "shardplan/physics/frameworks/facts.hpp"
#include "shardplan/plan/validate.hpp"

namespace shardplan::advise {
namespace {

using plan::Field;

/// An override of one field that no flag stated.
io::Override set_to(Field field, std::string value) { return {std::string(name(field)), std::move(value), ""}; }

/// A run file's layout is that of "yours" alone; the base has the least layout that reads.
class BaseReader {
 public:
  BaseReader(SearchQuestion& to, io::RunInput stated, const io::CatalogSource& catalog)
      : to_(to), stated_(std::move(stated)), catalog_(catalog) {}

  void read() {
    first_ = io::read_run(stated_, catalog_);
    if (first_.ok()) to_.stated = first_;
    choose_framework();
    choose_batch();
    read_base();
  }

  const io::ReadRun& first() const noexcept { return first_; }

 private:
  const plan::Draft& draft() const noexcept { return first_.draft; }

  void choose_framework() {
    Framework framework = draft().run.training.framework;
    const bool many = to_.space.num_gpus.empty() ? draft().run.num_gpus > 1 : to_.space.num_gpus.back() > 1;
    if (!draft().given.has(Field::framework)) {
      if (facts_of(framework).data_only && many && !draft().unusable.has(Field::framework)) {
        framework = implied_framework(false, true, false);
      }
      to_.notes.push_back(
          fmt::format("training.framework was not given: layouts of {}; --framework names another", name(framework)));
      to_.input.overrides.push_back(set_to(Field::framework, std::string(name(framework))));
    }
    framework_ = framework;
  }

  void choose_batch() {
    if (draft().given.has(Field::global_batch_size) || draft().unusable.has(Field::global_batch_size)) return;
    std::int64_t batch = first_.run.training.global_batch_size;
    if (!first_.ok() && draft().microbatches == 0) {
      batch = to_.space.num_gpus.empty() ? std::max(1, draft().run.num_gpus) : to_.space.num_gpus.back();
    }
    if (draft().microbatches == 0) {
      to_.notes.push_back(
          fmt::format("training.global_batch_size was not given: {} sequences for every layout; --gbs sets it", batch));
    }
    auto& overrides = to_.input.overrides;
    overrides.erase(std::remove_if(overrides.begin(), overrides.end(),
                                   [](const io::Override& o) { return o.pointer == "/microbatches"; }),
                    overrides.end());
    overrides.push_back(set_to(Field::global_batch_size, std::to_string(batch)));
  }

  std::vector<io::Override> least_layout(const std::vector<io::Override>& sharding) const {
    std::vector<io::Override> least;
    const bool list = draft().given.has(Field::layers_per_stage);
    for (const Field field : variables()) {
      const bool of_list = field == Field::pipeline || field == Field::virtual_pipeline;
      if (of_list && list) continue;
      if (field == Field::schedule && list) continue;
      const bool zeropp = draft().run.parallel.hpz || draft().run.parallel.qwz || draft().run.parallel.qgz;
      if (field == Field::shard_group && zeropp) continue;
      least.push_back(set_to(field, "null"));
    }
    int gpus = 1;
    if (list) {
      const int stages = draft().run.parallel.pipeline;
      const int node = std::max(1, draft().run.cluster.gpus_per_node);
      gpus = stages > node ? std::lcm(stages, node) : stages;
    }
    least.push_back(set_to(Field::num_gpus, std::to_string(gpus)));
    least.insert(least.end(), sharding.begin(), sharding.end());
    return least;
  }

  /// What is wrong with a run whatever its layout: of the shardings that frameworks have, some options need one.
  void read_base() {
    const std::vector<std::vector<io::Override>> shardings = {
        {}, {set_to(Field::zero_stage, "1")}, {set_to(Field::zero_stage, "3")}, {set_to(Field::fsdp, "full_shard")}};
    Diagnostics problems;
    for (const std::vector<io::Override>& sharding : shardings) {
      to_.read = read_with(to_.input, least_layout(sharding), catalog_);
      if (to_.read.ok()) break;
      if (problems.empty()) problems = to_.read.problems;
    }
    if (!to_.read.ok()) {
      to_.problems.insert(to_.problems.end(), problems.begin(), problems.end());
      return;
    }
    const bool zeropp = draft().run.parallel.hpz || draft().run.parallel.qwz || draft().run.parallel.qgz;
    if (zeropp && !to_.space.zero && !to_.space.fsdp) to_.space.zero = std::vector<int>{3};
    if (draft().given.has(Field::layers_per_stage)) keep_list();
    to_.base = plan::search_base(to_.read.draft, to_.read.run);
    for (const Field field : {Field::data, Field::zero_stage, Field::fsdp}) to_.base.given.remove(field);
  }

  void keep_list() {
    plan::SearchSpace& space = to_.space;
    const Parallel& parallel = to_.read.run.parallel;
    if (space.pipeline || space.virtual_pipeline) {
      to_.problems.push_back(
          usage_diagnostic("--pp and --vpp cannot vary: the run states layers_per_stage",
                           "--set parallel.layers_per_stage=null shares the layers out anew for each layout"));
      return;
    }
    space.pipeline = std::vector<int>{parallel.pipeline};
    space.virtual_pipeline = std::vector<int>{parallel.virtual_pipeline};
    if (!space.schedule) space.schedule = std::vector<ScheduleKind>{parallel.schedule};
    to_.notes.push_back(fmt::format("layers_per_stage fixes pipeline {}, virtual_pipeline {} and the schedule",
                                    parallel.pipeline, parallel.virtual_pipeline));
  }

  SearchQuestion& to_;
  io::RunInput stated_;
  const io::CatalogSource& catalog_;
  io::ReadRun first_;
  Framework framework_{};
};

/// Values of recompute and offload, each read as a run file's.
void read_worded_values(const SearchValues& reader, const io::CatalogSource& catalog, SearchQuestion& to) {
  std::vector<Recompute> recomputes;
  for (const io::Override& item : reader.recomputes()) {
    io::RunInput input = to.input;
    input.overrides.push_back(item);
    const io::ReadRun read = io::read_run(input, catalog);
    if (read.draft.unusable.has(Field::recompute)) {
      for (const Diagnostic& found : read.problems) {
        if (found.pointer.rfind(name(Field::recompute), 0) == 0) to.problems.push_back(found);
      }
      continue;
    }
    recomputes.push_back(read.draft.run.training.recompute);
  }
  if (!recomputes.empty()) to.space.recompute = std::move(recomputes);
  if (reader.offload().empty()) return;
  io::RunInput input = to.input;
  for (const io::Override& change : reader.offload()) input.overrides.push_back(change);
  const io::ReadRun read = io::read_run(input, catalog);
  bool readable = true;
  for (const Diagnostic& found : read.problems) {
    const bool here = found.pointer.rfind(name(Field::offload), 0) == 0;
    const bool unusable =
        read.draft.unusable.has(Field::offload) || read.draft.unusable.has(Field::offload_optimizer) ||
        read.draft.unusable.has(Field::offload_parameters) || read.draft.unusable.has(Field::offload_activations);
    if (!here || !unusable) continue;
    readable = false;
    to.problems.push_back(found);
  }
  if (readable) to.space.offload = std::vector<Offload>{read.draft.run.training.offload};
}

/// GPUs of whole nodes, where the run has more than one node.
void drop_broken_nodes(plan::SearchSpace& space, int gpus_per_node) {
  if (space.num_gpus.size() < 2) return;
  space.num_gpus.erase(std::remove_if(space.num_gpus.begin(), space.num_gpus.end(),
                                      [&](int n) { return n > gpus_per_node && n % gpus_per_node != 0; }),
                       space.num_gpus.end());
}

void drop_kernels_of_other_gpus(const SearchValues& reader, SearchQuestion& to) {
  if (!reader.every_kernel() || !to.space.attention) return;
  std::vector<AttentionKernel>& kernels = *to.space.attention;
  kernels.erase(
      std::remove_if(kernels.begin(), kernels.end(),
                     [&](AttentionKernel kernel) { return !plan::runs_attention(to.read.run.cluster.gpu, kernel); }),
      kernels.end());
}

}  // namespace

SearchQuestion search_question(const io::RunInput& asked, const io::CatalogSource& catalog) {
  SearchQuestion input;
  input.input.text = asked.text;
  SearchValues space(input.space, input.problems);
  io::RunInput stated = input.input;
  for (const io::Override& change : asked.overrides) {
    const bool variable = space.take(change);
    if (!variable) input.input.overrides.push_back(change);
    if (!variable || !is_list(change)) stated.overrides.push_back(change);
  }
  if (!input.problems.empty()) return input;
  BaseReader base(input, std::move(stated), catalog);
  base.read();
  if (!input.ok()) return input;
  read_worded_values(space, catalog, input);
  drop_kernels_of_other_gpus(space, input);
  if (input.space.num_gpus.empty()) {
    const bool known = base.first().draft.given.has(Field::num_gpus) || base.first().draft.run.cluster.num_nodes > 0;
    if (!known) {
      for (const Diagnostic& found : base.first().problems) {
        if (found.pointer == name(Field::num_gpus)) input.problems.push_back(found);
      }
      if (input.ok())
        input.problems = {usage_diagnostic("a search needs the number of GPUs", "--gpus N or --gpus A..B")};
      return input;
    }
    input.space.num_gpus = {base.first().run.num_gpus};
  }
  input.gpus_vary = input.space.num_gpus.size() > 1;
  drop_broken_nodes(input.space, input.read.run.cluster.gpus_per_node);
  if (input.space.num_gpus.empty()) {
    input.problems = {usage_diagnostic("--gpus: no number of the range is whole nodes",
                                       fmt::format("nodes have {} GPUs", input.read.run.cluster.gpus_per_node))};
  }
  return input;
}

io::ReadRun read_with(const io::RunInput& input, const std::vector<io::Override>& more,
                      const io::CatalogSource& catalog) {
  io::RunInput changed = input;
  changed.overrides.insert(changed.overrides.end(), more.begin(), more.end());
  return io::read_run(changed, catalog);
}

io::ReadRun read_layout(const SearchQuestion& question, const Layout& layout, const io::CatalogSource& catalog,
                        std::vector<io::Override> more) {
  const std::vector<io::Override> stated = io::overrides_of(plan::statement_of(layout, question.base));
  more.insert(more.begin(), stated.begin(), stated.end());
  return read_with(question.input, more, catalog);
}

}  // namespace shardplan::advise
