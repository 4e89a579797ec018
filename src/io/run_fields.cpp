#include "run_fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "section_reader.hpp"
#include "shardplan/io/json_text.hpp"
#include "shardplan/io/suggest.hpp"
#include "shardplan/plan/requirements.hpp"

namespace shardplan::io {
namespace {

using plan::Field;

constexpr std::size_t most_unknown_fields = 20;

/// The names of a section's members, from the fields' pointers.
std::vector<std::string_view> members_of(std::string_view section) {
  std::vector<std::string_view> members;
  if (section.empty()) members = {"$schema", "defaults"};
  if (section == "/require") {
    members.assign(names_of<plan::Requirement>.begin(), names_of<plan::Requirement>.end());
  }
  for (const std::string_view pointer : names_of<Field>) {
    if (pointer.substr(0, section.size()) != section || pointer.size() <= section.size() + 1 ||
        pointer[section.size()] != '/') {
      continue;
    }
    const std::string_view rest = pointer.substr(section.size() + 1);
    const std::string_view member = rest.substr(0, rest.find('/'));
    if (std::find(members.begin(), members.end(), member) == members.end()) members.push_back(member);
  }
  if (section.empty()) members.push_back("require");
  return members;
}

/// A field of that name in another section: "; did you mean /parallel/tensor?".
std::string other_place_of(std::string_view key, std::string_view section) {
  for (const std::string_view pointer : names_of<Field>) {
    const std::string_view member = pointer.substr(pointer.rfind('/') + 1);
    if (edit_distance(member, key) != 0 || pointer.substr(0, pointer.rfind('/')) == section) continue;
    return fmt::format("; did you mean {}?", pointer);
  }
  return {};
}

void remove_unknown(nlohmann::json& object, std::string_view section, std::string_view file, Diagnostics& problems) {
  if (!object.is_object()) return;
  const std::vector<std::string_view> known = members_of(section);
  std::vector<std::string_view> shown = known;  // `defaults` is what a resolved run states, nobody else
  shown.erase(std::remove(shown.begin(), shown.end(), "defaults"), shown.end());
  std::vector<std::string> unknown;
  for (const auto& [key, value] : object.items()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) unknown.push_back(key);
  }
  for (std::size_t i = 0; i < unknown.size(); ++i) {
    const std::string& key = unknown[i];
    if (i < most_unknown_fields) {
      const std::string near = did_you_mean(key, known);
      const std::string elsewhere = near.empty() ? other_place_of(key, section) : std::string();
      problems.push_back({std::string(file), fmt::format("{}/{}", section, escape_token(key)),
                          "unknown field" + (near.empty() ? elsewhere : near),
                          near.empty() && elsewhere.empty() ? fields_here(shown) : std::string(), 0, 0});
      const std::string meant(closest(key, known));
      const auto taken = object.find(meant);
      if (!meant.empty() && (taken == object.end() || taken->is_null())) object[meant] = object[key];
    } else if (i == most_unknown_fields) {
      problems.push_back({std::string(file), std::string(section),
                          fmt::format("{} more unknown fields", unknown.size() - i), "", 0, 0});
    }
    object.erase(key);
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
      const std::string place = fmt::format("{}/{}", SectionReader::member_of(Field::layers_per_stage), layers.size());
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

void remove_unknown_fields(nlohmann::json& root, std::string_view file, Diagnostics& problems) {
  remove_unknown(root, "", file, problems);
  for (const std::string_view section :
       {"/parallel", "/parallel/zeropp", "/training", "/training/fp8", "/training/kernels", "/training/moe",
        "/training/peft", "/training/offload", "/training/overlap", "/require"}) {
    nlohmann::json* object = &root;
    for (const std::string& token : pointer_tokens(section)) {
      const auto member = object->is_object() ? object->find(token) : object->end();
      object = object->is_object() && member != object->end() ? &*member : nullptr;
      if (object == nullptr) break;
    }
    if (object != nullptr) remove_unknown(*object, section, file, problems);
  }
}

void read_parallel(const nlohmann::json& parallel, std::string_view file, plan::Draft& draft, Diagnostics& problems) {
  SectionReader section(parallel, file, "/parallel", draft, problems);
  Parallel& to = draft.run.parallel;
  section.integer(Field::tensor, to.tensor, 1, largest_degree);
  section.integer(Field::pipeline, to.pipeline, 1, largest_degree);
  section.integer(Field::virtual_pipeline, to.virtual_pipeline, 1, largest_degree);
  section.integer(Field::context, to.context, 1, largest_degree);
  section.integer(Field::expert, to.expert, 1, largest_degree);
  section.integer(Field::expert_tensor, to.expert_tensor, 1, largest_degree);
  section.integer(Field::data, to.data, 1, largest_degree);
  section.boolean(Field::sequence_parallel, to.sequence_parallel);
  section.integer(Field::zero_stage, to.zero_stage, 0, 3);
  section.choice(Field::fsdp, to.fsdp);
  section.integer(Field::fsdp_version, to.fsdp_version, 1, 2);
  section.choice(Field::grad_sync, to.grad_sync);
  section.choice(Field::context_comm, to.context_comm);
  section.integer(Field::shard_group, to.shard_group, 1, largest_degree);
  section.choice(Field::schedule, to.schedule);
  read_layers(section);
  read_order(section);
  if (const nlohmann::json* zeropp = section.object().member("zeropp")) {
    SectionReader inner(*zeropp, file, "/parallel/zeropp", draft, problems);
    inner.boolean(Field::hpz, to.hpz);
    inner.boolean(Field::qwz, to.qwz);
    inner.boolean(Field::qgz, to.qgz);
  }
}

void read_requirements(const nlohmann::json& require, std::string_view file, plan::Draft& draft,
                       Diagnostics& problems) {
  ObjectReader reader(require, file, "/require", problems);
  Requirements& to = draft.run.require;
  constexpr double largest = 1e15;
  to.fits = reader.boolean("fits");
  to.min_headroom_gib = reader.number("min_headroom_gib", {std::nullopt, 0.0, largest});
  to.min_mfu = reader.number("min_mfu", {std::nullopt, 0.0, 1.0});
  to.max_bubble = reader.number("max_bubble", {std::nullopt, 0.0, 1.0});
  to.max_step_s = reader.number("max_step_s", {0.0, std::nullopt, largest});
  to.min_tokens_per_s_per_gpu = reader.number("min_tokens_per_s_per_gpu", {std::nullopt, 0.0, largest});
  to.max_gpu_hours_per_1e12_tokens = reader.number("max_gpu_hours_per_1e12_tokens", {0.0, std::nullopt, largest});
}

}  // namespace shardplan::io
