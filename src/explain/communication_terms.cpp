// Terms of communication: every row of a step's collectives, and the sums by group.
#include <fmt/format.h>

#include <cmath>

#include "shardplan/plan/data_calls.hpp"
#include "term_builder.hpp"

namespace shardplan::explain {
namespace {

std::string_view source_of(GroupKind group) {
  switch (group) {
    case GroupKind::tensor: return "arXiv:1909.08053 section 3; arXiv:2205.05198 section 4.2.2; ring volumes";
    case GroupKind::pipeline: return "arXiv:2104.04473 section 3.2; DualPipe: deepseek-ai/DualPipe";
    case GroupKind::context: return "arXiv:2310.01889 (ring), arXiv:2309.14509 (a2a)";
    case GroupKind::expert:
    case GroupKind::expert_tensor: return "arXiv:2006.16668 section 2.2; deepseek-ai/DeepEP";
    default: return "arXiv:1910.02054 section 7; PyTorch FSDP and DDP; ring volumes";
  }
}

class Rows {
 public:
  explicit Rows(TermBuilder& builder) : b_(builder) {}

  void add() {
    const std::size_t rank = static_cast<std::size_t>(b_.estimate.communication_stage);
    const Stage& stage = b_.w.stages[rank];
    DataCalls calls;
    stage_calls(b_.run, b_.w, stage, calls);
    for (const CommunicationCall& row : b_.estimate.communication) {
      const Sym sent = b_.rounded(sent_of(row, calls, rank));
      const double exact = static_cast<double>(row.sent_bytes_per_step);
      const std::string path = fmt::format("communication.{}", row.name);
      const Sym term =
          std::fabs(sent.value() - exact) <= 1
              ? b_.add(row.name, path + ".sent_bytes_per_step", meaning(row, "bytes sent by one GPU in a step"), "B",
                       Sym(exact, sent.node()), source_of(row.group))
              : b_.leaf(row.name, path + ".sent_bytes_per_step", meaning(row, "bytes sent by one GPU in a step"), "B",
                        exact, source_of(row.group));
      b_.terms.alias(path, path + ".sent_bytes_per_step");
      add_to_group(row.group, term);
      add_message(row, calls, rank, path);
      add_times(path);
    }
    Sym total;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      const std::string_view word = group_words[i];
      total +=
          b_.add(word, fmt::format("communication.sent_bytes_per_step.{}", word),
                 fmt::format("bytes that one GPU sends in its {} groups, a step", word), "B", groups_[i], sources::sum);
      b_.terms.alias(fmt::format("communication.{}", word), fmt::format("communication.sent_bytes_per_step.{}", word));
    }
    b_.add("total", "communication.sent_bytes_per_step.total", "bytes that one GPU sends in a step", "B", total,
           sources::sum);
    b_.terms.alias("communication.total", "communication.sent_bytes_per_step.total");
  }

 private:
  static constexpr std::array<std::string_view, 5> group_words = {"tensor", "pipeline", "data", "context", "expert"};

  std::string meaning(const CommunicationCall& row, std::string_view what) const {
    return fmt::format("{} over {} {} ranks: {}", row.name, row.group_size, shardplan::name(row.group), what);
  }

  void add_to_group(GroupKind group, Sym term) {
    switch (group) {
      case GroupKind::tensor: groups_[0] += term; break;
      case GroupKind::pipeline: groups_[1] += term; break;
      case GroupKind::context: groups_[3] += term; break;
      case GroupKind::expert:
      case GroupKind::expert_tensor: groups_[4] += term; break;
      default: groups_[2] += term;
    }
  }

  Sym size_of(const CommunicationCall& row) { return b_.ranks_of(row.group, row.group_size); }

  Sym sent_of(const CommunicationCall& row, const DataCalls& calls, std::size_t rank) {
    for (std::size_t i = 0; i < collective_count; ++i) {
      if (row.name != shardplan::name(static_cast<CollectiveName>(i))) continue;
      return b_.microbatches() * layer_calls(static_cast<CollectiveName>(i), row, rank);
    }
    if (row.name == "pp_send") {
      return b_.rounded(b_.of("calls", at_stage(path_of(row) + ".calls", static_cast<int>(rank)))) *
             b_.of("message", path_of(row) + ".message_bytes");
    }
    for (const DataCall& call : calls) {
      if (call.name != row.name || call.ranks.size != row.group_size) continue;
      const std::string bytes_at = fmt::format("communication.{}.bytes", row.name);
      b_.terms.alias(bytes_at, at_stage(bytes_at, static_cast<int>(rank)));
      const Sym bytes = b_.of("bytes", bytes_at);
      return Sym(call.passes) * sent_share_of(call.op, size_of(row)) * bytes;
    }
    return Sym(static_cast<double>(row.sent_bytes_per_step));
  }

  static std::string path_of(const CommunicationCall& row) { return fmt::format("communication.{}", row.name); }

  /// The largest tensor that a row's calls are about.
  void add_message(const CommunicationCall& row, const DataCalls& calls, std::size_t rank, const std::string& path) {
    Sym formula;
    for (const DataCall& call : calls) {
      if (call.name != row.name || call.ranks.size != row.group_size) continue;
      formula = b_.of("bytes", path + ".bytes");
      if (call.units > 1) {
        formula = formula / b_.terms.input("units", "calls of a pass: layers, and what is outside them", call.units,
                                           sources::run_file);
      }
    }
    if (row.name == "pp_send") formula = b_.of("message", path + ".message_bytes");
    for (const ChunkTerms& chunk : b_.stages[rank].chunks) {
      for (const Group& group : chunk.groups) {
        for (const LayerCollective<Sym>& call : group.unit->operators.collectives) {
          if (shardplan::name(call.name) == row.name && call.message > formula) formula = call.message;
        }
      }
    }
    const double exact = static_cast<double>(row.message_bytes);
    const bool gives = std::fabs(formula.value() - exact) <= 1;
    b_.add("message", path + ".message", meaning(row, "the whole tensor over its group"), "B",
           gives ? Sym(exact, b_.rounded(formula).node()) : Sym(exact), source_of(row.group));
  }

  /// Of all layers and ends of the stage, for one microbatch.
  Sym layer_calls(CollectiveName which, const CommunicationCall& row, std::size_t rank) {
    Sym sum;
    for (const ChunkTerms& chunk : b_.stages[rank].chunks) {
      for (const Group& group : chunk.groups) {
        const CollectiveSum& in_unit = group.unit->unit->collectives[static_cast<std::size_t>(which)];
        if (in_unit.sent <= 0) continue;
        sum += Sym(static_cast<double>(group.count)) * unit_sent(which, row, *group.unit, in_unit);
      }
    }
    return sum;
  }

  Sym unit_sent(CollectiveName which, const CommunicationCall& row, const UnitTerms& unit, const CollectiveSum& exact) {
    const std::string address = fmt::format("communication.{}.{}", row.name, unit.path);
    if (const Term* const known = b_.terms.find(address)) {
      return b_.terms.expressions().symbol({"sent", known->meaning, "B", known->address, known->source, known->value});
    }
    // Forward calls are made again where they are recomputed, so the number of calls is the unit's.
    Sym formula;
    for (const LayerCollective<Sym>& call : unit.operators.collectives) {
      if (call.name == which) {
        formula = Sym(exact.calls) * call.sent;
        break;
      }
    }
    const std::string call = fmt::format("{}.{}.call_bytes", unit.path, row.name);
    if (formula.node() == nullptr && b_.terms.has(call)) formula = Sym(exact.calls) * b_.of("bytes", call);
    if (std::fabs(formula.value() - exact.sent) > 1e-9 * exact.sent) {
      formula = Sym(exact.calls) * sent_share_of(row.op, size_of(row)) * Sym(exact.message);
    }
    return b_.derived("sent", address, fmt::format("{}: {} sends, one microbatch", row.name, unit.label), "B", formula,
                      exact.sent, source_of(row.group));
  }

  /// Time, exposed and hidden time without a stage are those of the stage whose rows are printed.
  void add_times(const std::string& path) {
    const int stage = b_.estimate.communication_stage;
    for (const std::string_view what : {".time", ".exposed", ".hidden", ".call", ".call_bytes", ".calls"}) {
      b_.terms.alias(path + std::string(what), at_stage(path + std::string(what), stage));
    }
  }

  TermBuilder& b_;
  std::array<Sym, 5> groups_{};
};

}  // namespace

void TermBuilder::add_communication() { Rows(*this).add(); }

}  // namespace shardplan::explain
