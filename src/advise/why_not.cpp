// One layout beside the best one of a search: what was asked for.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <type_traits>
#include <utility>

#include "shardplan/advise/search_reasons.hpp"
#include "shardplan/advise/trials.hpp"
#include "shardplan/io/ranges.hpp"
#include "shardplan/io/suggest.hpp"

namespace shardplan::advise {
namespace {

using plan::Field;

/// "tp=4,pp=8" as overrides.
Result<std::vector<io::Override>> fields_of(const std::string& text) {
  Result<std::vector<io::Override>> result;
  for (const std::string_view item : io::list_items(text)) {
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      result.problems.push_back(usage_diagnostic(fmt::format("--why-not: \"{}\" is not FIELD=VALUE", item),
                                                 "for example --why-not tp=4,pp=8"));
      return result;
    }
    const std::string_view field = item.substr(0, equals);
    const std::optional<std::string> pointer = io::field_pointer(field);
    if (!pointer) {
      result.problems.push_back(usage_diagnostic(
          fmt::format("--why-not: unknown field \"{}\"{}", field, io::did_you_mean(field, io::field_words())),
          "a field is tp, parallel.tensor or /parallel/tensor"));
      return result;
    }
    result.value.push_back({*pointer, std::string(item.substr(equals + 1)), "--why-not"});
  }
  return result;
}

bool names_field(const std::vector<io::Override>& fields, Field field) {
  return std::any_of(fields.begin(), fields.end(), [&](const io::Override& o) { return o.pointer == name(field); });
}

/// The best layout's run file with fields changed. What only fitted the best layout's chunks follows anew.
io::ReadRun read_changed(const SearchQuestion& question, const Layout& best, const std::vector<io::Override>& fields,
                         const io::CatalogSource& catalog) {
  plan::Change follows;
  const bool chunks = names_field(fields, Field::pipeline) || names_field(fields, Field::virtual_pipeline);
  if (chunks && !question.base.given.has(Field::layers_per_stage)) follows.leave_out(Field::layers_per_stage);
  if (names_field(fields, Field::virtual_pipeline) && !names_field(fields, Field::schedule)) {
    follows.leave_out(Field::schedule);
  }
  if (names_field(fields, Field::fsdp)) follows.leave_out(Field::zero_stage);
  if (names_field(fields, Field::zero_stage)) follows.leave_out(Field::fsdp);
  if (names_field(fields, Field::tensor) && !names_field(fields, Field::sequence_parallel)) {
    follows.leave_out(Field::sequence_parallel);
  }
  std::vector<io::Override> more = io::overrides_of(follows);
  more.insert(more.end(), fields.begin(), fields.end());
  return read_layout(question, best, catalog, std::move(more));
}

/// One stated value of a variable; nothing where it is none.
template <class Value>
std::optional<Value> value_of(const std::string& text) {
  if constexpr (std::is_enum_v<Value>) {
    return parse_name<Value>(text);
  } else {
    const Result<std::vector<std::int64_t>> numbers = io::parse_integers("--why-not", text, 0);
    if (!numbers.ok() || numbers.value.size() != 1) return std::nullopt;
    return static_cast<Value>(numbers.value.front());
  }
}

/// The space with fields fixed, as the search's own flags would; nothing where one is no variable.
std::optional<plan::SearchSpace> restricted(const SearchQuestion& question, const std::vector<io::Override>& fields) {
  plan::SearchSpace space = question.space;
  for (const io::Override& field : fields) {
    bool known = false;
    const auto fix = [&](Field variable, auto& list) {
      using Value = typename std::decay_t<decltype(*list)>::value_type;
      if (field.pointer != name(variable)) return;
      known = true;
      if (const std::optional<Value> value = value_of<Value>(field.value)) list = std::vector<Value>{*value};
    };
    plan::for_each_variable([&](Field variable, auto list, auto) {
      using List = std::decay_t<decltype(*(space.*list))>;
      constexpr bool worded = std::is_same_v<List, std::vector<Recompute>> || std::is_same_v<List, std::vector<bool>>;
      if constexpr (!worded) fix(variable, space.*list);
    });
    fix(Field::data, space.data);
    if (!known) return std::nullopt;
    if (field.pointer == name(Field::zero_stage)) space.fsdp.reset();
    if (field.pointer == name(Field::fsdp)) space.zero.reset();
  }
  return space;
}

/// The best of the question's layouts that have the fields; nothing where none has, or one of them is no variable.
std::optional<plan::WhyNot> best_of_space(const SearchQuestion& question, const plan::SearchOptions& options,
                                          const plan::SearchRow& best, const std::vector<io::Override>& fields,
                                          const std::string& text) {
  const std::optional<plan::SearchSpace> space = restricted(question, fields);
  if (!space) return std::nullopt;
  const plan::SearchResult found =
      plan::search(question.base, question.read.run, *space, plan::for_best_alone(options));
  const std::optional<plan::Found> other = found.best.empty() ? found.nearest : std::optional(found.best.front());
  if (!other) return std::nullopt;
  plan::SearchRow row = plan::row_of(question.base, *other);
  const plan::Change change = plan::change_between(best.found.layout, row.found.layout);
  return plan::why_not(
      best.run, best.estimate, std::move(row.run), std::move(row.estimate),
      fmt::format("{} (the best of its {} layouts: {})", text, found.counts.layouts, plan::flags_of(change)));
}

}  // namespace

Result<plan::WhyNot> why_not(const SearchQuestion& question, const plan::SearchOptions& options,
                             const plan::SearchRow& best, const std::string& text, const io::CatalogSource& catalog) {
  Result<plan::WhyNot> result;
  const Result<std::vector<io::Override>> fields = fields_of(text);
  result.problems = fields.problems;
  if (!result.ok()) return result;
  io::ReadRun read = read_changed(question, best.found.layout, fields.value, catalog);
  if (read.ok()) {
    result.value = plan::why_not(best.run, best.estimate, read.run, Trial().estimate(read.run), text);
  } else if (auto other = best_of_space(question, options, best, fields.value, text)) {
    result.value = std::move(*other);
  } else {
    result.value.change = text;
    result.value.verdict = plan::WhyNot::Verdict::illegal;
    result.value.reason =
        fmt::format("no legal layout: {}: {}", read.problems.front().pointer, read.problems.front().message);
  }
  return result;
}

}  // namespace shardplan::advise
