// What stands before the first and behind the last decoder layer: embedding, final norm, language-model head, loss.
#pragma once

#include "shardplan/core/model.hpp"
#include "shardplan/physics/layer.hpp"

namespace shardplan {

/// A low-rank adapter on a table: A has a column per row of the table, B a row per hidden element; no dropout (PEFT
/// lora/layer.py, Embedding).
template <class N>
void adapt_table(const Symbols<N>& v, const LayerOptions& o, MatrixId id, N tokens, N width, Operator<N>& op) {
  if (!contains(o.adapted, id)) return;
  op.adapter_parameters = v.r * (op.rows + width);
  op.adapted = adapts_whole_product;
  op.adapter_rank = v.r;
  op.saved = op.saved + v.w_a * v.r * tokens;
  op.forward_flop = 2.0 * tokens * v.r * width;
  op.input_gradient_flop = op.forward_flop;
  op.weight_gradient_flop = op.forward_flop;
}

/// Token and position tables. The token table is cut over the tensor ranks by vocabulary rows (Megatron-LM
/// VocabParallelEmbedding), the position table is whole on each. Saved: int64 token ids, position ids where the table
/// is learned, a byte mask where dropout follows (measured: tests/evidence/autograd_bytes.jsonl).
template <class N>
void embedding_operators(const Symbols<N>& v, const LayerOptions& o, const Model& model, bool trains,
                         OperatorList<N>& list) {
  const N tokens = v.s * v.b / v.c;
  const bool projected = model.embedding_dim > 0 && model.embedding_dim != model.hidden_size;
  const N width = projected ? N(static_cast<double>(model.embedding_dim)) : v.h;
  Operator<N> table;
  table.name = "embedding";
  table.kind = OperatorKind::lookup;
  table.part = Part::embedding;
  table.trains = trains;
  table.parameters = v.V / v.t * width;
  table.rows = v.V / v.t;
  table.cols = width;
  table.matrices = 1.0;
  table.saved = 8.0 * tokens;
  table.forward_bytes = 2.0 * v.w * tokens * v.h;
  table.backward_bytes = 2.0 * table.forward_bytes;
  adapt_table(v, o, MatrixId::embed_tokens, tokens, width, table);
  list.operators.add(table);
  if (model.position_rows > 0) {
    Operator<N> position;
    position.name = "position_embeddings";
    position.kind = OperatorKind::lookup;
    position.part = Part::embedding;
    position.trains = trains;
    position.rows = static_cast<double>(model.position_rows);
    position.cols = v.h;
    position.matrices = 1.0;
    position.parameters = position.rows * v.h;
    position.saved = 8.0 * v.s / v.c;
    adapt_table(v, o, MatrixId::position_embeddings, tokens, v.h, position);
    list.operators.add(position);
  }
  if (projected) {
    LinearSpec<N> in;
    in.name = "embedding_projection";
    in.part = Part::embedding;
    in.in = width;
    in.in_divisor = 1.0;
    in.tokens = tokens;
    in.input_tokens = tokens;
    in.width = v.w;
    Operator<N> op = linear(v, o, in, {{MatrixId::embed_projection, v.h, N(1.0)}});
    op.trains = trains;
    list.operators.add(op);
  }
  if (o.dropout) {
    Operator<N> mask;
    mask.name = "embedding_dropout";
    mask.part = Part::embedding;
    mask.saved = v.s * v.b / (v.c * v.t_sp) * v.h;
    mask.forward_bytes = 2.5 * v.w * mask.saved;
    mask.backward_bytes = mask.forward_bytes;
    list.operators.add(mask);
  }
  if (model.embedding_norm) list.operators.add(hidden_norm("embedding_norm", v, o, true, false, trains));
}

template <class N>
void final_norm_operators(const Symbols<N>& v, const LayerOptions& o, const Model& model, OperatorList<N>& list) {
  if (!model.final_norm) return;
  list.operators.add(hidden_norm("final_norm", v, o, true, false, true));
}

/// The loss as the head's backward needs it. Bytes per logit of this rank, measured:
/// tests/evidence/autograd_bytes.jsonl and autograd_peaks.jsonl.
struct LossBytes {
  double saved_per_logit = 4;        ///< kept from forward to backward
  double saved_per_token = 8;        ///< labels and masks
  double peak_per_logit = 12;        ///< the most alive at once in the loss' forward + backward, of a chunk
  double gradient_per_logit = 2;     ///< the logits' gradient as the head's backward reads it, of a chunk
  double chunks = 1;                 ///< the tokens pass head and loss in so many parts
  bool gradient_in_forward = false;  ///< the head's weight gradient is made in forward and kept (Liger)
  bool shifted = false;              ///< logits of the last position are cut off: s - 1 rows
};

/// `native_width`: bytes of a logit where the model's own loss does not upcast.
constexpr LossBytes loss_bytes(LossKind loss, int chunks, double native_width, bool log_probs_with_external) noexcept {
  const double n = chunks < 1 ? 1 : chunks;
  switch (loss) {
    case LossKind::hf: return {4, 8, 12, 2, 1, false, false};
    case LossKind::hf_shift: return {4, 8, 12, 2, 1, false, true};
    case LossKind::hf_external: return {4, 8, 14, 2, 1, false, false};
    case LossKind::hf_native: return {native_width, 8, 4 * native_width, native_width, 1, false, false};
    case LossKind::fused_ce: return {4, 8, log_probs_with_external ? 10.0 : 8.0, 2, 1, false, false};
    case LossKind::fused_ce_native: return {native_width, 8, 3 * native_width, native_width, 1, false, false};
    case LossKind::compiled: return {2, 8, 2, 2, 1, false, false};
    case LossKind::logits16: return {2, 8, 6, 2, 1, false, false};
    case LossKind::megatron: return {4, 9, 6, 2, 1, false, false};
    case LossKind::te: return {2, 0, 2, 2, 1, false, false};
    case LossKind::chunked: return {0, 8, 12, 2, n, false, false};
    case LossKind::liger: return {0, 0, 4, 2, n, true, false};
  }
  return {};
}

/// The most that head and loss hold beyond parameters, gradients and the head's input, at their two worst points.
template <class N>
struct HeadPeaks {
  N loss{};             ///< logits and what the loss makes of them
  N product{};          ///< backward of the head's product: the logits' gradient and the input's
  N weight_gradient{};  ///< made there too, or a placeholder of its size where it is accumulated by the product
};

/// T tokens, V/t columns, n chunks (measured: tests/evidence/autograd_peaks.jsonl; Megatron-Core
/// tensor_parallel/layers.py for the gathered input and the scattered gradient of sequence parallelism):
///   loss:    peak_per_logit TV/(nt); in chunks also the input's gradient 2Th, and 2Vh/t where it is made in forward.
///   product: gradient_per_logit TV/(nt) + 2Th, in chunks + 2Th/n, with sequence parallelism + 2Th + 2Th/t.
template <class N>
HeadPeaks<N> head_peaks(const Symbols<N>& v, const LayerOptions& o, const LossBytes& loss, N width, bool trains) {
  const N tokens = v.s * v.b / v.c;
  const N rows = loss.shifted ? v.b * (v.s / v.c - 1.0) : tokens;
  const N logits = rows / loss.chunks * v.V / v.t;
  const N input = v.w * tokens * width;
  HeadPeaks<N> peaks;
  peaks.weight_gradient = trains ? 2.0 * v.V / v.t * width : N(0.0);
  peaks.loss = loss.peak_per_logit * logits + loss.saved_per_token * rows;
  if (loss.chunks > 1) peaks.loss = peaks.loss + input;
  if (loss.gradient_in_forward) {
    peaks.loss = peaks.loss + peaks.weight_gradient;
    peaks.weight_gradient = N(0.0);
  }
  peaks.product = loss.gradient_per_logit * logits + input;
  if (loss.chunks > 1) peaks.product = peaks.product + input / loss.chunks;
  if (o.sequence_parallel) {
    peaks.product = peaks.product + input / v.t;
    if (o.kernels.sp_input == SequenceParallelInput::regather) peaks.product = peaks.product + input;
  }
  return peaks;
}

/// The language-model head: a column-cut product with V/t outputs, and the loss on them.
template <class N>
void head_operators(const Symbols<N>& v, const LayerOptions& o, const Model& model, const LossBytes& loss,
                    bool head_trains, bool weight_is_embedding, OperatorList<N>& list) {
  const N tokens = v.s * v.b / v.c;
  const bool projected = model.embedding_dim > 0 && model.embedding_dim != model.hidden_size;
  const N width = projected ? N(static_cast<double>(model.embedding_dim)) : v.h;
  LayerOptions plain = o;
  plain.base_trains = head_trains;
  plain.quantized = false;
  plain.narrow_input_bytes = 0;
  if (projected) {
    LinearSpec<N> out;
    out.name = "head_projection";
    out.part = Part::head;
    out.in = v.h;
    out.in_divisor = 1.0;
    out.tokens = tokens;
    out.input_tokens = tokens;
    out.width = v.w;
    list.operators.add(linear(v, plain, out, {{MatrixId::embed_projection, width, N(1.0)}}));
  }
  LinearSpec<N> head;
  head.name = "lm_head";
  head.part = Part::head;
  head.in = width;
  head.in_divisor = 1.0;
  head.tokens = tokens;
  head.input_tokens = v.s * v.b / (v.c * v.t_in);
  head.width = v.w;
  head.bias = model.head_bias;
  plain.autocast_copies = o.autocast_copies;
  Operator<N> op = linear(v, plain, head, {{MatrixId::lm_head, v.V, v.t}});
  if (!head_trains) op.saved = op.saved + v.w * head.input_tokens * width;  // a frozen head's input counts all the same
  if (weight_is_embedding) {
    op.parameters = op.biases;
  }
  list.operators.add(op);
  Operator<N> cost;
  cost.name = "loss";
  cost.kind = OperatorKind::loss;
  cost.part = Part::head;
  const N rows = loss.shifted ? v.b * (v.s / v.c - 1.0) : tokens;
  cost.saved = N(loss.saved_per_logit) * rows * v.V / v.t + N(loss.saved_per_token) * rows;
  if (loss.gradient_in_forward && head_trains) cost.saved = cost.saved + v.w * v.V / v.t * width;
  list.operators.add(cost);
}

}  // namespace shardplan
