// The table of fields: rows hold their members, lookups find them, flags say what was asked.
#include "shardplan/plan/field_table.hpp"

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "support/catch.hpp"

using namespace shardplan;
using plan::Field;
using plan::FieldRow;

namespace {

/// Values at the ends of what a field may be.
std::vector<double> ends_of(const ValueType& type) {
  switch (type.kind) {
    case ValueType::Kind::boolean: return {0, 1};
    case ValueType::Kind::word: return {0, static_cast<double>(type.words.size()) - 1};
    case ValueType::Kind::rate: return {0, 0.5};
    default: return {type.range.from.value_or(type.range.above.value_or(0) + 0.5), type.range.to};
  }
}

}  // namespace

TEST_CASE("each field has a member of its own that holds what it may be") {
  Run run;
  std::vector<const FieldRow*> rows;
  for (const FieldRow& row : plan::field_rows()) {
    if (row.value.set != nullptr) rows.push_back(&row);
  }
  REQUIRE(rows.size() > 70);
  for (const bool low : {true, false}) {
    for (const FieldRow* const row : rows) {
      const std::vector<double> ends = ends_of(row->value.type);
      row->value.set(run, low ? ends.front() : ends.back());
    }
    for (const FieldRow* const row : rows) {
      const std::vector<double> ends = ends_of(row->value.type);
      CAPTURE(row->pointer);
      CHECK(row->value.get(run) == (low ? ends.front() : ends.back()));
    }
  }
}

TEST_CASE("what a run does not state is no number") {
  const Run run;
  CHECK(std::isnan(plan::row_of(Field::capacity_factor).value.get(run)));
  CHECK(std::isnan(plan::row_of(Field::activation_layers).value.get(run)));
  CHECK(plan::row_of(Field::tensor).value.get(run) == 1);
}

TEST_CASE("every row says what it is, and no two share a pointer or a flag") {
  std::set<std::string_view> pointers;
  std::set<std::string_view> flags;
  for (const FieldRow& row : plan::field_rows()) {
    CAPTURE(row.pointer);
    CHECK(pointers.insert(row.pointer).second);
    CHECK(plan::find_field(row.pointer) == &row);
    CHECK(name(row.field) == row.pointer);
    CHECK_FALSE(row.usual.empty());
    CHECK_FALSE(row.about.empty());
    for (const plan::FieldFlag& flag : {row.flag, row.second}) {
      if (flag.name.empty()) continue;
      CHECK(flags.insert(flag.name).second);
      CHECK(flag.value.empty() == !flag.fixed.empty());
      CHECK(plan::find_flag(flag.name).row == &row);
    }
  }
  CHECK(plan::find_field("/parallel/tensors") == nullptr);
  CHECK(plan::find_flag("tensors").row == nullptr);
  CHECK(plan::find_flag_named_elsewhere("tensor-model-parallel-size").row->field == Field::tensor);
}

TEST_CASE("fields as they are typed") {
  struct Case {
    Field field;
    std::string value;
    std::string typed;
  };
  const std::vector<Case> cases = {
      {Field::tensor, "8", "--tp 8"},
      {Field::sequence_parallel, "true", "--sp"},
      {Field::sequence_parallel, "false", "--no-sp"},
      {Field::fsdp, "\"full_shard\"", "--fsdp full_shard"},
      {Field::zero_stage, "null", "--set parallel.zero_stage=null"},
      {Field::offload_optimizer, "\"cpu\"", "--offload optimizer=cpu"},
      {Field::optimizer_fraction, "0.5", "--set training.offload.optimizer_fraction=0.5"},
      {Field::overlap_tp, "true", "--set training.overlap.tp=true"},
      {Field::recompute, R"({"modules":["core_attn"]})", R"(--recompute '{"modules":["core_attn"]}')"},
  };
  for (const Case& each : cases) CHECK(plan::flag_text(each.field, each.value) == each.typed);
  const std::vector<plan::FieldValue> together = {
      {Field::offload_optimizer, "\"cpu\""}, {Field::tensor, "4"}, {Field::offload_parameters, "\"nvme\""}};
  CHECK(plan::flags_text(together) == "--offload optimizer=cpu,parameters=nvme --tp 4");
}
