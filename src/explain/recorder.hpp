// The trace that writes formulas down (physics/trace.hpp): inputs become symbols with a meaning and a source, steps
// become terms with an address.
#pragma once

#include <string>
#include <string_view>

#include "shardplan/core/run.hpp"
#include "shardplan/explain/terms.hpp"
#include "shardplan/physics/symbols.hpp"
#include "shardplan/physics/trace.hpp"

namespace shardplan::explain {

class Recorder {
 public:
  using Number = Sym;
  static constexpr bool records = true;

  /// Both outlive the recorder and its copies. `path`: of the addresses, "layers.dense"; `label`: for people.
  Recorder(Terms& terms, const Run& run, std::string path = {}, std::string label = {});

  // Inputs. What is 1 as a factor is a plain number and leaves no trace, but for `run` and `config`.
  Sym input(const InputName& name, double value) const;
  Sym gpu(const InputName& name, double value) const;
  Sym cluster(const InputName& name, double value) const;
  Sym stack(const InputName& name, double value) const;
  Sym degree(const InputName& name, double value) const;
  Sym run(const InputName& name, double value) const;
  Sym config(const InputName& name, double value) const;

  template <class... Pieces>
  Sym step(const StepName& name, Sym formula, const Pieces&... pieces) const {
    return add(name, formula, text(name, pieces...), name.source);
  }
  /// A step that opens where it is 0, too.
  template <class... Pieces>
  Sym figure(const StepName& name, Sym formula, const Pieces&... pieces) const {
    if (formula.is(0)) return zero(name, text(name, pieces...));
    return step(name, formula, pieces...);
  }
  /// `formula` as it is; the parts are the addends of `addends` where each is a named step.
  template <class... Pieces>
  Sym total(const StepName& name, Sym formula, Sym addends, const Pieces&... pieces) const {
    return add(name, formula, text(name, pieces...), name.source, addends);
  }
  /// The letters of a layer's formulas; 0 and degrees of 1 leave no trace.
  Symbols<Sym> symbols(const Symbols<double>& v) const;
  /// Ranks of a group; derived degrees have formulas.
  Sym ranks(GroupKind group, double size) const;
  /// The symbol of the term of this name's address where it has the formula's value, to rounding.
  Sym known(const StepName& name, Sym formula) const;
  template <class... Pieces>
  Sym looked_up(const StepName& name, double value, const MeasuredTable& table, const Pieces&... pieces) const {
    return add(name, Sym(value), text(name, pieces...), source_of(table), Sym(), TermKind::looked_up);
  }
  template <class... Pieces>
  Sym simulated(const StepName& name, double value, const Pieces&... pieces) const {
    return add(name, Sym(value), text(name, pieces...), name.source, Sym(), TermKind::simulated);
  }

  /// The formula where it gives the value to rounding.
  Sym simulated(const StepName& name, double value, Sym formula) const;
  /// A sum; of one addend, that term's formula under this address. A term even where it is 0.
  template <class... Pieces>
  Sym same_or_sum(const StepName& name, Sym formula, const Pieces&... pieces) const {
    return add_same(name, formula, text(name, pieces...));
  }
  /// Rounded up to whole bytes, as the estimate does.
  Sym whole(Sym bytes) const;

  /// Addresses below `word`, texts behind `label`.
  Recorder in(std::string_view word, std::string_view label = {}) const;
  Recorder at_stage(std::size_t rank) const;
  Recorder at_chunk(int chunk) const;
  Recorder of_run() const { return {*terms_, *run_}; }

  /// The address of a field below this recorder's path.
  std::string address(std::string_view field) const;

 private:
  Sym named(const InputName& name, double value, const std::string& source) const;
  Sym add(const StepName& name, Sym formula, std::string meaning, std::string_view source, Sym addends = Sym(),
          TermKind kind = TermKind::formula) const;
  Sym zero(const StepName& name, std::string meaning) const;
  Sym add_same(const StepName& name, Sym formula, std::string meaning) const;
  static std::string source_of(const MeasuredTable& table);

  static void append(std::string& text, std::string_view piece);
  static void append(std::string& text, double piece);
  static void append(std::string& text, Bytes piece);
  template <class... Pieces>
  std::string text(const StepName& name, const Pieces&... pieces) const {
    std::string out = label_;
    if (!label_.empty()) out += ": ";
    out += name.meaning;
    (append(out, pieces), ...);
    return out;
  }

  Terms* terms_;
  const Run* run_;
  std::string path_, label_, stage_;
};

}  // namespace shardplan::explain
