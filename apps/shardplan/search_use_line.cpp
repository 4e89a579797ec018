#include "search_use_line.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <sstream>

#include "command_line.hpp"
#include "overrides.hpp"
#include "shardplan/catalog/catalog.hpp"
#include "shardplan/plan/change.hpp"

namespace shardplan::cli {

using plan::Field;

namespace {

std::string quoted(const std::string& value) {
  const bool plain = value.find_first_of(" '\"{}[]*$&|;<>()\\") == std::string::npos && !value.empty();
  return plain ? value : fmt::format("'{}'", value);
}

/// What a line of words for `estimate` means; nothing where it is no legal run.
std::optional<io::ReadRun> read_words(const std::vector<std::string>& words, const advise::SearchQuestion& question) {
  std::vector<const char*> texts;
  texts.reserve(words.size());
  for (const std::string& word : words) texts.push_back(word.c_str());
  const ParsedLine line = parse_command_line(estimate_command(), texts);
  if (!line.problems.empty()) return std::nullopt;
  Result<std::vector<io::Override>> overrides = cli::overrides_of(line.arguments);
  if (!overrides.ok()) return std::nullopt;
  io::RunInput run;
  run.text = question.input.text;
  run.overrides = std::move(overrides.value);
  io::ReadRun read = io::read_run(run, catalog::builtin_catalog());
  if (!read.ok()) return std::nullopt;
  return read;
}

}  // namespace

std::string use_line(const Arguments& arguments, const advise::SearchQuestion& question, const Layout& layout) {
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
    const bool kept = std::any_of(question.input.overrides.begin(), question.input.overrides.end(),
                                  [&](const io::Override& o) { return o.pointer == pointer && !o.flag.empty(); });
    if (!kept) continue;
    words.push_back(fmt::format("--{}", flag.name));
    if (flag.kind != ValueKind::none) words.push_back(given.value);
  }
  for (const io::Override& one : question.input.overrides) {
    if (one.flag.empty()) words.insert(words.end(), {fmt::format("--{}", io::flag_of(one.pointer)), one.value});
  }
  // What the line means without the variables: from there the layout is stated, field by field where they differ.
  std::vector<std::string> with_gpus = words;
  with_gpus.insert(with_gpus.end(), {"--gpus", std::to_string(layout.num_gpus)});
  std::optional<io::ReadRun> start = arguments.words.empty() ? std::nullopt : read_words(words, question);
  if (!start || layout_of(start->run).num_gpus != layout.num_gpus) {
    words = with_gpus;
    start = read_words(words, question);
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
  const std::int64_t layers = question.base.run.model.layers();
  if (!question.base.given.has(Field::layers_per_stage) &&
      layers % (std::int64_t{layout.pipeline} * layout.virtual_pipeline) != 0) {
    std::vector<int> chunks;
    plan::layers_of_chunks(layers, layout.pipeline, layout.virtual_pipeline, chunks);
    add(fmt::format("--set parallel.layers_per_stage=[{}]", fmt::join(chunks, ",")));
  }
  // Defaults follow from what is stated: what they made of the line otherwise is stated too.
  if (const std::optional<io::ReadRun> read = read_words(words, question)) {
    add(plan::flags_of(plan::change_between(layout_of(read->run), layout)));
  }
  std::string line = "shardplan estimate";
  for (const std::string& word : words) line += " " + quoted(word);
  return line;
}

std::vector<io::Override> absolute_paths(const advise::SearchQuestion& question) {
  std::vector<io::Override> paths;
  constexpr std::array fields = {std::pair{Field::model, io::CatalogKind::models},
                                 std::pair{Field::cluster, io::CatalogKind::clusters}};
  for (std::size_t i = 0; i < fields.size() && i < question.read.files.size(); ++i) {
    const std::string& file = question.read.files[i];
    const bool of_run = question.input.text && file == question.input.text->file;
    const bool built_in = catalog::builtin_catalog().find(fields[i].second, file).has_value();
    std::error_code error;
    if (of_run || built_in || !std::filesystem::is_regular_file(file, error)) continue;
    paths.push_back({std::string(name(fields[i].first)), std::filesystem::absolute(file, error).string(), ""});
  }
  return paths;
}

}  // namespace shardplan::cli
