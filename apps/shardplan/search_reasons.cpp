#include "search_reasons.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <sstream>

#include "command_line.hpp"
#include "overrides.hpp"
#include "ranges.hpp"
#include "shardplan/catalog/catalog.hpp"
#include "shardplan/io/suggest.hpp"
#include "shardplan/plan/change.hpp"

namespace shardplan::cli {
namespace {

using plan::Field;

Diagnostics usage(std::string message, std::string way_out) {
  return usage_problem(std::move(message), std::move(way_out)).problems;
}

/// "tp=4,pp=8" as overrides.
Result<std::vector<io::Override>> fields_of(const std::string& text) {
  Result<std::vector<io::Override>> result;
  for (const std::string_view item : list_items(text)) {
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      result.problems =
          usage(fmt::format("--why-not: \"{}\" is not FIELD=VALUE", item), "for example --why-not tp=4,pp=8");
      return result;
    }
    const std::string_view field = item.substr(0, equals);
    const std::optional<std::string> pointer = io::field_pointer(field);
    if (!pointer) {
      result.problems =
          usage(fmt::format("--why-not: unknown field \"{}\"{}", field, io::did_you_mean(field, io::field_words())),
                "a field is tp, parallel.tensor or /parallel/tensor");
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
io::ReadRun read_changed(const SearchInput& input, const Layout& best, const std::vector<io::Override>& fields) {
  io::RunInput changed = input.input;
  for (const io::Override& one : overrides_of(plan::statement_of(best, input.base))) changed.overrides.push_back(one);
  const auto follow = [&](Field field) { changed.overrides.push_back({std::string(name(field)), "null", ""}); };
  const bool chunks = names_field(fields, Field::pipeline) || names_field(fields, Field::virtual_pipeline);
  if (chunks && !input.base.given.has(Field::layers_per_stage)) follow(Field::layers_per_stage);
  if (names_field(fields, Field::virtual_pipeline) && !names_field(fields, Field::schedule)) follow(Field::schedule);
  if (names_field(fields, Field::fsdp)) follow(Field::zero_stage);
  if (names_field(fields, Field::zero_stage)) follow(Field::fsdp);
  if (names_field(fields, Field::tensor) && !names_field(fields, Field::sequence_parallel)) {
    follow(Field::sequence_parallel);
  }
  changed.overrides.insert(changed.overrides.end(), fields.begin(), fields.end());
  return io::read_run(changed, catalog::builtin_catalog());
}

/// One stated value of a variable; nothing where it is none.
template <class Value>
std::optional<Value> value_of(const std::string& text) {
  if constexpr (std::is_enum_v<Value>) {
    return parse_name<Value>(text);
  } else {
    const Result<std::vector<std::int64_t>> numbers = parse_integers("--why-not", text, 0);
    if (!numbers.ok() || numbers.value.size() != 1) return std::nullopt;
    return static_cast<Value>(numbers.value.front());
  }
}

/// The space with fields fixed, as the search's own flags would; nothing where one is no variable.
std::optional<plan::SearchSpace> restricted(const SearchInput& input, const std::vector<io::Override>& fields) {
  plan::SearchSpace space = input.space;
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

}  // namespace

Result<plan::WhyNot> asked_why_not(const SearchInput& input, const plan::SearchOptions& options,
                                   const plan::SearchRow& best, const std::string& text) {
  Result<plan::WhyNot> result;
  const Result<std::vector<io::Override>> fields = fields_of(text);
  if (!fields.ok()) {
    result.problems = fields.problems;
    return result;
  }
  io::ReadRun read = read_changed(input, best.found.layout, fields.value);
  if (read.ok()) {
    Estimate estimate;
    shardplan::estimate(read.run, estimate);
    result.value = plan::why_not(best.run, best.estimate, std::move(read.run), std::move(estimate), text);
    return result;
  }
  if (const std::optional<plan::SearchSpace> space = restricted(input, fields.value)) {
    plan::SearchOptions again = options;
    again.top = 1;
    again.pareto = false;
    again.rank_of = nullptr;
    again.progress = nullptr;
    const plan::SearchResult found = plan::search(input.base, input.read.run, *space, again);
    const std::optional<plan::Found> other = found.best.empty() ? found.nearest : std::optional(found.best.front());
    if (other) {
      plan::SearchRow row = plan::row_of(input.base, *other);
      const std::string change = fmt::format("{} (the best of its {} layouts: {})", text, found.counts.layouts,
                                             plan::flags_of(plan::change_between(best.found.layout, row.found.layout)));
      result.value = plan::why_not(best.run, best.estimate, std::move(row.run), std::move(row.estimate), change);
      return result;
    }
  }
  result.value.change = text;
  result.value.verdict = plan::WhyNot::Verdict::illegal;
  result.value.reason =
      fmt::format("no legal layout: {}: {}", read.problems.front().pointer, read.problems.front().message);
  return result;
}

std::vector<plan::WayToFit> ways_to_fit(const SearchInput& input, const plan::SearchOptions& options) {
  std::vector<plan::WayToFit> ways;
  plan::SearchOptions again = options;
  again.top = 1;
  again.pareto = false;
  again.rank_of = nullptr;
  again.progress = nullptr;
  const auto stopped = [&] { return options.stop != nullptr && options.stop->load(); };
  const auto try_space = [&](const std::string& flags, const plan::Draft& base, const Run& run,
                             const plan::SearchSpace& space) {
    const plan::SearchResult found = plan::search(base, run, space, again);
    if (found.best.empty()) return false;
    ways.push_back({flags, plan::row_of(base, found.best.front())});
    return true;
  };
  constexpr int most_doublings = 6;
  plan::SearchSpace space = input.space;
  const int most_gpus = space.num_gpus.back();
  for (int i = 0, gpus = most_gpus; i < most_doublings && gpus <= 32768 && !stopped(); ++i) {
    gpus *= 2;
    const int node = input.read.run.cluster.gpus_per_node;
    if (gpus > node && gpus % node != 0) gpus = (gpus + node - 1) / node * node;
    space.num_gpus = {gpus};
    if (try_space(fmt::format("--gpus {}", gpus), input.base, input.read.run, space)) break;
  }
  if (input.space.offload && !stopped()) {
    plan::SearchSpace host = input.space;
    host.offload.reset();
    try_space("--offload free", input.base, input.read.run, host);
  }
  constexpr std::int64_t shortest = 256;
  for (std::int64_t seq = input.read.run.training.seq_length / 2; seq >= shortest && !stopped(); seq /= 2) {
    plan::Draft base = input.base;
    base.run.training.seq_length = seq;
    Run run = input.read.run;
    run.training.seq_length = seq;
    if (try_space(fmt::format("--seq {}", seq), base, run, input.space)) break;
  }
  return ways;
}

namespace {

std::string quoted(const std::string& value) {
  const bool plain = value.find_first_of(" '\"{}[]*$&|;<>()\\") == std::string::npos && !value.empty();
  return plain ? value : fmt::format("'{}'", value);
}

/// What a line of words for `estimate` means; nothing where it is no legal run.
std::optional<io::ReadRun> read_words(const std::vector<std::string>& words, const SearchInput& input) {
  std::vector<const char*> texts;
  texts.reserve(words.size());
  for (const std::string& word : words) texts.push_back(word.c_str());
  const ParsedLine line = parse_command_line(estimate_command(), texts);
  if (!line.problems.empty()) return std::nullopt;
  Result<std::vector<io::Override>> overrides = cli::overrides_of(line.arguments);
  if (!overrides.ok()) return std::nullopt;
  io::RunInput run;
  run.text = input.input.text;
  run.overrides = std::move(overrides.value);
  io::ReadRun read = io::read_run(run, catalog::builtin_catalog());
  if (!read.ok()) return std::nullopt;
  return read;
}

}  // namespace

std::string use_line(const Arguments& arguments, const SearchInput& input, const Layout& layout) {
  std::vector<std::string> words = arguments.words;
  for (const GivenFlag& given : arguments.flags) {
    const Flag& flag = *given.flag;
    if (flag.group == FlagGroup::command || flag.group == FlagGroup::output) continue;
    std::string_view pointer = flag.pointer;
    std::optional<std::string> of_set;
    if (flag.kind == ValueKind::any_field) {
      of_set = io::field_pointer(std::string_view(given.value).substr(0, given.value.find('=')));
      if (of_set) pointer = *of_set;
    }
    const bool kept = std::any_of(input.input.overrides.begin(), input.input.overrides.end(),
                                  [&](const io::Override& o) { return o.pointer == pointer && !o.flag.empty(); });
    if (!kept) continue;
    words.push_back(fmt::format("--{}", flag.name));
    if (flag.kind != ValueKind::none) words.push_back(given.value);
  }
  for (const io::Override& one : input.input.overrides) {
    if (one.flag.empty()) words.insert(words.end(), {fmt::format("--{}", io::flag_of(one.pointer)), one.value});
  }
  // What the line means without the variables: from there the layout is stated, field by field where they differ.
  std::vector<std::string> with_gpus = words;
  with_gpus.insert(with_gpus.end(), {"--gpus", std::to_string(layout.num_gpus)});
  std::optional<io::ReadRun> start = arguments.words.empty() ? std::nullopt : read_words(words, input);
  if (!start || layout_of(start->run).num_gpus != layout.num_gpus) {
    words = with_gpus;
    start = read_words(words, input);
  }
  const auto add = [&words](const std::string& flags) {
    std::istringstream parts(flags);
    for (std::string part; parts >> part;) words.push_back(part);
  };
  const plan::FieldSet given = start ? start->draft.given : plan::FieldSet();
  const Layout from = start ? layout_of(start->run) : Layout{};
  Layout first = from;
  first.num_gpus = layout.num_gpus;
  const std::string flags = plan::flags_of(plan::change_between(first, layout));
  add(flags);
  if (layout.virtual_pipeline != from.virtual_pipeline && given.has(Field::schedule) &&
      flags.find("--schedule") == std::string::npos) {
    add(fmt::format("--schedule {}", name(layout.schedule)));
  }
  if (layout.fsdp == Fsdp::none && given.has(Field::fsdp)) add("--set parallel.fsdp=null");
  if (layout.shard_group == 0 && given.has(Field::shard_group)) add("--set parallel.shard_group=null");
  const std::int64_t layers = input.base.run.model.layers();
  if (!input.base.given.has(Field::layers_per_stage) &&
      layers % (std::int64_t{layout.pipeline} * layout.virtual_pipeline) != 0) {
    std::vector<int> chunks;
    plan::layers_of_chunks(layers, layout.pipeline, layout.virtual_pipeline, chunks);
    add(fmt::format("--set parallel.layers_per_stage=[{}]", fmt::join(chunks, ",")));
  }
  // Defaults follow from what is stated: what they made of the line otherwise is stated too.
  if (const std::optional<io::ReadRun> read = read_words(words, input)) {
    add(plan::flags_of(plan::change_between(layout_of(read->run), layout)));
  }
  std::string line = "shardplan estimate";
  for (const std::string& word : words) line += " " + quoted(word);
  return line;
}

}  // namespace shardplan::cli
