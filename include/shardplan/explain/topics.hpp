// Topics: one card each, with the numbers of a run, or of the notes and papers that made them known.
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

/// By name or alias, case ignored, spaces as dashes; nullptr: there is none.
const Topic* find_topic(std::string_view word);

/// What a card is made from.
struct TopicInput {
  const Run* run = nullptr;
  bool stated = false;                                 ///< the run is the user's own, not the example
  std::vector<std::pair<std::string, double>> values;  ///< --let: other values for the card's symbols
};

/// The card. Values that no symbol of it takes are left in `unused`, where given.
Explanation explain_topic(const Topic& topic, const TopicInput& input, std::vector<std::string>* unused = nullptr);

/// A card being written: symbols that --let may replace, and the run behind them.
class Card {
 public:
  Card(const Topic& topic, const TopicInput& input);

  Sym symbol(std::string_view name, std::string_view meaning, double value, std::string_view unit = {});
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
  void next(std::string text) { out.next = std::move(text); }

  const Run& run() const noexcept { return *input_.run; }
  bool stated() const noexcept { return input_.stated; }
  const Estimate& estimate();
  const Terms& terms();
  /// Of another run: this one with something changed.
  const Terms& terms_of_variant(const Run& run);
  const EstimateWorkspace& workspace();
  std::vector<std::string> unused() const;

  Explanation out;

 private:
  void estimate_once();
  void without_fields();

  TopicInput input_;
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
