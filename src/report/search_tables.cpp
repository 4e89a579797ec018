#include "search_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

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

namespace {

/// A column of the table, and what it shows of a row.
struct SearchColumn {
  bool shown = true;
  Column column;
  std::function<Text(const SearchRow&)> cell;
};

Text recompute_cell(const SearchRow& row) {
  const std::string words = recompute_text(row.run.training.recompute);
  return Text(words.empty() ? "none" : words);
}

Text free_cell(const SearchRow& row, Units units) {
  const bool tight = is_tight_row(row);
  return {size_text(row.estimate.headroom_bytes, units, 1) + (tight ? "!" : " "), tight ? Role::warning : Role::plain};
}

Text tensor_exchange_cell(const SearchRow& row) {
  const TimeEstimate& time = row.estimate.time;
  return Text(
      percent_text(share(time.exposed_by_group_s[static_cast<std::size_t>(GroupKind::tensor)], time.step_s), 0));
}

/// The layout's columns; those in which all rows are alike are left out.
std::vector<SearchColumn> layout_columns(const SearchReport& report, const std::vector<SearchRow>& rows) {
  using Row = const SearchRow&;
  const bool gpus = any(rows, [&](Row r) { return r.run.num_gpus != rows.front().run.num_gpus; });
  const bool context = any(rows, [](Row r) { return r.run.parallel.context > 1; });
  const bool pipelined = any(rows, [](Row r) { return r.run.parallel.pipeline > 1; });
  const bool recompute = any(rows, [](Row r) { return r.run.training.recompute.mode != RecomputeMode::none; });
  const bool offload = any(rows, [](Row r) { return !offload_words(r.run.training.offload).empty(); });
  const auto tensor = [](const Parallel& p) { return fmt::format("{}{}", p.tensor, p.sequence_parallel ? "s" : ""); };
  const auto schedule = [](const Parallel& p) { return p.pipeline > 1 ? std::string(name(p.schedule)) : "-"; };
  return {
      {gpus, {"GPUs", Align::right}, [](Row r) { return Text(count_text(r.run.num_gpus)); }},
      {true, {"TP", Align::right}, [tensor](Row r) { return Text(tensor(r.run.parallel)); }},
      {pipelined,
       {"PPxV", Align::right},
       [](Row r) { return Text(fmt::format("{}x{}", r.run.parallel.pipeline, r.run.parallel.virtual_pipeline)); }},
      {context, {"CP", Align::right}, [](Row r) { return Text(std::to_string(r.run.parallel.context)); }},
      {report.base.model.has_experts(),
       {"EPxETP", Align::right},
       [](Row r) { return Text(fmt::format("{}x{}", r.run.parallel.expert, r.run.parallel.expert_tensor)); }},
      {true, {"DP", Align::right}, [](Row r) { return Text(std::to_string(r.run.parallel.data)); }},
      {true, {"mbs", Align::right}, [](Row r) { return Text(std::to_string(r.run.training.micro_batch_size)); }},
      {pipelined, {"schedule", Align::left, {}, 4}, [schedule](Row r) { return Text(schedule(r.run.parallel)); }},
      {true, {"states", Align::left, {}, 3}, [](Row r) { return Text(sharding_words(r.run.parallel)); }},
      {recompute, {"recompute", Align::left, {}, 2}, recompute_cell},
      {report.attention_varies,
       {"attention", Align::left, {}, 2},
       [](Row r) { return Text(std::string(name(r.run.training.attention))); }},
      {offload, {"offload", Align::left, {}, 1}, [](Row r) { return Text(offload_letters(r.run.training.offload)); }},
  };
}

/// What each layout needs and how fast it is.
std::vector<SearchColumn> result_columns(const SearchReport& report, const std::vector<SearchRow>& rows, Units units) {
  using Row = const SearchRow&;
  const bool pipelined = any(rows, [](Row r) { return r.run.parallel.pipeline > 1; });
  const bool tensor = any(rows, [](Row r) { return r.run.parallel.tensor > 1; });
  const bool price =
      any(rows, [](Row r) { return r.estimate.throughput.has_price; }) && report.objective == plan::Objective::price;
  return {
      {true,
       {"peak", Align::right, std::string(unit_name(units))},
       [units](Row r) { return Text(size_text(r.estimate.peak_bytes, units, 1)); }},
      {true, {"free", Align::right}, [units](Row r) { return free_cell(r, units); }},
      {true, {"step s", Align::right}, [](Row r) { return Text(fmt::format("{:.4g}", r.estimate.time.step_s)); }},
      {true,
       {"tokens/s", Align::right, {}, 7},
       [](Row r) { return Text(short_count(r.estimate.throughput.tokens_per_s, 4)); }},
      {true, {"MFU", Align::right}, [](Row r) { return Text(percent_text(r.estimate.throughput.mfu)); }},
      {pipelined,
       {"bubble", Align::right, {}, 6},
       [](Row r) { return Text(percent_text(r.estimate.pipeline.bubble_fraction)); }},
      {tensor, {"TP", Align::right, {}, 8, "tp_exchange"}, tensor_exchange_cell},
      {price,
       {"price/1e12", Align::right},
       [](Row r) { return Text(short_count(r.estimate.throughput.price_per_1e12_tokens)); }},
  };
}

}  // namespace

Table search_table(const SearchReport& report, const std::vector<SearchRow>& rows, bool ranked, const Style& style) {
  std::vector<SearchColumn> shown = layout_columns(report, rows);
  for (SearchColumn& each : result_columns(report, rows, style.units)) shown.push_back(std::move(each));
  shown.erase(std::remove_if(shown.begin(), shown.end(), [](const SearchColumn& each) { return !each.shown; }),
              shown.end());
  std::vector<Column> columns;
  if (ranked) columns.push_back({"", Align::right, {}, 0, "rank"});
  for (const SearchColumn& each : shown) columns.push_back(each.column);
  Table table(std::move(columns));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::vector<Text> cells;
    if (ranked) cells.emplace_back(fmt::format("{}{}", i + 1, rows[i].found.pareto ? " P" : "  "));
    for (const SearchColumn& each : shown) cells.push_back(each.cell(rows[i]));
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
