#include "list_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "shardplan/catalog/catalog.hpp"
#include "shardplan/io/cluster_file.hpp"
#include "shardplan/io/gpu_file.hpp"
#include "shardplan/io/list_json.hpp"
#include "shardplan/io/model_config.hpp"
#include "shardplan/io/stack_file.hpp"
#include "shardplan/io/suggest.hpp"
#include "shardplan/report/list_text.hpp"
#include "shardplan/version.hpp"

namespace shardplan::cli {
namespace {

using io::CatalogKind;
using report::Table;

/// One kind as a table and as JSON; only the one that is asked for is filled.
struct Listing {
  Table table{{}};
  std::vector<std::string> items;
};

struct Request {
  bool json = false;
  report::Units units = report::Units::gib;
  int width = 0;  ///< of the page; 0: nothing is cut to it
  std::string_view vendor;
};

struct Kind {
  std::string_view name;
  std::string_view what;
  Listing (*list)(const Request& request) = nullptr;
};

/// Calls visit(name, entry) for every entry of a kind. The catalog's texts are JSON: a test parses each of them.
template <class Visitor>
void each_entry(CatalogKind kind, const Visitor& visit) {
  const io::CatalogSource& catalog = catalog::builtin_catalog();
  for (const std::string_view name : catalog.names(kind)) {
    visit(name, nlohmann::json::parse(catalog.find(kind, name).value_or("{}")));
  }
}

bool same_word(std::string_view left, std::string_view right) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [&](char a, char b) { return lower(a) == lower(b); });
}

Listing list_models(const Request& request) {
  Listing listing;
  std::vector<report::ListedModel> models;
  each_entry(CatalogKind::models, [&](std::string_view name, const nlohmann::json& entry) {
    report::ListedModel listed{io::read_model(entry, name, "").value, {}};
    listed.model.name = name;
    const auto own = entry.find("shardplan");
    if (own != entry.end()) listed.source = own->value("source", "");
    if (request.json) {
      listing.items.push_back(io::model_item(listed.model, io::model_aliases(entry), listed.source));
    } else {
      models.push_back(std::move(listed));
    }
  });
  if (!request.json) listing.table = report::models_table(models, request.width);
  return listing;
}

Listing list_gpus(const Request& request) {
  Listing listing;
  std::vector<Gpu> gpus;
  each_entry(CatalogKind::gpus, [&](std::string_view name, const nlohmann::json& entry) {
    if (!request.vendor.empty() && !same_word(entry.value("vendor", ""), request.vendor)) return;
    if (request.json) {
      listing.items.push_back(io::gpu_item(entry));
    } else {
      gpus.push_back(io::read_gpu(entry, name, "").value);
    }
  });
  if (!request.json) {
    listing.table = report::gpus_table(gpus, request.width, request.units);
    listing.table.add_note("TFLOP/s dense (a vendor's headline is often 2x, sparse); link per direction; A B C: trust");
  }
  return listing;
}

Listing list_clusters(const Request& request) {
  Listing listing;
  std::vector<Cluster> clusters;
  each_entry(CatalogKind::clusters, [&](std::string_view name, const nlohmann::json& entry) {
    Cluster cluster = io::read_cluster(entry, name, "", catalog::builtin_catalog()).value;
    if (request.json) {
      listing.items.push_back(io::cluster_item(entry, cluster.scale_up_domain));
    } else {
      clusters.push_back(std::move(cluster));
    }
  });
  if (!request.json) {
    listing.table = report::clusters_table(clusters, request.width, request.units);
    listing.table.add_note("GB/s per GPU and direction");
  }
  return listing;
}

Listing list_stacks(const Request& request) {
  Listing listing;
  std::vector<Stack> stacks;
  each_entry(CatalogKind::stacks, [&](std::string_view name, const nlohmann::json& entry) {
    if (request.json) {
      listing.items.push_back(io::stack_item(io::whole_stack(entry, name, "", catalog::builtin_catalog()).value));
    } else {
      stacks.push_back(io::read_stack(entry, name, "", catalog::builtin_catalog()).value);
    }
  });
  if (!request.json) listing.table = report::stacks_table(stacks, request.width);
  return listing;
}

Listing list_schedules(const Request& request) {
  return request.json ? Listing{Table{{}}, io::schedule_items()} : Listing{report::schedules_table(request.width), {}};
}

Listing list_optimizers(const Request& request) {
  return request.json ? Listing{Table{{}}, io::optimizer_items()}
                      : Listing{report::optimizers_table(request.width), {}};
}

Listing list_dtypes(const Request& request) {
  return request.json ? Listing{Table{{}}, io::dtype_items()} : Listing{report::dtypes_table(request.width), {}};
}

constexpr std::array<Kind, 8> kinds = {{
    {"models", "Hugging Face configurations, with parameter counts", list_models},
    {"gpus", "memory, bandwidths, dense rates, links", list_gpus},
    {"clusters", "node types: GPUs, links, host", list_clusters},
    {"stacks", "dated software profiles for --stack", list_stacks},
    {"schedules", "pipeline schedules for --schedule", list_schedules},
    {"optimizers", "what each keeps per parameter", list_optimizers},
    {"dtypes", "number formats: range and precision", list_dtypes},
    {"topics", "what `explain` has a card for", nullptr},
}};

Outcome print(std::string_view kind, const Listing& listing, const OutputStyle& style) {
  Outcome outcome;
  switch (style.format) {
    case Format::text: outcome.result = listing.table.text(style.page); break;
    case Format::markdown: outcome.result = listing.table.markdown(); break;
    case Format::csv: outcome.result = listing.table.csv(); break;
    case Format::json: outcome.result = io::list_json(kind, SHARDPLAN_VERSION, listing.items); break;
  }
  return outcome;
}

Listing list_kinds(bool json) {
  Listing listing{Table({{"kind"}, {"what", report::Align::left}}), {}};
  for (const Kind& kind : kinds) {
    if (json) {
      listing.items.push_back(io::kind_item(kind.name, kind.what));
    } else {
      listing.table.add({kind.name, kind.what});
    }
  }
  return listing;
}

std::vector<std::string_view> kind_names() {
  std::vector<std::string_view> names;
  names.reserve(kinds.size());
  for (const Kind& kind : kinds) names.push_back(kind.name);
  return names;
}

/// The vendor as the catalog spells it is not needed: only whether it has one.
Outcome check_vendor(std::string_view vendor) {
  std::set<std::string> vendors;
  each_entry(CatalogKind::gpus,
             [&](std::string_view, const nlohmann::json& entry) { vendors.insert(entry.value("vendor", "")); });
  const std::vector<std::string_view> words(vendors.begin(), vendors.end());
  const auto is_vendor = [&](std::string_view word) { return same_word(word, vendor); };
  if (std::any_of(words.begin(), words.end(), is_vendor)) return {};
  return usage_problem(
      fmt::format("--vendor: \"{}\" is not {}{}", vendor, io::list_of(words), io::did_you_mean(vendor, words)));
}

constexpr std::array<Flag, 1> list_flags = {{{"vendor", "", ValueKind::text, FlagGroup::command, "NAME",
                                              "GPUs of one vendor: nvidia, amd, intel, google, aws"}}};

Outcome run(const Arguments& arguments, const OutputStyle& style) {
  ListOptions options;
  if (!arguments.words.empty()) options.kind = arguments.words.front();
  options.vendor = arguments.value("vendor").value_or("");
  options.style = style;
  return run_list(options);
}

}  // namespace

Outcome run_list(const ListOptions& options) {
  const bool json = options.style.format == Format::json;
  if (options.style.quiet) return usage_problem("-q: a list has no first line that answers for the others");
  if (!options.vendor.empty() && options.kind != "gpus") {
    return usage_problem("--vendor is a filter of `list gpus`");
  }
  if (options.kind.empty()) return print("kinds", list_kinds(json), options.style);
  const auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const Kind& k) { return k.name == options.kind; });
  if (kind == kinds.end()) {
    const std::vector<std::string_view> names = kind_names();
    return usage_problem(fmt::format("list: \"{}\" is not {}{}", options.kind, io::list_of(names),
                                     io::did_you_mean(options.kind, names)));
  }
  if (!options.vendor.empty()) {
    Outcome outcome = check_vendor(options.vendor);
    if (!outcome.problems.empty()) return outcome;
  }
  if (kind->list == nullptr) return print_topics(options.style);
  const int width = options.style.format == Format::text ? options.style.page.width : 0;
  return print(kind->name, kind->list({json, options.style.page.units, width, options.vendor}), options.style);
}

Command list_command() {
  Command command;
  command.name = "list";
  command.purpose = Purpose::learn;
  command.arguments = "models|gpus|clusters|stacks|schedules|optimizers|dtypes|topics";
  command.summary = "What is built in, with its source.";
  command.examples = {"shardplan list models", "shardplan list gpus --vendor nvidia",
                      "shardplan list clusters --format csv"};
  command.flags = {list_flags, output_flags()};
  command.most_words = 1;
  command.run = run;
  return command;
}

}  // namespace shardplan::cli
