// The constants behind times as symbols: what a GPU, a cluster, a stack and the measured tables say, each with its
// source.
#pragma once

#include <string>

#include "term_builder.hpp"

namespace shardplan::explain {

/// Symbols of the run's hardware and software. A factor of 1 is a plain number and leaves no trace.
class Rates {
 public:
  explicit Rates(TermBuilder& builder) : b_(builder), gpu_(builder.run.cluster.gpu) {}

  /// A constant of the GPU's file, of the cluster's, of the stack.
  Sym gpu(std::string_view symbol, std::string_view meaning, double value, std::string_view field,
          std::string_view unit = {});
  Sym cluster(std::string_view symbol, std::string_view meaning, double value, std::string_view field,
              std::string_view unit = {});
  Sym stack(std::string_view symbol, std::string_view meaning, double value, std::string_view field,
            std::string_view unit = {});
  /// One of this program's own.
  Sym rule(std::string_view symbol, std::string_view meaning, double value, std::string_view unit = {});

  Sym peak(Precision precision);
  Sym sustained();
  Sym hbm();
  /// Bandwidth of a group's links, and of one GPU's share of the network.
  Sym links(const RankGroup& group);
  Sym nic();
  /// memory_seconds as text: bytes over HBM.
  Sym memory(Sym bytes);

  /// gemm_seconds as text; what is looked up gets addresses below `path`. `flop`: the product's 2 x m x n x k as a
  /// term, where it has one.
  Sym product(const std::string& path, const std::string& label, Precision precision, Sym m, Sym n, Sym k, Sym batch,
              Sym flop);

  /// collective_seconds as text, of one call that sends `sent` bytes.
  Sym collective(const std::string& path, const std::string& label, Collective op, const RankGroup& group, Sym sent);

 private:
  Sym tile(Precision precision, double width, Sym m, Sym n, Sym k, Sym batch);
  Sym measured_collective(const std::string& path, const std::string& label, Collective op, const RankGroup& group,
                          Sym sent);
  TermBuilder& b_;
  const Gpu& gpu_;
};

}  // namespace shardplan::explain
