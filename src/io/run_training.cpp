// `training` of a run file.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "run_fields.hpp"
#include "section_reader.hpp"
#include "shardplan/io/suggest.hpp"
#include "shardplan/physics/optimizers.hpp"

namespace shardplan::io {
namespace {

using plan::Field;

constexpr int most_layers = 1 << 20;
constexpr int most_rank = 1 << 16;

/// The number behind "full:" or the like; nothing when the text is not that.
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

std::optional<Recompute> parse_recompute(std::string_view text) {
  if (text == "none") return Recompute{};
  if (text == "selective") return Recompute{RecomputeMode::selective, 0, 0};
  if (text == "full") return Recompute{RecomputeMode::full, 0, 0};
  if (text == "ops") return Recompute{RecomputeMode::ops, 0, 0};
  if (const auto n = count_after(text, "full:")) return Recompute{RecomputeMode::first_n, *n, 0};
  if (const auto k = count_after(text, "every:")) return Recompute{RecomputeMode::every_k, *k, 0};
  return std::nullopt;
}

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
    if (value->is_string()) recompute = parse_recompute(value->get_ref<const std::string&>());
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
  if (const auto chunks = count_after(text, chunked)) {
    loss = LossKind::chunked;
    training.loss_chunks = *chunks;
  }
  if (!loss && text.substr(0, chunked.size()) == chunked) {
    section.problem(Field::loss,
                    fmt::format("{}: N of chunked:N is a whole number from 1 to {}", quoted(*value), most_layers));
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
  if (value == nullptr) {
    section.choice(Field::optimizer_impl, section.draft().run.training.optimizer_impl);
    return;
  }
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
  section.choice(Field::optimizer_impl, training.optimizer_impl);
  // adamw_torch_fused and the like say it, unless the run does.
  if (found.impl && !section.draft().given.has(Field::optimizer_impl)) {
    section.store(Field::optimizer_impl, found.impl, training.optimizer_impl);
  }
}

/// 0 and above, below 1.
void read_rate(SectionReader& section, Field field, double& target) {
  std::optional<double> value = section.object().number(SectionReader::member_of(field), {std::nullopt, 0.0, 1.0});
  if (value && *value == 1) {
    section.problem(field, "1 drops everything; a number from 0 to below 1");
    value.reset();
  }
  section.store(field, value, target);
}

void read_kernels(const nlohmann::json& kernels, std::string_view file, plan::Draft& draft, Diagnostics& problems) {
  SectionReader section(kernels, file, "/training/kernels", draft, problems);
  Kernels& to = draft.run.training.kernels;
  section.choice(Field::kernel_norm, to.norm);
  section.choice(Field::kernel_mlp, to.mlp);
  section.choice(Field::kernel_qkv, to.qkv);
  section.choice(Field::kernel_softmax, to.softmax);
  section.choice(Field::kernel_sp_input, to.sp_input);
  section.choice(Field::kernel_wgrad, to.wgrad);
  section.boolean(Field::attention_output_copy, to.attention_output_copy);
  section.boolean(Field::kv_expanded, to.kv_expanded);
  section.boolean(Field::reentrant_checkpoint, to.reentrant_checkpoint);
  section.boolean(Field::te_dummy_wgrad, to.te_dummy_wgrad);
  section.choice(Field::moe_dispatch, to.moe_dispatch);
  section.choice(Field::moe_probs, to.moe_probs);
  section.choice(Field::moe_combine, to.moe_combine);
}

void read_moe(const nlohmann::json& moe, std::string_view file, plan::Draft& draft, Diagnostics& problems) {
  SectionReader section(moe, file, "/training/moe", draft, problems);
  constexpr double largest = 1e6;
  double factor = 0;
  section.number(Field::capacity_factor, factor, {0.0, std::nullopt, largest});
  if (draft.given.has(Field::capacity_factor)) draft.run.training.capacity_factor = factor;
  section.number(Field::moe_imbalance, draft.run.training.moe_imbalance, {std::nullopt, 1.0, largest});
}

void read_peft(const nlohmann::json& peft, std::string_view file, plan::Draft& draft, Diagnostics& problems) {
  SectionReader section(peft, file, "/training/peft", draft, problems);
  if (!section.object().is_object()) return draft.unusable.add(Field::peft);
  draft.given.add(Field::peft);
  Peft& to = draft.run.training.peft;
  std::optional<std::size_t> method = section.object().word("method", {"lora", "qlora", "dora", "rslora"});
  if (method) ++*method;  // the enum's first is none
  section.store(Field::peft_method, method, to.method);
  section.integer(Field::peft_rank, to.rank, 1, most_rank);
  section.number(Field::peft_alpha, to.alpha, {0.0, std::nullopt, 1e9});
  read_rate(section, Field::peft_dropout, to.dropout);
  section.choice(Field::peft_quant, to.quant);
  section.boolean(Field::double_quant, to.double_quant);
  section.store(Field::adapter_dtype, section.object().word("adapter_dtype", {"fp32", "bf16"}), to.adapter_dtype);
  section.boolean(Field::kbit_preparation, to.kbit_preparation);
  section.boolean(Field::peft_fused, to.fused);
}

void read_offload(const nlohmann::json& offload, std::string_view file, plan::Draft& draft, Diagnostics& problems) {
  SectionReader section(offload, file, "/training/offload", draft, problems);
  if (!section.object().is_object()) return draft.unusable.add(Field::offload);
  draft.given.add(Field::offload);
  Offload& to = draft.run.training.offload;
  section.choice(Field::offload_optimizer, to.optimizer);
  section.choice(Field::offload_parameters, to.parameters);
  section.store(Field::offload_activations, section.object().word("activations", {"none", "cpu"}), to.activations);
  section.integer(Field::activation_layers, to.activation_layers, 0, most_layers);
  section.number(Field::optimizer_fraction, to.optimizer_fraction, {0.0, std::nullopt, 1.0});
}

void read_overlap(const nlohmann::json& overlap, std::string_view file, plan::Draft& draft, Diagnostics& problems) {
  SectionReader section(overlap, file, "/training/overlap", draft, problems);
  Overlap& to = draft.run.training.overlap;
  section.boolean(Field::overlap_grad_reduce, to.grad_reduce);
  section.boolean(Field::overlap_param_gather, to.param_gather);
  section.boolean(Field::overlap_tp, to.tp);
  section.boolean(Field::overlap_p2p, to.p2p);
}

void read_fp8(const nlohmann::json& fp8, std::string_view file, plan::Draft& draft, Diagnostics& problems) {
  SectionReader section(fp8, file, "/training/fp8", draft, problems);
  section.choice(Field::fp8_recipe, draft.run.training.fp8_recipe);
  section.boolean(Field::fp8_param_gather, draft.run.training.fp8_param_gather);
}

}  // namespace

void read_training(const nlohmann::json& training, std::string_view file, plan::Draft& draft, Diagnostics& problems) {
  SectionReader section(training, file, "/training", draft, problems);
  Training& to = draft.run.training;
  section.integer(Field::seq_length, to.seq_length, 1, longest_sequence);
  section.integer(Field::micro_batch_size, to.micro_batch_size, 1, largest_micro_batch);
  section.integer(Field::global_batch_size, to.global_batch_size, 1, largest_global_batch);
  section.choice(Field::precision, to.precision);
  section.boolean(Field::compile, to.compile);
  section.choice(Field::framework, to.framework);
  section.store(Field::initialisation, section.object().word("initialisation", {"sharded", "full"}),
                to.full_initialisation);
  read_optimizer(section);
  read_recompute(section);
  section.choice(Field::attention, to.attention);
  read_loss(section);
  section.boolean(Field::keep_logits, to.keep_logits);
  read_rate(section, Field::dropout, to.dropout);
  read_rate(section, Field::attention_dropout, to.attention_dropout);
  section.boolean(Field::autocast, to.autocast);
  section.choice(Field::param_dtype, to.param_dtype);
  section.choice(Field::grad_dtype, to.grad_dtype);
  section.boolean(Field::master_weights, to.master_weights);
  section.choice(Field::optimizer_state_dtype, to.optimizer_state_dtype);
  section.integer(Field::vocab_multiple, to.vocab_multiple, 1, largest_degree);
  using Read = void (*)(const nlohmann::json&, std::string_view, plan::Draft&, Diagnostics&);
  const auto inner = [&](std::string_view name, Read read) {
    if (const nlohmann::json* member = section.object().member(name)) read(*member, file, draft, problems);
  };
  inner("fp8", read_fp8);
  inner("kernels", read_kernels);
  inner("moe", read_moe);
  inner("peft", read_peft);
  inner("offload", read_offload);
  inner("overlap", read_overlap);
}

}  // namespace shardplan::io
