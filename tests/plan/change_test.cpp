// Changes: what they state, how they print, and that they lead from one layout to another.
#include "shardplan/plan/change.hpp"

#include <vector>

#include "shardplan/catalog/catalog.hpp"
#include "shardplan/io/run_file.hpp"
#include "shardplan/plan/search_space.hpp"
#include "support/catch.hpp"

using namespace shardplan;
using plan::Change;
using plan::Field;

namespace {

io::ReadRun read(const char* json) {
  io::ReadRun run = io::read_run(io::run_input_from_json(json), catalog::builtin_catalog());
  for (const Diagnostic& problem : run.problems) UNSCOPED_INFO(problem.pointer + ": " + problem.message);
  REQUIRE(run.ok());
  return run;
}

constexpr const char* of_eight = R"({"model": "llama-3.1-8b", "cluster": "dgx-h100", "num_gpus": 8,
    "training": {"framework": "megatron", "global_batch_size": 16}})";

/// Every 97th layout of the run's space, those with chunks that share the layers out evenly.
std::vector<Layout> some_layouts(const plan::Draft& base) {
  std::vector<Layout> layouts;
  plan::SearchSpace space;
  space.num_gpus = {8};
  std::size_t at = 0;
  plan::for_each_layout(base, space, [&](const Layout& layout) {
    const bool even = base.run.model.layers() % (layout.pipeline * layout.virtual_pipeline) == 0;
    if (even && at++ % 97 == 0) layouts.push_back(layout);
  });
  return layouts;
}

Layout resolved(const plan::Draft& draft) {
  Run run;
  plan::resolve(draft, run);
  return layout_of(run);
}

bool same(const Layout& left, const Layout& right) { return order_of(left, right) == 0; }

}  // namespace

TEST_CASE("a change prints as flags, each field in one way") {
  struct Row {
    Change change;
    const char* flags;
  };
  const Row rows[] = {
      {Change().set(Field::tensor, 4).set(Field::data, 2), "--tp 4 --dp 2"},
      {Change().set(Field::sequence_parallel, false), "--no-sp"},
      {Change().set(Field::schedule, ScheduleKind::zb_h1), "--schedule zb-h1"},
      {Change().set(Field::recompute, plan::recompute_words({RecomputeMode::first_n, 4, 0})), "--recompute full:4"},
      {Change().set(Field::overlap_tp, true), "--set training.overlap.tp=true"},
      {Change().leave_out(Field::shard_group), "--set parallel.shard_group=null"},
      {Change()
           .set(Field::offload_optimizer, OffloadDevice::cpu)
           .set(Field::micro_batch_size, 2)
           .set(Field::offload_parameters, OffloadDevice::nvme),
       "--offload optimizer=cpu,parameters=nvme --mbs 2"},
      {Change(), ""},
  };
  for (const Row& row : rows) CHECK(plan::flags_of(row.change) == row.flags);
}

TEST_CASE("what was stated gives way to a change that it cannot stand beside") {
  plan::Draft draft = read(R"({"model": "llama-3.1-8b", "cluster": "dgx-h100", "num_gpus": 8, "parallel":
      {"tensor": 2, "data": 4, "zero_stage": 1}, "training": {"framework": "megatron"}})")
                          .draft;
  plan::apply(Change().set(Field::tensor, 4), draft);
  CHECK_FALSE(draft.given.has(Field::data));
  CHECK(resolved(draft).tensor == 4);
  CHECK(data_parallel(resolved(draft)) == 2);
  plan::apply(Change().set(Field::fsdp, Fsdp::full_shard), draft);
  CHECK_FALSE(draft.given.has(Field::zero_stage));
  CHECK(draft.given.has(Field::fsdp));
  plan::apply(Change().set(Field::zero_stage, 1), draft);
  CHECK_FALSE(draft.given.has(Field::fsdp));
  plan::apply(Change().set(Field::offload_optimizer, OffloadDevice::cpu), draft);
  CHECK(draft.given.has(Field::offload));
  CHECK(draft.run.training.offload.optimizer == OffloadDevice::cpu);
  plan::apply(Change().leave_out(Field::offload), draft);
  CHECK_FALSE(draft.given.has(Field::offload_optimizer));
  CHECK(draft.run.training.offload.optimizer == OffloadDevice::none);
}

TEST_CASE("a layout's statement is read back as that layout") {
  const io::ReadRun run = read(of_eight);
  const plan::Draft base = plan::search_base(run.draft, run.run);
  const std::vector<Layout> layouts = some_layouts(base);
  REQUIRE(layouts.size() > 20);
  for (const Layout& layout : layouts) {
    plan::Draft draft = base;
    plan::apply(plan::statement_of(layout, base), draft);
    CHECK(same(resolved(draft), layout));
    CHECK(same(resolved(plan::with_layout(base, layout)), layout));
  }
}

TEST_CASE("the change between two layouts leads from one to the other") {
  const io::ReadRun run = read(of_eight);
  const plan::Draft base = plan::search_base(run.draft, run.run);
  const std::vector<Layout> layouts = some_layouts(base);
  std::size_t changed = 0;
  for (std::size_t i = 0; i + 1 < layouts.size(); ++i) {
    const Layout& from = layouts[i];
    const Layout& to = layouts[i + 1];
    plan::Draft draft = plan::with_layout(base, from);
    const Change change = plan::change_between(from, to);
    if (!change.has(Field::schedule)) draft.given.remove(Field::schedule);
    plan::apply(change, draft);
    // Defaults may follow what is stated: what they made of the rest is stated too.
    plan::apply(plan::change_between(resolved(draft), to), draft);
    CAPTURE(plan::flags_of(change));
    CHECK(same(resolved(draft), to));
    if (!change.empty()) ++changed;
  }
  CHECK(changed > 20);
}
