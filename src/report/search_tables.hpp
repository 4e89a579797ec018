// Tables of layouts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "shardplan/plan/search_report.hpp"
#include "shardplan/report/style.hpp"
#include "shardplan/report/table.hpp"

namespace shardplan::report {

/// One line a layout; columns that are the same default everywhere are left out. `ranked`: numbered, the front marked.
Table search_table(const plan::SearchReport& report, const std::vector<plan::SearchRow>& rows, bool ranked,
                   const Style& style);

/// Under 4 GiB free.
bool is_tight_row(const plan::SearchRow& row) noexcept;

/// "optimizer=cpu,activations=cpu"; empty for none.
std::string offload_words(const Offload& offload);

/// What a rule refuses, after a count: "73 expert parallelism of a model without experts".
std::string_view rule_words(plan::Rule rule);

/// CSV: every field, plain numbers.
Table search_data_table();
void add_data_row(const plan::SearchRow& row, int rank, bool pareto, Table& table);

}  // namespace shardplan::report
