#include "shardplan/io/explain_json.hpp"

#include <nlohmann/json.hpp>

#include "json_writer.hpp"
#include "shardplan/explain/terms.hpp"
#include "shardplan/explain/topics.hpp"
#include "shardplan/io/list_json.hpp"

namespace shardplan::io {
namespace {

using explain::Explanation;
using Lines = JsonWriter::Lines;

/// Counts and bytes without a point.
void value(JsonWriter& json, std::string_view name, double number) {
  constexpr double exact = 9007199254740992.0;
  if (number == static_cast<double>(static_cast<std::int64_t>(number < exact && number > -exact ? number : 0))) {
    json.integer(name, static_cast<std::int64_t>(number));
  } else {
    json.real(name, number);
  }
}

void text_or_null(JsonWriter& json, std::string_view name, std::string_view text) {
  if (text.empty()) {
    json.null(name);
  } else {
    json.text(name, text);
  }
}

void members(JsonWriter& json, const Explanation& e) {
  if (!e.run.empty()) json.text("run", e.run);
  json.text("topic", e.topic);
  value(json, "value", e.value);
  json.text("unit", e.unit);
  json.text("formula", e.formula);
  json.begin_array("symbols");
  for (const explain::ExplainedSymbol& symbol : e.symbols) {
    json.begin_object("", Lines::one);
    json.text("symbol", symbol.symbol);
    json.text("meaning", symbol.meaning);
    value(json, "value", symbol.value);
    json.text("unit", symbol.unit);
    if (!symbol.address.empty()) json.text("address", symbol.address);
    json.end_object();
  }
  json.end_array();
  json.text("substitution", e.substitution);
  json.begin_array("sources");
  for (const std::string& source : e.sources) json.text("", source);
  json.end_array();
  text_or_null(json, "beware", e.beware);
  text_or_null(json, "try", e.next);
  text_or_null(json, "title", e.title);
  json.begin_array("parts");
  for (const explain::PartOf& part : e.parts) {
    json.begin_object("", Lines::one);
    json.text("address", part.address);
    value(json, "value", part.value);
    json.text("meaning", part.meaning);
    json.end_object();
  }
  json.end_array();
  json.begin_array("remarks");
  for (const explain::Remark& remark : e.remarks) {
    json.begin_object("", Lines::one);
    json.text("label", remark.label);
    json.text("text", remark.text);
    json.end_object();
  }
  json.end_array();
}

void begin(JsonWriter& json, std::string_view version) {
  json.begin_object();
  json.text("schema", "shardplan/explain/v1");
  json.text("version", version);
}

}  // namespace

std::string explain_json(const Explanation& explanation, std::string_view version) {
  JsonWriter json;
  begin(json, version);
  members(json, explanation);
  json.end_object();
  return json.str() + "\n";
}

std::string explain_all_json(std::span<const Explanation> explanations, std::string_view version) {
  JsonWriter json;
  begin(json, version);
  json.begin_array("topics");
  for (const Explanation& each : explanations) {
    json.begin_object();
    members(json, each);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return json.str() + "\n";
}

std::string addresses_json(const explain::Terms& terms, std::string_view version) {
  JsonWriter json;
  begin(json, version);
  json.begin_array("addresses");
  for (const explain::Term& term : terms.all()) {
    json.begin_object("", Lines::one);
    json.text("address", term.address);
    value(json, "value", term.value);
    json.text("unit", term.unit);
    json.text("meaning", term.meaning);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return json.str() + "\n";
}

std::string topics_json(std::string_view version, std::span<const explain::Topic* const> topics) {
  std::vector<std::string> items;
  for (const explain::Topic* const each : topics) {
    const explain::Topic& topic = *each;
    nlohmann::ordered_json item;
    item["name"] = std::string(topic.name);
    item["section"] = std::string(topic.section);
    item["description"] = std::string(topic.summary);
    nlohmann::ordered_json aliases = nlohmann::ordered_json::array();
    for (std::string_view rest = topic.aliases; !rest.empty();) {
      const std::size_t end = std::min(rest.find(' '), rest.size());
      aliases.push_back(std::string(rest.substr(0, end)));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    item["aliases"] = std::move(aliases);
    item["notes"] = explain::places_of(topic);
    items.push_back(item.dump());
  }
  return list_json("topics", version, items);
}

}  // namespace shardplan::io
