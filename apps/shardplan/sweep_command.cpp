// `shardplan sweep`: what if one field, or two, or more, took these values?
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "command.hpp"
#include "output.hpp"
#include "overrides.hpp"
#include "progress_line.hpp"
#include "run_input.hpp"
#include "shardplan/advise/sweep.hpp"
#include "shardplan/catalog/catalog.hpp"
#include "shardplan/io/suggest.hpp"
#include "shardplan/io/sweep_axis.hpp"
#include "shardplan/io/sweep_json.hpp"
#include "shardplan/plan/results.hpp"
#include "shardplan/plan/sweep.hpp"
#include "shardplan/report/number.hpp"
#include "shardplan/report/sweep_text.hpp"

namespace shardplan::cli {
namespace {

using plan::Field;
using plan::PointStatus;
using plan::Sweep;

constexpr std::size_t most_points = 100'000;

constexpr std::array sweep_flags = {
    Flag{"vary", "", ValueKind::axis, FlagGroup::command, "FIELD=VALUES",
         "1,2,4 | 1..8 | 2048..32768*2 | 8..64+8; once a field, best one or two", "param range field grid"},
    Flag{"keep", "", ValueKind::text, FlagGroup::command, "WHAT",
         "tokens: of a step, gbs follows seq; gpus: num_gpus, also where dp is varied", "constant hold fix"},
    Flag{"show", "", ValueKind::text, FlagGroup::command, "A,B,..",
         "peak, need, free, step, tokens, mfu, causal, bubble, price ..", "columns metric print"},
    Flag{"plot", "", ValueKind::text, FlagGroup::command, "FILE.svg", "the same as a picture", "svg chart figure"},
};

enum class Keep : std::uint8_t { nothing, tokens, gpus };

/// What the command line asks for besides the run itself.
struct Request {
  Sweep sweep;
  Keep keep = Keep::nothing;
};

bool varies(const Sweep& sweep, std::string_view pointer) {
  return std::any_of(sweep.axes.begin(), sweep.axes.end(),
                     [&](const plan::SweepAxis& axis) { return axis.pointer == pointer; });
}

/// The field that an override and an axis both decide, if they do.
bool meet(std::string_view one, std::string_view other) {
  const auto field = [](std::string_view pointer) {
    return pointer == "/microbatches" ? std::string_view("/training/global_batch_size") : pointer;
  };
  std::string_view a = field(one);
  std::string_view b = field(other);
  if (a.size() > b.size()) std::swap(a, b);
  return b.substr(0, a.size()) == a && (a.size() == b.size() || b[a.size()] == '/');
}

/// Every --vary of the command line; a field that is given twice, or that a flag sets, is a problem.
Result<std::vector<plan::SweepAxis>> axes_of(const Arguments& arguments) {
  Result<std::vector<plan::SweepAxis>> result;
  const auto complain = [&](std::string message) {
    result.problems.push_back({std::string(command_line_file), "", std::move(message), "", 0, 0});
  };
  const Result<std::vector<io::Override>> overrides = overrides_of(arguments);
  for (const GivenFlag& given : arguments.flags) {
    if (given.flag->name != "vary") continue;
    Result<plan::SweepAxis> axis = io::parse_sweep_axis(given.value);
    result.problems.insert(result.problems.end(), axis.problems.begin(), axis.problems.end());
    if (!axis.ok()) continue;
    for (const plan::SweepAxis& earlier : result.value) {
      if (meet(earlier.pointer, axis.value.pointer)) {
        complain(
            fmt::format("--vary {} and --vary {} both decide {}", earlier.label, axis.value.label, axis.value.pointer));
      }
    }
    for (const io::Override& flag : overrides.value) {
      if (meet(flag.pointer, axis.value.pointer)) {
        complain(fmt::format("{} and --vary {} both decide {}; give one of them", flag.flag, axis.value.label,
                             axis.value.pointer));
      }
    }
    result.value.push_back(std::move(axis.value));
  }
  return result;
}

void complain(Diagnostics& problems, std::string message, std::string way_out = {}) {
  for (Diagnostic& problem : usage_problem(std::move(message), std::move(way_out)).problems) {
    problems.push_back(std::move(problem));
  }
}

/// The columns where --show does not say. Runs of other numbers of GPUs compare by the GPU.
std::vector<std::string_view> usual_columns(std::size_t axes, bool gpus_vary) {
  if (axes == 2) return {"mfu"};
  if (gpus_vary) return {"gpus", "need", "tokens", "tokens-per-gpu", "mfu"};
  if (axes == 1) return {"need", "tokens", "mfu", "causal"};
  return {"need", "step", "tokens", "mfu"};
}

void read_columns(std::optional<std::string_view> text, bool gpus_vary, Sweep& sweep, Diagnostics& problems) {
  if (!text) {
    for (const std::string_view word : usual_columns(sweep.axes.size(), gpus_vary)) {
      // A GPU column beside the axis of that name would say it twice.
      if (word == "gpus" && varies(sweep, name(Field::num_gpus))) continue;
      sweep.shown.push_back(plan::find_result(word));
    }
    return;
  }
  for (std::string_view rest = *text;;) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    const std::string_view word = rest.substr(0, end);
    const plan::ResultField* const field = plan::find_result(word);
    if (field == nullptr) {
      std::string all;
      for (const plan::ResultField& known : plan::usual_results()) {
        all += (all.empty() ? "" : ", ") + std::string(known.word);
      }
      complain(problems,
               fmt::format("--show: \"{}\" is no column{}", word, io::did_you_mean(word, plan::result_words())),
               all + ", or the path of a number of estimate --json (time.recompute_s)");
    } else if (std::count(sweep.shown.begin(), sweep.shown.end(), field) == 0) {
      sweep.shown.push_back(field);
    }
    if (end == rest.size()) return;
    rest.remove_prefix(end + 1);
  }
}

Keep read_keep(std::optional<std::string_view> text, const Sweep& sweep, Diagnostics& problems) {
  if (!text) return Keep::nothing;
  if (*text == "tokens") {
    for (const std::string_view batch : {"/training/global_batch_size", "/microbatches"}) {
      if (!varies(sweep, batch)) continue;
      complain(problems, "--keep tokens sets the global batch, and so does --vary");
      break;
    }
    return Keep::tokens;
  }
  if (*text == "gpus") {
    if (varies(sweep, name(Field::num_gpus))) complain(problems, "--keep gpus and --vary gpus contradict each other");
    return Keep::gpus;
  }
  complain(problems, fmt::format("--keep: \"{}\" is not tokens or gpus", *text));
  return Keep::nothing;
}

/// Whether each point has as many GPUs as its layout makes: where dp is varied, unless the GPUs are to stay.
bool follows_gpus(const Request& request) {
  return request.keep != Keep::gpus && varies(request.sweep, name(Field::data)) &&
         !varies(request.sweep, name(Field::num_gpus));
}

Result<Request> read_request(const Arguments& arguments) {
  Result<Request> result;
  Sweep& sweep = result.value.sweep;
  Result<std::vector<plan::SweepAxis>> axes = axes_of(arguments);
  result.problems = std::move(axes.problems);
  sweep.axes = std::move(axes.value);
  if (!arguments.has("vary")) {
    complain(result.problems, "sweep needs --vary FIELD=VALUES", "for example --vary tp=1,2,4,8 --vary mbs=1..4");
  }
  std::size_t points = 1;
  for (const plan::SweepAxis& axis : sweep.axes) points = std::min(points * axis.values.size(), most_points + 1);
  if (points > most_points) complain(result.problems, fmt::format("a sweep has at most {} points", most_points));
  result.value.keep = read_keep(arguments.value("keep"), sweep, result.problems);
  const bool gpus_vary = follows_gpus(result.value) || varies(sweep, name(Field::num_gpus));
  read_columns(arguments.value("show"), gpus_vary, sweep, result.problems);
  const bool gpus_given = std::any_of(arguments.flags.begin(), arguments.flags.end(), [](const GivenFlag& given) {
    return given.flag->pointer == name(Field::num_gpus);
  });
  if (gpus_given && follows_gpus(result.value)) {
    complain(result.problems, "--gpus and --vary dp both decide /num_gpus; give one of them",
             "--keep gpus holds --gpus: a dp that does not make them is illegal then");
  }
  if (arguments.has("plot") && sweep.axes.size() > 2) {
    complain(result.problems, "--plot draws one or two fields");
  }
  return result;
}

/// Every point is illegal: that is what is wrong with the command line.
Diagnostics all_illegal(const Sweep& sweep) {
  Diagnostics problems;
  for (const auto& [rule, message] : sweep.broken)
    complain(problems, fmt::format("no point is legal ({}): {}", name(rule), message));
  return problems;
}

std::string result_of(const Sweep& sweep, const OutputStyle& style) {
  switch (style.format) {
    case Format::json: return io::sweep_json(sweep);
    case Format::csv: return report::sweep_csv(sweep);
    case Format::markdown: return report::sweep_markdown(sweep, style.page, style.quiet);
    case Format::text: break;
  }
  return report::sweep_text(sweep, style.page, style.quiet);
}

/// A note where a stated degree of data parallelism gives way, as with flags.
void note_dropped_data(const io::RunInput& input, const Sweep& sweep, std::vector<std::string>& notes) {
  const bool stated = input.text && io::states(*input.text, name(Field::data));
  const bool flagged = std::any_of(input.overrides.begin(), input.overrides.end(),
                                   [](const io::Override& change) { return change.pointer == name(Field::data); });
  if (!stated || flagged || varies(sweep, name(Field::data))) return;
  for (const Field field : {Field::num_gpus, Field::tensor, Field::pipeline, Field::context}) {
    std::string_view flag = varies(sweep, name(field)) ? "--vary" : "";
    for (const io::Override& change : input.overrides) {
      if (change.pointer == name(field)) flag = change.flag;
    }
    if (flag.empty()) continue;
    notes.push_back(fmt::format("parallel.data of {} is dropped, since {} changes the layout", input.text->file, flag));
    return;
  }
}

/// What takes long shows how far it is.
void show(std::size_t done, std::size_t points, std::chrono::steady_clock::time_point start, ProgressLine& line) {
  const double elapsed_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!line.is_due(elapsed_s) || done == 0) return;
  line.show(elapsed_s, static_cast<double>(done) / static_cast<double>(points),
            fmt::format("{} of {} points", report::count_text(static_cast<std::int64_t>(done)),
                        report::count_text(static_cast<std::int64_t>(points))));
}

Outcome run_sweep(const Arguments& arguments, const OutputStyle& style) {
  Outcome outcome;
  Result<Request> request = read_request(arguments);
  outcome.problems = std::move(request.problems);
  if (!outcome.problems.empty()) return outcome;
  Sweep& sweep = request.value.sweep;

  Result<io::RunInput> input = run_input_of(arguments);
  outcome.problems = std::move(input.problems);
  if (!outcome.problems.empty()) return outcome;
  OutputFile plot;
  if (const auto path = arguments.value("plot")) {
    const std::string place(*path);
    const bool is_input = !arguments.words.empty() && is_same_file(place, arguments.words.front());
    const bool is_svg = place.size() > 4 && place.compare(place.size() - 4, 4, ".svg") == 0;
    if (place != "-" && !is_svg) {
      return usage_problem(fmt::format("--plot {}: the picture is SVG; its file's name ends in .svg", place));
    }
    const auto output = arguments.value("output");
    if (output && (*output == place || is_same_file(place, std::string(*output)))) {
      return usage_problem(
          fmt::format("-o {} and --plot {} are one file; one would replace the other", *output, place));
    }
    const std::string failure = is_input       ? fmt::format("--plot {}: that is an input", place)
                                : place == "-" ? std::string("--plot needs a file: standard output has the table")
                                               : plot.open(place);
    if (!failure.empty()) return usage_problem(failure);
  }
  note_dropped_data(input.value, sweep, outcome.notes);
  advise::SweepRules rules;
  rules.keep_tokens = request.value.keep == Keep::tokens;
  rules.gpus_follow = follows_gpus(request.value);
  ProgressLine line;
  const auto start = std::chrono::steady_clock::now();
  outcome.problems = advise::estimate_points(input.value, catalog::builtin_catalog(), rules, sweep,
                                             [&](std::size_t done) { show(done, sweep.points.size(), start, line); });
  if (!outcome.problems.empty()) return outcome;
  if (plan::smallest_point(sweep) == sweep.points.size()) {
    outcome.problems = all_illegal(sweep);
    return outcome;
  }
  if (arguments.has("plot")) {
    const std::string failure = plot.commit(report::sweep_svg(sweep, style.page.units));
    if (!failure.empty()) return usage_problem(failure);
  }
  outcome.status = plan::count(sweep, PointStatus::fits) > 0 ? exit_ok : exit_no;
  outcome.result = result_of(sweep, style);
  return outcome;
}

}  // namespace

Command sweep_command() {
  Command command;
  command.name = "sweep";
  command.purpose = Purpose::ask;
  command.arguments = "[RUN.json]";
  command.summary = "What if one field, or two, took these values: a table, a heat map, a picture.";
  command.examples = {"shardplan sweep run.json --vary tp=1,2,4,8 --vary mbs=1,2,4,8 --show mfu",
                      "shardplan sweep run.json --vary seq=2048..32768*2 --keep tokens --plot seq.svg"};
  command.flags = {sweep_flags, run_flags(), output_flags()};
  command.exit_zero = "a point fits";
  command.exit_one = "no legal point fits; the result is printed all the same";
  command.most_words = 1;
  command.run = run_sweep;
  return command;
}

}  // namespace shardplan::cli
