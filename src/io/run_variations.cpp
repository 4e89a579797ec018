#include "shardplan/io/run_variations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "object_reader.hpp"
#include "override_apply.hpp"
#include "run_fields.hpp"
#include "shardplan/io/json_text.hpp"
#include "shardplan/io/stack_file.hpp"
#include "shardplan/physics/frameworks/facts.hpp"
#include "shardplan/plan/validate.hpp"

namespace shardplan::io {
namespace {

using nlohmann::json;
using plan::Field;

constexpr std::string_view microbatches_pointer = "/microbatches";

/// Whether a change is of one field that nothing else of the file is read by: the others need the whole reader.
bool is_single(const Override& change) {
  if (change.value == "null") return false;  // what was stated is to be forgotten
  if (change.pointer == microbatches_pointer || change.pointer == name(Field::num_gpus)) return true;
  if (plan::find_field(change.pointer) == nullptr || is_inside(change.pointer, name(Field::peft))) return false;
  if (change.pointer == name(Field::stack)) return false;
  if (!is_inside(change.pointer, "/parallel") && !is_inside(change.pointer, "/training")) return false;
  return change.value.find('{') == std::string::npos;
}

bool changes_field(std::span<const Override> changes, Field field) {
  return std::any_of(changes.begin(), changes.end(),
                     [&](const Override& change) { return change.pointer == name(field); });
}

/// drop_other_sharding() of a draft.
void follow_sharding(std::span<const Override> changes, const std::vector<Override>& of_base, plan::Draft& draft) {
  const auto states = [&](Field field) {
    const auto here = [&](const Override& change) { return is_inside(name(field), change.pointer); };
    return std::any_of(changes.begin(), changes.end(), here) || std::any_of(of_base.begin(), of_base.end(), here);
  };
  const bool fsdp = states(Field::fsdp);
  const bool zero = states(Field::zero_stage);
  plan::FieldSet& given = draft.given;
  const bool torch = given.has(Field::framework) && facts_of(draft.run.training.framework).shards_by_fsdp();
  if (fsdp && !zero && given.has(Field::fsdp)) given.remove(Field::zero_stage);
  if (zero && !fsdp && given.has(Field::zero_stage) && !torch) given.remove(Field::fsdp);
}

}  // namespace

const ReadRun& RunVariations::shared(const std::vector<Override>& changes) {
  std::string key;
  for (const Override& change : changes) key.append(change.pointer).append("\n").append(change.value).append("\n");
  std::unique_ptr<ReadRun>& entry = read_[key];
  if (entry == nullptr) {
    RunInput input = base_;
    input.overrides.insert(input.overrides.end(), changes.begin(), changes.end());
    entry = std::make_unique<ReadRun>(read_run(input, catalog_));
  }
  return *entry;
}

void RunVariations::set(const Override& change, Variation& out) {
  plan::Draft& draft = out.draft;
  const std::size_t before = out.problems.size();
  const json value = override_value(change);
  if (change.pointer == microbatches_pointer) {
    const json holder = {{"microbatches", value}};
    ObjectReader reader(holder, command_line, "", out.problems);
    draft.microbatches = reader.integer("microbatches", 1, largest_global_batch).value_or(0);
    draft.given.remove(Field::global_batch_size);
  } else if (change.pointer == name(Field::num_gpus)) {
    const json holder = {{"num_gpus", value}};
    ObjectReader reader(holder, command_line, "", out.problems);
    draft.run.num_gpus = static_cast<int>(reader.integer("num_gpus", 1, largest_degree).value_or(1));
    draft.given.add(Field::num_gpus);
    Cluster& cluster = draft.run.cluster;
    if (cluster.num_nodes > 0 && draft.run.num_gpus / cluster.gpus_per_node >= cluster.num_nodes) cluster.num_nodes = 0;
  } else {
    if (change.pointer == name(Field::global_batch_size)) draft.microbatches = 0;
    const plan::FieldRow& row = *plan::find_field(change.pointer);
    const json holder = {{std::string(plan::member_of(row)), value}};
    read_field(row, holder, command_line, draft, out.problems);
  }
  for (std::size_t i = before; i < out.problems.size(); ++i) {
    out.problems[i].file = command_line;
    if (!change.flag.empty()) out.problems[i].message += fmt::format(" ({})", change.flag);
  }
}

/// What rests on the changed fields: a stated degree of data parallelism, the default framework and its constants.
void RunVariations::follow(std::span<const Override> changes, plan::Draft& draft) {
  const bool layout = changes_field(changes, Field::num_gpus) || changes_field(changes, Field::tensor) ||
                      changes_field(changes, Field::pipeline) || changes_field(changes, Field::context);
  if (layout && !changes_field(changes, Field::data) && !changes_field(base_.overrides, Field::data)) {
    draft.given.remove(Field::data);
  }
  follow_sharding(changes, base_.overrides, draft);
  Training& training = draft.run.training;
  if (!draft.given.has(Field::framework)) training.framework = plan::default_framework(draft);
  if (!draft.given.has(Field::stack) && training.framework != training.stack.framework) {
    const auto found = stacks_.find(training.framework);
    training.stack =
        found != stacks_.end()
            ? found->second
            : stacks_.emplace(training.framework, default_stack(training.framework, catalog_)).first->second;
  }
}

void RunVariations::read(std::span<const Override> changes, Variation& out) {
  // What else is changed may have been what counted the GPUs.
  const bool reread_gpus = !std::all_of(changes.begin(), changes.end(), is_single) || !shared({}).readable;
  const auto is_set = [&](const Override& change) {
    return is_single(change) && !(reread_gpus && change.pointer == name(Field::num_gpus));
  };
  std::vector<Override> others;
  for (const Override& change : changes) {
    if (!is_set(change)) others.push_back(change);
  }
  const ReadRun& base = shared(others);
  out.problems.clear();
  out.broken.reset();
  if (!base.readable) {
    out.problems = base.problems;
    return;
  }
  out.draft = base.draft;
  for (const Override& change : changes) {
    if (is_set(change)) set(change, out);
  }
  if (!out.problems.empty()) return;
  follow(changes, out.draft);
  plan::resolve(out.draft, out.run);
  out.broken = plan::broken_rules(out.draft, out.run);
  if (out.run.training.global_batch_size > largest_global_batch) add(out.broken, plan::Rule::too_large);
}

}  // namespace shardplan::io
