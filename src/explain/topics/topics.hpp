// The cards, one function each.
#pragma once

#include <fmt/format.h>

#include <cmath>

#include "shardplan/core/bytes.hpp"
#include "shardplan/explain/topics.hpp"

namespace shardplan::explain {

inline std::string gb(double bytes) {
  if (bytes >= 1e13) return fmt::format("{} GB", fmt::group_digits(std::llround(bytes / 1e9)));
  return fmt::format("{:.4g} GB", bytes / 1e9);
}
inline std::string gib(double bytes, int digits = 2) {
  const double steps = std::pow(10.0, digits);  // halves up, as the estimate rounds
  const double rounded = std::floor(bytes / shardplan::gib * steps + 0.5) / steps;
  if (rounded >= 10000) return fmt::format("{} GiB", fmt::group_digits(std::llround(rounded)));
  return fmt::format("{:.{}f} GiB", rounded, digits);
}
inline std::string mib(double bytes) { return fmt::format("{:.4g} MiB", bytes / shardplan::mib); }
/// 7e9 as people write it; other numbers with commas.
inline std::string short_number(double value) {
  for (const int power : {12, 9, 6}) {
    const double scaled = value / std::pow(10.0, power);
    if (scaled >= 1 && scaled * 100 == std::nearbyint(scaled * 100)) return fmt::format("{:.4g}e{}", scaled, power);
  }
  return fmt::format("{}", fmt::group_digits(std::llround(value)));
}
inline std::string percent(double fraction, int digits = 1) { return fmt::format("{:.{}f}%", 100 * fraction, digits); }
inline std::string count(double value) { return fmt::format("{}", fmt::group_digits(std::llround(value))); }

/// 120k, 3.42M: tokens/s.
inline std::string rate_text(double rate) {
  if (rate >= 1e6) return fmt::format("{:.3g}M", rate / 1e6);
  return rate >= 1e4 ? fmt::format("{:.0f}k", rate / 1e3) : fmt::format("{:.4g}", rate);
}

/// Ranks of a pipeline that hold each stage's weights: DualPipe's two directions have their own.
inline double copies_of_stages(const Run& run) {
  return run.parallel.pipeline > 1 && run.parallel.schedule == ScheduleKind::dualpipe ? 2 : 1;
}

/// Says where a card's numbers are not the run's.
inline void example_where(Card& c, bool missing, std::string text) {
  if (c.stated() && missing) c.remark("this run", std::move(text));
}

// Memory.
void model_states(Card& c);
void activations(Card& c);
void checkpointing(Card& c);
void logits(Card& c);
void transients(Card& c);
void reserved(Card& c);
// Data parallelism.
void ddp(Card& c);
void ring_all_reduce(Card& c);
void bucketing(Card& c);
void zero(Card& c);
void zero_traffic(Card& c);
void zeropp(Card& c);
void offload(Card& c);
void infinity(Card& c);
void fsdp(Card& c);
void hsdp(Card& c);
void fsdp_or_zero3(Card& c);
void ddp_or_zero(Card& c);
// Model parallelism.
void tensor_parallel(Card& c);
void column_parallel(Card& c);
void sequence_parallel(Card& c);
void context_parallel(Card& c);
void expert_parallel(Card& c);
void pipeline(Card& c);
void bubble(Card& c);
void one_f_one_b(Card& c);
void interleaved(Card& c);
void zero_bubble(Card& c);
void dualpipe(Card& c);
void three_d(Card& c);
void rank_order(Card& c);
// Adapters.
void lora(Card& c);
void rslora(Card& c);
void dora(Card& c);
void qlora(Card& c);
void nf4(Card& c);
void double_quantisation(Card& c);
void paged_optimizers(Card& c);
void lora_or_full(Card& c);
// Attention.
void flash_attention(Card& c);
void flash_versions(Card& c);
void online_softmax(Card& c);
// Precision and the step.
void number_formats_card(Card& c);
void loss_scaling(Card& c);
void grad_accum(Card& c);
void grad_clipping(Card& c);
void loss_spike(Card& c);
// Speed and size.
void throughput(Card& c);
void mfu(Card& c);
void peak_flops(Card& c);
void gpu_count(Card& c);

}  // namespace shardplan::explain
