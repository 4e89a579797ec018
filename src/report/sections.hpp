// The sections of the estimate's page, each a list of lines that fit the page.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "facts.hpp"
#include "shardplan/report/estimate_text.hpp"
#include "shardplan/report/table.hpp"
#include "shardplan/report/text.hpp"

namespace shardplan::report {

/// Columns of a section's table; `fold` above 0 may be left out on narrow pages.
inline Column left(std::string head, int fold = 0) { return Column{std::move(head), Align::left, "", fold, "", 0}; }
inline Column right(std::string head, int fold = 0) { return Column{std::move(head), Align::right, "", fold, "", 0}; }

inline void append(std::vector<Text>& lines, std::vector<Text> more) {
  for (Text& line : more) lines.push_back(std::move(line));
}

/// Stages one after the other that print alike.
struct StageGroup {
  std::size_t first = 0;  ///< index into Estimate::stages
  std::size_t last = 0;
  std::array<std::int64_t, part_count> parts{};  ///< hundredths of the unit
  std::int64_t total = 0;
  int layers = 0;
  std::int64_t live = 0;
  Moment moment = Moment::backward;
  bool peak = false;

  std::string label(const Run& run, const Estimate& estimate) const;  ///< "3" or "1-6"
};
std::vector<StageGroup> group_stages(const Estimate& estimate, Units units, bool collapse);

/// A section's head, folded to the page, with the flag that explains it at the right end where asked for.
std::vector<Text> section_head(const std::string& text, std::string_view word, const EstimateTextOptions& options);

/// The two lines that answer, folded to the page.
std::vector<Text> answer_lines(const Run& run, const Estimate& estimate, const EstimateTextOptions& options);

std::vector<Text> memory_section(const Run& run, const Estimate& estimate, const EstimateTextOptions& options);
std::vector<Text> time_section(const Run& run, const Estimate& estimate, const EstimateTextOptions& options);

// Sections of --detail.
std::vector<Text> moments_section(const Run& run, const Estimate& estimate, const EstimateTextOptions& options);
std::vector<Text> communication_section(const Run& run, const Estimate& estimate, const EstimateTextOptions& options);
std::vector<Text> overheads_section(const Estimate& estimate, const EstimateDetail& detail,
                                    const EstimateTextOptions& options);
std::vector<Text> offload_section(const Estimate& estimate, const EstimateTextOptions& options);
std::vector<Text> pipeline_section(const Run& run, const Estimate& estimate, const EstimateDetail& detail,
                                   const EstimateTextOptions& options);
std::vector<Text> operators_section(const Run& run, const EstimateDetail& detail, const EstimateTextOptions& options);

/// Next or Fix lines; none without actions.
std::vector<Text> action_lines(const Estimate& estimate, const EstimateTextOptions& options);

}  // namespace shardplan::report
