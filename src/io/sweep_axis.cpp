#include "shardplan/io/sweep_axis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "shardplan/core/pointer.hpp"
#include "shardplan/io/overrides.hpp"
#include "shardplan/io/ranges.hpp"
#include "shardplan/io/suggest.hpp"

namespace shardplan::io {
namespace {

/// At commas that stand in no brackets, braces or quotes.
std::vector<std::string_view> split_values(std::string_view text) {
  std::vector<std::string_view> items;
  int depth = 0;
  bool quoted = false;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\') {
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && (c == '[' || c == '{')) {
      ++depth;
    } else if (!quoted && (c == ']' || c == '}')) {
      --depth;
    } else if (!quoted && depth <= 0 && c == ',') {
      items.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  items.push_back(text.substr(begin));
  return items;
}

std::string value_text(double value) {
  constexpr double exact = 9e15;
  if (std::floor(value) == value && std::abs(value) < exact) return std::to_string(static_cast<std::int64_t>(value));
  return fmt::format("{:.10g}", value);
}

/// False where there are too many.
bool add_range(const Range<double>& range, std::vector<std::string>& values) {
  constexpr double slack = 1e-9;
  const double end = range.last + slack * std::max(1.0, std::abs(range.last));
  double value = range.first;
  for (std::size_t i = 0; value <= end; ++i) {
    if (values.size() == most_values) return false;
    values.push_back(value_text(value));
    value = range.multiplies ? value * range.by : range.first + static_cast<double>(i + 1) * range.by;
  }
  return true;
}

/// What a field is called in tables: its flag, or its path.
std::string label_of(const std::string& pointer) {
  if (pointer == "/parallel/sequence_parallel") return "sp";
  if (pointer == "/microbatches") return "microbatches";
  const std::string_view flag = flag_of(pointer);
  return flag.empty() ? dotted(pointer) : std::string(flag);
}

constexpr std::string_view range_syntax =
    "a range is A..B, A..B*K or A..B+K with numbers A and B: 1..8, 2048..32768*2, 64..1024+64";

/// Whether a value that is no range was meant as one. Names and paths may hold two points as well.
bool looks_like_range(std::string_view pointer, std::string_view item) {
  const bool names_file = pointer == "/model" || pointer == "/cluster" || pointer == "/training/stack";
  return !names_file && item.find("..") != std::string_view::npos &&
         item.find_first_of("/\"[{") == std::string_view::npos;
}

Result<plan::SweepAxis> rejected(std::string message, std::string way_out = {}) {
  Result<plan::SweepAxis> result;
  result.problems.push_back(usage_diagnostic(std::move(message), std::move(way_out)));
  return result;
}

}  // namespace

Result<plan::SweepAxis> parse_sweep_axis(std::string_view text) {
  const std::size_t equals = text.find('=');
  const std::string_view field = text.substr(0, equals);
  if (equals == std::string_view::npos || field.empty() || equals + 1 == text.size()) {
    return rejected(fmt::format("--vary: \"{}\" is not FIELD=VALUES", text),
                    "for example --vary tp=1,2,4,8 or --vary seq=2048..32768*2");
  }
  std::optional<std::string> pointer = field_pointer(field);
  if (!pointer) {
    return rejected(fmt::format("--vary: unknown field \"{}\"{}", field, did_you_mean(field, field_words())),
                    "a field is /training/loss, training.loss or a flag's name without dashes");
  }
  Result<plan::SweepAxis> result;
  plan::SweepAxis& axis = result.value;
  axis.pointer = std::move(*pointer);
  const bool negated = field == "no-sp";
  axis.label = negated ? std::string(field) : label_of(axis.pointer);
  for (const std::string_view item : split_values(text.substr(equals + 1))) {
    if (item.empty()) return rejected(fmt::format("--vary {}: a value is missing between two commas", text));
    if (const auto range = negated ? std::nullopt : parse_range<double>(item)) {
      const std::string_view problem = range_problem(*range);
      if (!problem.empty()) return rejected(fmt::format("--vary {}: {}: {}", field, item, problem));
      if (!add_range(*range, axis.values)) {
        return rejected(fmt::format("--vary {}: {} is more than {} values", field, item, most_values));
      }
    } else if (!negated && looks_like_range(axis.pointer, item)) {
      return rejected(fmt::format("--vary {}: \"{}\" is not a range", field, item), std::string(range_syntax));
    } else {
      Result<std::string> value = field_value("--vary", field, axis.pointer, item);
      if (!value.ok()) {
        result.problems = std::move(value.problems);
        return result;
      }
      axis.values.push_back(std::move(value.value));
      if (negated) axis.typed.emplace_back(item);
    }
  }
  std::vector<std::string> sorted = axis.values;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) return rejected(fmt::format("--vary {}: {} is there twice", field, *twice));
  return result;
}

}  // namespace shardplan::io
