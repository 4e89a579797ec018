// SARIF 2.1.0, as code scanning reads it.
#include <array>
#include <filesystem>

#include "json_writer.hpp"
#include "shardplan/io/check_json.hpp"
#include "shardplan/version.hpp"

namespace shardplan::io {
namespace {

using plan::Checked;
using plan::CheckedRun;
using plan::CheckStatus;
using Lines = JsonWriter::Lines;

constexpr std::string_view sarif_schema =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";
constexpr std::string_view input_rule = "input";

constexpr std::array<std::string_view, plan::requirement_count> rule_texts = {
    "The run fits into GPU, host and NVMe memory",
    "GiB of GPU memory that stay free",
    "Model FLOP utilisation, attention scores in full",
    "Pipeline bubble as a share of the step's pipeline",
    "Seconds of a step",
    "Tokens per second and GPU",
    "GPU hours for 1e12 tokens"};

/// A path as a URI reference (RFC 3986): characters beyond the unreserved ones and '/' as %XX.
std::string uri_of(const std::string& path) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string uri = std::filesystem::path(path).is_absolute() ? "file://" : "";
  for (const char letter : path) {
    const bool plain = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                       (letter >= '0' && letter <= '9') || std::string_view("-._~/").find(letter) != std::string::npos;
    if (plain) {
      uri += letter;
    } else {
      const auto byte = static_cast<unsigned char>(letter);
      uri += {'%', digits[byte >> 4U], digits[byte & 15U]};
    }
  }
  return uri;
}

void write_rule(JsonWriter& out, std::string_view id, std::string_view text) {
  out.begin_object({}, Lines::one);
  out.text("id", id);
  out.begin_object("shortDescription");
  out.text("text", text);
  out.end_object();
  out.end_object();
}

void write_result(JsonWriter& out, std::string_view rule, std::size_t index, const std::string& message,
                  const std::string& path, int line, int column) {
  out.begin_object();
  out.text("ruleId", rule);
  out.integer("ruleIndex", static_cast<std::int64_t>(index));
  out.text("level", "error");
  out.begin_object("message", Lines::one);
  out.text("text", message);
  out.end_object();
  out.begin_array("locations");
  out.begin_object({}, Lines::one);
  out.begin_object("physicalLocation");
  out.begin_object("artifactLocation");
  out.text("uri", uri_of(path));
  out.end_object();
  if (line > 0) {
    out.begin_object("region");
    out.integer("startLine", line);
    if (column > 0) out.integer("startColumn", column);
    out.end_object();
  }
  out.end_object();
  out.end_object();
  out.end_array();
  out.end_object();
}

std::string message_of(const CheckedRun& run, const plan::Checked& checked) {
  const plan::Requirement requirement = checked.verdict.requirement;
  std::string text =
      requirement == plan::Requirement::fits ? run.over : std::string(name(requirement)) + ": " + checked.sentence;
  if (!run.fix.empty()) text += "; try " + run.fix + " (" + run.fix_effect + ")";
  return text;
}

void write_results(JsonWriter& out, const CheckedRun& run) {
  for (const Diagnostic& problem : run.problems) {
    std::string text = problem.pointer;
    if (!text.empty()) text += ": ";
    text += problem.message;
    if (!problem.way_out.empty()) text.append("; ").append(problem.way_out);
    write_result(out, input_rule, plan::requirement_count, text, plan::place_of(run, problem), problem.line,
                 problem.column);
  }
  for (const Checked& checked : run.requirements) {
    const plan::Verdict& verdict = checked.verdict;
    if (verdict.holds) continue;
    write_result(out, name(verdict.requirement), static_cast<std::size_t>(verdict.requirement),
                 message_of(run, checked), run.path, checked.line, checked.column);
  }
}

}  // namespace

std::string check_sarif(std::span<const CheckedRun> runs) {
  JsonWriter out;
  out.begin_object();
  out.text("$schema", sarif_schema);
  out.text("version", "2.1.0");
  out.begin_array("runs");
  out.begin_object();
  out.begin_object("tool");
  out.begin_object("driver");
  out.text("name", "shardplan");
  out.text("version", SHARDPLAN_VERSION);
  out.begin_array("rules");
  for (std::size_t i = 0; i < plan::requirement_count; ++i) {
    write_rule(out, names_of<plan::Requirement>[i], rule_texts[i]);
  }
  write_rule(out, input_rule, "The file is a legal run");
  out.end_array();
  out.end_object();
  out.end_object();
  out.text("columnKind", "unicodeCodePoints");
  out.begin_array("results");
  for (const CheckedRun& run : runs) write_results(out, run);
  out.end_array();
  out.end_object();
  out.end_array();
  out.end_object();
  return out.str() + "\n";
}

}  // namespace shardplan::io
