#include "states.hpp"

#include "shardplan/physics/parameters.hpp"

namespace shardplan::explain {

StateWidths<Sym> width_symbols(Card& c, const StateRule& rule) {
  StateWidths<Sym> widths = widths_of<Sym>(rule);
  widths.parameter = c.symbol("w", "weight", rule.parameter_bytes, "B");
  widths.gradient = c.symbol("g", "gradient", rule.gradient_bytes, "B");
  widths.master = c.symbol("k", "master copy", rule.master_bytes, "B");
  widths.moment = c.symbol("o", "moments", rule.moment_bytes, "B");
  return widths;
}

StateElements<Sym> element_symbols(Card& c, const Weights& weights, std::string_view tail) {
  const auto symbol = [&](std::string_view name, std::string_view meaning, double value, std::string_view unit = {}) {
    return value == 0 ? Sym(0.0) : c.symbol(fmt::format("{}{}", name, tail), meaning, value, unit);
  };
  StateElements<Sym> e;
  e.trained = symbol("P", tail.empty() ? "parameters that train" : "parameters of experts that train", weights.trained);
  e.narrow = symbol("P_narrow", "of them, stored narrow", weights.narrow);
  e.frozen = symbol("P_frozen", "frozen parameters", weights.frozen);
  e.quantized = symbol("P_quantized", "quantised parameters", weights.quantized);
  e.quantized_rows = symbol("rows", "rows of quantised matrices", weights.quantized_rows);
  e.adapters = symbol("A", "adapter parameters", weights.adapters);
  e.counted = symbol("counted", "parameters whose states are counted tensor by tensor", weights.counted);
  e.counted_bytes = symbol("counted_bytes", "their states", weights.counted_bytes, "B");
  e.treated = symbol("treated", "parameters of the optimizer's matrices", weights.treated);
  e.adapter_counted = symbol("A_counted", "adapter parameters counted tensor by tensor", weights.adapter_counted);
  e.adapter_counted_bytes = symbol("A_bytes", "their states", weights.adapter_counted_bytes, "B");
  e.largest_bytes = symbol("largest", "states of the largest matrix", weights.largest_bytes, "B");
  return e;
}

StateElements<Sym> whole_model(Card& c) {
  const Parallel& parallel = c.run().parallel;
  Weights all;
  for (const Stage& stage : c.workspace().stages) {
    all += stage.weights.dense.times(parallel.tensor);
    all += stage.weights.expert.times(parallel.expert * parallel.expert_tensor);
  }
  // Norms lie on every tensor rank, so that the ranks' sum is a little more than the model.
  const double parameters = static_cast<double>(c.estimate().model.parameters);
  const double base = static_cast<double>(count_parameters(c.run().model).parameters);
  if (!c.run().training.peft.active()) {
    all.trained = parameters;
    // Multi-token prediction blocks train beside the model, which is counted without them.
    if (c.run().model.mtp_layers > 0) {
      const Weights& dense = c.workspace().ends.mtp.weights.dense;
      const Weights& expert = c.workspace().ends.mtp.weights.expert;
      all.trained += dense.trained * parallel.tensor + expert.trained * parallel.expert * parallel.expert_tensor;
    }
    all.narrow = std::min(all.narrow, all.trained);
  } else {
    all.adapters = static_cast<double>(c.estimate().model.by_part.adapters);
    all.frozen = base - all.quantized;
  }
  return element_symbols(c, all);
}

StateSums<Sym> states_of(const StateRule& rule, const StateWidths<Sym>& widths, const Optimizer& optimizer,
                         const StateElements<Sym>& elements, const StateShards<Sym>& shards) {
  StateRule exact = rule;
  exact.rounds_bytes = true;
  exact.padded_buffers = false;
  StateSums<Sym> sums;
  add_states(exact, widths, optimizer, elements, shards, sums);
  return sums;
}

const Optimizer& adam() { return *find_optimizer("adamw"); }

}  // namespace shardplan::explain
