#include "shardplan/plan/change.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "shardplan/plan/search_space.hpp"

namespace shardplan::plan {
namespace {

constexpr std::string_view left_out = "null";

std::string_view unquoted(std::string_view text) noexcept {
  return text.size() > 1 && text.front() == '"' ? text.substr(1, text.size() - 2) : text;
}

/// A JSON text as a member's number; nothing where it is none of the type.
std::optional<double> number_of(const ValueType& type, const std::string& text) {
  switch (type.kind) {
    case ValueType::Kind::boolean: return text == "true" ? 1.0 : 0.0;
    case ValueType::Kind::word: {
      const auto word = std::find(type.words.begin(), type.words.end(), unquoted(text));
      if (word == type.words.end()) return std::nullopt;
      return static_cast<double>(word - type.words.begin());
    }
    case ValueType::Kind::integer:
    case ValueType::Kind::number:
    case ValueType::Kind::rate: return std::strtod(text.c_str(), nullptr);
    default: return std::nullopt;
  }
}

/// A field that nobody states, as a reader leaves it.
void leave_out_of(Draft& draft, Field field) {
  draft.given.remove(field);
  const Run unstated;
  const FieldRow& row = row_of(field);
  if (field == Field::recompute) draft.run.training.recompute = {};
  if (field == Field::layers_per_stage) draft.layers_per_stage.clear();
  if (row.value.set == nullptr) return;
  const double value = row.value.get(unstated);
  if (!std::isnan(value)) row.value.set(draft.run, value);
}

void state(const FieldValue& value, Draft& draft) {
  const FieldRow& row = row_of(value.field);
  if (value.value == left_out) {
    leave_out_of(draft, value.field);
    for (const FieldRow& inner : field_rows()) {
      if (section_of(inner) == row.pointer) leave_out_of(draft, inner.field);
    }
    return;
  }
  if (value.field == Field::recompute) {
    if (const auto recompute = parse_recompute(unquoted(value.value))) draft.run.training.recompute = *recompute;
  } else if (value.field == Field::loss) {
    if (const auto loss = parse_name<LossKind>(unquoted(value.value))) draft.run.training.loss = *loss;
  } else if (row.value.set != nullptr) {
    if (const auto number = number_of(row.value.type, value.value)) row.value.set(draft.run, *number);
  }
  draft.given.add(value.field);
  // Offloading is stated once a part of it is.
  if (const FieldRow* const around = find_field(section_of(row))) draft.given.add(around->field);
}

void give_way(const Change& change, Draft& draft) {
  FieldSet& given = draft.given;
  const bool degrees = change.has(Field::num_gpus) || change.has(Field::tensor) || change.has(Field::pipeline) ||
                       change.has(Field::context);
  if (degrees && !change.has(Field::data)) given.remove(Field::data);
  const bool fsdp = change.has(Field::fsdp) && given.has(Field::fsdp);
  const bool zero = change.has(Field::zero_stage) && given.has(Field::zero_stage);
  if (fsdp && !zero) given.remove(Field::zero_stage);
  if (zero && !fsdp) given.remove(Field::fsdp);
  if (change.has(Field::global_batch_size)) draft.microbatches = 0;
  Cluster& cluster = draft.run.cluster;
  if (change.has(Field::num_gpus) && cluster.num_nodes > 0 &&
      draft.run.num_gpus / cluster.gpus_per_node >= cluster.num_nodes) {
    cluster.num_nodes = 0;
  }
}

}  // namespace

Change& Change::set(Field field, std::int64_t value) {
  values.push_back({field, std::to_string(value)});
  return *this;
}

Change& Change::set(Field field, bool value) {
  values.push_back({field, value ? "true" : "false"});
  return *this;
}

Change& Change::set(Field field, std::string_view word) {
  values.push_back({field, fmt::format("\"{}\"", word)});
  return *this;
}

Change& Change::leave_out(Field field) {
  values.push_back({field, std::string(left_out)});
  return *this;
}

Change& Change::operator+=(const Change& other) {
  values.insert(values.end(), other.values.begin(), other.values.end());
  return *this;
}

bool Change::has(Field field) const noexcept {
  return std::any_of(values.begin(), values.end(), [&](const FieldValue& value) { return value.field == field; });
}

std::string flags_of(const Change& change) { return flags_text(change.values); }

void apply(const Change& change, Draft& draft) {
  for (const FieldValue& value : change.values) state(value, draft);
  give_way(change, draft);
}

Change change_between(const Layout& from, const Layout& to) {
  Change change;
  const auto differs = [&](Field field, auto before, auto after) {
    if (before != after) change.set(field, after);
  };
  differs(Field::num_gpus, from.num_gpus, to.num_gpus);
  differs(Field::tensor, from.tensor, to.tensor);
  differs(Field::pipeline, from.pipeline, to.pipeline);
  differs(Field::virtual_pipeline, from.virtual_pipeline, to.virtual_pipeline);
  differs(Field::context, from.context, to.context);
  differs(Field::data, data_parallel(from), data_parallel(to));
  differs(Field::expert, from.expert, to.expert);
  differs(Field::expert_tensor, from.expert_tensor, to.expert_tensor);
  differs(Field::micro_batch_size, from.micro_batch_size, to.micro_batch_size);
  // A schedule that its chunks give by default moves with them; any other was stated, and stays.
  const auto by_default = [](const Layout& layout) {
    return layout.schedule == (layout.virtual_pipeline > 1 ? ScheduleKind::interleaved : ScheduleKind::one_f_one_b);
  };
  const bool follows = from.virtual_pipeline != to.virtual_pipeline && by_default(from) && by_default(to);
  if (!follows) differs(Field::schedule, from.schedule, to.schedule);
  if (to.fsdp != Fsdp::none) {
    differs(Field::fsdp, from.fsdp, to.fsdp);
  } else if (from.zero_stage != to.zero_stage || from.fsdp != to.fsdp) {
    change.set(Field::zero_stage, to.zero_stage);
  }
  if (to.shard_group > 0) differs(Field::shard_group, from.shard_group, to.shard_group);
  const std::string again = recompute_words(to.recompute);
  if (recompute_words(from.recompute) != again) change.set(Field::recompute, again);
  differs(Field::attention, from.attention, to.attention);
  if (to.tensor > 1) differs(Field::sequence_parallel, from.sequence_parallel, to.sequence_parallel);
  const auto moved = [&](Field part, OffloadDevice before, OffloadDevice after) {
    if (before == after) return;
    after == OffloadDevice::none ? change.leave_out(part) : change.set(part, after);
  };
  moved(Field::offload_optimizer, from.offload_optimizer, to.offload_optimizer);
  moved(Field::offload_parameters, from.offload_parameters, to.offload_parameters);
  moved(Field::offload_activations, from.offload_activations, to.offload_activations);
  differs(Field::overlap_grad_reduce, from.overlap_grad_reduce, to.overlap_grad_reduce);
  differs(Field::overlap_param_gather, from.overlap_param_gather, to.overlap_param_gather);
  differs(Field::overlap_tp, from.overlap_tp, to.overlap_tp);
  differs(Field::overlap_p2p, from.overlap_p2p, to.overlap_p2p);
  return change;
}

namespace {

void state_recompute(const Recompute& recompute, Change& change) {
  if (recompute.mode != RecomputeMode::modules) {
    change.set(Field::recompute, recompute_words(recompute));
    return;
  }
  std::vector<std::string> modules;
  for (std::size_t i = 0; i < recompute_module_names.size(); ++i) {
    if ((recompute.modules & (1U << i)) != 0) modules.push_back(fmt::format("\"{}\"", recompute_module_names[i]));
  }
  change.values.push_back({Field::recompute, fmt::format("{{\"modules\":[{}]}}", fmt::join(modules, ","))});
}

void state_offload(const Layout& layout, Change& change) {
  const std::array parts = {std::pair{Field::offload_optimizer, layout.offload_optimizer},
                            std::pair{Field::offload_parameters, layout.offload_parameters},
                            std::pair{Field::offload_activations, layout.offload_activations}};
  const bool none =
      std::all_of(parts.begin(), parts.end(), [](const auto& part) { return part.second == OffloadDevice::none; });
  if (none) {
    change.leave_out(Field::offload);
    return;
  }
  for (const auto& [field, device] : parts) {
    device == OffloadDevice::none ? change.leave_out(field) : change.set(field, device);
  }
}

}  // namespace

Change statement_of(const Layout& layout, const Draft& base) {
  Change change;
  change.set(Field::num_gpus, layout.num_gpus)
      .set(Field::tensor, layout.tensor)
      .set(Field::pipeline, layout.pipeline)
      .set(Field::virtual_pipeline, layout.virtual_pipeline)
      .set(Field::context, layout.context)
      .leave_out(Field::data)
      .set(Field::schedule, layout.schedule)
      .set(Field::micro_batch_size, layout.micro_batch_size)
      .set(Field::attention, layout.attention);
  const auto where = [&change](bool stated, Field field, auto value) {
    stated ? change.set(field, value) : change.leave_out(field);
  };
  const Run& run = base.run;
  where(run.model.has_experts(), Field::expert, layout.expert);
  where(run.model.has_experts(), Field::expert_tensor, layout.expert_tensor);
  where(layout.tensor > 1, Field::sequence_parallel, layout.sequence_parallel);
  where(layout.fsdp == Fsdp::none, Field::zero_stage, layout.zero_stage);
  where(layout.fsdp != Fsdp::none, Field::fsdp, layout.fsdp);
  if (layout.shard_group > 0 || !run.parallel.hpz) {
    where(layout.shard_group > 0, Field::shard_group, layout.shard_group);
  }
  const std::int64_t chunks = std::int64_t{layout.pipeline} * layout.virtual_pipeline;
  if (!base.given.has(Field::layers_per_stage) && run.model.layers() % chunks != 0) {
    std::vector<int> layers;
    layers_of_chunks(run.model.layers(), layout.pipeline, layout.virtual_pipeline, layers);
    change.values.push_back({Field::layers_per_stage, fmt::format("[{}]", fmt::join(layers, ","))});
  }
  state_recompute(layout.recompute, change);
  state_offload(layout, change);
  change.set(Field::overlap_grad_reduce, layout.overlap_grad_reduce)
      .set(Field::overlap_param_gather, layout.overlap_param_gather)
      .set(Field::overlap_tp, layout.overlap_tp)
      .set(Field::overlap_p2p, layout.overlap_p2p);
  return change;
}

std::string recompute_words(const Recompute& recompute) {
  switch (recompute.mode) {
    case RecomputeMode::none: return "none";
    case RecomputeMode::selective: return "selective";
    case RecomputeMode::full: return "full";
    case RecomputeMode::ops: return "ops";
    case RecomputeMode::first_n: return fmt::format("full:{}", recompute.n);
    case RecomputeMode::every_k: return fmt::format("every:{}", recompute.n);
    case RecomputeMode::modules: break;
  }
  std::string words;
  for (std::size_t i = 0; i < recompute_module_names.size(); ++i) {
    if ((recompute.modules & (1U << i)) == 0) continue;
    words += (words.empty() ? "" : "+") + std::string(recompute_module_names[i]);
  }
  return words;
}

std::optional<int> count_after(std::string_view text, std::string_view prefix) {
  if (text.substr(0, prefix.size()) != prefix || text.size() == prefix.size()) return std::nullopt;
  int count = 0;
  for (const char c : text.substr(prefix.size())) {
    if (c < '0' || c > '9' || count > most_layers) return std::nullopt;
    count = 10 * count + (c - '0');
  }
  if (count < 1 || count > most_layers) return std::nullopt;
  return count;
}

std::optional<Recompute> parse_recompute(std::string_view words) {
  for (const RecomputeMode mode :
       {RecomputeMode::none, RecomputeMode::selective, RecomputeMode::full, RecomputeMode::ops}) {
    if (words == recompute_words({mode, 0, 0})) return Recompute{mode, 0, 0};
  }
  if (const auto count = count_after(words, "full:")) return Recompute{RecomputeMode::first_n, *count, 0};
  if (const auto count = count_after(words, "every:")) return Recompute{RecomputeMode::every_k, *count, 0};
  return std::nullopt;
}

}  // namespace shardplan::plan
