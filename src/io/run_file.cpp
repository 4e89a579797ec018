#include "shardplan/io/run_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "file_kind.hpp"
#include "model_dropout.hpp"
#include "object_reader.hpp"
#include "override_apply.hpp"
#include "override_effects.hpp"
#include "run_fields.hpp"
#include "run_sources.hpp"
#include "shardplan/io/stack_file.hpp"
#include "shardplan/plan/saturate.hpp"
#include "shardplan/plan/validate.hpp"
#include "ways_out.hpp"

namespace shardplan::io {
namespace {

using nlohmann::json;
using plan::Field;

constexpr std::string_view microbatches_pointer = "/microbatches";
constexpr std::size_t most_problems = 100;

/// Whether ways out of a problem are tried, or said as the rule's describer put them.
enum class Ways : std::uint8_t { tried, as_described };

/// Reads one run. The steps of read() are its story.
class Reader {
 public:
  Reader(const RunInput& input, const CatalogSource& catalog, Ways ways)
      : input_(input), catalog_(catalog), ways_(ways) {
    file_ = input.text ? input.text->file : std::string(command_line);
    if (input.text && file_ != "<stdin>") folder_ = std::filesystem::path(file_).parent_path().string();
  }

  ReadRun read() {
    if (!start()) return std::move(result_);
    drop_stated_defaults();
    remove_unknown_fields(root_, file_, result_.problems);
    dropped_ = drop_derived_data(root_, input_.overrides);
    apply_overrides();
    drop_other_sharding(root_, input_.overrides, file_, result_.notes);
    read_sections();
    complete();
    finish();
    return std::move(result_);
  }

 private:
  plan::Draft& draft() { return result_.draft; }

  void problem(std::string_view pointer, std::string message, std::string way_out = {}) {
    result_.problems.push_back({file_, std::string(pointer), std::move(message), std::move(way_out), 0, 0});
  }

  bool start() {
    root_ = json::object();
    if (!input_.text) return true;
    result_.problems = input_.text_problems;
    if (input_.text->value == nullptr) {
      if (result_.ok()) problem("", "JSON: cannot be read");
      return false;
    }
    root_ = *input_.text->value;
    if (root_.is_object()) {
      Diagnostics other = wrong_kind(root_, FileKind::run, file_);
      if (other.empty()) return true;
      result_.problems = std::move(other);
      return false;
    }
    problem("", quoted(root_) + " is not a run file, which is an object");
    locate(*input_.text, result_.problems);
    return false;
  }

  /// `defaults` of a resolved run: these members were not stated, so that they follow a change of the others.
  void drop_stated_defaults() {
    const auto list = root_.find("defaults");
    if (list == root_.end() || list->is_null()) return;
    if (!list->is_array()) return problem("/defaults", quoted(*list) + " is not a list of JSON pointers");
    const json pointers = *list;
    for (const json& pointer : pointers) {
      if (pointer.is_string()) erase_pointer(root_, pointer.get_ref<const std::string&>());
    }
  }

  void apply_overrides() {
    for (const Override& change : input_.overrides) {
      if (change.pointer == microbatches_pointer) {
        read_microbatches(change);
        continue;
      }
      if (change.pointer == name(Field::global_batch_size)) draft().microbatches = 0;
      if (expand_named(change.pointer)) apply_override(root_, change, result_.problems);
    }
    remove_unknown_fields(root_, file_, result_.problems);
    require_adapters(root_, input_, file_, result_.problems);
    if (built_in_gpu_ != nullptr) follow_memory(root_, input_.overrides, *built_in_gpu_);
  }

  void read_microbatches(const Override& change) {
    const json holder = {{"microbatches", override_value(change)}};
    ObjectReader reader(holder, command_line, "", result_.problems);
    draft().microbatches = reader.integer("microbatches", 1, largest_global_batch).value_or(0);
    erase_pointer(root_, name(Field::global_batch_size));
    if (draft().microbatches == 0) draft().unusable.add(Field::global_batch_size);
  }

  /// `--set /cluster/gpus_per_node=4` on a named cluster changes a copy of it. False where there is none of that name,
  /// which reading it reports.
  bool expand_named(std::string_view pointer) {
    constexpr std::array named = {std::pair{CatalogKind::models, std::string_view("/model")},
                                  std::pair{CatalogKind::clusters, std::string_view("/cluster")},
                                  std::pair{CatalogKind::gpus, std::string_view("/cluster/gpu")}};
    for (const auto& [kind, field] : named) {
      json* value = find_pointer(root_, field);
      if (pointer == field || !is_inside(pointer, field) || value == nullptr || !value->is_string()) continue;
      Diagnostics reported_later;
      const Source source = find_source(kind, *value, origin_of(field), catalog_, reported_later);
      if (source.value == nullptr || !source.value->is_object()) return false;
      json copy = *source.value;
      if (kind == CatalogKind::gpus) built_in_gpu_ = source.value;
      if (kind == CatalogKind::models && !source.name.empty()) copy["shardplan"]["name"] = source.name;
      *value = std::move(copy);
    }
    return true;
  }

  /// The last flag that stated a field or an object around it.
  const Override* override_of(std::string_view pointer) const {
    const auto found = std::find_if(input_.overrides.rbegin(), input_.overrides.rend(), [&](const Override& change) {
      const bool batch = change.pointer == microbatches_pointer && pointer == name(Field::global_batch_size);
      return batch || is_inside(pointer, change.pointer);
    });
    return found == input_.overrides.rend() ? nullptr : &*found;
  }

  /// The flag that a problem comes from: one that stated the field or an object around it, or a member of an object
  /// that the file does not have, or has as something else.
  const Override* cause_of(std::string_view pointer) const {
    if (const Override* change = override_of(pointer)) return change;
    if (pointer.empty()) return nullptr;
    const json* of_file = input_.text ? find_pointer(*input_.text->value, pointer) : nullptr;
    // A flag for a member makes an object of what was none: what is wrong with the object then is the flag's.
    if (of_file != nullptr && of_file->is_object()) return nullptr;
    const auto found = std::find_if(input_.overrides.rbegin(), input_.overrides.rend(),
                                    [&](const Override& change) { return is_inside(change.pointer, pointer); });
    return found == input_.overrides.rend() ? nullptr : &*found;
  }

  Origin origin_of(std::string_view pointer) const {
    return override_of(pointer) != nullptr ? Origin{file_, ""} : Origin{file_, folder_};
  }

  void read_sections() {
    ObjectReader reader(root_, file_, "", result_.problems);
    if (const auto schema = root_.find("$schema"); schema != root_.end() && !schema->is_string()) {
      problem("/$schema", quoted(*schema) + " is not a text", "leave it out, or name run.schema.json");
    }
    if (const json* value = reader.member("model")) {
      reads_stdin_ = *value == "-";
      const Source source = find_source(CatalogKind::models, *value, origin_of("/model"), catalog_, result_.problems);
      model_ = source.stated;
      model_json_ = source.value;
      result_.files.push_back(source.file);
      read_model_source(source, draft(), result_.problems);
    } else {
      problem("/model", "is required: a built-in name (shardplan list models), a config.json's path or an object");
      draft().unusable.add(Field::model);
    }
    if (const json* value = reader.member("cluster")) {
      const Source source =
          find_source(CatalogKind::clusters, *value, origin_of("/cluster"), catalog_, result_.problems);
      cluster_ = source.stated;
      result_.files.push_back(source.file);
      read_cluster_source(source, catalog_, draft(), result_.problems);
    } else {
      problem("/cluster", "is required: a built-in name (shardplan list clusters), a file's path or an object");
      draft().unusable.add(Field::cluster);
    }
    read_field(plan::row_of(Field::num_gpus), root_, file_, draft(), result_.problems);
    for (const plan::FieldSection& section : plan::field_sections()) {
      if (section.pointer.rfind('/') != 0 || section.pointer == "/require") continue;
      const json* object = reader.member(section.pointer.substr(1));
      if (object != nullptr) read_section(*object, file_, section.pointer, draft(), result_.problems);
    }
    if (draft().given.has(Field::peft)) {
      read_targets(find_pointer(root_, name(Field::peft_targets)), file_, draft(), result_.problems);
    }
    if (const json* require = reader.member("require")) read_requirements(*require, file_, draft(), result_.problems);
    check_gpus();
  }

  void check_gpus() {
    Cluster& cluster = draft().run.cluster;
    const std::int64_t nodes = cluster.num_nodes;
    const std::int64_t of_cluster = plan::saturating_product({nodes, cluster.gpus_per_node});
    if (draft().given.has(Field::num_gpus)) {
      const Override* change = override_of(name(Field::num_gpus));
      if (change != nullptr && nodes > 0 && draft().run.num_gpus > of_cluster) {
        result_.notes.push_back(fmt::format("the cluster's num_nodes {} is dropped, since {} asks for {} GPUs", nodes,
                                            change->flag, draft().run.num_gpus));
        cluster.num_nodes = 0;
      }
    } else if (!draft().unusable.has(Field::num_gpus) && (cluster_.empty() || draft().given.has(Field::cluster))) {
      if (nodes == 0) {
        problem(name(Field::num_gpus), "is required, or num_nodes in the cluster");
        draft().unusable.add(Field::num_gpus);
      } else if (of_cluster > largest_degree) {
        problem("/cluster/num_nodes", fmt::format("{} x {} GPUs per node is more than {} GPUs", nodes,
                                                  cluster.gpus_per_node, largest_degree));
        draft().unusable.add(Field::num_gpus);
      }
    }
  }

  void read_stack() {
    Training& training = draft().run.training;
    const json* value = find_pointer(root_, name(Field::stack));
    if (value == nullptr || value->is_null()) {
      training.stack = default_stack(training.framework, catalog_);
      return;
    }
    if (value->is_string()) {
      Result<Stack> stack = find_stack(value->get_ref<const std::string&>(), file_, name(Field::stack), catalog_);
      if (stack.ok()) {
        training.stack = std::move(stack.value);
        draft().given.add(Field::stack);
        return;
      }
      for (Diagnostic& found : stack.problems) result_.problems.push_back(std::move(found));
    } else {
      problem(name(Field::stack), quoted(*value) + " is not a stack's name (shardplan list stacks)");
    }
    training.stack = default_stack(training.framework, catalog_);
    draft().unusable.add(Field::stack);
  }

  void complete() {
    Training& training = draft().run.training;
    if (!draft().given.has(Field::framework)) training.framework = plan::default_framework(draft());
    read_stack();
    result_.readable = result_.problems.empty();
    result_.warnings = plan::resolve(draft(), result_.run);
    Diagnostics broken = plan::validate(draft(), result_.run);
    for (Diagnostic& found : broken) {
      found.file = file_;
      result_.problems.push_back(std::move(found));
    }
    const std::int64_t batch = result_.run.training.global_batch_size;
    if (draft().microbatches > 0 && batch > largest_global_batch) {
      problem(name(Field::global_batch_size),
              fmt::format("{} microbatches x micro_batch_size x data = {}, more than {}", draft().microbatches, batch,
                          largest_global_batch));
    }
    const bool drops = draft().given.has(Field::dropout) || draft().given.has(Field::attention_dropout);
    if (model_json_ != nullptr && !drops) {
      if (auto warning = unused_dropout(*model_json_)) result_.warnings.push_back(std::move(*warning));
    }
    note_flags_without_effect(result_.run, input_.overrides, result_.notes);
    for (const Warning& warning : plan::run_warnings(result_.run)) result_.warnings.push_back(warning);
    if (dropped_) {
      result_.notes.push_back(
          fmt::format("parallel.data {} of {} is dropped, since {} changes the layout; it becomes {}", dropped_->value,
                      file_, dropped_->flag, result_.run.parallel.data));
    }
  }

  /// Problems that a flag caused name the command line; the others get their place in the file.
  void finish() {
    for (Diagnostic& found : result_.problems) {
      if (found.file != file_ || found.line != 0) continue;
      const Override* change = cause_of(found.pointer);
      as_typed(found, change);
      if (ways_ == Ways::tried) try_ways(found, change != nullptr || !input_.text);
      if (change == nullptr) continue;
      found.file = std::string(command_line);
      if (!change->flag.empty()) found.message += fmt::format(" ({})", change->flag);
    }
    if (input_.text) locate(*input_.text, result_.problems);
    const auto place = [&](const Diagnostic& found) {
      const int group = found.file == file_ ? 0 : found.file == command_line ? 2 : 1;
      return std::make_tuple(group, found.line, found.column);
    };
    std::stable_sort(result_.problems.begin(), result_.problems.end(),
                     [&](const Diagnostic& a, const Diagnostic& b) { return place(a) < place(b); });
    if (result_.problems.size() > most_problems) {
      const std::size_t more = result_.problems.size() - most_problems;
      result_.problems.resize(most_problems);
      problem("", fmt::format("{} more problems", more));
    }
    if (result_.ok()) result_.run_json = resolved_run_json(draft(), result_.run, model_, cluster_);
  }

  /// A number that a double had to round ("1e+20") is said as it was written.
  void as_typed(Diagnostic& found, const Override* change) const {
    const json* value = find_pointer(root_, found.pointer);
    if (value == nullptr || !value->is_number_float()) return;
    const std::string rounded = quoted(*value);
    if (found.message.compare(0, rounded.size(), rounded) != 0) return;
    std::string written;
    if (change != nullptr && change->pointer == found.pointer) {
      written = change->value;
    } else if (change == nullptr && input_.text) {
      written = text_at(*input_.text, found.pointer);
    }
    constexpr std::size_t longest = 60;
    if (!written.empty() && written.size() <= longest) found.message.replace(0, rounded.size(), written);
  }

  /// Keeps of the ways out of a problem those that are one when typed, and says them in the words to type.
  void try_ways(Diagnostic& found, bool on_command_line) {
    if (found.ways.empty() || tried_ways_ > most_tried_ways) return;
    const Statement statement{input_.text ? input_.text->value.get() : nullptr, &input_.overrides};
    const auto helps = [&](const WayOut& way) {
      if (reads_stdin_) return true;  // it cannot be read again
      ++tried_ways_;
      RunInput changed;
      changed.text = input_.text;
      changed.overrides = overrides_with(statement, way, on_command_line);
      const ReadRun read = Reader(changed, catalog_, Ways::as_described).read();
      return std::all_of(read.problems.begin(), read.problems.end(), [&](const Diagnostic& left) {
        return left.pointer != found.pointer && has_problem_at(left.pointer);
      });
    };
    found.way_out = ways_out_text(found.ways, statement, on_command_line, helps);
  }

  bool has_problem_at(std::string_view pointer) const {
    return std::any_of(result_.problems.begin(), result_.problems.end(),
                       [&](const Diagnostic& problem) { return problem.pointer == pointer; });
  }

  static constexpr int most_tried_ways = 30;  ///< many problems, each with its ways, must not take their time

  const RunInput& input_;
  const CatalogSource& catalog_;
  Ways ways_;
  int tried_ways_ = 0;
  bool reads_stdin_ = false;
  std::string file_;
  std::string folder_;
  json root_;
  std::string model_;
  std::shared_ptr<const json> model_json_;
  std::string cluster_;
  std::shared_ptr<const json> built_in_gpu_;  ///< whose members flags change
  std::optional<DroppedData> dropped_;
  ReadRun result_;
};

}  // namespace

ReadRun read_run(const RunInput& input, const CatalogSource& catalog) {
  return Reader(input, catalog, Ways::tried).read();
}

bool looks_like_run(const JsonText& text) {
  if (text.value == nullptr || !text.value->is_object()) return false;
  const FileKind kind = kind_of(*text.value);
  if (kind != FileKind::unknown) return kind == FileKind::run;
  // A run that lacks its model, or misspells it, still has something of a run.
  if (text.value->contains("cluster") || text.value->contains("require")) return true;
  const auto schema = text.value->find("$schema");
  return schema != text.value->end() && schema->is_string() &&
         schema->get_ref<const std::string&>().find("run.schema.json") != std::string::npos;
}

RunInput run_input_from_json(std::string_view json_text) {
  RunInput input;
  Result<JsonText> text = parse_json(std::string(json_text), "run.json");
  input.text = std::move(text.value);
  input.text_problems = std::move(text.problems);
  return input;
}

}  // namespace shardplan::io
