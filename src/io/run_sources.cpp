#include "run_sources.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "file_kind.hpp"
#include "object_reader.hpp"
#include "shardplan/io/cluster_file.hpp"
#include "shardplan/io/json_text.hpp"
#include "shardplan/io/model_config.hpp"
#include "shardplan/io/suggest.hpp"

namespace shardplan::io {
namespace {

using plan::Field;
namespace fs = std::filesystem;

struct Kind {
  std::string_view field;  ///< "model"
  std::string_view pointer;
  std::string_view list;
};

Kind kind_words(CatalogKind kind) {
  if (kind == CatalogKind::models) return {"model", "/model", "list models"};
  return {"cluster", "/cluster", "list clusters"};
}

/// The name as the catalog spells it, where only case differs.
std::string catalog_spelling(CatalogKind kind, std::string_view typed, const CatalogSource& catalog) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; };
  for (const std::string_view name : catalog.names(kind)) {
    const bool same = std::equal(name.begin(), name.end(), typed.begin(), typed.end(),
                                 [&](char a, char b) { return lower(a) == lower(b); });
    if (same) return std::string(name);
  }
  return std::string(typed);
}

/// The path of a file, or of the config.json in a folder; nothing when there is neither.
std::optional<std::string> existing_path(const std::string& stated, const std::string& folder) {
  std::error_code error;
  fs::path path = fs::path(stated);
  if (path.is_relative() && !folder.empty()) path = fs::path(folder) / path;
  if (fs::is_directory(path, error)) path /= "config.json";
  if (!fs::exists(path, error)) return std::nullopt;
  return path.string();
}

/// What a model is called when its file does not say: the file's name, or its folder's for a config.json.
std::string name_of_path(const std::string& path) {
  const fs::path file(path);
  if (file.filename() == "config.json" && file.has_parent_path()) return file.parent_path().filename().string();
  return file.stem().string();
}

Source read_source_file(const std::string& path, CatalogKind kind, Diagnostics& problems) {
  Source source;
  const JsonDialect dialect = kind == CatalogKind::models ? JsonDialect::python : JsonDialect::strict;
  Result<JsonText> text = read_json(path, dialect);
  source.file = text.value.file;
  source.name = path == "-" ? std::string() : name_of_path(path);
  for (Diagnostic& problem : text.problems) problems.push_back(std::move(problem));
  source.value = text.value.value;
  if (source.value == nullptr) return source;
  const FileKind wanted = kind == CatalogKind::models ? FileKind::model : FileKind::cluster;
  Diagnostics other = wrong_kind(*source.value, wanted, source.file);
  if (!other.empty()) {
    problems.push_back(std::move(other.front()));
    source.value = nullptr;
    return source;
  }
  source.stated = path == "-" ? source.value->dump() : nlohmann::json(path).dump();
  return source;
}

/// Problems that a reader found in a source.
template <class T>
bool take(Result<T>& result, Diagnostics& problems) {
  const bool ok = result.ok();
  for (Diagnostic& problem : result.problems) problems.push_back(std::move(problem));
  return ok;
}

}  // namespace

Source find_source(CatalogKind kind, const nlohmann::json& value, const Origin& origin, const CatalogSource& catalog,
                   Diagnostics& problems) {
  const Kind words = kind_words(kind);
  Source source;
  source.file = origin.file;
  source.pointer = std::string(words.pointer);
  const auto problem = [&](std::string message, std::string way_out) {
    problems.push_back({origin.file, std::string(words.pointer), std::move(message), std::move(way_out), 0, 0});
    return source;
  };
  if (value.is_object()) {
    source.value = std::make_shared<const nlohmann::json>(value);
    source.stated = value.dump();
    return source;
  }
  if (!value.is_string()) {
    return problem(fmt::format("{} is not a {}'s name, path or object", quoted(value), words.field), "");
  }
  const std::string& stated = value.get_ref<const std::string&>();
  if (const auto text = catalog.find(kind, stated)) {
    source.name = catalog_spelling(kind, stated, catalog);
    source.stated = nlohmann::json(source.name).dump();
    Result<JsonText> parsed = parse_json(std::string(*text), source.name);
    for (Diagnostic& found : parsed.problems) problems.push_back(std::move(found));
    source.value = parsed.value.value;
    source.file = source.name;
    source.pointer.clear();
    return source;
  }
  if (stated == "-" && kind == CatalogKind::models) return read_source_file(stated, kind, problems);
  if (const auto path = existing_path(stated, origin.folder)) return read_source_file(*path, kind, problems);
  return problem(
      fmt::format("{} is neither built in nor a file{}", quoted(value), did_you_mean(stated, catalog.names(kind))),
      fmt::format("shardplan {} shows what is built in", words.list));
}

void read_model_source(const Source& source, plan::Draft& draft, Diagnostics& problems) {
  if (source.value != nullptr) {
    Result<Model> model = read_model(*source.value, source.file, source.pointer);
    if (take(model, problems)) {
      draft.run.model = std::move(model.value);
      if (draft.run.model.name.empty()) draft.run.model.name = source.name.empty() ? "model" : source.name;
      draft.given.add(Field::model);
      return;
    }
  }
  draft.unusable.add(Field::model);
}

void read_cluster_source(const Source& source, const CatalogSource& catalog, plan::Draft& draft,
                         Diagnostics& problems) {
  if (source.value != nullptr) {
    Result<Cluster> cluster = read_cluster(*source.value, source.file, source.pointer, catalog);
    if (take(cluster, problems)) {
      draft.run.cluster = std::move(cluster.value);
      if (draft.run.cluster.name.empty()) draft.run.cluster.name = source.name.empty() ? "cluster" : source.name;
      draft.given.add(Field::cluster);
      return;
    }
  }
  draft.unusable.add(Field::cluster);
}

void read_targets(const nlohmann::json* targets, std::string_view file, plan::Draft& draft, Diagnostics& problems) {
  static const std::vector<std::string> default_targets = {"q_proj", "v_proj"};
  Peft& peft = draft.run.training.peft;
  std::vector<std::string> names = default_targets;
  const auto problem = [&](std::string pointer, std::string message, std::string way_out) {
    problems.push_back({std::string(file), "/training/peft/targets" + std::move(pointer), std::move(message),
                        std::move(way_out), 0, 0});
    draft.unusable.add(Field::peft_targets);
  };
  if (targets != nullptr && !targets->is_null()) {
    const bool texts = targets->is_array() &&
                       std::all_of(targets->begin(), targets->end(), [](const auto& item) { return item.is_string(); });
    if (!texts && !targets->is_string()) {
      return problem("", quoted(*targets) + " is not a list of matrix names", "\"all-linear\", or [] to train nothing");
    }
    names = targets->is_string() ? std::vector<std::string>{targets->get<std::string>()}
                                 : targets->get<std::vector<std::string>>();
    draft.given.add(Field::peft_targets);
  }
  if (draft.unusable.has(Field::model)) return;
  peft.targets = 0;
  peft.target_names = names;
  constexpr std::size_t most_unknown = 20;
  std::size_t unknown = 0;
  for (std::size_t i = 0; i < names.size() && unknown < most_unknown; ++i) {
    const std::optional<MatrixSet> matrices = module_matrices(draft.run.model, names[i]);
    if (!matrices) {
      ++unknown;
      const std::vector<std::string_view> known = module_names(draft.run.model);
      const bool in_list = targets != nullptr && targets->is_array();
      problem(in_list ? fmt::format("/{}", i) : std::string(),
              fmt::format("\"{}\" is no matrix of {}{}", names[i], draft.run.model.name, did_you_mean(names[i], known)),
              list_of(known) + "; or \"all-linear\"");
      continue;
    }
    peft.targets |= *matrices;
  }
}

}  // namespace shardplan::io
