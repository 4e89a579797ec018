#include "shardplan/io/search_json.hpp"

#include <fmt/format.h>

#include "json_writer.hpp"
#include "shardplan/plan/change.hpp"
#include "shardplan/version.hpp"

namespace shardplan::io {
namespace {

using Lines = JsonWriter::Lines;
using plan::SearchReport;
using plan::SearchRow;

void write_parallel(JsonWriter& out, const SearchRow& row) {
  const Parallel& parallel = row.run.parallel;
  out.begin_object("parallel", Lines::one);
  out.integer("tensor", parallel.tensor);
  out.integer("pipeline", parallel.pipeline);
  out.integer("virtual_pipeline", parallel.virtual_pipeline);
  out.integer("context", parallel.context);
  out.integer("expert", parallel.expert);
  out.integer("expert_tensor", parallel.expert_tensor);
  out.integer("data", parallel.data);
  out.boolean("sequence_parallel", parallel.sequence_parallel);
  if (parallel.fsdp == Fsdp::none) {
    out.integer("zero_stage", parallel.zero_stage);
    out.null("fsdp");
  } else {
    out.null("zero_stage");
    out.text("fsdp", name(parallel.fsdp));
  }
  if (row.found.layout.shard_group > 0) out.integer("shard_group", parallel.shard_group);
  out.text("schedule", name(parallel.schedule));
  const int chunks = parallel.pipeline * parallel.virtual_pipeline;
  if (row.run.model.layers() % chunks != 0) {
    out.begin_array("layers_per_stage");
    for (const int layers : parallel.layers_per_chunk) out.integer("", layers);
    out.end_array();
  }
  out.end_object();
}

void write_recompute(JsonWriter& out, const Recompute& recompute) {
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
    if (where == OffloadDevice::none) return out.null(member);
    out.text(member, name(where));
  };
  const bool none = offload.optimizer == OffloadDevice::none && offload.parameters == OffloadDevice::none &&
                    offload.activations == OffloadDevice::none;
  if (none) return out.null("offload");
  out.begin_object("offload");
  device("optimizer", offload.optimizer);
  device("parameters", offload.parameters);
  device("activations", offload.activations);
  out.end_object();
}

void write_training(JsonWriter& out, const SearchReport& report, const SearchRow& row) {
  const Training& training = row.run.training;
  out.begin_object("training", Lines::one);
  out.integer("micro_batch_size", training.micro_batch_size);
  if (!report.batch_stated) out.integer("global_batch_size", training.global_batch_size);
  if (!report.framework_stated) out.text("framework", name(training.framework));
  write_recompute(out, training.recompute);
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

void write_row(JsonWriter& out, const SearchReport& report, const SearchRow& row, std::size_t rank, bool pareto) {
  const Estimate& e = row.estimate;
  out.begin_object();
  if (rank > 0) out.integer("rank", static_cast<std::int64_t>(rank));
  out.boolean("pareto", pareto);
  out.integer("num_gpus", row.run.num_gpus);
  write_parallel(out, row);
  write_training(out, report, row);
  out.integer("peak_bytes", e.peak_bytes);
  out.integer("reserved_bytes", e.reserved_bytes);
  out.integer("headroom_bytes", e.headroom_bytes);
  out.real("step_s", e.time.step_s);
  out.real("tokens_per_s", e.throughput.tokens_per_s);
  out.real("tokens_per_s_per_gpu", e.throughput.tokens_per_s_per_gpu);
  out.real("mfu", e.throughput.mfu);
  out.real("bubble_fraction", e.pipeline.bubble_fraction);
  out.real("gpu_hours_per_1e12_tokens", e.throughput.gpu_hours_per_1e12_tokens);
  if (e.throughput.has_price) {
    out.real("price_per_1e12_tokens", e.throughput.price_per_1e12_tokens);
  } else {
    out.null("price_per_1e12_tokens");
  }
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
    if (counts.illegal[i] > 0) out.integer(name(static_cast<plan::Rule>(i)), counts.illegal[i]);
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
  out.integer("over_bytes", why.over_bytes);
  if (why.verdict == plan::WhyNot::Verdict::illegal) {
    out.null("step_s");
  } else {
    out.real("step_s", why.step_s);
    out.begin_array("terms", Lines::one);
    for (const plan::StepTerm& term : why.terms) {
      if (term.best_s == 0 && term.other_s == 0) continue;
      out.begin_object();
      out.text("term", term.name);
      out.real("best_s", term.best_s);
      out.real("other_s", term.other_s);
      out.end_object();
    }
    out.end_array();
  }
  out.end_object();
}

}  // namespace

std::string search_json(const SearchReport& report) {
  const plan::SearchResult& result = report.result;
  JsonWriter out;
  out.begin_object();
  out.text("schema", "shardplan/search/v1");
  out.text("version", SHARDPLAN_VERSION);
  out.text("objective", name(report.objective));
  out.boolean("complete", result.complete);
  write_space(out, result.counts);
  out.real("wall_s", result.wall_s);
  out.integer("threads", result.threads);
  const double cores = result.wall_s * result.threads;
  const std::int64_t decided = result.counts.estimated + result.counts.cut_by_bound;
  out.real("layouts_per_s_per_core", cores > 0 ? static_cast<double>(decided) / cores : 0.0);
  out.begin_array("best");
  for (std::size_t i = 0; i < report.best.size(); ++i) {
    write_row(out, report, report.best[i], i + 1, report.best[i].found.pareto);
  }
  out.end_array();
  out.begin_array("pareto");
  for (const SearchRow& row : report.pareto) write_row(out, report, row, 0, true);
  out.end_array();
  if (report.nearest) {
    out.begin_array("nearest");
    write_row(out, report, *report.nearest, 0, false);
    out.end_array();
  }
  if (report.stated) {
    out.begin_object("stated");
    if (result.rank > 0) {
      out.integer("rank", result.rank);
    } else {
      out.null("rank");
    }
    out.boolean("fits", report.stated->estimate.fits);
    out.real("step_s", report.stated->estimate.time.step_s);
    out.integer("peak_bytes", report.stated->estimate.peak_bytes);
    out.integer("headroom_bytes", report.stated->estimate.headroom_bytes);
    out.end_object();
  }
  out.begin_array("why_not");
  for (const plan::WhyNot& why : report.asked) write_why_not(out, why);
  for (const plan::WhyNot& why : report.neighbours) write_why_not(out, why);
  out.end_array();
  if (!report.sensitivity.empty()) {
    out.begin_array("sensitivity");
    for (const plan::Sensitivity& one : report.sensitivity) {
      out.begin_object({}, Lines::one);
      out.text("hardware", one.what);
      out.real("step_s", one.step_s);
      out.real("gain", one.gain);
      out.text("layout", one.layout);
      out.end_object();
    }
    out.end_array();
  }
  out.end_object();
  return out.str() + "\n";
}

}  // namespace shardplan::io
