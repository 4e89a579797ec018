// nanotron by hand: what its gradient sums, its buckets and its ZeRO-1 cost.
#include <string>

#include "../support/estimated.hpp"
#include "support/catch.hpp"

using namespace shardplan;

namespace {

/// Hidden 1024, 4 layers, 16 heads, MLP 4096 gated, vocabulary 1000, embeddings not tied: a layer has
/// 4 x 1024^2 + 3 x 1024 x 4096 + 2 x 1024 = 16,779,264 parameters, the ends 2 x 1000 x 1024 + 1024 = 2,049,024.
constexpr double parameters = 4 * 16779264.0 + 2049024.0;

Estimate nanotron(const std::string& parallel, const std::string& more = "") {
  return test::estimate_of(R"({"model": {"model_type": "llama", "hidden_size": 1024, "num_hidden_layers": 4,
      "num_attention_heads": 16, "intermediate_size": 4096, "vocab_size": 1000, "tie_word_embeddings": false},
    "cluster": "dgx-h100", "num_gpus": 8, "parallel": )" +
                           parallel + R"(, "training": {"framework": "nanotron", "seq_length": 1024)" + more + "}}");
}

const MemoryParts& at(const Estimate& e, Moment moment) {
  return e.stages.at(0).moments.at(static_cast<std::size_t>(moment));
}

double sent(const Estimate& e, std::string_view name) {
  for (const auto& call : e.communication) {
    if (call.name == name) return static_cast<double>(call.message_bytes);
  }
  return 0;
}

}  // namespace

TEST_CASE("nanotron: 2 + 4 + 12 bytes, a second 16-bit gradient once a backward pass has ended, DDP's buckets") {
  const Estimate e = nanotron(R"({"zero_stage": 0})");
  const MemoryParts& step = at(e, Moment::optimizer_step);
  CHECK(static_cast<double>(e.stages.at(0).parameters) == parameters);
  CHECK(static_cast<double>(step.parameters) == Approx(2 * parameters));
  CHECK(static_cast<double>(step.gradients) == Approx(4 * parameters));
  CHECK(static_cast<double>(step.optimizer) == Approx(12 * parameters));
  CHECK(static_cast<double>(step.communication_buffers) == Approx(2 * parameters));
  const double apart = static_cast<double>(at(e, Moment::backward_end).transient - at(e, Moment::backward).transient);
  CHECK(apart == Approx(2 * parameters));
  // Gradients cross the ranks in fp32.
  CHECK(sent(e, "grad_all_reduce") == Approx(4 * parameters));
}

TEST_CASE("nanotron's ZeRO-1 shards 12 bytes, all-reduces fp32 gradients whole, and nothing hides it") {
  const Estimate e = nanotron(R"({"zero_stage": 1})");
  const MemoryParts& step = at(e, Moment::optimizer_step);
  CHECK(static_cast<double>(step.parameters) == Approx(2 * parameters));
  CHECK(static_cast<double>(step.gradients) == Approx(4 * parameters));
  CHECK(static_cast<double>(step.optimizer) == Approx(12 * parameters / 8));
  CHECK(step.communication_buffers == 0);
  CHECK(sent(e, "grad_all_reduce") == Approx(4 * parameters));
  CHECK(sent(e, "grad_reduce_scatter") == 0);
  CHECK(sent(e, "param_all_gather") == Approx(2 * parameters));
  CHECK(e.time.data_hidden_s == 0);
  CHECK(nanotron(R"({"zero_stage": 0})").time.data_hidden_s > 0);
}

TEST_CASE("nanotron's loss holds 2 + 4 + 4 bytes a logit") {
  const std::string plain = R"({"zero_stage": 0, "data": 8})";
  const Estimate own = nanotron(plain);
  // With Transformer Engine's loss the head's backward is the most: gradients of 1024 x 1000 logits, of the head's
  // 1024 x 1024 input and of its 1000 x 1024 weights, 2 bytes each.
  const Estimate te = nanotron(plain, R"(, "loss": "te")");
  const double ten = static_cast<double>(at(own, Moment::loss).transient);
  const double two = static_cast<double>(at(te, Moment::loss).transient);
  // Labels and mask take 9 bytes a token beside the logits.
  CHECK(ten - two == Approx(10 * 1024e3 + 9 * 1024 - 2 * (1024e3 + 1024 * 1024 + 1024e3)));
}

TEST_CASE("a run of nanotron that names no schedule runs afab, and 1f1b keeps fewer microbatches") {
  const Estimate afab = nanotron(R"({"pipeline": 2, "data": 4})", R"(, "global_batch_size": 64)");
  CHECK(afab.pipeline.schedule == ScheduleKind::gpipe);
  CHECK(afab.stages.at(0).in_flight_microbatches == 16);
  const Estimate plain = nanotron(R"({"pipeline": 2, "data": 4, "schedule": "1f1b"})", R"(, "global_batch_size": 64)");
  CHECK(plain.stages.at(0).in_flight_microbatches == 2);
}

TEST_CASE("nanotron's ZeRO-1 is said to need an earlier release") {
  for (const int stage : {0, 1}) {
    const io::ReadRun read = test::read_run(
        R"({"model": "llama-3.2-1b", "cluster": "dgx-h100", "num_gpus": 8, "training": {"framework": "nanotron"}})",
        {{"/parallel/zero_stage", std::to_string(stage)}});
    REQUIRE(read.ok());
    Estimate e;
    estimate(read.run, e);
    std::string codes;
    for (const Warning& warning : warnings_of(read.run, e)) codes += warning.code + " ";
    CHECK((codes.find("framework_release") != std::string::npos) == (stage == 1));
  }
}
