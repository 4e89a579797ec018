// "Did you mean": the legal word nearest to a mistyped one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardplan::io {

/// Edits (insert, delete, replace, swap of neighbours) that turn one text into the other; ASCII case, '-', '_' and ' '
/// do not count.
std::size_t edit_distance(std::string_view from, std::string_view to);

/// The candidate nearest to `word`, or "" when none is near (more than a third of its letters differ). The first of
/// equally near candidates wins. The result views into the candidate.
std::string_view closest(std::string_view word, const std::vector<std::string_view>& candidates);

/// `; did you mean "tensor"?`, or "" when nothing is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& candidates);

/// The `most` candidates with the fewest edits to `word`, near or not, nearest first.
std::vector<std::string_view> nearest(std::string_view word, const std::vector<std::string_view>& candidates,
                                      std::size_t most);

/// `the fields here are a, b and c`: the way out of an unknown field. Without those that begin with '$' and doubles; a
/// long list ends in a count.
std::string fields_here(const std::vector<std::string_view>& fields);

/// "a", "a or b", "a, b or c".
std::string list_of(const std::vector<std::string_view>& words, std::string_view conjunction = "or");

}  // namespace shardplan::io
