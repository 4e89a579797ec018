#include "flags.hpp"

#include <deque>
#include <string>
#include <vector>

#include "shardplan/io/suggest.hpp"
#include "shardplan/plan/field_table.hpp"

namespace shardplan::cli {
namespace {

using enum ValueKind;
using enum FlagGroup;

FlagGroup group_of(std::string_view pointer) {
  if (pointer == "/model") return model;
  if (pointer.rfind("/parallel", 0) == 0) return parallel;
  return pointer.rfind("/training", 0) == 0 ? training : FlagGroup::cluster;
}

cli::ValueKind kind_of(const ValueType& type, const plan::FieldFlag& flag) {
  if (!flag.fixed.empty()) return none;
  switch (type.kind) {
    case ValueType::Kind::integer: return integer;
    case ValueType::Kind::number:
    case ValueType::Kind::rate: return number;
    case ValueType::Kind::list: return list;
    case ValueType::Kind::object: return pairs;
    default: return text;
  }
}

/// The flags of the fields' rows, and --set. `texts` keeps what no row spells out: "eager, flash or flash-v3".
std::vector<Flag> make_run_flags(std::deque<std::string>& texts) {
  std::vector<Flag> flags;
  for (const plan::FieldRow& row : plan::field_rows()) {
    for (const plan::FieldFlag* const flag : {&row.flag, &row.second}) {
      if (flag->name.empty()) continue;
      const ValueType& type = row.value.type;
      std::string_view help = flag->help.empty() ? row.about : flag->help;
      if (flag->help.empty() && type.kind == ValueType::Kind::word) {
        help = texts.emplace_back(io::list_of({type.words.begin(), type.words.end()}));
      }
      flags.push_back({flag->name, row.pointer, kind_of(type, *flag), group_of(row.pointer), flag->value, help,
                       flag->also, flag->fixed});
    }
  }
  flags.push_back({"set", "", any_field, training, "FIELD=VALUE",
                   "any field: /training/loss=liger, training.seq_length=8192", "override"});
  return flags;
}

constexpr std::array output_rows = {
    Flag{"format", "", text, output, "FORMAT", "text, json, markdown or csv"},
    Flag{"json", "", none, output, "", "short for --format json", "as-json", "json"},
    Flag{"output", "", text, output, "FILE", "write the result there, whole or not at all", "out outfile", "", 'o'},
    Flag{"units", "", text, output, "UNIT", "gib (2^30 bytes) or gb (10^9)"},
    Flag{"color", "", text, output, "WHEN", "auto, always or never; NO_COLOR is obeyed", "colour colors"},
    Flag{"quiet", "", none, output, "", "the first line only", "silent", "true", 'q'},
    Flag{"ascii", "", none, output, "", "no characters beyond ASCII", "", "true"},
};

}  // namespace

std::span<const Flag> run_flags() {
  static std::deque<std::string> texts;
  static const std::vector<Flag> flags = make_run_flags(texts);
  return flags;
}
std::span<const Flag> output_flags() { return output_rows; }

}  // namespace shardplan::cli
