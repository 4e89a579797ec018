// A layout of the search as a run: overrides, and the run file that they make.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "search_input.hpp"
#include "shardplan/catalog/catalog.hpp"
#include "shardplan/plan/change.hpp"
#include "shardplan/plan/why_not.hpp"

namespace shardplan::cli {

using plan::Field;

io::Override set_to(Field field, std::string value) { return {std::string(name(field)), std::move(value), ""}; }

io::ReadRun read_with(const io::RunInput& input, const std::vector<io::Override>& more) {
  io::RunInput changed = input;
  changed.overrides.insert(changed.overrides.end(), more.begin(), more.end());
  return io::read_run(changed, catalog::builtin_catalog());
}

std::vector<io::Override> overrides_of(const plan::Change& change) {
  std::vector<io::Override> list;
  for (const plan::FieldValue& value : change.values) list.push_back(set_to(value.field, value.value));
  return list;
}

io::ReadRun read_layout(const SearchInput& input, const Layout& layout) {
  std::vector<io::Override> more = overrides_of(plan::statement_of(layout, input.base));
  // A path that the run file states is one from its own folder; the new file may lie elsewhere.
  constexpr std::array fields = {std::pair{Field::model, io::CatalogKind::models},
                                 std::pair{Field::cluster, io::CatalogKind::clusters}};
  for (std::size_t i = 0; i < fields.size() && i < input.read.files.size(); ++i) {
    const std::string& file = input.read.files[i];
    const bool of_run = input.input.text && file == input.input.text->file;
    const bool built_in = catalog::builtin_catalog().find(fields[i].second, file).has_value();
    std::error_code error;
    if (of_run || built_in || !std::filesystem::is_regular_file(file, error)) continue;
    more.push_back(set_to(fields[i].first, std::filesystem::absolute(file, error).string()));
  }
  return read_with(input.input, more);
}

}  // namespace shardplan::cli
