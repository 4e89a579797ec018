#include "symbol_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace shardplan::explain {
namespace {

/// What tells a symbol from others of its name: the word before the last of its address ("dense" of
/// "layers.dense.forward"), its chunk and stage ("chunk1_2" of "time.compute.chunk1@2").
struct Qualifiers {
  std::string parent, place;
};

std::string as_identifier(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    const bool fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!fine) c = '_';
  }
  return out;
}

Qualifiers qualifiers_of(const Symbol& symbol) {
  std::string_view path = symbol.address;
  Qualifiers of;
  if (const std::size_t at = path.find('@'); at != std::string_view::npos) {
    of.place = as_identifier(path.substr(at + 1));
    path = path.substr(0, at);
  }
  if (const std::size_t chunk = path.rfind(".chunk"); chunk != std::string_view::npos) {
    of.place = as_identifier(path.substr(chunk + 1)) + (of.place.empty() ? "" : "_" + of.place);
    path = path.substr(0, chunk);
  }
  const std::size_t last = path.rfind('.');
  if (last == std::string_view::npos) return of;
  const std::size_t before = path.rfind('.', last - 1);
  of.parent = as_identifier(path.substr(before == std::string_view::npos ? 0 : before + 1,
                                        last - (before == std::string_view::npos ? 0 : before + 1)));
  return of;
}

void collect_symbols(Sym x, std::vector<const Symbol*>& symbols) {
  const Node* const node = x.node();
  if (node == nullptr) return;
  if (node->operation == Operation::symbol) {
    if (std::find(symbols.begin(), symbols.end(), node->symbol) == symbols.end()) symbols.push_back(node->symbol);
    return;
  }
  collect_symbols(node->left, symbols);
  collect_symbols(node->right, symbols);
}

bool all_differ(const std::vector<std::string>& texts) {
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].empty() || std::find(texts.begin(), texts.begin() + static_cast<std::ptrdiff_t>(i), texts[i]) !=
                                texts.begin() + static_cast<std::ptrdiff_t>(i)) {
      return false;
    }
  }
  return true;
}

/// Names of symbols that share one: by where they stand where that tells them apart, else with numbers.
std::vector<std::string> told_apart(const std::vector<const Symbol*>& alike) {
  std::vector<std::string> parents, places, both;
  for (const Symbol* const symbol : alike) {
    const Qualifiers of = qualifiers_of(*symbol);
    parents.push_back(of.parent.empty() ? of.parent : of.parent + "_" + symbol->name);
    places.push_back(of.place.empty() ? of.place : symbol->name + "_" + of.place);
    both.push_back(parents.back().empty() || of.place.empty() ? std::string() : parents.back() + "_" + of.place);
  }
  for (std::vector<std::string>* const names : {&places, &parents, &both}) {
    if (all_differ(*names)) return std::move(*names);
  }
  std::vector<std::string> numbered;
  for (std::size_t i = 0; i < alike.size(); ++i) {
    numbered.push_back(i == 0 ? alike[i]->name : fmt::format("{}_{}", alike[i]->name, i + 1));
  }
  return numbered;
}

}  // namespace

Names::Names(Sym x) {
  std::vector<const Symbol*> symbols;
  collect_symbols(x, symbols);
  std::map<std::string_view, std::vector<const Symbol*>> by_name;
  for (const Symbol* const symbol : symbols) by_name[symbol->name].push_back(symbol);
  for (const auto& [name, alike] : by_name) {
    const std::vector<std::string> names =
        alike.size() > 1 ? told_apart(alike) : std::vector<std::string>{std::string(name)};
    for (std::size_t i = 0; i < alike.size(); ++i) names_.emplace(alike[i], unused(names[i]));
  }
}

const std::string& Names::of(const Symbol* symbol) {
  const std::string& name = names_.at(symbol);
  if (std::find(written_.symbols.begin(), written_.symbols.end(), symbol) == written_.symbols.end()) {
    written_.symbols.push_back(symbol);
    written_.names.push_back(name);
  }
  return name;
}

std::string Names::unused(const std::string& name) {
  std::string free = name;
  for (int i = 2; !taken_.insert(free).second; ++i) free = fmt::format("{}_{}", name, i);
  return free;
}

}  // namespace shardplan::explain
