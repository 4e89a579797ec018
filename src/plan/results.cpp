#include "shardplan/plan/results.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace shardplan::plan {
namespace {

using enum Quantity;

const MemoryParts& peak_parts(const Estimate& e) noexcept {
  return e.stages[static_cast<std::size_t>(e.peak_stage)].peak();
}

double real(std::int64_t value) noexcept { return static_cast<double>(value); }

constexpr std::array fields = {
    ResultField{"gpus", "num-gpus", "/run/num_gpus", "GPUs", count, 0,
                [](const Run& r, const Estimate&) { return real(r.num_gpus); }},
    ResultField{"dp", "data", "/run/parallel/data", "dp", count, 0,
                [](const Run& r, const Estimate&) { return real(r.parallel.data); }},
    ResultField{"gbs", "", "/run/training/global_batch_size", "gbs", count, 0,
                [](const Run& r, const Estimate&) { return real(r.training.global_batch_size); }},
    ResultField{"microbatches", "", "/pipeline/num_microbatches", "microbatches", count, 0,
                [](const Run&, const Estimate& e) { return real(e.pipeline.num_microbatches); }},
    ResultField{"peak", "memory", "/memory/peak_bytes", "peak", bytes, -1,
                [](const Run&, const Estimate& e) { return real(e.peak_bytes); }},
    ResultField{"need", "needs", "", "need", bytes, -1,
                [](const Run&, const Estimate& e) { return real(e.capacity_bytes - e.headroom_bytes); }},
    ResultField{"free", "headroom", "/memory/headroom_bytes", "free", bytes, 1,
                [](const Run&, const Estimate& e) { return real(e.headroom_bytes); }},
    ResultField{"param", "parameters", "", "param", bytes, -1,
                [](const Run&, const Estimate& e) { return real(peak_parts(e).parameters); }},
    ResultField{"grad", "gradients", "", "grad", bytes, -1,
                [](const Run&, const Estimate& e) { return real(peak_parts(e).gradients); }},
    ResultField{"optim", "optimizer", "", "optim", bytes, -1,
                [](const Run&, const Estimate& e) { return real(peak_parts(e).optimizer); }},
    ResultField{"activ", "activations", "", "activ", bytes, -1,
                [](const Run&, const Estimate& e) { return real(peak_parts(e).activations); }},
    ResultField{"host", "host-memory", "/memory/host_bytes_per_node", "host", bytes, -1,
                [](const Run&, const Estimate& e) { return real(e.host_bytes_per_node); }},
    ResultField{"step", "step-time time", "/time/step_s", "step", seconds, -1,
                [](const Run&, const Estimate& e) { return e.time.step_s; }},
    ResultField{"compute", "", "/time/compute_s", "compute", seconds, -1,
                [](const Run&, const Estimate& e) { return e.time.compute_s; }},
    ResultField{"exposed", "communication", "/time/communication_exposed_s", "exposed", seconds, -1,
                [](const Run&, const Estimate& e) { return e.time.communication_exposed_s; }},
    ResultField{"sent", "volume traffic", "/communication/sent_bytes_per_step/total", "sent", bytes, -1,
                [](const Run&, const Estimate& e) { return real(e.sent.total()); }},
    ResultField{"bubble", "", "/pipeline/bubble_fraction", "bubble", fraction, -1,
                [](const Run&, const Estimate& e) { return e.pipeline.bubble_fraction; }},
    ResultField{"tokens", "throughput tokens-per-s", "/throughput/tokens_per_s", "tokens/s", rate, 1,
                [](const Run&, const Estimate& e) { return e.throughput.tokens_per_s; }},
    ResultField{"tokens-per-gpu", "tgs", "/throughput/tokens_per_s_per_gpu", "tokens/s/GPU", rate, 1,
                [](const Run&, const Estimate& e) { return e.throughput.tokens_per_s_per_gpu; }},
    ResultField{"tflops", "", "/throughput/model_tflops_per_gpu", "TFLOP/s", rate, 1,
                [](const Run&, const Estimate& e) { return e.throughput.model_flop_per_s_per_gpu / 1e12; }},
    ResultField{"mfu", "", "/throughput/mfu", "MFU", fraction, 1,
                [](const Run&, const Estimate& e) { return e.throughput.mfu; }},
    ResultField{"causal", "mfu-causal", "/throughput/mfu_causal", "causal", fraction, 1,
                [](const Run&, const Estimate& e) { return e.throughput.mfu_causal; }},
    ResultField{"mfu-6n", "6n", "/throughput/mfu_6n", "MFU 6N", fraction, 1,
                [](const Run&, const Estimate& e) { return e.throughput.mfu_6n; }},
    ResultField{"hfu", "", "/throughput/hfu", "HFU", fraction, 1,
                [](const Run&, const Estimate& e) { return e.throughput.hfu; }},
    ResultField{"hours", "gpu-hours", "/throughput/gpu_hours_per_1e12_tokens", "GPU hours per 1e12 tokens", amount, -1,
                [](const Run&, const Estimate& e) { return e.throughput.gpu_hours_per_1e12_tokens; }},
    ResultField{"price", "cost", "/throughput/price_per_1e12_tokens", "price per 1e12 tokens", amount, -1,
                [](const Run&, const Estimate& e) {
                  return e.throughput.has_price ? e.throughput.price_per_1e12_tokens
                                                : std::numeric_limits<double>::quiet_NaN();
                }},
    // The rest of what an estimate says of the whole run.
    ResultField{"model-parameters", "", "/model/parameters", "parameters", count, 0,
                [](const Run&, const Estimate& e) { return real(e.model.parameters); }},
    ResultField{"active-parameters", "", "/model/active_parameters", "active", count, 0,
                [](const Run&, const Estimate& e) { return real(e.model.active_parameters); }},
    ResultField{"trainable-parameters", "trainable", "/model/trainable_parameters", "trainable", count, 0,
                [](const Run&, const Estimate& e) { return real(e.model.trainable_parameters); }},
    ResultField{"padded-vocab", "", "/model/padded_vocab_size", "padded vocab", count, 0,
                [](const Run&, const Estimate& e) { return real(e.model.padded_vocab_size); }},
    ResultField{"embedding-parameters", "", "/model/parameters_by_part/embedding", "embedding", count, 0,
                [](const Run&, const Estimate& e) { return real(e.model.by_part.embedding); }},
    ResultField{"attention-parameters", "", "/model/parameters_by_part/attention", "attention", count, 0,
                [](const Run&, const Estimate& e) { return real(e.model.by_part.attention); }},
    ResultField{"mlp-parameters", "", "/model/parameters_by_part/mlp", "mlp", count, 0,
                [](const Run&, const Estimate& e) { return real(e.model.by_part.mlp); }},
    ResultField{"experts-parameters", "", "/model/parameters_by_part/experts", "experts", count, 0,
                [](const Run&, const Estimate& e) { return real(e.model.by_part.experts); }},
    ResultField{"router-parameters", "", "/model/parameters_by_part/router", "router", count, 0,
                [](const Run&, const Estimate& e) { return real(e.model.by_part.router); }},
    ResultField{"norm-parameters", "", "/model/parameters_by_part/norm", "norm", count, 0,
                [](const Run&, const Estimate& e) { return real(e.model.by_part.norm); }},
    ResultField{"head-parameters", "", "/model/parameters_by_part/head", "head", count, 0,
                [](const Run&, const Estimate& e) { return real(e.model.by_part.head); }},
    ResultField{"adapters-parameters", "", "/model/parameters_by_part/adapters", "adapters", count, 0,
                [](const Run&, const Estimate& e) { return real(e.model.by_part.adapters); }},
    ResultField{"capacity", "", "/memory/capacity_bytes", "capacity", bytes, 0,
                [](const Run&, const Estimate& e) { return real(e.capacity_bytes); }},
    ResultField{"peak-stage", "", "/memory/peak_stage", "peak stage", count, 0,
                [](const Run&, const Estimate& e) { return real(e.peak_stage); }},
    ResultField{"reserved", "torch-reserved max-memory-reserved", "/memory/reserved_bytes", "reserved", bytes, -1,
                [](const Run&, const Estimate& e) { return real(e.reserved_bytes); }},
    ResultField{"nvme", "", "/memory/nvme_bytes_per_node", "nvme", bytes, -1,
                [](const Run&, const Estimate& e) { return real(e.nvme_bytes_per_node); }},
    ResultField{"sent-tensor", "", "/communication/sent_bytes_per_step/tensor", "sent tensor", bytes, -1,
                [](const Run&, const Estimate& e) { return real(e.sent.tensor); }},
    ResultField{"sent-pipeline", "", "/communication/sent_bytes_per_step/pipeline", "sent pipeline", bytes, -1,
                [](const Run&, const Estimate& e) { return real(e.sent.pipeline); }},
    ResultField{"sent-data", "", "/communication/sent_bytes_per_step/data", "sent data", bytes, -1,
                [](const Run&, const Estimate& e) { return real(e.sent.data); }},
    ResultField{"sent-context", "", "/communication/sent_bytes_per_step/context", "sent context", bytes, -1,
                [](const Run&, const Estimate& e) { return real(e.sent.context); }},
    ResultField{"sent-expert", "", "/communication/sent_bytes_per_step/expert", "sent expert", bytes, -1,
                [](const Run&, const Estimate& e) { return real(e.sent.expert); }},
    ResultField{"ideal-bubble", "", "/pipeline/ideal_bubble_fraction", "ideal bubble", fraction, -1,
                [](const Run&, const Estimate& e) { return e.pipeline.ideal_bubble_fraction; }},
    ResultField{"recompute-time", "", "/time/recompute_s", "recompute", seconds, -1,
                [](const Run&, const Estimate& e) { return e.time.recompute_s; }},
    ResultField{"bubble-time", "", "/time/bubble_s", "bubble s", seconds, -1,
                [](const Run&, const Estimate& e) { return e.time.bubble_s; }},
    ResultField{"optimizer-time", "", "/time/optimizer_s", "optimizer", seconds, -1,
                [](const Run&, const Estimate& e) { return e.time.optimizer_s; }},
    ResultField{"offload-time", "", "/time/offload_s", "offload", seconds, -1,
                [](const Run&, const Estimate& e) { return e.time.offload_s; }},
    ResultField{"samples", "samples-per-s", "/throughput/samples_per_s", "samples/s", rate, 1,
                [](const Run&, const Estimate& e) { return e.throughput.samples_per_s; }},
    ResultField{"model-flop", "", "/throughput/model_flop_per_token", "FLOP/token", rate, 0,
                [](const Run&, const Estimate& e) { return e.throughput.model_flop_per_token; }},
    ResultField{"score-flop", "", "/throughput/score_flop_per_token", "score FLOP/token", rate, 0,
                [](const Run&, const Estimate& e) { return e.throughput.score_flop_per_token; }},
    ResultField{"peak-tflops", "", "/throughput/peak_tflops_per_gpu", "peak TFLOP/s", rate, 0,
                [](const Run&, const Estimate& e) { return e.throughput.peak_flop_per_s / 1e12; }},
    ResultField{"hardware-tflops", "", "/throughput/hardware_tflops_per_gpu", "hardware TFLOP/s", rate, 1,
                [](const Run&, const Estimate& e) { return e.throughput.hardware_flop_per_s_per_gpu / 1e12; }},
};

/// "a b c" has the word "b".
bool lists(std::string_view words, std::string_view word) noexcept {
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    if (words.substr(0, end) == word) return true;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}

/// '_' and '.' count as what separates words and tokens elsewhere.
bool same_path(std::string_view pointer, std::string_view typed) noexcept {
  if (pointer.empty()) return false;
  if (typed.substr(0, 1) == "/") return typed == pointer;
  return std::equal(typed.begin(), typed.end(), pointer.begin() + 1, pointer.end(),
                    [](char a, char b) { return a == b || (a == '.' && b == '/'); });
}

bool same_word(std::string_view word, std::string_view typed) noexcept {
  return std::equal(typed.begin(), typed.end(), word.begin(), word.end(),
                    [](char a, char b) { return a == b || (a == '_' && b == '-'); });
}

/// The last token of a path is a word too, where nothing else is called so: "tokens_per_s".
std::string_view last_token(std::string_view pointer) noexcept {
  return pointer.empty() ? pointer : pointer.substr(pointer.rfind('/') + 1);
}

}  // namespace

std::span<const ResultField> result_fields() noexcept { return fields; }

std::span<const ResultField> usual_results() noexcept {
  const auto* const last = std::find_if(fields.begin(), fields.end(), [](const auto& f) { return f.word == "price"; });
  return std::span(fields).first(static_cast<std::size_t>(last - fields.begin()) + 1);
}

const ResultField* find_result(std::string_view word) noexcept {
  const auto find = [&](const auto& matches) {
    const auto found = std::find_if(fields.begin(), fields.end(), matches);
    return found == fields.end() ? nullptr : &*found;
  };
  if (const auto* field = find([&](const ResultField& f) { return same_word(f.word, word); })) return field;
  if (const auto* field = find([&](const ResultField& f) { return lists(f.others, word); })) return field;
  if (const auto* field = find([&](const ResultField& f) { return same_path(f.path, word); })) return field;
  return find([&](const ResultField& f) { return !word.empty() && last_token(f.path) == word; });
}

std::string key_of(const ResultField& field) {
  // "/communication/sent_bytes_per_step/total" says in its last token nothing of its own.
  if (field.word == "sent") return "sent_bytes_per_step";
  // Nor do "/model/parameters_by_part/mlp" and "/communication/sent_bytes_per_step/data".
  if (field.path.rfind("/communication/sent", 0) == 0 || field.path.find("_by_part/") != std::string_view::npos) {
    std::string key(field.word);
    std::replace(key.begin(), key.end(), '-', '_');
    return key + (field.quantity == Quantity::bytes ? "_bytes_per_step" : "");
  }
  if (!field.path.empty()) return std::string(last_token(field.path));
  std::string key(field.word);
  std::replace(key.begin(), key.end(), '-', '_');
  return key + (field.quantity == Quantity::bytes ? "_bytes" : "");
}

std::vector<std::string_view> result_words() {
  std::vector<std::string_view> words;
  words.reserve(2 * fields.size());
  for (const ResultField& field : fields) words.push_back(field.word);
  for (const ResultField& field : fields) {
    if (!field.path.empty()) words.push_back(field.path);
  }
  return words;
}

}  // namespace shardplan::plan
