// Where no layout of a search is legal: which of the stated values is to blame, by what rule, and what would be legal.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>

#include "shardplan/advise/search_reasons.hpp"
#include "shardplan/core/pointer.hpp"
#include "shardplan/io/overrides.hpp"
#include "shardplan/plan/validate.hpp"

namespace shardplan::advise {
namespace {

using plan::Field;
using plan::SearchSpace;

/// A variable whose values somebody stated. Words of enumerations are numbers here.
struct Stated {
  Field field;
  std::vector<std::int64_t> values;
  std::function<void(SearchSpace&)> release;
  std::function<std::int64_t(const Layout&)> of;
  std::function<void(Layout&, std::int64_t)> set;
  std::function<std::string(std::int64_t)> word = [](std::int64_t value) { return std::to_string(value); };
};

class StatedVariables {
 public:
  StatedVariables(const SearchSpace& space, int gpus_per_node) : space_(space) {
    add_gpus(gpus_per_node);
    plan::for_each_variable([this](Field field, auto list, auto member) { add(field, list, member); });
    add_data();
  }

  std::vector<Stated> take() { return std::move(all_); }

 private:
  template <class Value, class Member>
  void add(Field field, std::optional<std::vector<Value>> SearchSpace::*list, Member member) {
    if (!(space_.*list) || (space_.*list)->empty()) return;
    Stated one;
    one.field = field;
    for (const Value& value : *(space_.*list)) one.values.push_back(static_cast<std::int64_t>(value));
    one.release = [list](SearchSpace& space) { (space.*list).reset(); };
    one.of = [member](const Layout& layout) { return static_cast<std::int64_t>(layout.*member); };
    one.set = [member](Layout& layout, std::int64_t value) { layout.*member = static_cast<Value>(value); };
    if constexpr (std::is_enum_v<Value>) {
      one.word = [](std::int64_t value) { return std::string(name(static_cast<Value>(value))); };
    }
    all_.push_back(std::move(one));
  }

  /// Of GPUs only that they are whole nodes: without that nothing else counts.
  void add_gpus(int node) {
    const std::vector<int>& gpus = space_.num_gpus;
    const auto whole = [&](int n) { return n <= node || n % node == 0; };
    if (std::any_of(gpus.begin(), gpus.end(), whole)) return;
    Stated one;
    one.field = Field::num_gpus;
    one.values.assign(gpus.begin(), gpus.end());
    const int below = gpus.front() / node * node;
    one.release = [=](SearchSpace& space) { space.num_gpus = {below, below + node}; };
    one.of = [](const Layout& layout) { return static_cast<std::int64_t>(layout.num_gpus); };
    one.set = [](Layout& layout, std::int64_t value) { layout.num_gpus = static_cast<int>(value); };
    all_.push_back(std::move(one));
  }

  void add_data() {
    if (!space_.data) return;
    Stated one;
    one.field = Field::data;
    one.values.assign(space_.data->begin(), space_.data->end());
    one.release = [](SearchSpace& space) { space.data.reset(); };
    one.of = [](const Layout& c) -> std::int64_t { return c.num_gpus / (c.tensor * c.pipeline * c.context); };
    all_.push_back(std::move(one));
  }

  /// Recomputation goes with every other value.
  template <class Member>
  void add(Field, std::optional<std::vector<Recompute>> SearchSpace::*, Member) {}

  const SearchSpace& space_;
  std::vector<Stated> all_;
};

/// The rule that a layout breaks, in its sentence: the one about this field where there is one.
std::string broken_sentence(const SearchQuestion& question, const Layout& layout, Field field) {
  plan::Draft draft = plan::with_layout(question.base, layout);
  draft.given.add(field);
  if (draft.layers_per_stage.empty()) draft.given.remove(Field::layers_per_stage);
  const bool degree = field == Field::tensor || field == Field::pipeline || field == Field::context;
  if (degree && question.space.data) {
    draft.run.parallel.data = question.space.data->front();
    draft.given.add(Field::data);
  }
  Run run;
  plan::resolve(draft, run);
  const plan::RuleSet broken = plan::broken_rules(draft, run);
  std::optional<plan::Rule> found;
  for (std::size_t i = 0; i < plan::rule_count; ++i) {
    const auto rule = static_cast<plan::Rule>(i);
    if (!plan::contains(broken, rule)) continue;
    if (!found || (plan::blamed_field(*found) != field && plan::blamed_field(rule) == field)) found = rule;
  }
  return found ? plan::describe(*found, run, draft.layers_per_stage).message : std::string();
}

/// Data parallelism follows from the other degrees: what it has to divide.
std::string data_sentence(const SearchQuestion& question, std::int64_t data) {
  const std::vector<int>& gpus = question.space.num_gpus;
  const std::int64_t batch = question.base.run.training.global_batch_size;
  if (std::none_of(gpus.begin(), gpus.end(), [&](int n) { return n % data == 0; })) {
    return gpus.size() == 1 ? fmt::format("{} does not divide {} GPUs", data, gpus.front())
                            : fmt::format("{} divides none of the numbers of GPUs", data);
  }
  if (batch % data != 0) return fmt::format("{} does not divide global_batch_size {}", data, batch);
  return fmt::format("no legal tensor x pipeline x context leaves data {}", data);
}

/// Legal values next to the stated ones, at most four.
std::vector<std::int64_t> nearest(const std::map<std::int64_t, Layout>& legal, std::int64_t value) {
  constexpr std::size_t most = 4;
  std::vector<std::int64_t> values;
  for (const auto& [number, layout] : legal) values.push_back(number);
  std::stable_sort(values.begin(), values.end(),
                   [&](std::int64_t a, std::int64_t b) { return std::abs(a - value) < std::abs(b - value); });
  values.resize(std::min(values.size(), most));
  std::sort(values.begin(), values.end());
  return values;
}

using LegalValues = std::map<std::int64_t, Layout>;

/// The values that a variable has in the legal layouts of a space, each with one of them.
LegalValues legal_values(const SearchQuestion& question, SearchSpace space, const Stated& variable) {
  if (!space.offload) space.offload = std::vector<Offload>{Offload{}};  // what is legal without is enough
  LegalValues legal;
  plan::for_each_layout(question.base, space,
                        [&](const Layout& layout) { legal.try_emplace(variable.of(layout), layout); });
  return legal;
}

/// Whether a layout with this value has the variable at all: no stage beside FSDP, no group where nothing has one.
bool is_named(const Stated& variable, const Layout& layout) {
  switch (variable.field) {
    case Field::shard_group: return layout.shard_group > 0;
    case Field::zero_stage: return layout.fsdp == Fsdp::none;
    case Field::fsdp: return layout.fsdp != Fsdp::none;
    default: return true;
  }
}

plan::Refusal refusal_of(const SearchQuestion& question, const Stated& variable, const LegalValues& legal) {
  const std::int64_t value = variable.values.front();
  const std::vector<std::int64_t> near = nearest(legal, value);
  std::vector<std::int64_t> named;
  for (const std::int64_t each : near) {
    if (is_named(variable, legal.at(each))) named.push_back(each);
  }
  const auto words = [&](const std::vector<std::int64_t>& values) {
    std::vector<std::string> all;
    for (const std::int64_t each : values) all.push_back(variable.word(each));
    return fmt::format("{}", fmt::join(all, ","));
  };
  std::string sentence;
  if (variable.field == Field::data) {
    sentence = data_sentence(question, value);
  } else {
    Layout layout = legal.at(near.front());
    // Degrees that are free do not stand in the way.
    if (!question.space.tensor) layout.tensor = 1;
    if (!question.space.pipeline && !question.space.schedule && !question.space.virtual_pipeline) layout.pipeline = 1;
    if (!question.space.context) layout.context = 1;
    variable.set(layout, value);
    sentence = broken_sentence(question, layout, variable.field);
  }
  const std::string_view flag = io::flag_of(name(variable.field));
  plan::Refusal refusal;
  refusal.flags = flag.empty() ? fmt::format("--set {}={}", dotted(name(variable.field)), words(variable.values))
                               : fmt::format("--{} {}", flag, words(variable.values));
  // The flag names the value that the rule's sentence starts with.
  const std::size_t said = sentence.find(": ");
  refusal.reason = said < sentence.find(' ') ? sentence.substr(said + 2) : sentence;
  refusal.legal = words(named);
  return refusal;
}

}  // namespace

std::vector<plan::Refusal> refusals(const SearchQuestion& question) {
  std::vector<plan::Refusal> list;
  const std::vector<Stated> variables = StatedVariables(question.space, question.read.run.cluster.gpus_per_node).take();
  for (const Stated& variable : variables) {
    SearchSpace space = question.space;
    variable.release(space);
    const LegalValues legal = legal_values(question, space, variable);
    if (!legal.empty()) list.push_back(refusal_of(question, variable, legal));
  }
  if (!list.empty()) return list;
  // No one of them alone: those that no layout has, whatever the others are.
  SearchSpace open = question.space;
  for (const Stated& variable : variables) variable.release(open);
  for (const Stated& variable : variables) {
    const LegalValues legal = legal_values(question, open, variable);
    const bool any = std::any_of(variable.values.begin(), variable.values.end(),
                                 [&](std::int64_t value) { return legal.count(value) > 0; });
    if (!any && !legal.empty()) list.push_back(refusal_of(question, variable, legal));
  }
  return list;
}

}  // namespace shardplan::advise
