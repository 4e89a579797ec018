#include "search_tables.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "facts.hpp"
#include "shardplan/report/number.hpp"

namespace shardplan::report {
namespace {

using plan::SearchReport;
using plan::SearchRow;

constexpr std::int64_t tight_bytes = std::int64_t{4} << 30;

std::string sharding_words(const Parallel& parallel) {
  switch (parallel.fsdp) {
    case Fsdp::none: return fmt::format("zero-{}", parallel.zero_stage);
    case Fsdp::hybrid_shard: return fmt::format("hybrid/{}", parallel.shard_group);
    default: return std::string(name(parallel.fsdp));
  }
}

/// "opt+act": what lives on the host, in capitals what on NVMe.
std::string offload_letters(const Offload& offload) {
  std::string words;
  const auto add = [&](std::string_view host, std::string_view nvme, OffloadDevice device) {
    if (device == OffloadDevice::none) return;
    words += fmt::format("{}{}", words.empty() ? "" : "+", device == OffloadDevice::nvme ? nvme : host);
  };
  add("opt", "OPT", offload.optimizer);
  add("par", "PAR", offload.parameters);
  add("act", "ACT", offload.activations);
  return words.empty() ? "-" : words;
}

template <class Value>
bool any(const std::vector<SearchRow>& rows, Value&& value) {
  return std::any_of(rows.begin(), rows.end(), value);
}

double share(double part, double whole) noexcept { return whole > 0 ? part / whole : 0; }

}  // namespace

bool is_tight_row(const SearchRow& row) noexcept { return row.estimate.headroom_bytes < tight_bytes; }

std::string offload_words(const Offload& offload) {
  std::string words;
  const auto add = [&](std::string_view part, OffloadDevice device) {
    if (device != OffloadDevice::none) words += fmt::format("{}{}={}", words.empty() ? "" : ",", part, name(device));
  };
  add("optimizer", offload.optimizer);
  add("parameters", offload.parameters);
  add("activations", offload.activations);
  return words;
}

Table search_table(const SearchReport& report, const std::vector<SearchRow>& rows, bool ranked, const Style& style) {
  const std::string unit(unit_name(style.units));
  const bool gpus = any(rows, [&](const SearchRow& r) { return r.run.num_gpus != rows.front().run.num_gpus; });
  const bool context = any(rows, [](const SearchRow& r) { return r.run.parallel.context > 1; });
  const bool experts = report.base.model.has_experts();
  const bool pipelined = any(rows, [](const SearchRow& r) { return r.run.parallel.pipeline > 1; });
  const bool recompute =
      any(rows, [](const SearchRow& r) { return r.run.training.recompute.mode != RecomputeMode::none; });
  const bool attention = report.attention_varies;
  const bool offload = any(rows, [](const SearchRow& r) { return !offload_words(r.run.training.offload).empty(); });
  const bool tensor = any(rows, [](const SearchRow& r) { return r.run.parallel.tensor > 1; });
  const bool price = any(rows, [](const SearchRow& r) { return r.estimate.throughput.has_price; }) &&
                     report.objective == plan::Objective::price;
  std::vector<Column> columns;
  if (ranked) columns.push_back({"", Align::right, {}, 0, "rank"});
  if (gpus) columns.push_back({"GPUs", Align::right});
  columns.push_back({"TP", Align::right});
  if (pipelined) columns.push_back({"PPxV", Align::right});
  if (context) columns.push_back({"CP", Align::right});
  if (experts) columns.push_back({"EPxETP", Align::right});
  columns.push_back({"DP", Align::right});
  columns.push_back({"mbs", Align::right});
  if (pipelined) columns.push_back({"schedule", Align::left, {}, 4});
  columns.push_back({"states", Align::left, {}, 3});
  if (recompute) columns.push_back({"recompute", Align::left, {}, 2});
  if (attention) columns.push_back({"attention", Align::left, {}, 2});
  if (offload) columns.push_back({"offload", Align::left, {}, 1});
  columns.push_back({"peak", Align::right, unit});
  columns.push_back({"free", Align::right});
  columns.push_back({"step s", Align::right});
  columns.push_back({"tokens/s", Align::right, {}, 7});
  columns.push_back({"MFU", Align::right});
  if (pipelined) columns.push_back({"bubble", Align::right, {}, 6});
  if (tensor) columns.push_back({"TP", Align::right, {}, 8, "tp_exchange"});
  if (price) columns.push_back({"price/1e12", Align::right});
  Table table(std::move(columns));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const SearchRow& row = rows[i];
    const Parallel& parallel = row.run.parallel;
    const Estimate& e = row.estimate;
    std::vector<Text> cells;
    if (ranked) cells.emplace_back(fmt::format("{}{}", i + 1, row.found.pareto ? " P" : "  "));
    if (gpus) cells.emplace_back(count_text(row.run.num_gpus));
    cells.emplace_back(fmt::format("{}{}", parallel.tensor, parallel.sequence_parallel ? "s" : ""));
    if (pipelined) cells.emplace_back(fmt::format("{}x{}", parallel.pipeline, parallel.virtual_pipeline));
    if (context) cells.emplace_back(std::to_string(parallel.context));
    if (experts) cells.emplace_back(fmt::format("{}x{}", parallel.expert, parallel.expert_tensor));
    cells.emplace_back(std::to_string(parallel.data));
    cells.emplace_back(std::to_string(row.run.training.micro_batch_size));
    if (pipelined) cells.emplace_back(parallel.pipeline > 1 ? std::string(name(parallel.schedule)) : "-");
    cells.emplace_back(sharding_words(parallel));
    if (recompute) {
      const std::string words = recompute_text(row.run.training.recompute);
      cells.emplace_back(words.empty() ? "none" : words);
    }
    if (attention) cells.emplace_back(std::string(name(row.run.training.attention)));
    if (offload) cells.emplace_back(offload_letters(row.run.training.offload));
    cells.emplace_back(size_text(e.peak_bytes, style.units, 1));
    const bool tight = is_tight_row(row);
    cells.emplace_back(size_text(e.headroom_bytes, style.units, 1) + (tight ? "!" : " "),
                       tight ? Role::warning : Role::plain);
    cells.emplace_back(fmt::format("{:.4g}", e.time.step_s));
    cells.emplace_back(short_count(e.throughput.tokens_per_s, 4));
    cells.emplace_back(percent_text(e.throughput.mfu));
    if (pipelined) cells.emplace_back(percent_text(e.pipeline.bubble_fraction));
    if (tensor) {
      const double exposed = e.time.exposed_by_group_s[static_cast<std::size_t>(GroupKind::tensor)];
      cells.emplace_back(percent_text(share(exposed, e.time.step_s), 0));
    }
    if (price) cells.emplace_back(short_count(e.throughput.price_per_1e12_tokens));
    table.add(std::move(cells));
  }
  return table;
}

Table search_data_table() {
  std::vector<Column> columns;
  for (const char* const head : {"rank",
                                 "pareto",
                                 "num_gpus",
                                 "tensor",
                                 "pipeline",
                                 "virtual_pipeline",
                                 "context",
                                 "expert",
                                 "expert_tensor",
                                 "data",
                                 "sequence_parallel",
                                 "zero_stage",
                                 "fsdp",
                                 "shard_group",
                                 "schedule",
                                 "micro_batch_size",
                                 "recompute",
                                 "attention",
                                 "offload",
                                 "overlap_grad_reduce",
                                 "overlap_param_gather",
                                 "overlap_tp",
                                 "overlap_p2p",
                                 "peak_bytes",
                                 "reserved_bytes",
                                 "headroom_bytes",
                                 "step_s",
                                 "tokens_per_s",
                                 "tokens_per_s_per_gpu",
                                 "mfu",
                                 "bubble_fraction",
                                 "gpu_hours_per_1e12_tokens",
                                 "price_per_1e12_tokens"}) {
    columns.push_back({head});
  }
  return Table(std::move(columns));
}

void add_data_row(const SearchRow& row, int rank, bool pareto, Table& table) {
  const Parallel& parallel = row.run.parallel;
  const Training& training = row.run.training;
  const Estimate& e = row.estimate;
  const auto real = [](double value) { return fmt::format("{}", value); };
  const auto truth = [](bool value) { return std::string(value ? "true" : "false"); };
  const std::string recompute = recompute_text(training.recompute);
  table.add({Text(rank > 0 ? std::to_string(rank) : ""),
             Text(truth(pareto)),
             Text(std::to_string(row.run.num_gpus)),
             Text(std::to_string(parallel.tensor)),
             Text(std::to_string(parallel.pipeline)),
             Text(std::to_string(parallel.virtual_pipeline)),
             Text(std::to_string(parallel.context)),
             Text(std::to_string(parallel.expert)),
             Text(std::to_string(parallel.expert_tensor)),
             Text(std::to_string(parallel.data)),
             Text(truth(parallel.sequence_parallel)),
             Text(std::to_string(parallel.zero_stage)),
             Text(std::string(name(parallel.fsdp))),
             Text(row.found.layout.shard_group > 0 ? std::to_string(parallel.shard_group) : ""),
             Text(std::string(name(parallel.schedule))),
             Text(std::to_string(training.micro_batch_size)),
             Text(recompute.empty() ? "none" : recompute),
             Text(std::string(name(training.attention))),
             Text(offload_words(training.offload)),
             Text(truth(training.overlap.grad_reduce)),
             Text(truth(training.overlap.param_gather)),
             Text(truth(training.overlap.tp)),
             Text(truth(training.overlap.p2p)),
             Text(std::to_string(e.peak_bytes)),
             Text(std::to_string(e.reserved_bytes)),
             Text(std::to_string(e.headroom_bytes)),
             Text(real(e.time.step_s)),
             Text(real(e.throughput.tokens_per_s)),
             Text(real(e.throughput.tokens_per_s_per_gpu)),
             Text(real(e.throughput.mfu)),
             Text(real(e.pipeline.bubble_fraction)),
             Text(real(e.throughput.gpu_hours_per_1e12_tokens)),
             Text(e.throughput.has_price ? real(e.throughput.price_per_1e12_tokens) : "")});
}

}  // namespace shardplan::report
