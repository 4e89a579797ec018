#include "shardplan/report/estimate_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sections.hpp"
#include "shardplan/report/number.hpp"

namespace shardplan::report {
namespace {

/// Above this share of the card a run is near the limit.
constexpr double near_limit = 0.92;
/// Below this many columns lines start at the margin.
constexpr int narrow = 70;

std::string rate_text(const Run& run, double tokens_per_s) {
  return is_measured(run) ? short_count(tokens_per_s) : "about " + short_count(tokens_per_s, 2);
}

std::string short_mfu(const Run& run, const Estimate& estimate) {
  return percent_text(estimate.throughput.mfu, is_measured(run) ? 1 : 0);
}

/// The parts of the first line for a run that fits.
std::vector<Text> fits_parts(const Run& run, const Estimate& estimate, Units units) {
  const Need need = need_of(estimate);
  const bool near = static_cast<double>(need.bytes) > near_limit * static_cast<double>(estimate.capacity_bytes);
  return {Text("FITS", Role::good) + Text("  ") +
              Text(size_text(estimate.peak_bytes, units, 1), near ? Role::warning : Role::heading) +
              Text(fmt::format(" of {} {}", size_with_unit(estimate.capacity_bytes, units), peak_place(run, estimate))),
          Text(rate_text(run, estimate.throughput.tokens_per_s) + " tokens/s", Role::heading),
          Text("MFU ") + Text(short_mfu(run, estimate), Role::heading),
          Text("bound by " + binding_text(run, estimate), Role::warning)};
}

/// The parts for a run that does not.
std::vector<Text> over_parts(const Run& run, const Estimate& estimate, Units units) {
  const Text verdict = Text("DOES NOT FIT", Role::bad) + Text("  ");
  if (estimate.fits_gpu) {
    const auto host = [&](std::string_view what, std::int64_t bytes, double capacity) {
      const std::int64_t card = static_cast<std::int64_t>(capacity);
      return verdict + Text(fmt::format("{} needs {} of {} a node, {} over", what, size_text(bytes, units, 1),
                                        size_with_unit(card, units, 1), size_text(bytes - card, units, 1)));
    };
    const Text gpu(fmt::format("GPU {} of {}", size_text(estimate.peak_bytes, units, 1),
                               size_with_unit(estimate.capacity_bytes, units)));
    const Host& node = run.cluster.host;
    if (static_cast<double>(estimate.host_bytes_per_node) > node.memory_bytes) {
      return {host("host memory", estimate.host_bytes_per_node, node.memory_bytes), gpu};
    }
    return {host("NVMe", estimate.nvme_bytes_per_node, node.nvme_bytes), gpu};
  }
  const StageEstimate& stage = estimate.stages[static_cast<std::size_t>(estimate.peak_stage)];
  const auto parts = parts_of(stage.peak());
  const std::size_t largest = static_cast<std::size_t>(std::max_element(parts.begin(), parts.end()) - parts.begin());
  const double share =
      static_cast<double>(parts[largest]) / static_cast<double>(std::max<std::int64_t>(estimate.peak_bytes, 1));
  return {verdict + Text("needs ") + Text(size_text(need_of(estimate).bytes, units, 1), Role::heading) +
              Text(fmt::format(" of {}, {} over {}", size_with_unit(estimate.capacity_bytes, units),
                               size_text(-estimate.headroom_bytes, units, 1), peak_place(run, estimate))),
          Text(fmt::format("{} {} of {}", part_names[largest].word, percent_text(share, 0),
                           size_text(estimate.peak_bytes, units, 1)))};
}

Text joined(const std::vector<Text>& parts) {
  Text line;
  for (const Text& part : parts) line += (line.empty() ? Text() : Text(" | ")) + part;
  return line;
}

/// The answer on one line where the page allows it, else folded between its parts; narrow pages say what fits and how
/// fast apart. Nothing of it is left out.
std::vector<Text> headline(const Run& run, const Estimate& estimate, const Style& style) {
  const std::size_t page = static_cast<std::size_t>(std::max(style.width, 1));
  const std::vector<Text> parts =
      estimate.fits ? fits_parts(run, estimate, style.units) : over_parts(run, estimate, style.units);
  if (style.width >= narrow) return join_wrapped(parts, page, 6);
  if (joined(parts).width() <= page) return {joined(parts)};
  std::vector<Text> lines = wrap(parts.front(), page, 2);
  append(lines, join_wrapped({parts.begin() + 1, parts.end()}, page, 0));
  return lines;
}

/// The second line: reserve and its band, step, rate per GPU.
std::vector<Text> reserve_parts(const Run& run, const Estimate& estimate, Units units) {
  const Need need = need_of(estimate);
  const std::string band = fmt::format("({}-{})", size_text(need.low, units, 1), size_text(need.high, units, 1));
  std::string memory;
  if (estimate.fits) {
    memory = fmt::format("needs about {} {} with reserve {}, {} free", size_text(need.bytes, units, 1),
                         unit_name(units), band, size_text(estimate.headroom_bytes, units, 1));
  } else {
    memory = fmt::format("peak {} {}, with reserve {} {}", size_text(estimate.peak_bytes, units, 1), unit_name(units),
                         size_text(need.bytes, units, 1), band);
  }
  if (estimate.binding_stage != estimate.peak_stage) memory += fmt::format(" on {} {}", stage_word(run), need.stage);
  const bool crosses = need.low <= estimate.capacity_bytes && need.high > estimate.capacity_bytes;
  std::vector<Text> parts = {Text(memory)};
  if (crosses) parts.back() += Text(", the band crosses the card", Role::warning);
  parts.emplace_back(fmt::format("step {}{}", is_measured(run) ? "" : "about ",
                                 step_scale(run, estimate).with_unit(estimate.time.step_s)));
  if (run.num_gpus > 1) {
    const double rate = estimate.throughput.tokens_per_s_per_gpu;
    parts.emplace_back(fixed_text(rate, rate < 10 ? 2 : rate < 100 ? 1 : 0, 1000) + " tokens/s/GPU");
  }
  return parts;
}

std::vector<Text> texts(const std::vector<std::string>& parts) { return std::vector<Text>(parts.begin(), parts.end()); }

}  // namespace

std::string estimate_headline(const Run& run, const Estimate& estimate, Units units) {
  return joined(estimate.fits ? fits_parts(run, estimate, units) : over_parts(run, estimate, units)).render({});
}

std::vector<Text> answer_lines(const Run& run, const Estimate& estimate, const EstimateTextOptions& options) {
  const std::size_t page = static_cast<std::size_t>(std::max(options.style.width, 1));
  std::vector<Text> lines = headline(run, estimate, options.style);
  const std::size_t indent = options.style.width < narrow ? 0 : 6;
  for (const Text& line : join_wrapped(reserve_parts(run, estimate, options.style.units), page - indent, 0)) {
    lines.push_back(spaces(indent) + line);
  }
  return lines;
}

std::vector<Text> action_lines(const Estimate& estimate, const EstimateTextOptions& options) {
  const std::size_t page = static_cast<std::size_t>(std::max(options.style.width, 1));
  const std::size_t count = std::min<std::size_t>(options.actions.size(), 3);
  // Flags longer than this stand on a line of their own, so that they do not push the others' effects off the page.
  const std::size_t longest = page / 2;
  std::size_t flags = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t width = display_width(options.actions[i].flags);
    if (width <= longest) flags = std::max(flags, width);
  }
  std::vector<Text> lines;
  for (std::size_t i = 0; i < count; ++i) {
    const Action& action = options.actions[i];
    Text line(i > 0 ? "      " : estimate.fits ? "Next  " : "Fix   ", Role::heading);
    if (display_width(action.flags) > longest) {
      append(lines, wrap(line + Text(action.flags), page, 8));
      line = Text("        " + action.effect);
    } else {
      line += pad_right(Text(action.flags), flags) + Text("  " + action.effect);
    }
    const Text reason = action.reason.empty() ? Text() : Text(": " + action.reason, Role::dim);
    append(lines, wrap(line.width() + reason.width() <= page ? line + reason : line, page, 8));
  }
  return lines;
}

std::string estimate_text(const Run& run, const Estimate& estimate, const EstimateTextOptions& options) {
  const Style& style = options.style;
  const std::size_t page = static_cast<std::size_t>(std::max(style.width, 1));
  if (options.quiet) {
    Style wide = style;
    wide.width = 1 << 20;
    return render(headline(run, estimate, wide), style);
  }
  std::vector<Text> lines = answer_lines(run, estimate, options);
  const auto part = [&lines](std::vector<Text> more) {
    if (more.empty()) return;
    lines.emplace_back();
    append(lines, std::move(more));
  };
  std::vector<Text> about = join_wrapped(texts(model_line(run, estimate)), page, 2);
  append(about, join_wrapped(texts(layout_line(run, options.defaults)), page, 2));
  part(std::move(about));
  part(memory_section(run, estimate, options));
  if (options.detail) part(moments_section(run, estimate, options));
  const bool operators = options.detail && options.operators != nullptr;
  if (operators) part(overheads_section(estimate, *options.operators, options));
  part(time_section(run, estimate, options));
  if (options.detail) part(offload_section(estimate, options));
  if (operators) part(pipeline_section(run, estimate, *options.operators, options));
  if (options.detail) {
    part(communication_section(run, estimate, options));
    if (operators) part(operators_section(run, *options.operators, options));
  }
  part(action_lines(estimate, options));
  return render(lines, style);
}

}  // namespace shardplan::report
