#include "shardplan/io/sweep_json.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "json_writer.hpp"
#include "override_apply.hpp"
#include "shardplan/version.hpp"

namespace shardplan::io {
namespace {

using plan::Quantity;
using plan::ResultField;
using plan::SweepPoint;
using Lines = JsonWriter::Lines;

void write_figure(JsonWriter& out, const std::string& key, const ResultField& field, const SweepPoint& point) {
  const double value = plan::figure(point, field);
  if (!std::isfinite(value)) {
    out.null(key);
  } else if (field.quantity == Quantity::bytes || field.quantity == Quantity::count) {
    out.integer(key, static_cast<std::int64_t>(value));
  } else {
    out.real(key, value);
  }
}

}  // namespace

std::string sweep_json(const plan::Sweep& sweep) {
  std::vector<const ResultField*> fields;
  for (const std::string_view word : {"peak", "step", "mfu", "tokens"}) fields.push_back(plan::find_result(word));
  for (const ResultField* const field : sweep.shown) {
    if (std::find(fields.begin(), fields.end(), field) == fields.end()) fields.push_back(field);
  }
  std::vector<std::string> keys;
  keys.reserve(fields.size());
  for (const ResultField* const field : fields) keys.push_back(plan::key_of(*field));
  std::vector<std::vector<std::string>> values;  // as JSON
  for (const plan::SweepAxis& axis : sweep.axes) {
    std::vector<std::string>& texts = values.emplace_back();
    for (const std::string& value : axis.values) texts.push_back(override_value({axis.pointer, value, ""}).dump());
  }

  JsonWriter out;
  out.begin_object();
  out.text("schema", "shardplan/sweep/v1");
  out.text("version", SHARDPLAN_VERSION);
  out.begin_array("vary", Lines::one);
  for (const plan::SweepAxis& axis : sweep.axes) out.text({}, axis.pointer);
  out.end_array();
  out.begin_array("points");
  for (std::size_t i = 0; i < sweep.points.size(); ++i) {
    const SweepPoint& point = sweep.points[i];
    const std::vector<std::size_t> places = plan::places_of(sweep, i);
    out.begin_object({}, Lines::one);
    out.begin_array("values");
    for (std::size_t axis = 0; axis < places.size(); ++axis) out.json({}, values[axis][places[axis]]);
    out.end_array();
    out.text("status", name(point.status));
    if (point.status == plan::PointStatus::illegal) {
      out.text("rule", name(point.rule));
    } else {
      out.null("rule");
    }
    for (std::size_t k = 0; k < fields.size(); ++k) write_figure(out, keys[k], *fields[k], point);
    out.end_object();
  }
  out.end_array();
  out.end_object();
  return out.str() + "\n";
}

}  // namespace shardplan::io
