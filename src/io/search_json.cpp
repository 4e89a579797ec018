#include "shardplan/io/search_json.hpp"

#include <fmt/format.h>

#include <optional>

#include "describe_outputs.hpp"
#include "json_writer.hpp"
#include "shardplan/plan/change.hpp"
#include "shardplan/version.hpp"

namespace shardplan::io {
namespace {

using Lines = JsonWriter::Lines;
using Whole = JsonWriter::Whole;
constexpr Whole count = Whole::from_1;
using plan::SearchReport;
using plan::SearchRow;

void write_parallel(JsonWriter& out, const SearchRow& row) {
  const Parallel& parallel = row.run.parallel;
  out.begin_object("parallel", Lines::one);
  out.integer("tensor", parallel.tensor, count);
  out.integer("pipeline", parallel.pipeline, count);
  out.integer("virtual_pipeline", parallel.virtual_pipeline, count);
  out.integer("context", parallel.context, count);
  out.integer("expert", parallel.expert, count);
  out.integer("expert_tensor", parallel.expert_tensor, count);
  out.integer("data", parallel.data, count);
  out.boolean("sequence_parallel", parallel.sequence_parallel);
  const bool fsdp = parallel.fsdp != Fsdp::none;
  out.like("parallel/properties/zero_stage");
  out.integer_or_null("zero_stage", fsdp ? std::nullopt : std::optional<std::int64_t>(parallel.zero_stage));
  out.like("parallel/properties/fsdp");
  out.text_or_null("fsdp", fsdp ? name(parallel.fsdp) : std::string_view());
  out.optional(row.found.layout.shard_group > 0, [&] { out.integer("shard_group", parallel.shard_group, count); });
  out.word("schedule", parallel.schedule);
  const int chunks = parallel.pipeline * parallel.virtual_pipeline;
  out.optional(row.run.model.layers() % chunks != 0, [&] {
    out.list("layers_per_stage", parallel.layers_per_chunk, [&](int layers) { out.integer("", layers); });
  });
  out.end_object();
}

void write_recompute(JsonWriter& out, const Recompute& recompute) {
  out.like("training/properties/recompute");
  if (recompute.mode != RecomputeMode::modules) return out.text("recompute", plan::recompute_words(recompute));
  out.begin_object("recompute");
  out.begin_array("modules");
  for (std::size_t i = 0; i < recompute_module_names.size(); ++i) {
    if ((recompute.modules & (1U << i)) != 0) out.text("", recompute_module_names[i]);
  }
  out.end_array();
  out.end_object();
}

void write_offload(JsonWriter& out, const Offload& offload) {
  const auto device = [&](std::string_view member, OffloadDevice where) {
    out.text_or_null(member, where == OffloadDevice::none ? std::string_view() : name(where));
  };
  const bool none = offload.optimizer == OffloadDevice::none && offload.parameters == OffloadDevice::none &&
                    offload.activations == OffloadDevice::none;
  out.object_or_null("offload", !none, Lines::many, [&] {
    device("optimizer", offload.optimizer);
    device("parameters", offload.parameters);
    device("activations", offload.activations);
  });
}

void write_training(JsonWriter& out, const SearchReport& report, const SearchRow& row) {
  const Training& training = row.run.training;
  out.begin_object("training", Lines::one);
  out.integer("micro_batch_size", training.micro_batch_size, count);
  out.optional(!report.batch_stated, [&] { out.integer("global_batch_size", training.global_batch_size, count); });
  out.optional(!report.framework_stated, [&] {
    out.like("training/properties/framework");
    out.text("framework", name(training.framework));
  });
  write_recompute(out, training.recompute);
  out.like("training/properties/attention");
  out.text("attention", name(training.attention));
  write_offload(out, training.offload);
  out.begin_object("overlap");
  out.boolean("grad_reduce", training.overlap.grad_reduce);
  out.boolean("param_gather", training.overlap.param_gather);
  out.boolean("tp", training.overlap.tp);
  out.boolean("p2p", training.overlap.p2p);
  out.end_object();
  out.end_object();
}

/// `rank`: of the best ones; nothing: the row has none.
void write_row(JsonWriter& out, const SearchReport& report, const SearchRow& row, std::optional<std::size_t> rank,
               bool pareto) {
  const Estimate& e = row.estimate;
  out.begin_object();
  if (rank) out.integer("rank", static_cast<std::int64_t>(*rank), count);
  out.boolean("pareto", pareto);
  out.integer("num_gpus", row.run.num_gpus, count);
  write_parallel(out, row);
  write_training(out, report, row);
  out.integer("peak_bytes", e.peak_bytes);
  out.integer("reserved_bytes", e.reserved_bytes);
  out.integer("headroom_bytes", e.headroom_bytes, Whole::any);
  out.real("step_s", e.time.step_s);
  out.real("tokens_per_s", e.throughput.tokens_per_s);
  out.real("tokens_per_s_per_gpu", e.throughput.tokens_per_s_per_gpu);
  out.real("mfu", e.throughput.mfu);
  out.real("bubble_fraction", e.pipeline.bubble_fraction);
  out.real("gpu_hours_per_1e12_tokens", e.throughput.gpu_hours_per_1e12_tokens);
  out.real_or_null("price_per_1e12_tokens",
                   e.throughput.has_price ? std::optional(e.throughput.price_per_1e12_tokens) : std::nullopt);
  out.end_object();
}

void write_space(JsonWriter& out, const plan::SearchCounts& counts) {
  out.begin_object("space");
  out.integer("layouts", counts.layouts);
  out.integer("layouts_without_overlap", counts.without_overlap);
  out.integer("estimated", counts.estimated);
  out.integer("simulated", counts.simulated);
  out.integer("cut_by_bound", counts.cut_by_bound);
  out.begin_object("illegal", Lines::one);
  for (std::size_t i = 0; i < plan::rule_count; ++i) {
    const std::int64_t illegal = counts.illegal[i];
    out.optional(illegal > 0, [&] { out.integer(name(static_cast<plan::Rule>(i)), illegal, count); });
  }
  out.end_object();
  out.integer("does_not_fit", counts.does_not_fit);
  out.begin_object("over_by", Lines::one);
  out.integer("tenth_of_card", counts.excess.tenth);
  out.integer("card", counts.excess.whole);
  out.integer("more", counts.excess.more);
  out.integer("host", counts.excess.host);
  out.end_object();
  out.integer("misses_requirement", counts.misses);
  out.integer("fit", counts.fit);
  out.end_object();
}

void write_why_not(JsonWriter& out, const plan::WhyNot& why) {
  out.begin_object();
  out.text("change", why.change);
  out.text("reason", why.reason);
  out.integer("over_bytes", why.over_bytes, Whole::any);
  const bool legal = why.verdict != plan::WhyNot::Verdict::illegal;
  out.real_or_null("step_s", legal ? std::optional(why.step_s) : std::nullopt);
  out.optional(legal, [&] {
    out.list("terms", why.terms, Lines::one, [&](const plan::StepTerm& term) {
      if (term.best_s == 0 && term.other_s == 0 && !out.describes()) return;
      out.begin_object();
      out.text("term", term.name);
      out.real("best_s", term.best_s);
      out.real("other_s", term.other_s);
      out.end_object();
    });
  });
  out.end_object();
}

void write_stated(JsonWriter& out, const SearchReport& report) {
  const std::int64_t rank = report.result.rank;
  const Estimate& estimate = report.stated->estimate;
  out.begin_object("stated");
  out.integer_or_null("rank", rank > 0 ? std::optional(rank) : std::nullopt, count);
  out.boolean("fits", estimate.fits);
  out.real("step_s", estimate.time.step_s);
  out.integer("peak_bytes", estimate.peak_bytes);
  out.integer("headroom_bytes", estimate.headroom_bytes, Whole::any);
  out.end_object();
}

void write_rows(JsonWriter& out, const SearchReport& report) {
  std::size_t rank = 0;
  out.list("best", report.best, [&](const SearchRow& row) { write_row(out, report, row, ++rank, row.found.pareto); });
  out.list("pareto", report.pareto, [&](const SearchRow& row) { write_row(out, report, row, std::nullopt, true); });
  out.optional(report.nearest.has_value(), [&] {
    out.begin_array("nearest");
    write_row(out, report, *report.nearest, std::nullopt, false);
    out.end_array();
  });
}

void write_sensitivity(JsonWriter& out, const std::vector<plan::Sensitivity>& sensitivity) {
  out.list("sensitivity", sensitivity, [&](const plan::Sensitivity& one) {
    out.begin_object({}, Lines::one);
    out.text("hardware", one.what);
    out.real("step_s", one.step_s);
    out.real("gain", one.gain);
    out.text("layout", one.layout);
    out.end_object();
  });
}

void write_search(JsonWriter& out, const SearchReport& report) {
  const plan::SearchResult& result = report.result;
  out.begin_object();
  out.constant("schema", "shardplan/search/v1");
  out.text("version", SHARDPLAN_VERSION);
  out.word("objective", report.objective);
  out.boolean("complete", result.complete);
  write_space(out, result.counts);
  out.real("wall_s", result.wall_s);
  out.integer("threads", result.threads, count);
  const double cores = result.wall_s * result.threads;
  const std::int64_t decided = result.counts.estimated + result.counts.cut_by_bound;
  out.real("layouts_per_s_per_core", cores > 0 ? static_cast<double>(decided) / cores : 0.0);
  write_rows(out, report);
  out.optional(report.stated.has_value(), [&] { write_stated(out, report); });
  out.begin_array("why_not");
  for (const plan::WhyNot& why : report.asked) write_why_not(out, why);
  for (const plan::WhyNot& why : report.neighbours) write_why_not(out, why);
  out.end_array();
  out.optional(!report.sensitivity.empty(), [&] { write_sensitivity(out, report.sensitivity); });
  out.end_object();
}

}  // namespace

std::string search_json(const SearchReport& report) {
  JsonWriter out;
  write_search(out, report);
  return out.str() + "\n";
}

void describe_search(JsonWriter& out) {
  SearchReport report;
  report.nearest.emplace();
  report.stated.emplace();
  report.asked.emplace_back();
  write_search(out, report);
}

}  // namespace shardplan::io
