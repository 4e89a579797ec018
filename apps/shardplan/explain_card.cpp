#include "explain_card.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "overrides.hpp"
#include "run_input.hpp"
#include "shardplan/catalog/catalog.hpp"
#include "shardplan/core/number_text.hpp"
#include "shardplan/io/run_file.hpp"

namespace shardplan::cli {
namespace {

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

/// Megatron-LM, the example's framework, has no stages 2 and 3.
void add_way_to_stages(const explain::Topic& topic, Diagnostics& problems) {
  for (Diagnostic& problem : problems) {
    if (topic.section != "ZeRO" || problem.pointer != "/parallel/zero_stage") continue;
    if (problem.message.find("megatron") == std::string::npos) continue;
    problem.way_out +=
        ", or --framework deepspeed --pp 1, which has stages 2 and 3; shardplan explain zero-3 has an "
        "example";
  }
}

/// --let of symbols into the topic's values, of flags among the arguments: which are symbols of the card, the card
/// says.
Diagnostics take_lets(const explain::Topic& topic, const std::vector<Let>& lets, Arguments& arguments,
                      explain::TopicInput& input) {
  if (lets.empty()) return {};
  TopicRun first = run_for(arguments, topic.example);
  if (!first.read.ok()) return std::move(first.read.problems);
  explain::TopicInput asked = input;
  asked.run = &first.read.run;
  asked.stated = first.stated;
  for (const Let& let : lets) asked.values.emplace_back(let.name, let.value);
  explain::TopicCheck check;
  const explain::Explanation known = explain::explain_topic(topic, asked, &check);
  for (const Let& let : lets) {
    const bool is_symbol = std::find(check.unused.begin(), check.unused.end(), let.name) == check.unused.end();
    const Flag* const flag = run_flag(let.name);
    if (is_symbol && !let.is_number) {
      return {usage_diagnostic(fmt::format("--let {}: \"{}\" is not a number", let.name, let.text),
                               "a plain number in base units: bytes, seconds, FLOP/s; 7e9, 0.45, 25e9")};
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
      return {usage_diagnostic(
          fmt::format("--let: {} has no symbol \"{}\", and no flag has that name", topic.name, let.name),
          fmt::format("its symbols: {}", symbols))};
    }
  }
  return {};
}

/// Why the stated values make no card.
Diagnostics value_problems(const explain::Topic& topic, const explain::TopicInput& input,
                           const explain::TopicCheck& check, const explain::Explanation& card) {
  Diagnostics problems;
  for (const explain::WrongValue& wrong : check.wrong)
    problems.push_back(usage_diagnostic(wrong.message, wrong.way_out));
  if (!problems.empty() || input.values.empty() || has_sense(topic, card)) return problems;
  std::string values;
  for (const auto& [name, value] : input.values) {
    values += fmt::format("{}{} = {}", values.empty() ? "" : ", ", name, explain::number(value));
  }
  problems.push_back(usage_diagnostic(
      fmt::format("--let: {} has no meaning at {}: it would be {}", topic.name, values, explain::number(card.value)),
      fmt::format("its formula: {}", card.formula)));
  return problems;
}

}  // namespace

Result<std::vector<Let>> lets_of(const Arguments& arguments) {
  Result<std::vector<Let>> lets;
  for (const GivenFlag& given : arguments.flags) {
    if (given.flag->name != "let") continue;
    const std::size_t equals = given.value.find('=');
    Let let;
    if (equals != std::string::npos) {
      let.name = given.value.substr(0, equals);
      let.text = given.value.substr(equals + 1);
      const std::optional<double> value = double_from_chars(let.text);
      let.is_number = value.has_value();
      let.value = value.value_or(0);
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

Card card_of(const explain::Topic& topic, std::string_view word, Arguments arguments, const std::vector<Let>& lets) {
  Card card;
  explain::TopicInput input;
  input.word = word;
  card.problems = take_lets(topic, lets, arguments, input);
  TopicRun run;
  if (card.problems.empty()) {
    run = run_for(arguments, topic.example);
    card.problems = std::move(run.read.problems);
  }
  add_way_to_stages(topic, card.problems);
  if (!card.problems.empty()) return card;
  input.run = &run.read.run;
  input.stated = run.stated;
  name_run(arguments, topic.example, input);
  explain::TopicCheck check;
  card.explanation = explain::explain_topic(topic, input, &check);
  card.problems = value_problems(topic, input, check, card.explanation);
  if (!card.problems.empty()) return card;
  if (topic.example != explain::Example::none) {
    if (const std::string idle = idle_flags(topic, arguments, input, card.explanation); !idle.empty()) {
      card.explanation.remarks.push_back({"flags", fmt::format("{}: changes no number of this card", idle)});
    }
  }
  card.notes = std::move(run.read.notes);
  return card;
}

}  // namespace shardplan::cli
