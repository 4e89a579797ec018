#include "shardplan/io/sweep_json.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "describe_outputs.hpp"
#include "json_writer.hpp"
#include "override_apply.hpp"
#include "shardplan/version.hpp"

namespace shardplan::io {
namespace {

using plan::Quantity;
using plan::ResultField;
using plan::SweepPoint;
using Lines = JsonWriter::Lines;
using Whole = JsonWriter::Whole;

void write_figure(JsonWriter& out, const std::string& key, const ResultField& field, const SweepPoint& point) {
  const double value = out.describes() ? 0 : plan::figure(point, field);
  const bool known = std::isfinite(value);
  if (field.quantity == Quantity::bytes || field.quantity == Quantity::count) {
    const auto whole = known ? static_cast<std::int64_t>(value) : 0;
    out.integer_or_null(key, known ? std::optional(whole) : std::nullopt, Whole::any);
  } else {
    out.real_or_null(key, known ? std::optional(value) : std::nullopt);
  }
}

/// A figure that each point has under its key.
struct Column {
  const ResultField* field = nullptr;
  std::string key;
};

/// Those that are always there, then those that were asked for.
struct Columns {
  std::vector<Column> always;
  std::vector<Column> shown;
};

Columns columns_of(const plan::Sweep& sweep) {
  Columns columns;
  for (const std::string_view word : {"peak", "step", "mfu", "tokens"}) {
    const ResultField* const field = plan::find_result(word);
    columns.always.push_back({field, plan::key_of(*field)});
  }
  const auto has = [](const std::vector<Column>& list, const ResultField* field) {
    return std::any_of(list.begin(), list.end(), [&](const Column& column) { return column.field == field; });
  };
  for (const ResultField* const field : sweep.shown) {
    const bool known = has(columns.always, field) || has(columns.shown, field);
    if (!known) columns.shown.push_back({field, plan::key_of(*field)});
  }
  return columns;
}

/// `values`: of the axes, as JSON.
void write_sweep(JsonWriter& out, const plan::Sweep& sweep, const std::vector<std::vector<std::string>>& values) {
  const Columns columns = columns_of(sweep);
  out.begin_object();
  out.constant("schema", "shardplan/sweep/v1");
  out.text("version", SHARDPLAN_VERSION);
  out.begin_array("vary", Lines::one, {1});
  for (const plan::SweepAxis& axis : sweep.axes) out.text({}, axis.pointer);
  out.end_array();
  out.begin_array("points");
  for (std::size_t i = 0; i < sweep.points.size(); ++i) {
    const SweepPoint& point = sweep.points[i];
    const std::vector<std::size_t> places = plan::places_of(sweep, i);
    out.begin_object({}, Lines::one);
    out.begin_array("values", Lines::one, {1});
    for (std::size_t axis = 0; axis < places.size(); ++axis) out.json({}, values[axis][places[axis]]);
    out.end_array();
    out.word("status", point.status);
    const bool illegal = point.status == plan::PointStatus::illegal;
    out.text_or_null("rule", illegal ? name(point.rule) : std::string_view());
    for (const Column& column : columns.always) write_figure(out, column.key, *column.field, point);
    out.optional(true, [&] {
      for (const Column& column : columns.shown) write_figure(out, column.key, *column.field, point);
    });
    out.end_object();
  }
  out.end_array();
  out.end_object();
}

}  // namespace

std::string sweep_json(const plan::Sweep& sweep) {
  std::vector<std::vector<std::string>> values;
  for (const plan::SweepAxis& axis : sweep.axes) {
    std::vector<std::string>& texts = values.emplace_back();
    for (const std::string& value : axis.values) texts.push_back(override_value({axis.pointer, value, ""}).dump());
  }
  JsonWriter out;
  write_sweep(out, sweep, values);
  return out.str() + "\n";
}

void describe_sweep(JsonWriter& out) {
  plan::Sweep sweep;
  sweep.axes.push_back({"", "", {""}, {}});
  sweep.points.emplace_back();
  for (const ResultField& field : plan::result_fields()) sweep.shown.push_back(&field);
  write_sweep(out, sweep, {{""}});
}

}  // namespace shardplan::io
