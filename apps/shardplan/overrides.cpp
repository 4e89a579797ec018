#include "overrides.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "shardplan/io/ranges.hpp"
#include "shardplan/io/suggest.hpp"

namespace shardplan::cli {
namespace {

/// "a,b" as ["a","b"]. "all-linear" and what is JSON already stay as they are.
std::string list_value(std::string_view text) {
  if (text == "all-linear" || text.substr(0, 1) == "[") return std::string(text);
  std::string list = "[";
  for (const std::string_view word : io::list_items(text)) {
    if (word.empty()) continue;
    if (list.size() > 1) list += ',';
    list += '"';
    for (const char letter : word) {
      if (letter == '"' || letter == '\\') list += '\\';
      list += letter;
    }
    list += '"';
  }
  return list + "]";
}

class Overrides {
 public:
  void add(const GivenFlag& given) {
    const Flag& flag = *given.flag;
    switch (flag.kind) {
      case ValueKind::any_field: add_any_field(given); break;
      case ValueKind::pairs:
        if (!flag.pointer.empty()) add_pairs(given);
        break;
      case ValueKind::list: put(std::string(flag.pointer), list_value(given.value), flag); break;
      default:
        // The batch that M microbatches make follows from values that only the reader has.
        if (flag.name == "microbatches") {
          put("/microbatches", given.value, flag);
        } else if (!flag.pointer.empty()) {
          put(std::string(flag.pointer), given.value, flag);
        }
    }
  }

  Result<std::vector<io::Override>> take() { return std::move(result_); }

 private:
  void put(std::string pointer, std::string value, const Flag& flag) {
    for (const io::Override& earlier : result_.value) check_together(earlier, pointer, flag);
    result_.value.push_back({std::move(pointer), std::move(value), fmt::format("--{}", flag.name)});
  }

  /// Two flags for one field, or one that throws away what another has set: whichever came last would win unseen.
  void check_together(const io::Override& earlier, const std::string& pointer, const Flag& flag) {
    const std::string_view before = field_of(earlier.pointer);
    const std::string_view now = field_of(pointer);
    const std::string typed = fmt::format("--{}", flag.name);
    if (before == now) {
      complain(fmt::format("{} and {} both set {}; only one can count", named(earlier.flag, earlier.pointer),
                           named(typed, pointer), now),
               "");
    } else if (before.size() > now.size() && before.substr(0, now.size()) == now && before[now.size()] == '/') {
      complain(fmt::format("{} replaces {}, and with it what {} set before", named(typed, pointer), now,
                           named(earlier.flag, earlier.pointer)),
               fmt::format("give {} first, or set the members one by one", typed));
    }
  }

  static std::string_view field_of(std::string_view pointer) {
    return pointer == "/microbatches" ? std::string_view("/training/global_batch_size") : pointer;
  }

  /// "--tp", "--set /parallel/tensor"
  static std::string named(const std::string& flag, const std::string& pointer) {
    return flag == "--set" ? fmt::format("--set {}", pointer) : flag;
  }

  void complain(std::string message, std::string way_out) {
    result_.problems.push_back({std::string(command_line_file), "", std::move(message), std::move(way_out), 0, 0});
  }

  /// FIELD=VALUE
  void add_any_field(const GivenFlag& given) {
    const std::size_t equals = given.value.find('=');
    const std::string_view field = std::string_view(given.value).substr(0, equals);
    if (equals == std::string::npos || field.empty()) {
      return complain(fmt::format("--set: \"{}\" is not FIELD=VALUE", given.value),
                      "for example --set /training/loss=te");
    }
    std::optional<std::string> pointer = io::field_pointer(field);
    if (!pointer) {
      const std::string near = io::nearest_field(field);
      return complain(fmt::format("--set: unknown field \"{}\"{}", field,
                                  near.empty() ? io::did_you_mean(field, io::field_words())
                                               : fmt::format("; did you mean {}?", near)),
                      "a field is /training/loss, training.loss or a flag's name without dashes; it stands in model, "
                      "cluster, num_gpus, parallel, training or require");
    }
    Result<std::string> value =
        io::field_value("--set", field, *pointer, std::string_view(given.value).substr(equals + 1));
    if (value.ok()) put(std::move(*pointer), std::move(value.value), *given.flag);
    for (Diagnostic& problem : value.problems) result_.problems.push_back(std::move(problem));
  }

  /// optimizer=cpu,parameters=nvme; an object as in the run file, or null, is passed on whole.
  void add_pairs(const GivenFlag& given) {
    const Flag& flag = *given.flag;
    if (given.value == "null" || given.value == "free" || given.value.rfind('{', 0) == 0)
      return put(std::string(flag.pointer), given.value, flag);
    for (const std::string_view pair : io::list_items(given.value)) {
      const std::size_t equals = pair.find('=');
      if (equals == std::string_view::npos || equals == 0) {
        const bool offload = flag.name == "offload";
        complain(fmt::format("--{}: \"{}\" is not {}", flag.name, pair, offload ? "PART=PLACE" : flag.value),
                 fmt::format("for example --{} {}", flag.name, offload ? "optimizer=cpu" : "min_mfu=0.4"));
        continue;
      }
      put(fmt::format("{}/{}", flag.pointer, pair.substr(0, equals)), std::string(pair.substr(equals + 1)), flag);
    }
  }

  Result<std::vector<io::Override>> result_;
};

}  // namespace

Result<std::vector<io::Override>> overrides_of(const Arguments& arguments) {
  Overrides overrides;
  for (const GivenFlag& given : arguments.flags) overrides.add(given);
  return overrides.take();
}

}  // namespace shardplan::cli
