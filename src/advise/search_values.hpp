// Overrides of a search's variables as lists of values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shardplan/io/overrides.hpp"
#include "shardplan/plan/search_space.hpp"

namespace shardplan::advise {

/// The fields that a search varies.
const std::vector<plan::Field>& variables();

class SearchValues {
 public:
  SearchValues(plan::SearchSpace& space, Diagnostics& problems) : space_(space), problems_(problems) {}

  /// Takes an override for a variable; false where it is none.
  bool take(const io::Override& change);

  /// Values in the words of a run file, which the run file's reader understands.
  const std::vector<io::Override>& recomputes() const noexcept { return recomputes_; }
  const std::vector<io::Override>& offload() const noexcept { return offload_; }
  bool every_kernel() const noexcept { return every_kernel_; }

 private:
  void complain(std::string message, std::string way_out = {});
  void read(plan::Field variable, const io::Override& change);
  void all_kernels();

  std::vector<std::int64_t> integers(const io::Override& change, std::int64_t least);
  void values(const io::Override& change, std::optional<std::vector<int>>& to);
  void values(const io::Override& change, std::optional<std::vector<std::int64_t>>& to);
  void values(const io::Override& change, std::optional<std::vector<bool>>& to);
  void values(const io::Override& change, std::optional<std::vector<Recompute>>& to);
  template <class Enum>
  void values(const io::Override& change, std::optional<std::vector<Enum>>& to);
  void truth(const io::Override& change, std::optional<bool>& to);

  plan::SearchSpace& space_;
  Diagnostics& problems_;
  std::vector<io::Override> recomputes_;
  std::vector<io::Override> offload_;
  bool every_kernel_ = false;
};

/// Whether an override has more than one value, so that it is not one of a run.
bool is_list(const io::Override& change) noexcept;

}  // namespace shardplan::advise
