// A layout of the search as a run: overrides, and the run file that they make.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "search_input.hpp"
#include "shardplan/catalog/catalog.hpp"
#include "shardplan/plan/why_not.hpp"

namespace shardplan::cli {

using plan::Field;

io::Override set_to(Field field, std::string value) { return {std::string(name(field)), std::move(value), ""}; }

io::ReadRun read_with(const io::RunInput& input, const std::vector<io::Override>& more) {
  io::RunInput changed = input;
  changed.overrides.insert(changed.overrides.end(), more.begin(), more.end());
  return io::read_run(changed, catalog::builtin_catalog());
}

std::string recompute_json(const Recompute& recompute) {
  if (recompute.mode != RecomputeMode::modules) return plan::recompute_words(recompute);
  std::vector<std::string> modules;
  for (std::size_t i = 0; i < recompute_module_names.size(); ++i) {
    if ((recompute.modules & (1U << i)) != 0) modules.push_back(fmt::format("\"{}\"", recompute_module_names[i]));
  }
  return fmt::format("{{\"modules\":[{}]}}", fmt::join(modules, ","));
}

std::vector<io::Override> overrides_of(const Layout& layout, const plan::Draft& base) {
  std::vector<io::Override> list;
  const auto integer = [&](Field field, std::int64_t value) { list.push_back(set_to(field, std::to_string(value))); };
  const auto truth = [&](Field field, bool value) { list.push_back(set_to(field, value ? "true" : "false")); };
  const auto word = [&](Field field, std::string_view value) { list.push_back(set_to(field, std::string(value))); };
  integer(Field::num_gpus, layout.num_gpus);
  integer(Field::tensor, layout.tensor);
  integer(Field::pipeline, layout.pipeline);
  integer(Field::virtual_pipeline, layout.virtual_pipeline);
  integer(Field::context, layout.context);
  if (base.run.model.has_experts()) {
    integer(Field::expert, layout.expert);
    integer(Field::expert_tensor, layout.expert_tensor);
  } else {
    word(Field::expert, "null");
    word(Field::expert_tensor, "null");
  }
  word(Field::data, "null");
  if (layout.tensor > 1) {
    truth(Field::sequence_parallel, layout.sequence_parallel);
  } else {
    word(Field::sequence_parallel, "null");
  }
  if (layout.fsdp == Fsdp::none) {
    word(Field::fsdp, "null");
    integer(Field::zero_stage, layout.zero_stage);
  } else {
    word(Field::zero_stage, "null");
    word(Field::fsdp, name(layout.fsdp));
  }
  if (layout.shard_group > 0) {
    integer(Field::shard_group, layout.shard_group);
  } else if (!base.run.parallel.hpz) {
    word(Field::shard_group, "null");
  }
  word(Field::schedule, name(layout.schedule));
  const std::int64_t chunks = std::int64_t{layout.pipeline} * layout.virtual_pipeline;
  if (!base.given.has(Field::layers_per_stage) && base.run.model.layers() % chunks != 0) {
    std::vector<int> layers;
    plan::layers_of_chunks(base.run.model.layers(), layout.pipeline, layout.virtual_pipeline, layers);
    word(Field::layers_per_stage, fmt::format("[{}]", fmt::join(layers, ",")));
  }
  integer(Field::micro_batch_size, layout.micro_batch_size);
  word(Field::recompute, recompute_json(layout.recompute));
  word(Field::attention, name(layout.attention));
  const std::array offload = {std::pair{Field::offload_optimizer, layout.offload_optimizer},
                              std::pair{Field::offload_parameters, layout.offload_parameters},
                              std::pair{Field::offload_activations, layout.offload_activations}};
  const bool none =
      std::all_of(offload.begin(), offload.end(), [](const auto& part) { return part.second == OffloadDevice::none; });
  if (none) {
    word(Field::offload, "null");
  } else {
    for (const auto& [field, device] : offload) {
      word(field, device == OffloadDevice::none ? std::string_view("null") : name(device));
    }
  }
  truth(Field::overlap_grad_reduce, layout.overlap_grad_reduce);
  truth(Field::overlap_param_gather, layout.overlap_param_gather);
  truth(Field::overlap_tp, layout.overlap_tp);
  truth(Field::overlap_p2p, layout.overlap_p2p);
  return list;
}

io::ReadRun read_layout(const SearchInput& input, const Layout& layout) {
  std::vector<io::Override> more = overrides_of(layout, input.base);
  // A path that the run file states is one from its own folder; the new file may lie elsewhere.
  constexpr std::array fields = {std::pair{Field::model, io::CatalogKind::models},
                                 std::pair{Field::cluster, io::CatalogKind::clusters}};
  for (std::size_t i = 0; i < fields.size() && i < input.read.files.size(); ++i) {
    const std::string& file = input.read.files[i];
    const bool of_run = input.input.text && file == input.input.text->file;
    const bool built_in = catalog::builtin_catalog().find(fields[i].second, file).has_value();
    std::error_code error;
    if (of_run || built_in || !std::filesystem::is_regular_file(file, error)) continue;
    more.push_back(set_to(fields[i].first, std::filesystem::absolute(file, error).string()));
  }
  return read_with(input.input, more);
}

}  // namespace shardplan::cli
