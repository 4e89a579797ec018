// What collectives send, against the closed forms of the literature.
//   Tensor: Shoeybi et al. 2019 (arXiv:1909.08053) section 3; with sequence parallelism Korthikanti et al. 2022
//     (arXiv:2205.05198) section 4.2.2. Pipeline: Narayanan et al. 2021 (arXiv:2104.04473) section 3.2.
//   Data: Rajbhandari et al. 2020 (arXiv:1910.02054) section 7; ZeRO++ (arXiv:2306.10209).
//   Context: Liu et al. 2023 (ring, arXiv:2310.01889); Jacobs et al. 2023 (all-to-all, arXiv:2309.14509).
//   Experts: Lepikhin et al. 2020 (arXiv:2006.16668): dispatch and combine, forward and backward.
// Per-layer volumes are differences of two runs that differ by one layer, so that the model's ends do not count.
#include <cmath>
#include <map>
#include <string>

#include "property/random_run.hpp"
#include "property/sample.hpp"
#include "support/catch.hpp"
#include "support/estimated.hpp"

using namespace shardplan;
using nlohmann::json;

namespace {

double sent(const Estimate& estimate, GroupKind group) {
  double bytes = 0;
  for (const CommunicationCall& call : estimate.communication) {
    if (call.group == group) bytes += static_cast<double>(call.sent_bytes_per_step);
  }
  return bytes;
}

/// A run's quantities by the letters of the formulas.
struct Letters {
  double m, T, h, w, t, c, e, N;
  bool sp;

  explicit Letters(const Run& run)
      : m(static_cast<double>(run.microbatches())),
        T(static_cast<double>(run.training.seq_length * run.training.micro_batch_size) / run.parallel.context),
        h(static_cast<double>(run.model.hidden_size)),
        w(bytes_of(activation_dtype(run.training.precision))),
        t(run.parallel.tensor),
        c(run.parallel.context),
        e(run.parallel.expert),
        N(run.parallel.dense_replicas()),
        sp(run.parallel.sequence_parallel) {}
};

/// Bytes of a layer and microbatch in each group, on one GPU.
struct LayerVolumes {
  double tensor = 0, context = 0, expert = 0;
};

LayerVolumes closed_forms(const Run& run, const LayerKind& kind) {
  const Letters x(run);
  const bool full = run.training.recompute.mode == RecomputeMode::full;
  LayerVolumes volumes;

  // Each block (attention, MLP): all-reduce forward and backward, 2 (t-1)/t D each; or, with sequence parallelism,
  // all-gather and reduce-scatter both ways, (t-1)/t D each, and the input gathered once more for its weight gradient.
  const MlpShape& mlp = kind.mlp;
  const bool experts = mlp.kind == MlpKind::moe;
  const bool routed_only = experts && mlp.shared_intermediate == 0;
  const double blocks = routed_only && x.sp ? 1 : 2;
  const double unit = (x.t - 1) / x.t * x.w * x.T * x.h;
  const bool regather = x.sp && run.training.kernels.sp_input == SequenceParallelInput::regather;
  volumes.tensor = blocks * unit * (4 + (regather ? 1 : 0) + (full ? 2 : 0));

  const AttentionShape& attention = kind.attention;
  const double query = static_cast<double>(attention.heads * attention.head_dim) / x.t;
  const double output = static_cast<double>(attention.heads * attention.v_head_dim) / x.t;
  const bool latent = attention.kind == AttentionKind::latent;
  const double kv_heads =
      latent ? static_cast<double>(attention.heads) / x.t
             : std::max(1.0, static_cast<double>(attention.kv_heads) / x.t);  // fewer than t: replicated
  const double keys = kv_heads * static_cast<double>(attention.head_dim);
  const double values = kv_heads * static_cast<double>(attention.v_head_dim);
  if (run.parallel.context_comm == ContextComm::a2a) {
    const double once = (x.c - 1) / x.c * x.T * x.w * (query + keys + values + output);
    volumes.context = once * (2 + (full ? 1 : 0));
  } else {
    const double once = (x.c - 1) * x.T * x.w * (keys + values);
    volumes.context = once * (3 + (full ? 1 : 0));
  }

  if (experts) {
    const double routed =
        x.T / (x.sp ? x.t : 1) * static_cast<double>(mlp.top_k) * run.training.capacity_factor.value_or(1.0);
    volumes.expert = (x.e - 1) / x.e * routed * x.h * x.w * (4 + (full ? 2 : 0));
  }
  return volumes;
}

bool within(double value, double expected, double slack) {
  return std::abs(value - expected) <= slack + 1e-9 * std::abs(expected);
}

/// Legal and of one stage, with a model object of its own whose layers are all of one kind, nothing or all recomputed.
bool comparable(const json& text, const io::ReadRun& read) {
  if (!read.ok() || !text.at("model").is_object() || read.run.parallel.pipeline != 1) return false;
  const Training& training = read.run.training;
  const RecomputeMode mode = training.recompute.mode;
  return read.run.model.kinds.size() == 1 && !training.peft.active() &&
         (mode == RecomputeMode::none || mode == RecomputeMode::full) && training.framework != Framework::dp;
}

}  // namespace

TEST_CASE("a layer's tensor, context and expert traffic equals the closed forms") {
  test::Random random(21);
  std::map<std::string, int> seen;
  for (int i = 0; i < test::sample(12'000); ++i) {
    json text = test::random_run(random);
    const io::ReadRun read = test::read_run(text.dump());
    if (!comparable(text, read)) continue;
    json& layers = text["model"]["num_hidden_layers"];
    layers = layers.get<int>() + 1;
    const io::ReadRun deeper = test::read_run(text.dump());
    if (!deeper.ok()) continue;
    Estimate one, two;
    estimate(read.run, one);
    estimate(deeper.run, two);
    const LayerVolumes expected = closed_forms(read.run, read.run.model.kinds.front());
    const double m = static_cast<double>(read.run.microbatches());
    const auto compare = [&](GroupKind group, double bytes) {
      const double got = sent(two, group) - sent(one, group);
      if (!within(got, m * bytes, 8)) {
        INFO(text.dump());
        CAPTURE(name(group), got, m * bytes, got / (m * bytes));
        FAIL_CHECK("not the closed form");
      }
      if (bytes > 0) ++seen[std::string(name(group)) + (read.run.parallel.sequence_parallel ? " sp" : "")];
    };
    compare(GroupKind::tensor, read.run.parallel.tensor > 1 ? expected.tensor : 0);
    compare(GroupKind::context, read.run.parallel.context > 1 ? expected.context : 0);
    compare(GroupKind::expert, read.run.parallel.expert > 1 ? expected.expert : 0);
    if (read.run.parallel.context > 1) ++seen["by " + std::string(name(read.run.parallel.context_comm))];
  }
  if (test::sample(12'000) >= 12'000) {
    for (const char* const what : {"tensor", "tensor sp", "context", "context sp", "expert", "expert sp", "by ring",
                                   "by all_gather", "by a2a"}) {
      CAPTURE(what, seen[what]);
      CHECK(seen[what] >= 20);
    }
  }
}

TEST_CASE("a pipeline rank sends 2 s b h bytes per microbatch and boundary") {
  test::Random random(22);
  int compared = 0;
  for (int i = 0; i < test::sample(6'000); ++i) {
    const std::string text = test::random_run(random).dump();
    const io::ReadRun read = test::read_run(text);
    const Parallel& parallel = read.run.parallel;
    if (!read.ok() || parallel.pipeline == 1 || parallel.schedule == ScheduleKind::dualpipe) continue;
    ++compared;
    Estimate result;
    estimate(read.run, result);
    const Letters x(read.run);
    const double message = x.w * x.T * x.h / (x.sp ? x.t : 1);
    const int rank = result.communication_stage;
    const bool vee = parallel.schedule == ScheduleKind::zb_v || parallel.schedule == ScheduleKind::dualpipe_v;
    const int ends = (rank == 0 ? 1 : 0) + (rank == parallel.pipeline - 1 ? 1 : 0);
    // In a vee the first rank holds both ends of the model, and the last rank the turn, whose two sends stay inside.
    const double sends = 2.0 * parallel.virtual_pipeline - (vee ? 2 * ends : ends);
    INFO(text);
    CAPTURE(rank);
    CHECK(within(sent(result, GroupKind::pipeline), x.m * sends * message, 1));
  }
  CHECK(compared > test::sample(1'000));
}

TEST_CASE("a schedule moves work between ranks, it does not add traffic to the layers") {
  // With equal stages every rank runs L/p layers for m microbatches, or 2 L/p layers for m/2 of them (DualPipe). The
  // ends of the model are apart: a model of 8 stages whose vocabulary is small.
  const auto tensor_bytes = [](const char* schedule, int chunks) {
    const std::string run = std::string(R"({"model": {"model_type": "transformer", "hidden_size": 4096,
        "num_hidden_layers": 64, "num_attention_heads": 32, "vocab_size": 1024}, "cluster": "dgx-h100",
        "num_gpus": 64, "parallel": {"tensor": 8, "pipeline": 8, "schedule": ")") +
                            schedule + R"(", "virtual_pipeline": )" + std::to_string(chunks) +
                            R"(}, "training": {"framework": "megatron", "seq_length": 4096, "global_batch_size": 64}})";
    return sent(test::estimate_of(run), GroupKind::tensor);
  };
  const double plain = tensor_bytes("1f1b", 1);
  struct Row {
    const char* schedule;
    int chunks;
  };
  for (const Row& row : {Row{"gpipe", 1}, Row{"interleaved", 2}, Row{"bfs", 2}, Row{"zb-h1", 1}, Row{"zb-h2", 1},
                         Row{"zb-v", 2}, Row{"dualpipe", 1}, Row{"dualpipe-v", 2}}) {
    CAPTURE(row.schedule);
    CHECK_THAT(tensor_bytes(row.schedule, row.chunks), test::WithinRel(plain, 0.10));
  }
}

TEST_CASE("data-parallel traffic is that of the sharding, per microbatch where it recurs") {
  test::Random random(23);
  std::map<std::string, int> seen;
  for (int i = 0; i < test::sample(12'000); ++i) {
    const std::string text = test::random_run(random).dump();
    const io::ReadRun read = test::read_run(text);
    const Run& run = read.run;
    const Parallel& parallel = run.parallel;
    const Training& training = run.training;
    if (!read.ok() || parallel.pipeline > 1 || run.model.has_experts() || training.peft.active()) continue;
    if (training.framework == Framework::dp || run.model.mtp_layers > 0 || training.precision == Precision::fp8)
      continue;
    const Letters x(run);
    if (x.N < 2) continue;
    Estimate result;
    estimate(run, result);
    const double held = static_cast<double>(result.stages.front().parameters);
    const double gradients = held * bytes_of(training.grad_dtype);
    const double gathered = held * std::min(x.w, bytes_of(training.param_dtype));
    const double ring = (x.N - 1) / x.N;
    const double reduces = parallel.grad_sync == GradSync::every ? x.m : 1;
    double expected = 0;
    std::string kind;
    if (parallel.fsdp != Fsdp::none) {
      kind = name(parallel.fsdp);
      const double shard = parallel.fsdp == Fsdp::hybrid_shard ? parallel.shard_group : x.N;
      const double replicas = x.N / shard;
      const double inside = (shard - 1) / shard;
      const double gathers = parallel.fsdp == Fsdp::shard_grad_op ? 1 : 2;
      expected = parallel.fsdp == Fsdp::no_shard ? reduces * 2 * ring * gradients
                                                 : inside * (x.m * gathers * gathered + reduces * gradients) +
                                                       reduces * 2 * (replicas - 1) / replicas * gradients / shard;
    } else if (parallel.zero_stage == 0) {
      kind = "zero 0";
      expected = reduces * 2 * ring * gradients;
    } else {
      kind = "zero " + std::to_string(parallel.zero_stage) + (parallel.hpz || parallel.qwz || parallel.qgz ? "++" : "");
      const double reduced = reduces * ring * gradients * (parallel.qgz ? 0.25 : 1);
      const double group = parallel.hpz ? parallel.shard_group : x.N;
      expected = parallel.zero_stage < 3
                     ? reduced + ring * gathered
                     : reduced + x.m * gathered * (ring * (parallel.qwz ? 0.5 : 1) + (group - 1) / group);
    }
    ++seen[kind];
    const double got = static_cast<double>(result.sent.data);
    if (!within(got, expected, 4)) {
      INFO(text);
      CAPTURE(kind, got, expected, got / expected);
      FAIL_CHECK("not the closed form");
    }
  }
  if (test::sample(12'000) >= 12'000) {
    for (const char* const what : {"zero 0", "zero 1", "zero 2", "zero 3", "zero 3++", "full_shard", "shard_grad_op",
                                   "no_shard", "hybrid_shard"}) {
      CAPTURE(what, seen[what]);
      CHECK(seen[what] >= 10);
    }
  }
}
