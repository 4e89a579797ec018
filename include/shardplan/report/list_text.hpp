// What is built in, as tables: `list`.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "shardplan/core/cluster.hpp"
#include "shardplan/core/model.hpp"
#include "shardplan/core/stack.hpp"
#include "shardplan/report/table.hpp"

namespace shardplan::report {

/// A model with what its file says about it.
struct ListedModel {
  Model model;
  std::string source;
};

// `width` is that of the page: sources and descriptions are cut to what the other columns leave of it; 0 cuts nothing.

/// Parameters (and active ones of mixtures of experts), layers, widths, vocabulary, source.
Table models_table(std::span<const ListedModel> models, int width = 0);
/// Memory, bandwidth, dense rates, link, source and trust.
Table gpus_table(std::span<const Gpu> gpus, int width = 0, Units units = Units::gib);
/// GPU, GPUs per node, links, host, source.
Table clusters_table(std::span<const Cluster> clusters, int width = 0, Units units = Units::gib);
/// Framework, loss, optimizer implementation, compilation, overlap, what it stands for.
Table stacks_table(std::span<const Stack> stacks, int width = 0);
/// Every pipeline schedule with its bubble and what it needs.
Table schedules_table(int width = 0);
/// Every optimizer with what it keeps per parameter.
Table optimizers_table(int width = 0);
/// Every number format with range and precision, from its bits.
Table dtypes_table(int width = 0);

/// The text within `width` - `taken` characters (at least 12): its longest clause that fits, else cut with "...". All
/// of it where width is 0.
std::string cut_to_page(std::string_view text, int width, int taken);

}  // namespace shardplan::report
