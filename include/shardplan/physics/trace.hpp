// Formulas that can be watched.
//
// A formula of time, memory or throughput is a function template over a trace. With NoTrace it is arithmetic over
// double and the trace is optimised away. With explain::Recorder the same call runs over symbolic numbers: inputs
// become symbols with a meaning and a source, named steps become terms that have an address and can be opened. So the
// formula that is printed is the one that was computed.
//
// What a trace offers (N is its number type):
//   input(name, value)     a constant of this program's model; its `field` says whose, where that is not the model of
//                          the step's time                             gpu, cluster, stack: one that a file states
//   run, config            what the run file and the model's config.json say; degree: the same, 1 leaves no trace
//   symbols(v)             the letters of a layer's formulas (symbols.hpp)
//   ranks(group, size)     ranks of a group, of a shard set or of its replicas
//   step(name, formula)    a named step; returns what stands for it in later formulas. figure: one that is printed, so
//                          that it can be opened where it is 0 as well
//   total(name, formula, addends)   a step whose formula is written out; its parts are the named addends of `addends`,
//                          the same sum over other steps
//   known(name, formula)   what stands for it where a step of this address has the same value, else the formula
//   looked_up(name, value), simulated(name, value)   a number that no formula gives: a table, a simulation
//   simulated(name, value, formula)   the same where `formula` does not give it; the formula where it does
//   same_or_sum(name, formula)   a step that is a sum, shown even where it is 0; of one addend, that one under another
//                          address
//   whole(bytes)           rounded up to whole bytes, as they are printed; no less than 0
//   in(word, label)        a trace whose addresses lie below `word` ("layers.dense" -> "layers.dense.mlp_up")
//   of_run()               a trace of the whole run: no path, no stage
//   at_chunk(c)            of one of a stage's model chunks ("time.pass.forward.chunk1@2")
//   at_stage(rank)         a trace whose addresses are of that pipeline stage ("time.compute@2")
// Text after a name's own (sizes, a rank) is given in pieces and put together by traces that keep it.
#pragma once

#include <algorithm>
#include <cmath>
#include <string_view>

#include "shardplan/physics/collective.hpp"

namespace shardplan {

/// What an input is called where formulas are shown, and the field of the file that states it.
struct InputName {
  std::string_view symbol;
  std::string_view meaning;
  std::string_view field = {};
  std::string_view unit = {};
};

/// A step of a formula. `field` is its address below the trace's path; "../x" lies beside the path's last word.
struct StepName {
  std::string_view symbol;
  std::string_view field;
  std::string_view meaning;
  std::string_view unit;
  std::string_view source;
};

/// A number of bytes as a piece of text: shown in KiB, MiB ...
struct Bytes {
  double count = 0;
};

/// A measured table that a number is looked up in: configs/measured/<kind>-<gpu>.csv.
struct MeasuredTable {
  std::string_view kind;
  std::string_view gpu;
};

struct NoTrace {
  using Number = double;
  /// Whether anything is written down; what only texts need is skipped otherwise.
  static constexpr bool records = false;

  static constexpr double input(const InputName&, double value) noexcept { return value; }
  static constexpr double gpu(const InputName&, double value) noexcept { return value; }
  static constexpr double cluster(const InputName&, double value) noexcept { return value; }
  static constexpr double stack(const InputName&, double value) noexcept { return value; }
  static constexpr double run(const InputName&, double value) noexcept { return value; }
  static constexpr double config(const InputName&, double value) noexcept { return value; }
  static constexpr double degree(const InputName&, double value) noexcept { return value; }

  template <class... Pieces>
  static constexpr double step(const StepName&, double formula, const Pieces&...) noexcept {
    return formula;
  }
  template <class... Pieces>
  static constexpr double figure(const StepName&, double formula, const Pieces&...) noexcept {
    return formula;
  }
  static constexpr double ranks(GroupKind, double size) noexcept { return size; }
  template <class... Pieces>
  static constexpr double total(const StepName&, double formula, double, const Pieces&...) noexcept {
    return formula;
  }
  static constexpr double known(const StepName&, double formula) noexcept { return formula; }
  template <class... Pieces>
  static constexpr double looked_up(const StepName&, double value, const MeasuredTable&, const Pieces&...) noexcept {
    return value;
  }
  template <class... Pieces>
  static constexpr double simulated(const StepName&, double value, const Pieces&...) noexcept {
    return value;
  }
  /// Symbols of a layer's formulas (symbols.hpp) as this trace's numbers.
  template <class Symbols>
  static constexpr const Symbols& symbols(const Symbols& v) noexcept {
    return v;
  }
  static constexpr NoTrace in(std::string_view, std::string_view = {}) noexcept { return {}; }
  static constexpr NoTrace at_stage(std::size_t) noexcept { return {}; }
  static constexpr NoTrace at_chunk(int) noexcept { return {}; }
  static constexpr NoTrace of_run() noexcept { return {}; }
  static constexpr double simulated(const StepName&, double value, double) noexcept { return value; }
  template <class... Pieces>
  static constexpr double same_or_sum(const StepName&, double formula, const Pieces&...) noexcept {
    return formula;
  }
  static double whole(double bytes) noexcept { return std::ceil(std::max(0.0, bytes) - 1e-6); }
};

/// The number type of a trace.
template <class Trace>
using NumberOf = typename Trace::Number;

/// The double behind a number, for decisions and look-ups.
constexpr double value_of(double number) noexcept { return number; }

using std::round;

/// The larger of two; where formulas are shown, the other one leaves no trace (max shows both).
constexpr double larger(double a, double b) noexcept { return a < b ? b : a; }

}  // namespace shardplan
