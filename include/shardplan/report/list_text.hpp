// What is built in, as tables: `list`.
#pragma once

#include <span>
#include <string>

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

/// Parameters (and active ones of mixtures of experts), layers, widths, vocabulary, source.
Table models_table(std::span<const ListedModel> models);
/// Memory, bandwidth, dense rates, link, source and trust.
Table gpus_table(std::span<const Gpu> gpus);
/// GPU, GPUs per node, links, host, source.
Table clusters_table(std::span<const Cluster> clusters);
/// Framework, loss, optimizer implementation, compilation, overlap, what it stands for.
Table stacks_table(std::span<const Stack> stacks);
/// Every pipeline schedule with its bubble and what it needs.
Table schedules_table();
/// Every optimizer with what it keeps per parameter.
Table optimizers_table();
/// Every number format with range and precision, from its bits.
Table dtypes_table();

}  // namespace shardplan::report
