// `shardplan explain`: a topic's formula with numbers in it, its source, and what is often got wrong.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "command.hpp"
#include "overrides.hpp"
#include "run_input.hpp"
#include "shardplan/catalog/catalog.hpp"
#include "shardplan/explain/topics.hpp"
#include "shardplan/io/explain_json.hpp"
#include "shardplan/io/suggest.hpp"
#include "shardplan/report/explain_text.hpp"
#include "shardplan/version.hpp"

namespace shardplan::cli {
namespace {

constexpr std::array explain_flags = {
    Flag{"let", "", ValueKind::assignment, FlagGroup::command, "SYMBOL=VALUE",
         "another value for a symbol of the topic, or for a flag below", "with set symbol"},
    Flag{"all", "", ValueKind::none, FlagGroup::command, "", "every topic", "everything", "true"},
};

/// QLoRA of Llama-3.1-8B on one 24 GB card.
constexpr std::string_view fine_tuning_run = R"({
  "model": "llama-3.1-8b", "cluster": "workstation-1x4090", "num_gpus": 1,
  "training": {
    "seq_length": 2048, "micro_batch_size": 1, "global_batch_size": 16, "stack": "hf-4.45", "optimizer": "adamw-8bit",
    "peft": { "method": "qlora", "rank": 16, "alpha": 32, "targets": "all-linear", "quant": "nf4" }
  }
})";
constexpr std::string_view pretraining_run = "llama-3.1-70b-128xh100";

std::string_view example_text(explain::Example example) {
  return example == explain::Example::fine_tuning ? fine_tuning_run
                                                  : catalog::find_run(pretraining_run).value_or(std::string_view());
}

Outcome rejected(Diagnostics problems) {
  Outcome outcome;
  outcome.problems = std::move(problems);
  return outcome;
}

Outcome unknown_topic(std::string_view word) {
  std::vector<std::string_view> names;
  std::string containing;
  for (const explain::Topic& topic : explain::topics()) {
    names.push_back(topic.name);
    for (std::string_view rest = topic.aliases; !rest.empty();) {
      const std::size_t end = std::min(rest.find(' '), rest.size());
      names.push_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    if (topic.summary.find(word) != std::string_view::npos || topic.name.find(word) != std::string_view::npos) {
      containing += fmt::format("{}{}", containing.empty() ? "topics that have the word: " : ", ", topic.name);
    }
  }
  return usage_problem(fmt::format("no topic \"{}\"{}", word, io::did_you_mean(word, names)),
                       containing.empty() ? "shardplan explain lists the topics" : containing);
}

/// SYMBOL=VALUE as stated; a flag of the run is one of its fields.
struct Let {
  std::string name;
  std::string text;
  double value = 0;
  bool is_number = false;
};

Result<std::vector<Let>> lets_of(const Arguments& arguments) {
  Result<std::vector<Let>> lets;
  for (const GivenFlag& given : arguments.flags) {
    if (given.flag->name != "let") continue;
    const std::size_t equals = given.value.find('=');
    Let let;
    if (equals != std::string::npos) {
      let.name = given.value.substr(0, equals);
      let.text = given.value.substr(equals + 1);
      const char* const end = let.text.data() + let.text.size();
      const auto [at, error] = std::from_chars(let.text.data(), end, let.value);
      let.is_number = error == std::errc() && at == end && let.value > -1e30 && let.value < 1e30;
    }
    if (let.name.empty() || let.text.empty()) {
      lets.problems = usage_problem(fmt::format("--let: \"{}\" is not SYMBOL=VALUE", given.value),
                                    "for example --let P=7e9 or --let tp=4")
                          .problems;
      return lets;
    }
    lets.value.push_back(std::move(let));
  }
  return lets;
}

const Flag* run_flag(std::string_view name) {
  for (const Flag& flag : run_flags()) {
    if (flag.name == name && flag.kind != ValueKind::none) return &flag;
  }
  return nullptr;
}

struct TopicRun {
  io::ReadRun read;
  bool stated = false;
};

/// The stated run, or the example with the stated flags over it.
TopicRun run_for(const Arguments& arguments, explain::Example example) {
  TopicRun out;
  out.stated = !arguments.words.empty() || arguments.has("model");
  if (out.stated) {
    out.read = read_run_of(arguments);
    return out;
  }
  Result<std::vector<io::Override>> overrides = overrides_of(arguments);
  if (!overrides.ok()) {
    out.read.problems = std::move(overrides.problems);
    return out;
  }
  out.stated = !overrides.value.empty();
  io::RunInput input = io::run_input_from_json(example_text(example));
  if (input.text) input.text->file = "the example run";
  input.overrides = std::move(overrides.value);
  out.read = io::read_run(input, catalog::builtin_catalog());
  return out;
}

struct Card {
  explain::Explanation explanation;
  Diagnostics problems;
  std::vector<std::string> notes;
};

/// A count, a size or a share is a number from 0 on; only worked examples have scores and weights below it.
bool has_sense(const explain::Topic& topic, double value, const explain::TopicInput& input) {
  if (!std::isfinite(value)) return false;
  if (topic.name == "column-parallel" || topic.name == "online-softmax") return true;
  return value >= 0 &&
         std::none_of(input.values.begin(), input.values.end(), [](const auto& given) { return given.second < 0; });
}

Card card_of(const explain::Topic& topic, Arguments arguments, const std::vector<Let>& lets) {
  Card card;
  const auto fail = [&card](Diagnostics problems) {
    card.problems = std::move(problems);
    return card;
  };
  explain::TopicInput input;
  if (!lets.empty()) {
    // Which of them are symbols of the card, the card says; the others are flags.
    TopicRun first = run_for(arguments, topic.example);
    if (!first.read.ok()) return fail(std::move(first.read.problems));
    input.run = &first.read.run;
    input.stated = first.stated;
    for (const Let& let : lets) input.values.emplace_back(let.name, let.value);
    std::vector<std::string> others;
    const explain::Explanation known = explain::explain_topic(topic, input, &others);
    input.values.clear();
    for (const Let& let : lets) {
      const bool is_symbol = std::find(others.begin(), others.end(), let.name) == others.end();
      const Flag* const flag = run_flag(let.name);
      if (is_symbol && !let.is_number) {
        return fail(usage_problem(fmt::format("--let {}: \"{}\" is not a number", let.name, let.text),
                                  "a plain number in base units: bytes, seconds, FLOP/s; 7e9, 0.45, 25e9")
                        .problems);
      }
      if (is_symbol) {
        input.values.emplace_back(let.name, let.value);
      } else if (flag != nullptr) {
        arguments.flags.push_back({flag, let.text});
      } else {
        std::string symbols;
        for (const explain::ExplainedSymbol& symbol : known.symbols) {
          symbols += (symbols.empty() ? "" : ", ") + symbol.symbol;
        }
        return fail(usage_problem(
                        fmt::format("--let: {} has no symbol \"{}\", and no flag has that name", topic.name, let.name),
                        fmt::format("its symbols: {}", symbols))
                        .problems);
      }
    }
  }
  TopicRun run = run_for(arguments, topic.example);
  if (!run.read.ok()) return fail(std::move(run.read.problems));
  input.run = &run.read.run;
  input.stated = run.stated;
  card.explanation = explain::explain_topic(topic, input);
  if (!input.values.empty() && !has_sense(topic, card.explanation.value, input)) {
    std::string values;
    for (const auto& [name, value] : input.values) {
      values += fmt::format("{}{} = {}", values.empty() ? "" : ", ", name, explain::number(value));
    }
    return fail(usage_problem(fmt::format("--let: {} has no meaning at {}: it would be {}", topic.name, values,
                                          explain::number(card.explanation.value)),
                              fmt::format("its formula: {}", card.explanation.formula))
                    .problems);
  }
  card.notes = std::move(run.read.notes);
  return card;
}

/// `each_row`: the section on every row, as programs want it; else where it begins.
report::Table topics_table(bool each_row) {
  report::Table table(
      {{"section"}, {"topic"}, {"what", report::Align::left, "", 1}, {"also", report::Align::left, "", 2}});
  std::string_view last;
  for (const explain::Topic& topic : explain::topics()) {
    table.add({!each_row && topic.section == last ? "" : topic.section, topic.name, topic.summary,
               report::Text(topic.aliases, report::Role::dim)});
    last = topic.section;
  }
  return table;
}

Outcome print_cards(const std::vector<explain::Explanation>& cards, const OutputStyle& style) {
  Outcome outcome;
  if (style.format == Format::json) {
    outcome.result = cards.size() == 1 ? io::explain_json(cards.front(), SHARDPLAN_VERSION)
                                       : io::explain_all_json(cards, SHARDPLAN_VERSION);
    return outcome;
  }
  if (style.format == Format::csv) {
    return usage_problem("a card has no rows in csv",
                         "text, json and markdown show it; shardplan list topics --format csv");
  }
  for (const explain::Explanation& card : cards) {
    if (style.format == Format::markdown) {
      outcome.result += (outcome.result.empty() ? "" : "\n") + report::card_markdown(card);
      continue;
    }
    outcome.result += style.quiet ? report::render({report::card_line(card)}, style.page)
                                  : report::render(report::card_lines(card, style.page.width), style.page);
  }
  return outcome;
}

Outcome run_explain(const Arguments& given, const OutputStyle& style) {
  Arguments arguments = given;
  const bool all = arguments.has("all");
  Result<std::vector<Let>> lets = lets_of(arguments);
  if (!lets.ok()) return rejected(std::move(lets.problems));
  std::vector<const explain::Topic*> chosen;
  if (all) {
    if (arguments.words.size() > 1) return usage_problem("--all takes at most a RUN.json, no topic");
    if (!lets.value.empty()) return usage_problem("--let sets a symbol of one topic; --all has many");
    for (const explain::Topic& topic : explain::topics()) chosen.push_back(&topic);
  } else if (arguments.words.empty()) {
    for (const GivenFlag& flag : arguments.flags) {
      if (!flag.flag->pointer.empty() || flag.flag->name == "set" || flag.flag->name == "let") {
        return usage_problem("explain needs a topic for its flags", "shardplan explain lists the topics");
      }
    }
    if (style.quiet) return usage_problem("-q: a list has no first line that answers for the others");
    return print_topics(style);
  } else {
    const explain::Topic* topic = explain::find_topic(arguments.words.front());
    if (topic == nullptr && arguments.words.size() > 1) {  // "expert parallel"
      topic = explain::find_topic(arguments.words[0] + "-" + arguments.words[1]);
      if (topic != nullptr) arguments.words.erase(arguments.words.begin());
    }
    if (topic == nullptr) return unknown_topic(arguments.words.front());
    chosen.push_back(topic);
    arguments.words.erase(arguments.words.begin());
    if (arguments.words.size() > 1) {
      return usage_problem(
          fmt::format("explain takes one topic and one RUN.json, not also \"{}\"", arguments.words[1]));
    }
  }
  std::vector<explain::Explanation> cards;
  std::vector<std::string> notes;
  for (const explain::Topic* const topic : chosen) {
    Card card = card_of(*topic, arguments, lets.value);
    if (!card.problems.empty()) return rejected(std::move(card.problems));
    cards.push_back(std::move(card.explanation));
    notes = std::move(card.notes);
  }
  Outcome outcome = print_cards(cards, style);
  outcome.notes = std::move(notes);
  return outcome;
}

}  // namespace

Outcome print_topics(const OutputStyle& style) {
  Outcome outcome;
  const report::Table table = topics_table(style.format == Format::csv);
  switch (style.format) {
    case Format::text: outcome.result = table.text(style.page); break;
    case Format::markdown: outcome.result = table.markdown(); break;
    case Format::csv: outcome.result = table.csv(); break;
    case Format::json: outcome.result = io::topics_json(SHARDPLAN_VERSION); break;
  }
  return outcome;
}

Command explain_command() {
  Command command;
  command.name = "explain";
  command.purpose = Purpose::learn;
  command.arguments = "[TOPIC] [RUN.json]";
  command.summary = "A formula with numbers put in, its source, and what is often got wrong.";
  command.examples = {"shardplan explain bubble", "shardplan explain model-states --let P=7e9",
                      "shardplan explain activations run.json --seq 8192"};
  command.flags = {explain_flags, run_flags(), output_flags()};
  command.most_words = 3;
  command.run = run_explain;
  return command;
}

}  // namespace shardplan::cli
