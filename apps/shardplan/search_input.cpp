#include "search_input.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "overrides.hpp"
#include "ranges.hpp"
#include "run_input.hpp"
#include "shardplan/catalog/catalog.hpp"
#include "shardplan/io/suggest.hpp"
#include "shardplan/physics/frameworks/facts.hpp"
#include "shardplan/plan/validate.hpp"

namespace shardplan::cli {
namespace {

using plan::Field;

/// The fields that a search varies.
constexpr std::array variables = {Field::num_gpus,
                                  Field::tensor,
                                  Field::pipeline,
                                  Field::virtual_pipeline,
                                  Field::context,
                                  Field::expert,
                                  Field::expert_tensor,
                                  Field::data,
                                  Field::sequence_parallel,
                                  Field::zero_stage,
                                  Field::fsdp,
                                  Field::shard_group,
                                  Field::schedule,
                                  Field::micro_batch_size,
                                  Field::recompute,
                                  Field::attention,
                                  Field::offload,
                                  Field::overlap_grad_reduce,
                                  Field::overlap_param_gather,
                                  Field::overlap_tp,
                                  Field::overlap_p2p};

std::optional<Field> variable_of(std::string_view pointer) {
  const auto found = std::find_if(variables.begin(), variables.end(), [&](Field f) { return name(f) == pointer; });
  return found == variables.end() ? std::nullopt : std::optional(*found);
}

constexpr std::string_view free_word = "free";

class SpaceReader {
 public:
  SpaceReader(SearchInput& to) : to_(to) {}

  /// Takes an override for a variable; false where it is none.
  bool take(const io::Override& change) {
    const bool offload = change.pointer.rfind(name(Field::offload), 0) == 0;
    const std::optional<Field> variable = offload ? Field::offload : variable_of(change.pointer);
    if (!variable) return false;
    if (change.value == free_word) {
      if (*variable == Field::num_gpus) {
        complain(fmt::format("{}: free has no end; give a range", change.flag), "for example --gpus 8..1024");
      }
      if (*variable == Field::attention) all_kernels();
      return true;
    }
    read(*variable, change);
    return true;
  }

  /// Whether a variable has more than one value, so that its override is not one of a run.
  bool is_list(const io::Override& change) const {
    if (change.value == free_word) return true;
    if (change.value.substr(0, 1) == "{" || change.value.substr(0, 1) == "[") return false;
    return change.value.find(',') != std::string::npos || change.value.find("..") != std::string::npos;
  }

 private:
  void complain(std::string message, std::string way_out) {
    to_.problems.push_back({std::string(command_line_file), "", std::move(message), std::move(way_out), 0, 0});
  }

  std::vector<std::int64_t> integers(const io::Override& change, std::int64_t least) {
    Result<std::vector<std::int64_t>> list = parse_integers(change.flag, change.value, least);
    for (Diagnostic& found : list.problems) to_.problems.push_back(std::move(found));
    return std::move(list.value);
  }

  void degrees(const io::Override& change, std::optional<std::vector<int>>& to, std::int64_t least = 1) {
    std::vector<int> values;
    constexpr std::int64_t most = std::int64_t{1} << 20;
    for (const std::int64_t value : integers(change, least)) {
      if (value <= most) values.push_back(static_cast<int>(value));
    }
    if (!values.empty()) to = std::move(values);
  }

  template <class Enum>
  void names(const io::Override& change, std::optional<std::vector<Enum>>& to) {
    std::vector<Enum> values;
    for (const std::string_view item : list_items(change.value)) {
      if (const std::optional<Enum> value = parse_name<Enum>(item)) {
        values.push_back(*value);
        continue;
      }
      std::vector<std::string_view> words(names_of<Enum>.begin(), names_of<Enum>.end());
      complain(fmt::format("{}: \"{}\" is not one of {}{}", change.flag, item, fmt::join(words, ", "),
                           io::did_you_mean(item, words)),
               "");
    }
    if (!values.empty()) to = std::move(values);
  }

  void truth(const io::Override& change, std::optional<bool>& to) {
    if (change.value == "true" || change.value == "false") {
      to = change.value == "true";
    } else {
      complain(fmt::format("{}: \"{}\" is not true, false or free", change.flag, change.value), "");
    }
  }

  /// "full", "full:4", "every:2"; a list of modules stands alone.
  void recomputes(const io::Override& change) {
    const bool object = change.value.substr(0, 1) == "{";
    const auto items = object ? std::vector<std::string_view>{change.value} : list_items(change.value);
    for (const std::string_view item : items) recompute_items_.push_back({std::string(item), change.flag});
  }

  void all_kernels() {
    std::vector<AttentionKernel> kernels;
    for (std::size_t i = 0; i < names_of<AttentionKernel>.size(); ++i) {
      kernels.push_back(static_cast<AttentionKernel>(i));
    }
    to_.space.attention = kernels;
    every_kernel_ = true;
  }

  void read(Field variable, const io::Override& change) {
    plan::SearchSpace& space = to_.space;
    switch (variable) {
      case Field::num_gpus: {
        std::optional<std::vector<int>> list;
        degrees(change, list);
        if (list) space.num_gpus = *list;
        break;
      }
      case Field::tensor: degrees(change, space.tensor); break;
      case Field::pipeline: degrees(change, space.pipeline); break;
      case Field::virtual_pipeline: degrees(change, space.virtual_pipeline); break;
      case Field::context: degrees(change, space.context); break;
      case Field::expert: degrees(change, space.expert); break;
      case Field::expert_tensor: degrees(change, space.expert_tensor); break;
      case Field::data: degrees(change, space.data); break;
      case Field::zero_stage:
        if (change.value == "null") break;
        degrees(change, space.zero, 0);
        break;
      case Field::shard_group: degrees(change, space.shard_group); break;
      case Field::micro_batch_size: {
        const std::vector<std::int64_t> values = integers(change, 1);
        if (!values.empty()) space.micro_batch = values;
        break;
      }
      case Field::fsdp:
        if (change.value == "null") {
          space.fsdp = std::vector<Fsdp>{};
        } else {
          names(change, space.fsdp);
        }
        break;
      case Field::schedule: names(change, space.schedule); break;
      case Field::attention: names(change, space.attention); break;
      case Field::recompute: recomputes(change); break;
      case Field::sequence_parallel: {
        std::optional<bool> value;
        truth(change, value);
        if (value) space.sequence_parallel = std::vector<bool>{*value};
        break;
      }
      case Field::offload: offload_.push_back(change); break;
      case Field::overlap_grad_reduce: truth(change, space.overlap_grad_reduce); break;
      case Field::overlap_param_gather: truth(change, space.overlap_param_gather); break;
      case Field::overlap_tp: truth(change, space.overlap_tp); break;
      case Field::overlap_p2p: truth(change, space.overlap_p2p); break;
      default: break;
    }
  }

 public:
  /// Values in the words of a run file, which the run file's reader understands.
  struct Item {
    std::string value;
    std::string flag;
  };
  const std::vector<Item>& recompute_items() const noexcept { return recompute_items_; }
  const std::vector<io::Override>& offload() const noexcept { return offload_; }
  bool every_kernel() const noexcept { return every_kernel_; }

 private:
  SearchInput& to_;
  std::vector<Item> recompute_items_;
  std::vector<io::Override> offload_;
  bool every_kernel_ = false;
};

/// A run file's layout is that of "yours" alone; the base has the least layout that reads.
class BaseReader {
 public:
  BaseReader(SearchInput& to, io::RunInput stated) : to_(to), stated_(std::move(stated)) {}

  void read() {
    first_ = io::read_run(stated_, catalog::builtin_catalog());
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
    for (const Field field : variables) {
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
      to_.read = read_with(to_.input, least_layout(sharding));
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
      to_.problems.push_back({std::string(command_line_file), "",
                              "--pp and --vpp cannot vary: the run states layers_per_stage",
                              "--set parallel.layers_per_stage=null shares the layers out anew for each layout", 0, 0});
      return;
    }
    space.pipeline = std::vector<int>{parallel.pipeline};
    space.virtual_pipeline = std::vector<int>{parallel.virtual_pipeline};
    if (!space.schedule) space.schedule = std::vector<ScheduleKind>{parallel.schedule};
    to_.notes.push_back(fmt::format("layers_per_stage fixes pipeline {}, virtual_pipeline {} and the schedule",
                                    parallel.pipeline, parallel.virtual_pipeline));
  }

  SearchInput& to_;
  io::RunInput stated_;
  io::ReadRun first_;
  Framework framework_{};
};

/// Values of recompute and offload, each read as a run file's.
void read_worded_values(const SpaceReader& reader, SearchInput& to) {
  std::vector<Recompute> recomputes;
  for (const SpaceReader::Item& item : reader.recompute_items()) {
    io::RunInput input = to.input;
    input.overrides.push_back({std::string(name(Field::recompute)), item.value, item.flag});
    const io::ReadRun read = io::read_run(input, catalog::builtin_catalog());
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
  const io::ReadRun read = io::read_run(input, catalog::builtin_catalog());
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

void drop_kernels_of_other_gpus(const SpaceReader& reader, SearchInput& to) {
  if (!reader.every_kernel() || !to.space.attention) return;
  std::vector<AttentionKernel>& kernels = *to.space.attention;
  kernels.erase(
      std::remove_if(kernels.begin(), kernels.end(),
                     [&](AttentionKernel kernel) { return !plan::runs_attention(to.read.run.cluster.gpu, kernel); }),
      kernels.end());
}

}  // namespace

SearchInput read_search_input(const Arguments& arguments) {
  SearchInput input;
  Result<std::vector<io::Override>> overrides = overrides_of(arguments);
  if (!overrides.ok()) {
    input.problems = std::move(overrides.problems);
    return input;
  }
  if (arguments.words.empty() && overrides.value.empty()) {
    input.problems = read_run_of(arguments).problems;
    return input;
  }
  if (!arguments.words.empty()) {
    const std::string& path = arguments.words.front();
    if (path == "-" && arguments.value("model") == "-") {
      input.problems = usage_problem("RUN.json and --model cannot both be standard input").problems;
      return input;
    }
    Result<io::JsonText> text = io::read_json(path);
    if (!text.ok()) {
      input.problems = std::move(text.problems);
      return input;
    }
    input.input.text = std::move(text.value);
  }
  SpaceReader space(input);
  io::RunInput stated = input.input;
  for (const io::Override& change : overrides.value) {
    const bool variable = space.take(change);
    if (!variable) input.input.overrides.push_back(change);
    if (!variable || !space.is_list(change)) stated.overrides.push_back(change);
  }
  if (!input.problems.empty()) return input;
  BaseReader base(input, std::move(stated));
  base.read();
  if (!input.ok()) return input;
  read_worded_values(space, input);
  drop_kernels_of_other_gpus(space, input);
  if (input.space.num_gpus.empty()) {
    const bool known = base.first().draft.given.has(Field::num_gpus) || base.first().draft.run.cluster.num_nodes > 0;
    if (!known) {
      for (const Diagnostic& found : base.first().problems) {
        if (found.pointer == name(Field::num_gpus)) input.problems.push_back(found);
      }
      if (input.ok())
        input.problems = usage_problem("a search needs the number of GPUs", "--gpus N or --gpus A..B").problems;
      return input;
    }
    input.space.num_gpus = {base.first().run.num_gpus};
  }
  input.gpus_vary = input.space.num_gpus.size() > 1;
  drop_broken_nodes(input.space, input.read.run.cluster.gpus_per_node);
  if (input.space.num_gpus.empty()) {
    input.problems = usage_problem("--gpus: no number of the range is whole nodes",
                                   fmt::format("nodes have {} GPUs", input.read.run.cluster.gpus_per_node))
                         .problems;
  }
  return input;
}

}  // namespace shardplan::cli
