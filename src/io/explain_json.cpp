#include "shardplan/io/explain_json.hpp"

#include <cmath>
#include <deque>

#include "describe_outputs.hpp"
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
  const bool whole = number == static_cast<double>(static_cast<std::int64_t>(std::abs(number) < exact ? number : 0));
  if (whole && !json.describes()) {
    json.integer(name, static_cast<std::int64_t>(number));
  } else {
    json.real(name, number);
  }
}

void members(JsonWriter& json, const Explanation& e) {
  json.optional(!e.run.empty(), [&] { json.text("run", e.run); });
  json.text("topic", e.topic);
  value(json, "value", e.value);
  json.text("unit", e.unit);
  json.text("formula", e.formula);
  json.list("symbols", e.symbols, [&](const explain::ExplainedSymbol& symbol) {
    json.begin_object("", Lines::one);
    json.text("symbol", symbol.symbol);
    json.text("meaning", symbol.meaning);
    value(json, "value", symbol.value);
    json.text("unit", symbol.unit);
    json.optional(!symbol.address.empty(), [&] { json.text("address", symbol.address); });
    json.end_object();
  });
  json.text("substitution", e.substitution);
  json.list("sources", e.sources, [&](const std::string& source) { json.text("", source); });
  json.text_or_null("beware", e.beware);
  json.text_or_null("try", e.next);
  json.text_or_null("title", e.title);
  json.list("parts", e.parts, [&](const explain::PartOf& part) {
    json.begin_object("", Lines::one);
    json.text("address", part.address);
    value(json, "value", part.value);
    json.text("meaning", part.meaning);
    json.end_object();
  });
  json.list("remarks", e.remarks, [&](const explain::Remark& remark) {
    json.begin_object("", Lines::one);
    json.text("label", remark.label);
    json.text("text", remark.text);
    json.end_object();
  });
}

void begin(JsonWriter& json, std::string_view version) {
  json.begin_object();
  json.constant("schema", "shardplan/explain/v1");
  json.text("version", version);
}

void write_card(JsonWriter& json, const Explanation& explanation, std::string_view version) {
  begin(json, version);
  members(json, explanation);
  json.end_object();
}

void write_cards(JsonWriter& json, std::span<const Explanation> explanations, std::string_view version) {
  begin(json, version);
  json.list("topics", explanations, [&](const Explanation& each) {
    json.begin_object();
    members(json, each);
    json.end_object();
  });
  json.end_object();
}

void write_addresses(JsonWriter& json, const std::deque<explain::Term>& terms, std::string_view version) {
  begin(json, version);
  json.list("addresses", terms, [&](const explain::Term& term) {
    json.begin_object("", Lines::one);
    json.text("address", term.address);
    value(json, "value", term.value);
    json.text("unit", term.unit);
    json.text("meaning", term.meaning);
    json.end_object();
  });
  json.end_object();
}

}  // namespace

std::string explain_json(const Explanation& explanation, std::string_view version) {
  JsonWriter json;
  write_card(json, explanation, version);
  return json.str() + "\n";
}

std::string explain_all_json(std::span<const Explanation> explanations, std::string_view version) {
  JsonWriter json;
  write_cards(json, explanations, version);
  return json.str() + "\n";
}

std::string addresses_json(const explain::Terms& terms, std::string_view version) {
  JsonWriter json;
  write_addresses(json, terms.all(), version);
  return json.str() + "\n";
}

void describe_explain(JsonWriter& out) {
  write_card(out, {}, {});
  write_cards(out, {}, {});
  write_addresses(out, {}, {});
}

std::string topics_json(std::string_view version, std::span<const explain::Topic* const> topics) {
  std::vector<std::string> items;
  for (const explain::Topic* const topic : topics) items.push_back(topic_item(*topic));
  return list_json("topics", version, items);
}

}  // namespace shardplan::io
