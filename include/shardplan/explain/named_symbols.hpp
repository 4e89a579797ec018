// The symbols of a layer's formulas with the names and meanings that people read.
#pragma once

#include "shardplan/explain/sym.hpp"
#include "shardplan/physics/symbols.hpp"

namespace shardplan::explain {

/// `model`, `degree`: make a symbol of (name, meaning, value), the one of what the model is, the other of the run.
template <class Model, class Degree>
Symbols<Sym> named_symbols(const Symbols<double>& v, Model&& model, Degree&& degree) {
  Symbols<Sym> n;
  n.s = degree("s", "tokens of a sequence (training.seq_length)", v.s);
  n.b = degree("b", "sequences of a microbatch (training.micro_batch_size)", v.b);
  n.t = degree("t", "tensor parallel (parallel.tensor)", v.t);
  n.c = degree("c", "context parallel (parallel.context)", v.c);
  n.e = degree("e", "expert parallel (parallel.expert)", v.e);
  n.x = degree("x", "expert tensor parallel (parallel.expert_tensor)", v.x);
  n.t_sp = v.t_sp == v.t ? n.t : Sym(v.t_sp);
  n.t_in = v.t_in == v.t ? n.t : Sym(v.t_in);
  n.w = v.w;
  n.w_r = v.w_r;
  n.w_m = v.w_m;
  n.w_a = v.w_a;
  n.h = model("h", "hidden size", v.h);
  n.V = model("V", "rows of the vocabulary, padded where the framework pads", v.V);
  n.a = model("a", "query heads", v.a);
  n.k = v.k == v.a ? n.a : model("k", "key and value heads", v.k);
  n.t_kv = v.t_kv == v.t ? n.t : v.t_kv == v.k ? n.k : Sym(v.t_kv);
  n.d = model("d", "size of a head", v.d);
  n.d_v = v.d_v == v.d ? n.d : model("d_v", "size of a value head", v.d_v);
  n.r_q = model("r_q", "rank of the query latent", v.r_q);
  n.r_kv = model("r_kv", "rank of the key and value latent", v.r_kv);
  n.d_rope = model("d_rope", "positional part of a head", v.d_rope);
  n.keys = v.keys == v.s ? n.s : model("keys", "keys that a query is scored against (window)", v.keys);
  n.keys_causal = model("keys_causal", "mean number of keys under the causal mask", v.keys_causal);
  n.i_a = model("i_a", "heads of the indexer", v.i_a);
  n.i_d = model("i_d", "size of an indexer head", v.i_d);
  n.f = model("f", "width of the MLP", v.f);
  n.E = model("E", "experts", v.E);
  n.k_top = model("k_top", "experts that a token goes to", v.k_top);
  n.f_e = model("f_e", "width of an expert", v.f_e);
  n.f_s = model("f_s", "width of the shared experts together", v.f_s);
  n.f_p = model("f_p", "width of the dense MLP beside the experts", v.f_p);
  n.capacity = degree("capacity", "capacity factor of the experts", v.capacity);
  n.u = v.u == v.capacity ? n.capacity : degree("u", "rows an expert rank computes over the balanced count", v.u);
  n.r = v.r == 0 ? Sym(0.0) : degree("r", "rank of the adapters (training.peft.rank)", v.r);
  return n;
}

}  // namespace shardplan::explain
