// States of a card: the core's formula over the card's symbols, before shards are rounded to whole elements.
#pragma once

#include <string_view>

#include "shardplan/physics/state_formula.hpp"
#include "topics.hpp"

namespace shardplan::explain {

/// Widths of a rule, those of what trains as symbols: w, g, k, o.
StateWidths<Sym> width_symbols(Card& c, const StateRule& rule);

/// Elements of weights as symbols; `tail` tells experts apart.
StateElements<Sym> element_symbols(Card& c, const Weights& weights, std::string_view tail = {});

/// The run's whole model, uncut.
StateElements<Sym> whole_model(Card& c);

/// Bytes of the states of these elements.
StateSums<Sym> states_of(const StateRule& rule, const StateWidths<Sym>& widths, const Optimizer& optimizer,
                         const StateElements<Sym>& elements, const StateShards<Sym>& shards);
inline StateShards<Sym> shared_by(Sym ranks) { return {ranks, ranks, ranks, ranks}; }

/// Adam, as the papers have it.
const Optimizer& adam();

}  // namespace shardplan::explain
