// `shardplan explain`: a topic's formula with numbers in it, its source, and what is often got wrong.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "command.hpp"
#include "explain_card.hpp"
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
