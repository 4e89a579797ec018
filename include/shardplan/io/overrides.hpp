// Flags as changes of a run file's fields.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shardplan/core/diagnostic.hpp"
#include "shardplan/plan/change.hpp"

namespace shardplan::io {

/// One field set from outside the file.
struct Override {
  std::string pointer;  ///< "/parallel/tensor"; "/microbatches" sets global_batch_size to its value x mbs x data
  std::string value;    ///< JSON where it parses as such, else the text of a string
  std::string flag;     ///< as typed, for messages: "--tp"
};

/// The JSON pointer that a FIELD means: a pointer ("/parallel/tensor"), a path with dots or slashes
/// ("parallel.tensor"), or a flag's name without dashes ("tp"). Nothing when its first word is none of these.
std::optional<std::string> field_pointer(std::string_view field);

/// The run file's field that a mistyped one most likely means: by its last name first ("seq_len" and "training.tensor"
/// are /training/seq_length and /parallel/tensor), dotted; "" where none is near.
std::string nearest_field(std::string_view typed);

/// The flag that sets exactly the field at a pointer, without dashes; "" where --set is the only one.
std::string_view flag_of(std::string_view pointer);

/// The words that field_pointer knows: flags' names and the fields at the top, for "did you mean".
std::vector<std::string_view> field_words();

/// What FIELD=VALUE writes at FIELD's pointer: VALUE, but of "no-sp" the opposite, and of offload PART=PLACE pairs as
/// an object, as the flags of these names take them. `flag` is for messages.
Result<std::string> field_value(std::string_view flag, std::string_view field, std::string_view pointer,
                                std::string_view value);

/// A change as overrides that no flag stated, as if the file were edited; or typed behind whatever the file says.
std::vector<Override> overrides_of(const plan::Change& change);
std::vector<Override> typed_overrides_of(const plan::Change& change);

}  // namespace shardplan::io
