// Names of weight matrices in a model, for `peft.targets`.
#include <array>

#include "families/modules.hpp"
#include "shardplan/io/model_config.hpp"

namespace shardplan::io {

namespace {

using namespace module_sets;

/// "c_proj" names attn.c_proj and mlp.c_proj, "attn.c_proj" the first: equal, or a suffix at a dot.
bool names(std::string_view target, std::string_view path) {
  if (target.size() > path.size() || target.empty()) return false;
  if (path.substr(path.size() - target.size()) != target) return false;
  return target.size() == path.size() || path[path.size() - target.size() - 1] == '.';
}

constexpr MatrixSet gates = set_of(MatrixId::gate_proj, MatrixId::expert_gate_proj, MatrixId::shared_gate_proj);
constexpr MatrixSet ups = set_of(MatrixId::up_proj, MatrixId::expert_up_proj, MatrixId::shared_up_proj);
constexpr MatrixSet downs = set_of(MatrixId::down_proj, MatrixId::expert_down_proj, MatrixId::shared_down_proj);

/// Names that every model understands where its family has none of that name: those of the generic type.
constexpr std::array<ModulePath, 21> aliases = {{
    {"gate_proj", gates},
    {"up_proj", ups},
    {"down_proj", downs},
    {"c_attn", qkv},
    {"qkv_proj", qkv},
    {"c_proj", set_of(MatrixId::o_proj)},
    {"attn.c_proj", set_of(MatrixId::o_proj)},
    {"output_proj", set_of(MatrixId::o_proj)},
    {"w1", gates},
    {"gate", gates},
    {"w2", ups},
    {"c_fc", ups},
    {"up", ups},
    {"w3", downs},
    {"down", downs},
    {"gate_up_proj", gates | ups},
    {"kv_a_proj_with_mqa", set_of(MatrixId::kv_a_proj)},
    {"shared_expert.gate_proj", set_of(MatrixId::shared_gate_proj)},
    {"shared_expert.up_proj", set_of(MatrixId::shared_up_proj)},
    {"shared_expert.down_proj", set_of(MatrixId::shared_down_proj)},
    {"all-linear", all_linear},
}};

MatrixSet attention_matrices(const AttentionShape& shape) {
  switch (shape.kind) {
    case AttentionKind::none: return 0;
    case AttentionKind::grouped_query:
      return set_of(MatrixId::q_proj, MatrixId::k_proj, MatrixId::o_proj) |
             (shape.keys_are_values ? 0 : set_of(MatrixId::v_proj));
    case AttentionKind::latent: break;
  }
  const MatrixSet queries =
      shape.q_lora_rank > 0 ? set_of(MatrixId::q_a_proj, MatrixId::q_b_proj) : set_of(MatrixId::q_proj);
  const MatrixSet indexer = shape.indexer_heads > 0
                                ? set_of(MatrixId::indexer_q_proj, MatrixId::indexer_k_proj, MatrixId::indexer_weights)
                                : 0;
  return queries | set_of(MatrixId::kv_a_proj, MatrixId::kv_b_proj, MatrixId::o_proj) | indexer;
}

MatrixSet mlp_matrices(const MlpShape& shape) {
  const MatrixSet dense =
      set_of(MatrixId::up_proj, MatrixId::down_proj) | (shape.gated ? set_of(MatrixId::gate_proj) : 0);
  const MatrixSet shared = set_of(MatrixId::shared_up_proj, MatrixId::shared_down_proj) |
                           (shape.gated ? set_of(MatrixId::shared_gate_proj) : 0);
  switch (shape.kind) {
    case MlpKind::none: return 0;
    case MlpKind::dense: return dense;
    case MlpKind::moe: break;
  }
  return set_of(MatrixId::router, MatrixId::expert_up_proj, MatrixId::expert_down_proj) |
         (shape.gated ? set_of(MatrixId::expert_gate_proj) : 0) | (shape.shared_intermediate > 0 ? shared : 0) |
         (shape.shared_gate ? set_of(MatrixId::shared_expert_gate) : 0) |
         (shape.parallel_dense_intermediate > 0 ? dense : 0);
}

}  // namespace

MatrixSet matrices_of(const Model& model) {
  MatrixSet set = set_of(MatrixId::embed_tokens, MatrixId::lm_head);
  if (model.position == Position::learned) set |= set_of(MatrixId::position_embeddings);
  if (model.embedding_dim > 0) set |= set_of(MatrixId::embed_projection);
  for (const LayerKind& kind : model.kinds) set |= attention_matrices(kind.attention) | mlp_matrices(kind.mlp);
  return set;
}

std::optional<MatrixSet> module_matrices(const Model& model, std::string_view target) {
  const MatrixSet all = matrices_of(model);
  MatrixSet own = 0;
  for (const ModuleNames& module : model.module_names) {
    if (names(target, module.text)) own |= module.matrices;
  }
  if ((own & all) != 0) return own & all;
  for (const ModulePath& alias : aliases) {
    if (alias.path == target && (alias.matrices & all) != 0) return alias.matrices & all;
  }
  if (const auto id = parse_name<MatrixId>(target); id && contains(all, *id)) return set_of(*id);
  return std::nullopt;
}

std::vector<std::string_view> module_names(const Model& model) {
  const MatrixSet all = matrices_of(model);
  std::vector<std::string_view> list;
  for (const ModuleNames& module : model.module_names) {
    if ((module.matrices & all) == 0) continue;
    const std::string_view path = module.text;
    const std::size_t dot = path.rfind('.');
    const std::string_view last = dot == std::string_view::npos ? path : path.substr(dot + 1);
    bool known = false;
    for (const std::string_view other : list) known = known || other == last;
    if (!known) list.push_back(last);
  }
  return list;
}

}  // namespace shardplan::io
