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
constexpr std::string_view fine_tuning_name = "Llama-3.1-8B, QLoRA, one RTX 4090";
constexpr std::string_view pretraining_run = "llama-3.1-70b-128xh100";
constexpr std::string_view lora_run = "llama-3.1-8b-lora-1x4090";  // the run file that is like it

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
                       containing.empty() ? "shardplan explain lists the topics, with sections (6.2) and questions "
                                            "(Q7) of docs/interview.md"
                                          : containing);
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
      let.is_number = error == std::errc() && at == end && std::isfinite(let.value);
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

/// What explain_topic makes of a run, and what was wrong on the way.
struct Card {
  explain::Explanation explanation;
  Diagnostics problems;
  std::vector<std::string> notes;
};

/// A count or a size is a number from 0 on, a share at most 1; a worked example may be below it.
bool has_sense(const explain::Topic& topic, const explain::Explanation& card) {
  if (!std::isfinite(card.value)) return false;
  if (topic.name == "column-parallel") return true;
  return card.value >= 0 && (card.unit != "fraction" || card.value <= 1);
}

/// Flags that set a field of the run, as they were typed. `other_than`: one of them is left out.
std::string flags_text(const Arguments& arguments, std::string_view not_among = {}) {
  std::string text;
  for (const GivenFlag& given : arguments.flags) {
    if (given.flag->pointer.empty() && given.flag->name != "set") continue;
    const std::string name = fmt::format("--{}", given.flag->name);
    if (not_among.find(name + " ") != std::string_view::npos) continue;
    text += (text.empty() ? "" : " ") + name;
    if (given.flag->kind != ValueKind::none) text += " " + given.value;
  }
  return text;
}

/// How a card names the run, and what gives it on a command line.
void name_run(const Arguments& arguments, explain::Example example, explain::TopicInput& input) {
  const bool tuned = example == explain::Example::fine_tuning;
  const std::string flags = flags_text(arguments);
  const std::string words = fmt::format("configs/runs/{}.json", tuned ? lora_run : pretraining_run);
  std::string file;
  if (!arguments.words.empty()) {
    input.run_words = arguments.words.front();
    file = input.run_words.substr(input.run_words.find_last_of('/') + 1);
    if (file.size() > 5 && file.substr(file.size() - 5) == ".json") file.resize(file.size() - 5);
    if (file == "-") file = "standard input";
  } else if (!arguments.has("model")) {
    input.run_words = words;
    file = tuned ? fine_tuning_name : pretraining_run;
  } else {
    input.run_words.clear();
  }
  const auto joined = [&flags](std::string front) {
    return front + (front.empty() || flags.empty() ? "" : " ") + flags;
  };
  input.run_words = joined(input.run_words);
  input.run_name = joined(file);
  constexpr std::size_t most = 60;
  if (input.run_name.size() > most) {
    input.run_name = file.empty() ? "the run of the flags" : fmt::format("{} with the flags", file);
  }
}

bool same_card(const explain::Explanation& left, const explain::Explanation& right) {
  const auto same_remarks = [](const explain::Remark& a, const explain::Remark& b) {
    return a.label == b.label && a.text == b.text;
  };
  return left.value == right.value && left.shown == right.shown && left.head == right.head && left.note == right.note &&
         left.formula == right.formula && left.substitution == right.substitution && left.beware == right.beware &&
         std::equal(left.remarks.begin(), left.remarks.end(), right.remarks.begin(), right.remarks.end(), same_remarks);
}

/// Flags without which the card says the same.
std::string idle_flags(const explain::Topic& topic, const Arguments& arguments, const explain::TopicInput& input,
                       const explain::Explanation& card) {
  std::string idle;
  for (std::size_t i = 0; i < arguments.flags.size(); ++i) {
    const Flag& flag = *arguments.flags[i].flag;
    if (flag.pointer.empty() && flag.name != "set") continue;
    Arguments without = arguments;
    without.flags.erase(without.flags.begin() + static_cast<std::ptrdiff_t>(i));
    const TopicRun run = run_for(without, topic.example);
    if (!run.read.ok()) continue;
    explain::TopicInput other = input;
    other.run = &run.read.run;
    if (!same_card(explain::explain_topic(topic, other), card)) continue;
    Arguments alone;
    alone.flags = {arguments.flags[i]};
    idle += (idle.empty() ? "" : ", ") + flags_text(alone);
  }
  return idle;
}

Card card_of(const explain::Topic& topic, std::string_view word, Arguments arguments, const std::vector<Let>& lets) {
  Card card;
  const auto fail = [&card, &topic](Diagnostics problems) {
    card.problems = std::move(problems);
    for (Diagnostic& problem : card.problems) {  // Megatron-LM, the example's framework, has no stages 2 and 3
      if (topic.section != "ZeRO" || problem.pointer != "/parallel/zero_stage") continue;
      if (problem.message.find("megatron") == std::string::npos) continue;
      problem.way_out +=
          ", or --framework deepspeed --pp 1, which has stages 2 and 3; shardplan explain zero-3 has the notes' "
          "numbers";
    }
    return card;
  };
  explain::TopicInput input;
  input.word = word;
  if (!lets.empty()) {
    // Which of them are symbols of the card, the card says; the others are flags.
    TopicRun first = run_for(arguments, topic.example);
    if (!first.read.ok()) return fail(std::move(first.read.problems));
    input.run = &first.read.run;
    input.stated = first.stated;
    for (const Let& let : lets) input.values.emplace_back(let.name, let.value);
    explain::TopicCheck check;
    const explain::Explanation known = explain::explain_topic(topic, input, &check);
    input.values.clear();
    for (const Let& let : lets) {
      const bool is_symbol = std::find(check.unused.begin(), check.unused.end(), let.name) == check.unused.end();
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
  name_run(arguments, topic.example, input);
  explain::TopicCheck check;
  card.explanation = explain::explain_topic(topic, input, &check);
  if (!check.wrong.empty()) {
    for (const explain::WrongValue& wrong : check.wrong) {
      for (Diagnostic& problem : usage_problem(wrong.message, wrong.way_out).problems) {
        card.problems.push_back(std::move(problem));
      }
    }
    return card;
  }
  if (!input.values.empty() && !has_sense(topic, card.explanation)) {
    std::string values;
    for (const auto& [name, value] : input.values) {
      values += fmt::format("{}{} = {}", values.empty() ? "" : ", ", name, explain::number(value));
    }
    return fail(usage_problem(fmt::format("--let: {} has no meaning at {}: it would be {}", topic.name, values,
                                          explain::number(card.explanation.value)),
                              fmt::format("its formula: {}", card.explanation.formula))
                    .problems);
  }
  if (topic.example != explain::Example::none) {
    if (const std::string idle = idle_flags(topic, arguments, input, card.explanation); !idle.empty()) {
      card.explanation.remarks.push_back({"flags", fmt::format("{}: changes no number of this card", idle)});
    }
  }
  card.notes = std::move(run.read.notes);
  return card;
}

/// `each_row`: the section on every row, as programs want it; else where it begins.
report::Table topics_table(const std::vector<const explain::Topic*>& topics, bool each_row) {
  report::Table table(
      {{"section"}, {"topic"}, {"what", report::Align::left, "", 1}, {"notes"}, {"also", report::Align::left, "", 2}});
  std::string_view last;
  for (const explain::Topic* const topic : topics) {
    table.add({!each_row && topic->section == last ? "" : topic->section, topic->name, topic->summary,
               explain::places_of(*topic), report::Text(topic->aliases, report::Role::dim)});
    last = topic->section;
  }
  return table;
}

Outcome print_topics(const std::vector<const explain::Topic*>& topics, const OutputStyle& style) {
  Outcome outcome;
  const report::Table table = topics_table(topics, style.format == Format::csv);
  switch (style.format) {
    case Format::text:
      outcome.result =
          table.text(style.page) +
          report::render(report::wrap("notes: sections and questions of "
                                      "docs/interview.md, which answers each; shardplan explain 6.2 or Q7 finds them",
                                      static_cast<std::size_t>(std::max(style.page.width, 20)), 0),
                         style.page);
      break;
    case Format::markdown: outcome.result = table.markdown(); break;
    case Format::csv: outcome.result = table.csv(); break;
    case Format::json: outcome.result = io::topics_json(SHARDPLAN_VERSION, topics); break;
  }
  return outcome;
}

/// The topics that a word may mean; its words are taken from `words`.
std::vector<const explain::Topic*> take_topics(std::vector<std::string>& words, std::string& asked) {
  // "expert parallel", "section 6", "pipeline bubble": as many words as make one.
  for (std::size_t count = words.size(); count > 0; --count) {
    asked.clear();
    for (std::size_t i = 0; i < count; ++i) asked += (i == 0 ? "" : " ") + words[i];
    std::vector<const explain::Topic*> found = explain::find_topics(asked);
    if (found.empty()) continue;
    words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(count));
    return found;
  }
  return {};
}

bool sets_run_or_symbol(const GivenFlag& given) {
  return !given.flag->pointer.empty() || given.flag->name == "set" || given.flag->name == "let";
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
  std::string asked;
  if (all) {
    if (arguments.words.size() > 1) return usage_problem("--all takes at most a RUN.json, no topic");
    if (!lets.value.empty()) return usage_problem("--let sets a symbol of one topic; --all has many");
    for (const explain::Topic& topic : explain::topics()) chosen.push_back(&topic);
  } else if (arguments.words.empty()) {
    if (std::any_of(arguments.flags.begin(), arguments.flags.end(), sets_run_or_symbol)) {
      return usage_problem("explain needs a topic for its flags", "shardplan explain lists the topics");
    }
    if (style.quiet) return usage_problem("-q: a list has no first line that answers for the others");
    return print_topics(style);
  } else {
    chosen = take_topics(arguments.words, asked);
    if (chosen.empty()) return unknown_topic(arguments.words.front());
    if (chosen.size() > 1) {
      const bool of_run = !arguments.words.empty() || style.quiet ||
                          std::any_of(arguments.flags.begin(), arguments.flags.end(), sets_run_or_symbol);
      if (!of_run) return print_topics(chosen, style);
      std::string names;
      for (const explain::Topic* const topic : chosen) names += (names.empty() ? "" : ", ") + std::string(topic->name);
      return usage_problem(fmt::format("explain {}: that is several topics; a run is put into one", asked), names);
    }
    if (arguments.words.size() > 1) {
      return usage_problem(
          fmt::format("explain takes one topic and one RUN.json, not also \"{}\"", arguments.words[1]));
    }
  }
  std::vector<explain::Explanation> cards;
  std::vector<std::string> notes;
  for (const explain::Topic* const topic : chosen) {
    Card card = card_of(*topic, asked, arguments, lets.value);
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
  std::vector<const explain::Topic*> topics;
  for (const explain::Topic& topic : explain::topics()) topics.push_back(&topic);
  return print_topics(topics, style);
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
  command.most_words = 4;
  command.run = run_explain;
  return command;
}

}  // namespace shardplan::cli
