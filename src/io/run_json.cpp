// The run as resolved: a run file in which nothing is left out.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "json_writer.hpp"
#include "override_apply.hpp"
#include "shardplan/io/run_file.hpp"
#include "shardplan/plan/field_table.hpp"

namespace shardplan::io {
namespace {

using plan::Draft;
using plan::Field;
using plan::FieldRow;
using Lines = JsonWriter::Lines;

void write_recompute(JsonWriter& out, std::string_view member, const Recompute& recompute) {
  switch (recompute.mode) {
    case RecomputeMode::none: return out.text(member, "none");
    case RecomputeMode::selective: return out.text(member, "selective");
    case RecomputeMode::full: return out.text(member, "full");
    case RecomputeMode::ops: return out.text(member, "ops");
    case RecomputeMode::first_n: return out.text(member, fmt::format("full:{}", recompute.n));
    case RecomputeMode::every_k: return out.text(member, fmt::format("every:{}", recompute.n));
    case RecomputeMode::modules: break;
  }
  out.begin_object(member, Lines::one);
  out.begin_array("modules");
  for (std::size_t i = 0; i < recompute_module_names.size(); ++i) {
    if ((recompute.modules & (1U << i)) != 0) out.text("", recompute_module_names[i]);
  }
  out.end_array();
  out.end_object();
}

void write_targets(JsonWriter& out, std::string_view member, const std::vector<std::string>& targets) {
  if (targets.size() == 1 && targets.front() == "all-linear") return out.text(member, targets.front());
  out.begin_array(member);
  for (const std::string& target : targets) out.text("", target);
  out.end_array();
}

std::string order_text(const Parallel& parallel) {
  std::string order;
  for (const Axis axis : parallel.order) order += (order.empty() ? "" : "-") + std::string(name(axis));
  return order;
}

/// A field with a syntax of its own.
void write_own_syntax(JsonWriter& out, const FieldRow& row, const Run& run) {
  const std::string_view member = member_of(row);
  const Training& training = run.training;
  switch (row.field) {
    case Field::layers_per_stage:
      out.begin_array(member, Lines::one);
      for (const int layers : run.parallel.layers_per_chunk) out.integer("", layers);
      return out.end_array();
    case Field::order: return out.text(member, order_text(run.parallel));
    case Field::stack:
      if (training.stack.name.empty()) return out.null(member);
      return out.text(member, training.stack.name);
    case Field::optimizer: return out.text(member, training.optimizer);
    case Field::recompute: return write_recompute(out, member, training.recompute);
    case Field::loss:
      if (training.loss != LossKind::chunked) return out.text(member, name(training.loss));
      return out.text(member, fmt::format("chunked:{}", training.loss_chunks));
    case Field::peft_targets: return write_targets(out, member, training.peft.target_names);
    default: return;
  }
}

/// Whole numbers without a point.
void write_number(JsonWriter& out, const FieldRow& row, double value) {
  const std::string_view member = member_of(row);
  if (std::isnan(value)) return out.null(member);
  const auto whole = static_cast<std::int64_t>(value);
  switch (row.value.type.kind) {
    case ValueType::Kind::boolean: return out.boolean(member, value != 0);
    case ValueType::Kind::word: return out.text(member, row.value.type.words[static_cast<std::size_t>(whole)]);
    default: break;
  }
  if (value == static_cast<double>(whole)) return out.integer(member, whole);
  out.real(member, value);
}

/// Writes the fields in their order, and the objects around them.
class FieldWriter {
 public:
  FieldWriter(JsonWriter& out, const Draft& draft, const Run& run) : out_(out), draft_(draft), run_(run) {}

  void write(const FieldRow& row) {
    if (!absent_.empty() && is_inside(row.pointer, absent_)) return;
    enter(section_of(row));
    if (row.value.type.kind == ValueType::Kind::object) {
      if (is_there(row.field)) return;  // its members open it
      absent_ = row.pointer;
      out_.null(member_of(row));
    } else if (row.value.get == nullptr) {
      write_own_syntax(out_, row, run_);
    } else if (row.field == Field::fsdp && run_.parallel.fsdp == Fsdp::none && !draft_.given.has(Field::fsdp)) {
      out_.null(member_of(row));
    } else {
      write_number(out_, row, row.value.get(source_of(row.field)));
    }
  }

  /// Leaves objects and enters others until the one at a pointer is open.
  void enter(std::string_view section) {
    while (!is_inside(section, open_)) {
      out_.end_object();
      open_ = open_.substr(0, open_.rfind('/'));
    }
    while (open_ != section) {
      const std::size_t end = std::min(section.find('/', open_.size() + 1), section.size());
      const bool at_the_top = open_.empty();
      out_.begin_object(section.substr(open_.size() + 1, end - open_.size() - 1),
                        at_the_top ? Lines::many : Lines::one);
      open_ = section.substr(0, end);
    }
  }

 private:
  bool is_there(Field field) const {
    return field == Field::peft ? run_.training.peft.active() : draft_.given.has(field);
  }

  /// With adapters the states are theirs, and a stated type of the frozen weights stands as it was.
  const Run& source_of(Field field) const {
    const bool stated = field == Field::param_dtype && run_.training.peft.active() && draft_.given.has(field);
    return stated ? draft_.run : run_;
  }

  JsonWriter& out_;
  const Draft& draft_;
  const Run& run_;
  std::string_view open_;    ///< pointer of the innermost open object
  std::string_view absent_;  ///< of an object that is null
};

void write_requirements(JsonWriter& out, const Requirements& require) {
  out.begin_object("require", Lines::one);
  for (const plan::RequirementRow& row : plan::requirement_rows()) {
    const double value = row.value.get(require);
    if (std::isnan(value)) continue;
    if (row.value.type.kind == ValueType::Kind::boolean) {
      out.boolean(name(row.requirement), value != 0);
    } else {
      out.real(name(row.requirement), value);
    }
  }
  out.end_object();
}

}  // namespace

std::string resolved_run_json(const Draft& draft, const Run& run, std::string_view model, std::string_view cluster) {
  JsonWriter out;
  out.begin_object();
  out.json("model", model.empty() ? "null" : model);
  out.json("cluster", cluster.empty() ? "null" : cluster);
  FieldWriter fields(out, draft, run);
  for (const FieldRow& row : plan::field_rows()) {
    if (row.field != Field::model && row.field != Field::cluster) fields.write(row);
  }
  fields.enter("");
  write_requirements(out, run.require);
  out.begin_array("defaults");
  for (const Field field : plan::defaults_taken(draft)) out.text("", name(field));
  out.end_array();
  out.end_object();
  return out.str();
}

}  // namespace shardplan::io
