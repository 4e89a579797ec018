#include "schedule_compare.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "shardplan/plan/estimate.hpp"
#include "shardplan/plan/validate.hpp"
#include "shardplan/report/number.hpp"
#include "shardplan/schedule/shape.hpp"

namespace shardplan::cli {

using plan::Field;
using report::Align;
using report::Text;

report::Table compare_schedules(const plan::Draft& draft, const Run& run, report::Units units, bool data) {
  const std::string size(report::unit_name(units));
  report::Table table({{"schedule"},
                       {"vpp", Align::right, {}, 3},
                       {"bubble", Align::right, {}, 0, "bubble_fraction"},
                       {"held", Align::right, "full stages"},
                       {"activ", Align::right, size, 2},
                       {"param", Align::right, size, 1},
                       {"peak", Align::right, size},
                       {"step", Align::right, {}, 0, "step_s"},
                       {"fits", Align::left}});
  for (std::size_t i = 0; i < names_of<ScheduleKind>.size(); ++i) {
    const auto kind = static_cast<ScheduleKind>(i);
    const int fixed = schedule::fixed_chunks(kind);
    const int chunks = kind == run.parallel.schedule ? run.parallel.virtual_pipeline
                       : fixed > 0                   ? fixed
                                                     : std::max(run.parallel.virtual_pipeline, 2);
    plan::Draft changed = draft;
    changed.run.parallel.schedule = kind;
    changed.run.parallel.virtual_pipeline = chunks;
    changed.given |= plan::FieldSet(Field::schedule, Field::virtual_pipeline);
    Run other;
    plan::resolve(changed, other);
    if (plan::broken_rules(changed, other).any()) continue;
    Estimate result;
    estimate(other, result);
    double held = 0;
    std::int64_t activations = 0;
    std::int64_t parameters = 0;
    for (const StageEstimate& stage : result.stages) {
      held = std::max(held, static_cast<double>(stage.in_flight_chunks) / other.parallel.virtual_pipeline);
      activations = std::max(activations, stage.peak().activations);
      parameters = std::max(parameters, stage.peak().parameters);
    }
    const bool marked = kind == run.parallel.schedule;
    table.add({Text(fmt::format("{}{}", name(kind), marked && !data ? " *" : ""),
                    marked ? report::Role::heading : report::Role::plain),
               Text(std::to_string(chunks)),
               Text(data ? fmt::format("{:.6g}", result.pipeline.bubble_fraction)
                         : report::percent_text(result.pipeline.bubble_fraction)),
               Text(fmt::format("{:.4g}", held)), Text(report::size_text(activations, units)),
               Text(report::size_text(parameters, units)), Text(report::size_text(result.peak_bytes, units)),
               Text(data ? fmt::format("{:.6g}", result.time.step_s) : report::seconds_text(result.time.step_s)),
               result.fits ? Text("yes", report::Role::good) : Text("no", report::Role::bad)});
  }
  return table;
}

}  // namespace shardplan::cli
