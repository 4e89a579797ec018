#include "shardplan/io/check_json.hpp"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "describe_outputs.hpp"
#include "json_writer.hpp"
#include "object_reader.hpp"
#include "shardplan/version.hpp"

namespace shardplan::io {
namespace {

using plan::Checked;
using plan::CheckedRun;
using plan::CheckStatus;
using plan::Figures;
using plan::Requirement;
using Lines = JsonWriter::Lines;

constexpr std::string_view check_schema = "shardplan/check/v1";

void write_value(JsonWriter& out, std::string_view member, Requirement requirement, double value) {
  const bool fits = requirement == Requirement::fits;
  if (fits || out.describes()) out.boolean(member, value != 0);
  if (!fits || out.describes()) out.real(member, value);
}

void write_figure_members(JsonWriter& out, const Figures& figures) {
  out.integer("capacity_bytes", figures.capacity_bytes);
  out.integer("peak_bytes", figures.peak_bytes);
  out.integer("reserved_bytes", figures.reserved_bytes);
  out.integer("headroom_bytes", figures.headroom_bytes, JsonWriter::Whole::any);
  out.boolean("fits", figures.fits);
  out.real("step_s", figures.step_s);
  out.real("tokens_per_s_per_gpu", figures.tokens_per_s_per_gpu);
  out.real("mfu", figures.mfu);
  out.real("bubble_fraction", figures.bubble_fraction);
  out.real("gpu_hours_per_1e12_tokens", figures.gpu_hours);
  out.real_or_null("price_per_1e12_tokens", figures.price);
}

void write_figures(JsonWriter& out, std::string_view member, const Figures& figures) {
  out.begin_object(member, Lines::one);
  write_figure_members(out, figures);
  out.end_object();
}

void write_problem(JsonWriter& out, const Diagnostic& problem) {
  out.begin_object({}, Lines::one);
  out.text("file", problem.file);
  out.text("pointer", problem.pointer);
  out.text("message", problem.message);
  out.text("way_out", problem.way_out);
  out.integer("line", problem.line);
  out.integer("column", problem.column);
  out.end_object();
}

void write_failure(JsonWriter& out, const Checked& checked) {
  const plan::Verdict& verdict = checked.verdict;
  if (verdict.holds) return;
  out.begin_object({}, Lines::one);
  out.word("requirement", verdict.requirement);
  write_value(out, "limit", verdict.requirement, verdict.limit);
  write_value(out, "actual", verdict.requirement, verdict.actual);
  // No line: no file states it.
  out.integer_or_null("line", checked.line > 0 ? std::optional<std::int64_t>(checked.line) : std::nullopt);
  out.end_object();
}

void write_failures(JsonWriter& out, const CheckedRun& run) {
  const bool some = run.status == CheckStatus::fail;
  out.begin_array("failures", Lines::many, {some ? std::size_t{1} : 0, 0, false, !some});
  for (const Checked& checked : run.requirements) write_failure(out, checked);
  out.end_array();
}

void write_file(JsonWriter& out, const CheckedRun& run) {
  out.begin_object();
  out.text("path", run.path);
  out.constant("status", name(run.status));
  write_failures(out, run);
  if (run.status == CheckStatus::error) {
    out.null("fix");
    out.begin_array("problems", Lines::many, {1});
    for (const Diagnostic& problem : run.problems) write_problem(out, problem);
    out.end_array();
  } else {
    out.text_or_null("fix", run.fix);
    write_figures(out, "figures", run.figures);
    out.optional(run.compared || run.baseline, [&] {
      out.object_or_null("baseline", run.baseline.has_value(), Lines::one,
                         [&] { write_figure_members(out, run.baseline.value_or(Figures())); });
    });
  }
  out.end_object();
}

void write_check(JsonWriter& out, std::span<const CheckedRun> runs) {
  const plan::CheckCounts counts = plan::count(runs);
  out.begin_object();
  out.constant("schema", check_schema);
  out.text("version", SHARDPLAN_VERSION);
  out.integer("passed", static_cast<std::int64_t>(counts.passed));
  out.integer("failed", static_cast<std::int64_t>(counts.failed));
  out.integer("errors", static_cast<std::int64_t>(counts.errors));
  out.begin_array("files");
  for (const CheckedRun& run : runs) write_file(out, run);
  out.end_array();
  out.end_object();
}

constexpr double infinite = std::numeric_limits<double>::max();

Figures read_figures(const nlohmann::json& object, std::string_view file, const std::string& pointer,
                     Diagnostics& problems) {
  Figures figures;
  ObjectReader reader(object, file, pointer, problems);
  constexpr std::int64_t most = std::int64_t{1} << 60;
  const auto bytes = [&](std::string_view member) { return reader.integer(member, -most, most).value_or(0); };
  const auto real = [&](std::string_view member) {
    return reader.number(member, {std::nullopt, 0.0, infinite}).value_or(0);
  };
  figures.capacity_bytes = bytes("capacity_bytes");
  figures.peak_bytes = bytes("peak_bytes");
  figures.reserved_bytes = bytes("reserved_bytes");
  figures.headroom_bytes = bytes("headroom_bytes");
  figures.fits = reader.boolean("fits").value_or(false);
  figures.step_s = real("step_s");
  figures.tokens_per_s_per_gpu = real("tokens_per_s_per_gpu");
  figures.mfu = real("mfu");
  figures.bubble_fraction = real("bubble_fraction");
  figures.gpu_hours = real("gpu_hours_per_1e12_tokens");
  figures.price = reader.number("price_per_1e12_tokens", {std::nullopt, 0.0, infinite});
  return figures;
}

}  // namespace

std::string check_json(std::span<const CheckedRun> runs) {
  JsonWriter out;
  write_check(out, runs);
  return out.str() + "\n";
}

void describe_check(JsonWriter& out) {
  std::vector<CheckedRun> runs;
  for (const CheckStatus status : {CheckStatus::pass, CheckStatus::fail, CheckStatus::error}) {
    CheckedRun& run = runs.emplace_back();
    run.status = status;
    run.requirements.emplace_back();
    run.problems.emplace_back();
  }
  write_check(out, runs);
}

bool is_check(const JsonText& text) {
  if (text.value == nullptr || !text.value->is_object()) return false;
  const auto schema = text.value->find("schema");
  return schema != text.value->end() && *schema == check_schema;
}

Result<std::map<std::string, Figures>> read_check(const JsonText& text) {
  Result<std::map<std::string, Figures>> result;
  ObjectReader reader(*text.value, text.file, "", result.problems);
  const nlohmann::json* files = reader.member("files");
  if (files == nullptr || !files->is_array()) {
    reader.problem("files", "is required, a list: this is not what check --json prints");
    return result;
  }
  for (std::size_t i = 0; i < files->size(); ++i) {
    const std::string pointer = "/files/" + std::to_string(i);
    ObjectReader file((*files)[i], text.file, pointer, result.problems);
    const std::optional<std::string> path = file.text("path");
    const nlohmann::json* figures = file.member("figures");
    if (path && figures != nullptr) {
      result.value[*path] = read_figures(*figures, text.file, pointer + "/figures", result.problems);
    }
  }
  locate(text, result.problems);
  return result;
}

}  // namespace shardplan::io
