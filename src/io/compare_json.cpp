#include "shardplan/io/compare_json.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "describe_outputs.hpp"
#include "json_writer.hpp"
#include "shardplan/io/json_text.hpp"
#include "shardplan/plan/results.hpp"
#include "shardplan/version.hpp"

namespace shardplan::io {
namespace {

using nlohmann::ordered_json;
using plan::Comparison;
using plan::Quantity;
using plan::ResultField;
using Lines = JsonWriter::Lines;

/// Calls visit(pointer, value) for everything that is no object.
template <class Visitor>
void each_leaf(const ordered_json& value, const std::string& pointer, const Visitor& visit) {
  if (!value.is_object()) return visit(pointer, value.dump());
  for (const auto& [key, member] : value.items()) each_leaf(member, pointer + "/" + escape_token(key), visit);
}

/// Whether a leaf was left to its default: it or an object around it is on the list.
bool is_default(const std::set<std::string>& defaults, const std::string& pointer) {
  for (std::size_t end = pointer.size(); end != std::string::npos && end > 0; end = pointer.rfind('/', end - 1)) {
    if (defaults.count(pointer.substr(0, end)) > 0) return true;
  }
  return false;
}

/// What a cluster is, without what is said about it.
void drop_remarks(ordered_json& cluster) {
  for (const char* const remark : {"$schema", "aliases", "notes", "source", "trust"}) cluster.erase(remark);
}

/// Names of built-in clusters give way to their members where another run states members.
void expand_clusters(std::vector<ordered_json>& runs, const CatalogSource& catalog) {
  const bool inlined = std::any_of(runs.begin(), runs.end(), [](const ordered_json& run) {
    const auto cluster = run.find("cluster");
    return cluster != run.end() && cluster->is_object();
  });
  if (!inlined) return;
  for (ordered_json& run : runs) {
    const auto cluster = run.find("cluster");
    if (cluster == run.end()) continue;
    if (cluster->is_string()) {
      const auto text = catalog.find(CatalogKind::clusters, cluster->get_ref<const std::string&>());
      if (text) *cluster = ordered_json::parse(*text, nullptr, true, true);
    }
    if (cluster->is_object()) drop_remarks(*cluster);
  }
  // One GPU of another by its members likewise.
  const auto gpu_of = [](ordered_json& run) -> ordered_json* {
    const auto cluster = run.find("cluster");
    if (cluster == run.end() || !cluster->is_object()) return nullptr;
    const auto gpu = cluster->find("gpu");
    return gpu == cluster->end() ? nullptr : &*gpu;
  };
  const bool spelled = std::any_of(runs.begin(), runs.end(), [&](ordered_json& run) {
    const ordered_json* const gpu = gpu_of(run);
    return gpu != nullptr && gpu->is_object();
  });
  for (ordered_json& run : runs) {
    ordered_json* const gpu = gpu_of(run);
    if (!spelled || gpu == nullptr) continue;
    if (gpu->is_string()) {
      const auto text = catalog.find(CatalogKind::gpus, gpu->get_ref<const std::string&>());
      if (text) *gpu = ordered_json::parse(*text, nullptr, true, true);
    }
    if (gpu->is_object()) drop_remarks(*gpu);
  }
}

void write_value(JsonWriter& out, const ResultField& field, double value) {
  if (!std::isfinite(value)) {
    out.null({});
  } else if (field.quantity == Quantity::bytes || field.quantity == Quantity::count) {
    out.integer({}, static_cast<std::int64_t>(value));
  } else {
    out.real({}, value);
  }
}

/// A path, and what each run has there: write_values() writes the entries. Any JSON, as fields are.
template <class WriteValues>
void write_row(JsonWriter& out, std::string_view path, const WriteValues& write_values) {
  out.begin_object({}, Lines::one);
  out.text("path", path);
  out.begin_array("values", Lines::one, {2});
  if (out.describes()) {
    out.json({}, {});
  } else {
    write_values();
  }
  out.end_array();
  out.end_object();
}

void write_inputs(JsonWriter& out, const Comparison& comparison, bool all) {
  out.list("inputs", comparison.inputs, [&](const plan::InputRow& row) {
    if (row.equal && !all) return;
    write_row(out, row.path, [&] {
      for (const std::string& value : row.values) out.json({}, value.empty() ? "null" : value);
    });
  });
}

void write_fits(JsonWriter& out, const Comparison& comparison, bool all) {
  const auto& runs = comparison.runs;
  const bool equal = std::all_of(runs.begin(), runs.end(), [&](const plan::ComparedRun& run) {
    return run.estimate.fits == runs.front().estimate.fits;
  });
  if (equal && !all) return;
  write_row(out, "/memory/fits", [&] {
    for (const plan::ComparedRun& run : runs) out.boolean({}, run.estimate.fits);
  });
}

void write_result(JsonWriter& out, const ResultField& field, const Comparison& comparison, bool all) {
  std::vector<double> values;
  for (const plan::ComparedRun& run : comparison.runs) values.push_back(field.value(run.run, run.estimate));
  const bool equal = std::all_of(values.begin(), values.end(), [&](double value) {
    return value == values.front() || (std::isnan(value) && std::isnan(values.front()));
  });
  if (equal && !all) return;
  write_row(out, field.path, [&] {
    for (const double value : values) write_value(out, field, value);
  });
}

void write_results(JsonWriter& out, const Comparison& comparison, bool all) {
  out.begin_array("results");
  write_fits(out, comparison, all);
  for (const ResultField& field : plan::result_fields()) {
    // What a run states is an input.
    const bool shown = !field.path.empty() && field.path.rfind("/run/", 0) != 0;
    if (shown && !out.describes()) write_result(out, field, comparison, all);
  }
  out.end_array();
}

void write_comparison(JsonWriter& out, const Comparison& comparison, bool all) {
  out.begin_object();
  out.constant("schema", "shardplan/compare/v1");
  out.text("version", SHARDPLAN_VERSION);
  out.begin_array("runs", Lines::one, {2});
  for (const plan::ComparedRun& run : comparison.runs) out.text({}, run.name);
  out.end_array();
  write_inputs(out, comparison, all);
  write_results(out, comparison, all);
  out.end_object();
}

}  // namespace

std::vector<plan::InputRow> input_rows(std::span<const std::string_view> resolved, const CatalogSource& catalog) {
  std::vector<ordered_json> runs;
  for (const std::string_view text : resolved) runs.push_back(ordered_json::parse(text));
  expand_clusters(runs, catalog);
  std::vector<plan::InputRow> rows;
  std::map<std::string, std::size_t> index;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const ordered_json& run = runs[i];
    std::set<std::string> defaults;
    if (const auto list = run.find("defaults"); list != run.end()) {
      for (const auto& pointer : *list) defaults.insert(pointer.get<std::string>());
    }
    each_leaf(run, "", [&](const std::string& pointer, std::string value) {
      if (pointer == "/defaults") return;
      const auto [place, is_new] = index.emplace(pointer, rows.size());
      if (is_new) rows.push_back({pointer, std::vector<std::string>(resolved.size()), false, false, {}});
      plan::InputRow& row = rows[place->second];
      row.values[i] = std::move(value);
      row.stated = row.stated || !is_default(defaults, pointer);
    });
  }
  for (plan::InputRow& row : rows) {
    row.equal = std::all_of(row.values.begin(), row.values.end(),
                            [&](const std::string& value) { return value == row.values.front(); });
  }
  return rows;
}

std::string compare_json(const Comparison& comparison, bool all) {
  JsonWriter out;
  write_comparison(out, comparison, all);
  return out.str() + "\n";
}

void describe_compare(JsonWriter& out) {
  Comparison comparison;
  comparison.runs.resize(2);
  write_comparison(out, comparison, true);
}

}  // namespace shardplan::io
