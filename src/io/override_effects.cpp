#include "override_effects.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "object_reader.hpp"
#include "override_apply.hpp"
#include "shardplan/plan/fields.hpp"

namespace shardplan::io {
namespace {

using nlohmann::json;
using plan::Field;

bool overridden(const std::vector<Override>& overrides, std::string_view pointer) {
  return std::any_of(overrides.begin(), overrides.end(),
                     [&](const Override& change) { return change.pointer == pointer; });
}

}  // namespace

std::optional<DroppedData> drop_derived_data(json& root, const std::vector<Override>& overrides) {
  const json* data = find_pointer(root, name(Field::data));
  if (data == nullptr || data->is_null() || overridden(overrides, name(Field::data))) return std::nullopt;
  for (const Field field : {Field::num_gpus, Field::tensor, Field::pipeline, Field::context}) {
    const auto change = std::find_if(overrides.begin(), overrides.end(), [&](const Override& each) {
      return each.pointer == name(field) && !each.flag.empty();  // not an edit
    });
    if (change == overrides.end()) continue;
    DroppedData dropped{quoted(*data), change->flag};
    erase_pointer(root, name(Field::data));
    return dropped;
  }
  return std::nullopt;
}

void follow_memory(json& root, const std::vector<Override>& overrides, const json& built_in_gpu) {
  const json* const gpu = find_pointer(root, "/cluster/gpu");
  if (gpu == nullptr || !gpu->is_object() || !overridden(overrides, "/cluster/gpu/memory_gb")) return;
  const json marketed = gpu->value("memory_gb", json());
  const json own = built_in_gpu.value("memory_gb", json());
  if (!marketed.is_number() || !own.is_number() || own.get<double>() <= 0) return;
  const double share = marketed.get<double>() / own.get<double>();
  for (const char* const member : {"memory_reported_mib", "memory_cuda_gib"}) {
    const std::string pointer = std::string("/cluster/gpu/") + member;
    const auto stated = built_in_gpu.find(member);
    if (share == 1 || overridden(overrides, pointer) || stated == built_in_gpu.end() || !stated->is_number()) continue;
    (*find_pointer(root, pointer)) = stated->get<double>() * share;
  }
}

void require_adapters(json& root, const RunInput& input, std::string_view file, Diagnostics& problems) {
  const std::string_view peft = name(Field::peft);
  const json* of_file = input.text ? find_pointer(*input.text->value, peft) : nullptr;
  if (of_file != nullptr && !of_file->is_null()) return;
  const auto starts_them = [&](const Override& change) {
    return change.pointer == peft || change.pointer == name(Field::peft_rank) ||
           change.pointer == name(Field::peft_method);
  };
  if (std::any_of(input.overrides.begin(), input.overrides.end(), starts_them)) return;
  for (const Override& change : input.overrides) {
    if (!is_inside(change.pointer, peft) || change.flag.empty()) continue;
    problems.push_back({std::string(file), change.pointer,
                        fmt::format("{}: the run has no adapters", quoted(override_value(change))),
                        "--lora-rank 16 trains some beside a frozen base", 0, 0});
    erase_pointer(root, peft);
  }
}

void note_flags_without_effect(const Run& run, const std::vector<Override>& overrides,
                               std::vector<std::string>& notes) {
  const Precision precision = run.training.precision;
  const auto note = [&](Field field, bool idle, std::string_view why) {
    for (const Override& change : overrides) {
      const bool typed = !change.flag.empty() && change.flag != "--vary";
      if (!idle || !typed || !is_inside(change.pointer, name(field))) continue;
      const std::string shown = change.flag == "--set" ? fmt::format("--set {}", change.pointer) : change.flag;
      notes.push_back(fmt::format("{} changes nothing: {}", shown, why));
    }
  };
  note(Field::schedule, run.parallel.pipeline == 1, "there is no pipeline (--pp 1)");
  note(Field::context_comm, run.parallel.context == 1, "sequences are not split (--cp 1)");
  note(Field::fsdp_version, run.parallel.fsdp == Fsdp::none, "the run has no FSDP");
  note(Field::fp8_recipe, precision != Precision::fp8 && precision != Precision::nvfp4, "the precision is not fp8");
  note(Field::overlap_p2p, run.parallel.pipeline == 1, "there is no pipeline (--pp 1)");
  note(Field::overlap_tp, run.parallel.tensor == 1, "there is no tensor parallelism (--tp 1)");
}

}  // namespace shardplan::io
