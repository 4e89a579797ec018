// Models, stacks, schedules, optimizers and number formats as tables.
#include "shardplan/report/list_text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "shardplan/core/number_format.hpp"
#include "shardplan/physics/optimizer_states.hpp"
#include "shardplan/physics/parameters.hpp"
#include "shardplan/report/number.hpp"
#include "shardplan/schedule/facts.hpp"

namespace shardplan::report {
namespace {

std::string heads_text(const AttentionShape& attention) {
  if (attention.kind == AttentionKind::latent) return fmt::format("{} latent", attention.heads);
  return fmt::format("{}/{}", attention.heads, attention.kv_heads);
}

std::string overlap_text(const Overlap& overlap) {
  std::string text;
  const auto add = [&](bool on, std::string_view what) {
    if (!on) return;
    if (!text.empty()) text += ' ';
    text += what;
  };
  add(overlap.grad_reduce, "grad");
  add(overlap.param_gather, "param");
  add(overlap.tp, "tp");
  add(overlap.p2p, "p2p");
  return text.empty() ? "-" : text;
}

std::string state_text(const Optimizer& optimizer) {
  constexpr double fp32 = 4;
  const std::string matrices = fmt::format("{:.7g}", fp32 * optimizer.matrix_tensors);
  switch (optimizer.form) {
    case StateForm::factored: return optimizer.matrix_tensors > 0 ? matrices + " + sides" : "rows + columns";
    case StateForm::row_blocks: return matrices + " + rows";
    case StateForm::momentum: return matrices + " or 8";
    case StateForm::low_rank_factor: return matrices + " + factor";
    case StateForm::preconditioned: return matrices + " + squares";
    case StateForm::projected: return optimizer.rank == ProjectionRank::one ? "rank 1" : "rank h/4";
    case StateForm::block_coordinate: return "one layer's";
    case StateForm::elementwise:
    case StateForm::block_quantized: break;
  }
  return fmt::format("{:.7g}", elementwise_bytes(optimizer, fp32) + optimizer.replica_share_bytes);
}

}  // namespace

std::string cut_to_page(std::string_view text, int width, int taken) {
  const auto limit = static_cast<std::size_t>(std::max(width - taken, 12));
  if (width == 0 || display_width(text) <= limit) return std::string(text);
  // The longest whole clause, if one fits.
  std::size_t clause = 0;
  for (std::size_t i = 1; i < text.size() && display_width(text.substr(0, i)) <= limit; ++i) {
    const bool before = text[i] == ',' || text[i] == ';' || text.substr(i, 2) == " (";
    if (before || text[i - 1] == ')') clause = i;
  }
  if (clause > 0) return std::string(text.substr(0, clause));
  return Text(text).slice(0, limit - 3).plain() + "...";
}

Table models_table(std::span<const ListedModel> models, int width) {
  constexpr int taken = 68;
  Table table({{"name"},
               {"parameters", Align::right},
               {"active", Align::right, "", 2, "active_parameters"},
               {"layers", Align::right},
               {"hidden", Align::right, "", 0, "hidden_size"},
               {"heads/kv", Align::right, "", 3, "heads_kv"},
               {"vocab", Align::right, "", 4, "vocab_size"},
               {"family", Align::left, "", 5, "model_type"},
               {"source", Align::left, "", 1}});
  for (const ListedModel& listed : models) {
    const Model& model = listed.model;
    const ModelCounts counts = count_parameters(model);
    table.add({model.name, count_text(counts.parameters),
               counts.active_parameters == counts.parameters ? "-" : count_text(counts.active_parameters),
               std::to_string(model.layers()), std::to_string(model.hidden_size), heads_text(model.layer(0).attention),
               std::to_string(model.vocab_size), model.family, cut_to_page(listed.source, width, taken)});
  }
  return table;
}

Table stacks_table(std::span<const Stack> stacks, int width) {
  constexpr int taken = 44;
  Table table({{"name"},
               {"framework", Align::left, "", 2},
               {"loss"},
               {"optimizer", Align::left, "", 4, "optimizer_impl"},
               {"compile", Align::left, "", 5},
               {"overlap", Align::left, "", 3},
               {"stands for", Align::left, "", 0, "description"},
               {"source", Align::left, "", 6}});
  for (const Stack& stack : stacks) {
    table.add({stack.name, name(stack.framework), name(stack.loss), name(stack.optimizer_impl),
               stack.compile ? "yes" : "no", overlap_text(stack.overlap), cut_to_page(stack.description, width, taken),
               stack.source});
  }
  return table;
}

Table schedules_table(int width) {
  constexpr int taken = 53;
  Table table({{"name"},
               {"what it does", Align::left, "", 0, "description"},
               {"needs", Align::left, "", 0},
               {"bubble", Align::left, "", 0},
               {"source", Align::left, "", 1}});
  for (std::size_t i = 0; i < schedule_count; ++i) {
    const auto kind = static_cast<ScheduleKind>(i);
    const schedule::ScheduleFacts& facts = schedule::facts_of(kind);
    table.add({name(kind), cut_to_page(facts.summary, width, taken), facts.needs.empty() ? "-" : facts.needs,
               schedule::bubble_text(kind), facts.source});
  }
  table.add_note("p stages, m microbatches, v chunks a rank; bubble of the step: equal stages, F = B = W, m >= 2p");
  return table;
}

Table optimizers_table(int width) {
  constexpr int taken = 55;
  Table table({{"name"},
               {"B/parameter", Align::right, "", 0, "state_bytes_per_parameter"},
               {"paged", Align::left, "", 3},
               {"timed", Align::left, "", 0},
               {"what it keeps", Align::left, "", 0, "description"},
               {"source", Align::left, "", 1}});
  for (const Optimizer& optimizer : optimizers()) {
    table.add({optimizer.name, state_text(optimizer), optimizer.paged ? "yes" : "no", optimizer.timed ? "yes" : "no",
               cut_to_page(optimizer.description, width, taken), optimizer.source});
  }
  table.add_note("with fp32 states; weights, gradients and a master copy come on top");
  table.add_note("sides: 4 bytes a row and column; squares: of a matrix' sides; not timed: memory only");
  return table;
}

Table dtypes_table(int width) {
  constexpr int taken = 72;
  Table table({{"name"},
               {"bits", Align::right},
               {"sign-exp-frac", Align::right, "", 0, "sign_exponent_fraction"},
               {"max", Align::right},
               {"min normal", Align::right, "", 0, "min_normal"},
               {"min", Align::right, "", 3, "min_subnormal"},
               {"step at 1", Align::right, "", 0, "epsilon"},
               {"used for", Align::left, "", 1, "use"},
               {"source", Align::left, "", 2}});
  for (const NumberFormat& format : number_formats) {
    table.add({format.name, std::to_string(format.bits()),
               fmt::format("1-{}-{}", format.exponent_bits, format.fraction_bits), fmt::format("{:.5g}", format.max()),
               fmt::format("{:.4g}", format.min_normal()), fmt::format("{:.4g}", format.min_subnormal()),
               fmt::format("{:.5g}", format.epsilon()), cut_to_page(format.use, width, taken), format.source});
  }
  return table;
}

}  // namespace shardplan::report
