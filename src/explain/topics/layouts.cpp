// Cards of whole layouts: three dimensions at once, and the order of ranks.
#include <algorithm>

#include "shardplan/physics/states.hpp"
#include "topics.hpp"

namespace shardplan::explain {
namespace {

/// States of the uncut model, bytes.
double model_states_bytes(Card& c) {
  StateRule whole = c.workspace().rule;
  for (double* const shards :
       {&whole.parameter_shards, &whole.gradient_shards, &whole.optimizer_shards, &whole.expert_parameter_shards,
        &whole.expert_gradient_shards, &whole.expert_optimizer_shards}) {
    *shards = 1;
  }
  const Parallel& parallel = c.run().parallel;
  UnitWeights all;
  for (const Stage& stage : c.workspace().stages) {
    all.dense += stage.weights.dense.times(parallel.tensor);
    all.expert += stage.weights.expert.times(parallel.expert * parallel.expert_tensor);
  }
  const StateBytes bytes = state_bytes(whole, all, *c.workspace().optimizer);
  return (bytes.parameters + bytes.gradients + bytes.optimizer) / copies_of_stages(c.run());
}

/// "every 32nd rank".
std::string every(double distance) {
  const auto n = static_cast<long long>(distance);
  const bool teens = n % 100 >= 11 && n % 100 <= 13;
  const char* const tail = teens ? "th" : n % 10 == 1 ? "st" : n % 10 == 2 ? "nd" : n % 10 == 3 ? "rd" : "th";
  return fmt::format("every {}{} rank", n, tail);
}

}  // namespace

void three_d(Card& c) {
  const Parallel& parallel = c.run().parallel;
  const Sym D = c.count("D", "data parallel", parallel.data), t = c.count("t", "tensor parallel", parallel.tensor);
  const Sym p = c.count("p", "pipeline stages", parallel.pipeline),
            n = c.count("c", "context parallel", parallel.context);
  const Sym gpus = D * t * p * n;
  const Estimate& e = c.estimate();
  c.title("3D parallelism: every GPU is one (data, tensor, pipeline) rank");
  c.result(gpus, "", number(gpus.value()) + " GPUs", "D x t x p x c");
  const MemoryParts& held = e.stages[0].peak();
  const double cut = parallel.expert * parallel.expert_tensor;
  c.remark("states",
           fmt::format("{} of the model; weights over t p = {}{}; {} on a rank of stage 0, {}",
                       gib(model_states_bytes(c)), number(t.value() * p.value()),
                       cut > 1 ? fmt::format(", experts over p e x = {}", number(p.value() * cut)) : "",
                       gib(static_cast<double>(held.parameters + held.gradients + held.optimizer)),
                       parallel.fsdp != Fsdp::none ? fmt::format("cut over D ({})", name(parallel.fsdp))
                       : parallel.zero_stage > 0 ? fmt::format("optimizer states over D (ZeRO-{})", parallel.zero_stage)
                                                 : std::string("nothing cut over D")));
  std::string sends;
  const auto add = [&sends](std::string_view what, std::int64_t bytes) {
    if (bytes <= 0) return;
    sends += fmt::format("{}{} {}", sends.empty() ? "" : ", ", what, gib(static_cast<double>(bytes), 1));
  };
  add("tensor", e.sent.tensor);
  add("expert", e.sent.expert);
  add("context", e.sent.context);
  add("data", e.sent.data);
  add("pipeline", e.sent.pipeline);
  c.remark("sends", sends.empty() ? std::string("nothing: it is one GPU")
                                  : fmt::format("a step, one GPU of stage {}: {}", e.communication_stage, sends));
  c.remark("choose", "t up to a node, p until it fits, the rest D; then trade t against p (search)");
  c.beware(
      "expert parallelism multiplies nothing: experts lie on ranks of the same grid. More D at one global batch means "
      "fewer microbatches, so a larger bubble");
  c.source("Narayanan et al. 2021 (2104.04473) section 3");
  c.next("shardplan estimate RUN.json --detail");
}

void rank_order(Card& c) {
  const Parallel& parallel = c.run().parallel;
  const Sym t = c.count("t", "tensor parallel", parallel.tensor),
            n = c.count("c", "context parallel", parallel.context);
  const Sym D = c.count("D", "data parallel", parallel.data), p = c.count("p", "pipeline stages", parallel.pipeline);
  const auto place = [&c](std::string_view name, std::string_view meaning, double wanted, Sym size) {
    return c.index(name, meaning, std::min(wanted, size.value() - 1), size.value());
  };
  const Sym it = place("i_t", "place in the tensor group", 3, t), id = place("i_d", "in the data group", 2, D),
            ip = place("i_p", "stage", 1, p);
  const Sym rank = it + t * n * (id + D * ip);
  c.title("order tp-cp-ep-dp-pp: tensor ranks are neighbours, stages lie furthest apart");
  c.result(rank, "", "rank " + number(rank.value()), "i_t + t c (i_d + D i_p)");
  c.note(fmt::format("of {}, from 0 on", number(t.value() * n.value() * D.value() * p.value())));
  const auto group = [](std::string_view what, Sym size, double distance) {
    if (size.value() == 1) return fmt::format("{}: no group", what);
    if (distance == 1) return fmt::format("{}: neighbours, ranks 0-{}", what, number(size.value() - 1));
    return fmt::format("{}: {}", what, every(distance));
  };
  c.remark("groups", fmt::format("{}; {}; {}", group("tensor", t, 1), group("data", D, t.value() * n.value()),
                                 group("pipeline", p, t.value() * n.value() * D.value())));
  example_where(c, parallel.order != Parallel{}.order,
                "has another order (parallel.order): the numbers are those of the usual one");
  c.remark("why",
           "tensor groups send in every layer, data groups once a step, pipeline groups one hidden state a microbatch");
  c.beware(
      "another order puts tensor groups across nodes: 450 GB/s become 50. NVLink's 600 or 900 GB/s count both "
      "directions, InfiniBand's 400 are bits: 50 GB/s");
  c.source("Megatron-LM core/parallel_state.py");
  c.next("shardplan estimate RUN.json --set parallel/order=dp-tp-cp-ep-pp");
}

}  // namespace shardplan::explain
