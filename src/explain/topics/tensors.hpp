// The tensors that a model's gradients come in.
#pragma once

#include <vector>

#include "shardplan/core/run.hpp"

namespace shardplan::explain {

/// Elements of each tensor that trains, of the uncut model, embedding first, head last: matrices as the model names
/// them (q, k and v apart), norms and biases; under PEFT the adapters' factors A and B alone.
struct TensorSizes {
  std::vector<double> embedding;
  std::vector<std::vector<double>> layers;  ///< by decoder layer
  std::vector<double> head;                 ///< final norm, head

  double elements() const;
};
TensorSizes tensor_sizes(const Model& model, const Peft& peft);

/// Buckets as PyTorch's DistributedDataParallel fills them: from the last tensor to the first, a tensor is never split,
/// a bucket is closed once it holds its cap, 1 MiB for the first and `cap` for the others (reducer.cpp,
/// compute_bucket_assignment_by_size; distributed.py, _DEFAULT_FIRST_BUCKET_BYTES). Bytes of each.
std::vector<double> ddp_buckets(const TensorSizes& tensors, double bytes_per_element, double cap);

/// LLaMA-7B.
Model llama_7b();

}  // namespace shardplan::explain
