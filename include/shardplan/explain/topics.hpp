// Topics: one card each, with the numbers of a run, or of the papers and examples that made them known.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shardplan/explain/explanation.hpp"
#include "shardplan/explain/terms.hpp"
#include "shardplan/physics/symbols.hpp"

namespace shardplan::explain {

/// The run that a topic is worked on where none is given.
enum class Example : std::uint8_t {
  pretraining,  ///< Llama-3.1-70B on 128 H100: TP8 PP4 DP4
  fine_tuning,  ///< Llama-3.1-8B with QLoRA on one RTX 4090
  none,         ///< worked on small numbers, whatever the run
};

class Card;

struct Topic {
  std::string_view name;
  std::string_view aliases;  ///< separated by spaces
  std::string_view section;  ///< of training infrastructure at large: "memory", "ZeRO and FSDP", ...
  std::string_view summary;
  Example example = Example::pretraining;
  void (*fill)(Card& card) = nullptr;
};

/// Every topic, in the order of the sections.
std::span<const Topic> topics();

/// By name or alias, case, dashes and spaces ignored; nullptr: there is none.
const Topic* find_topic(std::string_view word);

/// What a word may mean: the topic of that name, those of a section or question of docs/interview.md ("6.2",
/// "section 6", "Q7"), of one of its Chinese terms, of a section of the list, of a tool. None: the word is unknown.
std::vector<const Topic*> find_topics(std::string_view word);

/// Sections and questions of docs/interview.md that a topic answers: "6.2", "3.1 Q1".
std::string places_of(const Topic& topic);

/// What a card is made from.
struct TopicInput {
  const Run* run = nullptr;
  bool stated = false;                                 ///< the run is the user's own, not the example
  std::vector<std::pair<std::string, double>> values;  ///< --let: other values for the card's symbols
  std::string word;      ///< what was asked for, where an alias names one of several ("zero-3", "fp16")
  std::string run_name;  ///< of the run, as the card names it
  std::string run_words = "configs/runs/llama-3.1-70b-128xh100.json";  ///< that give the run on a command line
};

/// What is wrong with a value given for a symbol: the rule that it breaks, and what would be legal.
struct WrongValue {
  std::string message;
  std::string way_out;
};

/// What a card made of the values given.
struct TopicCheck {
  std::vector<std::string> unused;  ///< that no symbol of it takes
  std::vector<WrongValue> wrong;    ///< that its symbol cannot have: the card shows the value that it had
};

Explanation explain_topic(const Topic& topic, const TopicInput& input, TopicCheck* check = nullptr);

/// Values that a symbol can have.
enum class Domain : std::uint8_t {
  amount,    ///< from 0 on: bytes, seconds, rates
  positive,  ///< above 0
  count,     ///< whole, at least 1: degrees, microbatches, elements of a dimension
  index,     ///< whole, from 0 on
  fraction,  ///< 0 to 1
  any        ///< finite
};

/// A card being written: symbols that --let may replace, and the run behind them.
class Card {
 public:
  Card(const Topic& topic, const TopicInput& input);

  Sym symbol(std::string_view name, std::string_view meaning, double value, std::string_view unit = {},
             Domain domain = Domain::amount);
  Sym count(std::string_view name, std::string_view meaning, double value, std::string_view unit = {}) {
    return symbol(name, meaning, value, unit, Domain::count);
  }
  /// A place among `below` ranks or stages.
  Sym index(std::string_view name, std::string_view meaning, double value, double below);
  /// A rule that values given must keep besides their domain.
  void expect(bool holds, std::string_view name, std::string rule, std::string way_out);
  /// Symbols of a layer's formulas; --let may replace those that the card's formula has in the end.
  Symbols<Sym> layer(const Symbols<double>& numbers);
  /// An expression of the run's terms with --let in it.
  Sym adopt(Sym expression);

  void result(Sym value, std::string_view unit, std::string shown = {}, std::string head = {});
  /// Likewise, like terms collected in the formula.
  void collected(Sym value, std::string_view unit, std::string shown = {}, std::string head = {});
  void title(std::string text) { out.title = std::move(text); }
  void note(std::string text) { out.note = std::move(text); }
  void remark(std::string label, std::string text) { out.remarks.push_back({std::move(label), std::move(text)}); }
  void beware(std::string text) { out.beware = std::move(text); }
  void source(std::string text) { out.sources.push_back(std::move(text)); }
  /// A command to try; RUN.json stands for the card's run.
  void next(std::string text);
  /// Whose numbers these are, where not the run's.
  void numbers(std::string whose) { out.run = std::move(whose); }

  const Run& run() const noexcept { return *input_.run; }
  bool stated() const noexcept { return input_.stated; }
  std::string_view word() const noexcept { return input_.word; }
  const Estimate& estimate();
  const Terms& terms();
  /// Of another run: this one with something changed.
  const Terms& terms_of_variant(const Run& run);
  const EstimateWorkspace& workspace();
  TopicCheck check() const;

  Explanation out;

 private:
  void estimate_once();
  void without_fields();
  /// The value given for a symbol where it is legal, else the symbol's own.
  double given_or(std::string_view name, std::string_view meaning, double value, Domain domain);

  TopicInput input_;
  std::vector<WrongValue> wrong_;
  Expressions expressions_;
  std::vector<std::string> names_;
  std::vector<std::pair<std::string, Sym>> layer_symbols_;
  bool estimated_ = false;
  EstimateWorkspace workspace_;
  Estimate estimate_;
  std::unique_ptr<Terms> terms_;
  std::vector<std::unique_ptr<Terms>> variants_;
};

}  // namespace shardplan::explain
