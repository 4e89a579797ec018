#include "shardplan/report/search_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "facts.hpp"
#include "search_plot.hpp"
#include "search_tables.hpp"
#include "shardplan/plan/solve.hpp"
#include "shardplan/report/number.hpp"
#include "shardplan/report/text.hpp"

namespace shardplan::report {
namespace {

using plan::SearchReport;
using plan::SearchRow;
using plan::WhyNot;

std::string change_text(double from, double to) { return fmt::format("{:+.1f}%", 100 * (to / from - 1)); }

/// "TP4+SP PP4x5 DP8 ZeRO-1, mbs 2, zb-v": a layout in words.
std::string choice_words(const SearchReport& report, const SearchRow& row) {
  std::string words = layout_text(row.run);
  const int gpus = row.run.num_gpus;
  const bool named = words == "1 GPU";
  if (!named && (report.gpus_vary || gpus != report.base.num_gpus)) {
    words = fmt::format("{} {}: {}", count_text(gpus), gpus == 1 ? "GPU" : "GPUs", words);
  }
  if (row.run.parallel.pipeline > 1) words += fmt::format(" {}", name(row.run.parallel.schedule));
  words += fmt::format(" mbs {}", row.run.training.micro_batch_size);
  if (report.attention_varies) words += fmt::format(" {}", name(row.run.training.attention));
  const std::string recompute = recompute_text(row.run.training.recompute);
  if (!recompute.empty()) words += " recompute " + recompute;
  const std::string offload = offload_words(row.run.training.offload);
  if (!offload.empty()) words += " offload " + offload;
  return words;
}

std::vector<Text> headline(const SearchReport& report, const SearchTextOptions& options) {
  const Units units = options.style.units;
  const SearchRow& best = report.best.front();
  const Estimate& e = best.estimate;
  const std::string verdict = report.result.complete ? "BEST" : "BEST SO FAR";
  return {Text(verdict, Role::good) + Text("  ") + Text(choice_words(report, best), Role::heading) +
              Text(fmt::format(": step {}", step_scale(best.run, e).with_unit(e.time.step_s))),
          Text(fmt::format("{} tokens/s", short_count(e.throughput.tokens_per_s))),
          Text(fmt::format("MFU {}", percent_text(e.throughput.mfu))),
          Text(fmt::format("peak {}, {} free", size_with_unit(e.peak_bytes, units, 1),
                           size_text(e.headroom_bytes, units, 1)))};
}

std::vector<Text> stated_line(const SearchReport& report, const SearchTextOptions& options) {
  if (!report.stated) return {};
  const SearchRow& stated = *report.stated;
  const Estimate& e = stated.estimate;
  std::string line =
      fmt::format("      yours ({}, mbs {})", layout_text(stated.run), stated.run.training.micro_batch_size);
  if (!e.fits) {
    line += fmt::format(" does not fit: {} over", size_with_unit(-e.headroom_bytes, options.style.units, 1));
    return wrap(Text(line), static_cast<std::size_t>(options.style.width), 6);
  }
  if (report.result.rank > 0) line += fmt::format(" is number {}", count_text(report.result.rank));
  line += fmt::format(": step {}", step_scale(stated.run, e).with_unit(e.time.step_s));
  if (!report.best.empty()) {
    const SearchRow& best = report.best.front();
    if (stated.run.num_gpus == best.run.num_gpus) {
      line += fmt::format(" ({})", change_text(best.estimate.time.step_s, e.time.step_s));
    } else {
      line += fmt::format(", {} tokens/s", short_count(e.throughput.tokens_per_s));
    }
  }
  line += fmt::format(", peak {}", size_with_unit(e.peak_bytes, options.style.units, 1));
  return wrap(Text(line), static_cast<std::size_t>(options.style.width), 6);
}

void append(std::vector<Text>& lines, std::vector<Text> more) {
  for (Text& line : more) lines.push_back(std::move(line));
}

std::vector<Text> why_lines(const std::vector<WhyNot>& list, std::string_view head, std::size_t page) {
  if (list.empty()) return {};
  std::vector<Text> lines = {Text(std::string(head), Role::heading)};
  std::size_t width = 0;
  for (const WhyNot& why : list) width = std::max(width, std::min(display_width(why.change), page / 2));
  for (const WhyNot& why : list) {
    const Text line = Text(" ") + pad_right(Text(why.change), width) + Text("  " + why.reason);
    append(lines, wrap(line, page, 8));
  }
  return lines;
}

/// Term by term: what --why-not asked for.
std::vector<Text> term_lines(const SearchReport& report, const WhyNot& why, const SearchTextOptions& options) {
  const std::size_t page = static_cast<std::size_t>(options.style.width);
  std::vector<Text> lines = wrap(Text("Why not " + why.change, Role::heading) + Text(": " + why.reason), page, 8);
  if (why.verdict == WhyNot::Verdict::illegal) return lines;
  const SearchRow& best = report.best.front();
  const TimeScale scale = time_scale(std::max(why.step_s, best.estimate.time.step_s));
  Table table({{"step"},
               {"best", Align::right, std::string(scale.unit)},
               {"this", Align::right, std::string(scale.unit)},
               {"change", Align::right, std::string(scale.unit)}});
  for (const plan::StepTerm& term : why.terms) {
    if (std::abs(term.best_s) < scale.quantum() / 2 && std::abs(term.other_s) < scale.quantum() / 2) continue;
    table.add({Text(std::string(term.name)), Text(scale.text(term.best_s)), Text(scale.text(term.other_s)),
               Text(fmt::format("{}{}", term.other_s >= term.best_s ? "+" : "-",
                                scale.text(std::abs(term.other_s - term.best_s))))});
  }
  table.add({Text("step", Role::heading), Text(scale.text(best.estimate.time.step_s), Role::heading),
             Text(scale.text(why.step_s), Role::heading),
             Text(fmt::format("{}{}", why.step_s >= best.estimate.time.step_s ? "+" : "-",
                              scale.text(std::abs(why.step_s - best.estimate.time.step_s))),
                  Role::heading)});
  append(lines, table.lines(options.style.width));
  const std::string unit(unit_name(options.style.units));
  Table memory({{"memory at the peak"}, {"best", Align::right, unit}, {"this", Align::right, unit}});
  const auto peak_of = [](const Estimate& e) {
    return e.stages[static_cast<std::size_t>(std::min<int>(e.peak_stage, static_cast<int>(e.stages.size()) - 1))]
        .peak();
  };
  const auto ours = parts_of(peak_of(best.estimate)), theirs = parts_of(peak_of(why.estimate));
  for (std::size_t i = 0; i < part_count; ++i) {
    if (ours[i] == 0 && theirs[i] == 0) continue;
    memory.add({Text(std::string(part_names[i].word)), Text(size_text(ours[i], options.style.units)),
                Text(size_text(theirs[i], options.style.units))});
  }
  memory.add({Text("peak", Role::heading),
              Text(size_text(best.estimate.peak_bytes, options.style.units), Role::heading),
              Text(size_text(why.estimate.peak_bytes, options.style.units), Role::heading)});
  append(lines, memory.lines(options.style.width));
  return lines;
}

/// "Too much: 100 by up to 10% of the card, 11,900 by more".
std::string excess_words(const plan::ExcessCounts& excess) {
  std::string words;
  const auto add = [&](std::int64_t count, std::string_view by) {
    if (count > 0) words += fmt::format("{}{} {}", words.empty() ? "Too much: " : ", ", count_text(count), by);
  };
  add(excess.tenth, "by up to 10% of the card");
  add(excess.whole, "by up to 100%");
  add(excess.more, "by more");
  add(excess.host, "of the host's memory alone");
  return words;
}

std::vector<Text> count_lines(const SearchReport& report, const SearchTextOptions& options) {
  const std::size_t page = static_cast<std::size_t>(options.style.width);
  const plan::SearchCounts& c = report.result.counts;
  std::vector<Text> lines;
  std::string line =
      fmt::format("{} legal layouts ({} but for overlap): ", count_text(c.layouts), count_text(c.without_overlap));
  line += fmt::format("{} with a memory verdict ({} fit, {} need too much", count_text(c.estimated), count_text(c.fit),
                      count_text(c.does_not_fit));
  if (c.misses > 0) line += fmt::format(", {} leave too little free", count_text(c.misses));
  line += fmt::format("), {} simulated", count_text(c.simulated));
  if (c.cut_by_bound > 0) line += fmt::format("; {} could not be better, by a bound", count_text(c.cut_by_bound));
  const std::int64_t open = c.layouts - c.estimated - c.cut_by_bound;
  if (open > 0) line += fmt::format("; {} not looked at", count_text(open));
  if (c.layouts > 0) lines = wrap(Text(line), page, 2);
  if (c.does_not_fit > 0) append(lines, wrap(Text(excess_words(c.excess)), page, 2));
  std::vector<std::pair<std::int64_t, plan::Rule>> rules;
  for (std::size_t i = 0; i < plan::rule_count; ++i) {
    if (c.illegal[i] > 0) rules.emplace_back(c.illegal[i], static_cast<plan::Rule>(i));
  }
  std::stable_sort(rules.begin(), rules.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  if (!options.detail && rules.size() > 5) rules.resize(5);
  std::string left_out;
  for (const auto& [count, rule] : rules) {
    left_out += fmt::format("{}{} {}", left_out.empty() ? "Refused by rule, with all behind them: " : ", ",
                            count_text(count), rule_words(rule));
  }
  if (!left_out.empty()) append(lines, wrap(Text(left_out), page, 2));
  return lines;
}

std::vector<Text> sensitivity_lines(const SearchReport& report, const SearchTextOptions& options) {
  if (report.sensitivity.empty()) return {};
  std::vector<Text> lines = {Text("Other hardware, searched again", Role::heading)};
  for (const plan::Sensitivity& one : report.sensitivity) {
    std::string line = fmt::format(" {:<20} {:>7} faster", one.what, percent_text(one.gain));
    if (!one.layout.empty()) line += "  with " + one.layout;
    append(lines, wrap(Text(line), static_cast<std::size_t>(options.style.width), 8));
  }
  return lines;
}

std::vector<Text> front_lines(const SearchReport& report, const SearchTextOptions& options) {
  if (report.pareto.empty()) return {};
  std::vector<Text> lines = {Text(
      fmt::format("Front: no other layout is as good in step time, memory and GPUs ({} of them)", report.pareto.size()),
      Role::heading)};
  append(lines, search_table(report, report.pareto, false, options.style).lines(options.style.width));
  lines.emplace_back();
  append(lines, front_plot(report, options.style));
  return lines;
}

std::vector<Text> nothing_fits(const SearchReport& report, const SearchTextOptions& options) {
  const Units units = options.style.units;
  const std::size_t page = static_cast<std::size_t>(options.style.width);
  const plan::SearchCounts& c = report.result.counts;
  std::vector<Text> lines;
  if (!report.result.complete) {
    append(lines, wrap(Text("NOTHING YET", Role::bad) +
                           Text(fmt::format("  stopped after {} of {} layouts, none of which fits",
                                            count_text(c.estimated), count_text(c.layouts))),
                       page, 6));
    return lines;
  }
  if (c.layouts == 0) {
    const std::string_view end = report.refusals.empty() ? "" : ":";
    append(lines,
           wrap(Text("NOTHING FITS", Role::bad) + Text(fmt::format("  no layout of these values is legal{}", end)),
                page, 6));
    for (const plan::Refusal& refusal : report.refusals) {
      const std::string reason = refusal.reason.empty() ? "not beside the other values" : refusal.reason;
      append(lines, wrap(Text(fmt::format("      {}: {}; {}{}", refusal.flags, reason,
                                          refusal.legal.empty() ? "leave it out" : "legal: ", refusal.legal)),
                         page, 8));
    }
    return lines;
  }
  if (!report.nearest) {
    append(lines, wrap(Text("NOTHING FITS", Role::bad) +
                           Text(fmt::format("  {} legal layouts, {} of them on the card, none meets what is required",
                                            count_text(c.layouts), count_text(c.fit + c.misses))),
                       page, 6));
    return lines;
  }
  const SearchRow& nearest = *report.nearest;
  const Estimate& e = nearest.estimate;
  if (e.fits) {
    append(lines, wrap(Text("NOTHING MEETS", Role::bad) +
                           Text(fmt::format("  what is required; nearest of the {} that fit: {}: {}",
                                            count_text(c.fit > 0 ? c.fit : c.misses), choice_words(report, nearest),
                                            plan::missed(nearest.run, e))),
                       page, 6));
    return lines;
  }
  std::string place = fmt::format("{} of {} ({} over)", size_text(need_of(e).bytes, units, 1),
                                  size_with_unit(e.capacity_bytes, units), size_text(-e.headroom_bytes, units, 1));
  if (e.fits_gpu) place = "the card holds it, the host does not: " + host_text(nearest.run, e, units);
  append(lines,
         wrap(Text("NOTHING FITS", Role::bad) + Text(fmt::format("  smallest of {}: {}, {}", count_text(c.layouts),
                                                                 choice_words(report, nearest), place)),
              page, 6));
  return lines;
}

}  // namespace

std::string search_text(const SearchReport& report, const SearchTextOptions& options) {
  const std::size_t page = static_cast<std::size_t>(std::max(options.style.width, 1));
  std::vector<Text> lines;
  const auto part = [&lines](std::vector<Text> more) {
    if (more.empty()) return;
    if (!lines.empty()) lines.emplace_back();
    append(lines, std::move(more));
  };
  if (report.best.empty()) {
    SearchTextOptions wide = options;
    if (options.quiet) wide.style.width = 1 << 20;
    lines = nothing_fits(report, wide);
    if (options.quiet) return render(lines, options.style);
    append(lines, stated_line(report, options));
    std::vector<Text> ways;
    for (const plan::WayToFit& way : report.ways) {
      ways.push_back(Text(ways.empty() ? "Fix   " : "      ", Role::heading) +
                     Text(fmt::format("{}  {}: step {}, peak {}", way.flags, choice_words(report, way.row),
                                      step_scale(way.row.run, way.row.estimate).with_unit(way.row.estimate.time.step_s),
                                      size_with_unit(way.row.estimate.peak_bytes, options.style.units, 1))));
    }
    std::vector<Text> folded;
    for (const Text& way : ways) append(folded, wrap(way, page, 8));
    part(std::move(folded));
    part(count_lines(report, options));
    return render(lines, options.style);
  }
  if (options.quiet) {
    Text line;
    for (const Text& piece : headline(report, options)) line += (line.empty() ? Text() : Text(" | ")) + piece;
    return render({line}, options.style);
  }
  lines = join_wrapped(headline(report, options), page, 6);
  append(lines, stated_line(report, options));
  part(search_table(report, report.best, true, options.style).lines(options.style.width));
  const bool any_front =
      std::any_of(report.best.begin(), report.best.end(), [](const SearchRow& row) { return row.found.pareto; });
  const bool any_tight = std::any_of(report.best.begin(), report.best.end(), is_tight_row);
  std::string legend;
  if (any_front) {
    legend =
        report.pareto.empty() ? "P = none listed is as fast and smaller (--pareto: all)" : "P = on the front below";
  }
  if (any_tight) legend += fmt::format("{}! = under 4 GiB free", legend.empty() ? "" : "   ");
  if (!legend.empty()) append(lines, wrap(Text(legend, Role::dim), page, 2));
  part(front_lines(report, options));
  for (const WhyNot& why : report.asked) part(term_lines(report, why, options));
  if (report.asked.empty()) part(why_lines(report.neighbours, "Why not (one step from the best)", page));
  part(sensitivity_lines(report, options));
  part(count_lines(report, options));
  if (!report.use.empty()) append(lines, wrap(Text("Use it  ", Role::heading) + Text(report.use), page, 8));
  return render(lines, options.style);
}

std::string search_markdown(const SearchReport& report, const SearchTextOptions& options) {
  std::string text;
  if (report.best.empty()) {
    SearchTextOptions wide = options;
    wide.style.width = 1 << 20;
    for (const Text& line : nothing_fits(report, wide)) text += line.plain() + "\n";
    return text;
  }
  Text line;
  for (const Text& piece : headline(report, options)) line += (line.empty() ? Text() : Text(" | ")) + piece;
  text += "**" + markdown_cell(line.plain()) + "**\n\n";
  text += search_table(report, report.best, true, options.style).markdown();
  if (!report.pareto.empty()) {
    text += "\nFront\n\n" + search_table(report, report.pareto, false, options.style).markdown();
  }
  const std::vector<WhyNot>& list = report.asked.empty() ? report.neighbours : report.asked;
  if (!list.empty()) {
    Table table({{"change"}, {"reason"}});
    for (const WhyNot& why : list) table.add({Text(why.change), Text(why.reason)});
    text += "\n" + table.markdown();
  }
  text += "\n";
  for (const Text& count : count_lines(report, options)) text += markdown_cell(count.plain()) + "\n";
  return text;
}

std::string search_csv(const SearchReport& report) {
  Table table = search_data_table();
  for (std::size_t i = 0; i < report.best.size(); ++i) {
    add_data_row(report.best[i], static_cast<int>(i + 1), report.best[i].found.pareto, table);
  }
  for (const SearchRow& row : report.pareto) add_data_row(row, 0, true, table);
  return table.csv();
}

}  // namespace shardplan::report
