// Fields of a run file whose values have a syntax of their own.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "section_reader.hpp"
#include "shardplan/io/suggest.hpp"
#include "shardplan/physics/optimizers.hpp"
#include "shardplan/plan/change.hpp"

namespace shardplan::io {
namespace {

using plan::Field;

using plan::largest_degree;

/// {"modules": [...]}
std::optional<Recompute> read_modules(const nlohmann::json& value, SectionReader& section) {
  ObjectReader object(value, section.object().file(), "/training/recompute", section.object().problems());
  const nlohmann::json* list = object.member("modules");
  object.finish();
  Recompute recompute{RecomputeMode::modules, 0, 0};
  if (list == nullptr || !list->is_array() || list->empty()) {
    object.problem("modules", "is a list with at least one module",
                   list_of({recompute_module_names.begin(), recompute_module_names.end()}));
    return std::nullopt;
  }
  for (std::size_t i = 0; i < list->size(); ++i) {
    const nlohmann::json& module = (*list)[i];
    const std::string text = module.is_string() ? module.get<std::string>() : std::string();
    const auto found = std::find(recompute_module_names.begin(), recompute_module_names.end(), text);
    if (found == recompute_module_names.end()) {
      const std::vector<std::string_view> names(recompute_module_names.begin(), recompute_module_names.end());
      section.object().problems().push_back(
          {std::string(section.object().file()), fmt::format("/training/recompute/modules/{}", i),
           fmt::format("{} is not {}{}", quoted(module), list_of(names), did_you_mean(text, names)), "", 0, 0});
      return std::nullopt;
    }
    recompute.modules |= static_cast<std::uint8_t>(1U << static_cast<unsigned>(found - recompute_module_names.begin()));
  }
  return recompute;
}

void read_recompute(SectionReader& section) {
  const nlohmann::json* value = section.member(Field::recompute);
  if (value == nullptr) return;
  std::optional<Recompute> recompute;
  if (value->is_object()) {
    recompute = read_modules(*value, section);
  } else {
    if (value->is_string()) recompute = plan::parse_recompute(value->get_ref<const std::string&>());
    if (!recompute) {
      const std::string text = value->is_string() ? value->get<std::string>() : std::string();
      section.problem(Field::recompute,
                      fmt::format("{} is not one of none, selective, full, full:N, every:K, ops{}", quoted(*value),
                                  did_you_mean(text, {"none", "selective", "full", "ops"})),
                      "\"selective\" recomputes the attention core; or {\"modules\": [\"core_attn\"]}");
    }
  }
  section.store(Field::recompute, recompute, section.draft().run.training.recompute);
}

void read_loss(SectionReader& section) {
  const nlohmann::json* value = section.member(Field::loss);
  if (value == nullptr) return;
  Training& training = section.draft().run.training;
  const std::string text = value->is_string() ? value->get<std::string>() : std::string();
  std::optional<LossKind> loss = parse_name<LossKind>(text);
  if (loss == LossKind::chunked) loss.reset();  // needs its number
  constexpr std::string_view chunked = "chunked:";
  if (const auto chunks = plan::count_after(text, chunked)) {
    loss = LossKind::chunked;
    training.loss_chunks = *chunks;
  }
  if (!loss && text.substr(0, chunked.size()) == chunked) {
    section.problem(Field::loss, fmt::format("{}: N of chunked:N is a whole number from 1 to {}", quoted(*value),
                                             plan::most_layers));
  } else if (!loss) {
    std::vector<std::string_view> names(names_of<LossKind>.begin(), names_of<LossKind>.end());
    for (std::string_view& name : names) {
      if (name == "chunked") name = "chunked:N";
    }
    section.problem(Field::loss,
                    fmt::format("{} is not one of {}{}", quoted(*value), list_of(names), did_you_mean(text, names)));
  }
  section.store(Field::loss, loss, training.loss);
}

/// The names that `list optimizers` shows of those nearest, by name or alias.
std::vector<std::string_view> nearest_optimizers(std::string_view text) {
  std::vector<std::string_view> known;
  for (const Optimizer& optimizer : optimizers()) known.push_back(optimizer.name);
  for (const OptimizerAlias& alias : optimizer_aliases()) known.push_back(alias.name);
  std::vector<std::string_view> names;
  constexpr std::size_t most = 3;
  for (const std::string_view word : nearest(text, known, known.size())) {
    const Optimizer* const optimizer = parse_optimizer(std::string(word)).optimizer;
    if (optimizer == nullptr) continue;
    if (std::find(names.begin(), names.end(), optimizer->name) == names.end()) names.push_back(optimizer->name);
    if (names.size() == most) break;
  }
  return names;
}

void read_optimizer(SectionReader& section) {
  const nlohmann::json* value = section.member(Field::optimizer);
  if (value == nullptr) return;
  const std::string text = value->is_string() ? value->get<std::string>() : std::string();
  std::optional<std::string> known;
  const NamedOptimizer found = parse_optimizer(text);
  if (found.optimizer != nullptr) {
    known = std::string(found.optimizer->name);
  } else {
    std::vector<std::string_view> all;
    for (const Optimizer& optimizer : optimizers()) all.push_back(optimizer.name);
    section.problem(
        Field::optimizer,
        fmt::format("{} is no optimizer; the nearest are {}", quoted(*value), list_of(nearest_optimizers(text), "and")),
        fmt::format("shardplan list optimizers shows what each holds: {}", list_of(all, "and")));
  }
  Training& training = section.draft().run.training;
  section.store(Field::optimizer, known, training.optimizer);
  // adamw_torch_fused and the like say it, unless the run does: its own field is read behind this one.
  if (found.impl && !section.draft().given.has(Field::optimizer_impl)) {
    section.store(Field::optimizer_impl, found.impl, training.optimizer_impl);
  }
}

/// "tp-cp-ep-dp-pp"
std::optional<std::array<Axis, 5>> parse_order(std::string_view text) {
  std::array<Axis, 5> order{};
  std::array<bool, 5> seen{};
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::size_t end = std::min(text.find('-'), text.size());
    const std::optional<Axis> axis = parse_name<Axis>(text.substr(0, end));
    if (!axis || seen[static_cast<std::size_t>(*axis)]) return std::nullopt;
    seen[static_cast<std::size_t>(*axis)] = true;
    order[i] = *axis;
    const bool last = i + 1 == order.size();
    if (last != (end == text.size())) return std::nullopt;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return order;
}

void read_order(SectionReader& section) {
  const nlohmann::json* value = section.member(Field::order);
  if (value == nullptr) return;
  std::optional<std::array<Axis, 5>> order;
  if (value->is_string()) order = parse_order(value->get_ref<const std::string&>());
  if (!order) {
    section.problem(Field::order, quoted(*value) + " does not name each of tp, cp, ep, dp and pp once",
                    "\"tp-cp-ep-dp-pp\": ranks next to each other differ in the first");
  }
  section.store(Field::order, order, section.draft().run.parallel.order);
}

void read_layers(SectionReader& section) {
  const nlohmann::json* value = section.member(Field::layers_per_stage);
  if (value == nullptr) return;
  if (!value->is_array() || value->empty()) {
    section.problem(Field::layers_per_stage, quoted(*value) + " is not a list of layer counts");
    return section.unusable(Field::layers_per_stage);
  }
  std::vector<int> layers;
  for (const nlohmann::json& count : *value) {
    const double number = count.is_number() ? count.get<double>() : -1;
    if (!(number >= 0) || number > static_cast<double>(largest_degree) || number != static_cast<int>(number)) {
      const std::string place =
          fmt::format("{}/{}", plan::member_of(plan::row_of(Field::layers_per_stage)), layers.size());
      Diagnostics& problems = section.object().problems();
      problems.push_back({std::string(section.object().file()), "/parallel/" + place,
                          quoted(count) + " is not a whole number of layers", "", 0, 0});
      return section.unusable(Field::layers_per_stage);
    }
    layers.push_back(static_cast<int>(number));
  }
  section.draft().layers_per_stage = std::move(layers);
  section.draft().given.add(Field::layers_per_stage);
}

}  // namespace

void read_own_syntax(plan::Field field, SectionReader& section) {
  switch (field) {
    case Field::layers_per_stage: return read_layers(section);
    case Field::order: return read_order(section);
    case Field::optimizer: return read_optimizer(section);
    case Field::recompute: return read_recompute(section);
    case Field::loss: return read_loss(section);
    default: return;  // read elsewhere, with what they need beside the object
  }
}

}  // namespace shardplan::io
