// The rules for absent, null and present fields, family by family: absent is the class default, null means "derive".
#include "model_support.hpp"

using namespace shardplan;

namespace {

using Value = std::int64_t (*)(const Model&);

std::int64_t hidden(const Model& m) { return m.hidden_size; }
std::int64_t layers(const Model& m) { return m.layers(); }
std::int64_t vocab(const Model& m) { return m.vocab_size; }
std::int64_t tied(const Model& m) { return m.tied_embeddings ? 1 : 0; }
std::int64_t heads(const Model& m) { return m.kinds.front().attention.heads; }
std::int64_t kv_heads(const Model& m) { return m.kinds.front().attention.kv_heads; }
std::int64_t head_dim(const Model& m) { return m.kinds.front().attention.head_dim; }
std::int64_t v_head_dim(const Model& m) { return m.kinds.front().attention.v_head_dim; }
std::int64_t intermediate(const Model& m) { return m.kinds.front().mlp.intermediate; }
std::int64_t q_lora_rank(const Model& m) { return m.kinds.front().attention.q_lora_rank; }
std::int64_t is_latent(const Model& m) { return m.kinds.front().attention.kind == AttentionKind::latent ? 1 : 0; }
std::int64_t qkv_bias(const Model& m) { return m.kinds.front().attention.qkv_bias ? 1 : 0; }
std::int64_t output_bias(const Model& m) { return m.kinds.front().attention.output_bias ? 1 : 0; }
std::int64_t mlp_bias(const Model& m) { return m.kinds.front().mlp.up_bias ? 1 : 0; }
std::int64_t gated(const Model& m) { return m.kinds.front().mlp.gated ? 1 : 0; }
std::int64_t norms(const Model& m) { return m.kinds.front().norm_count; }
std::int64_t placement(const Model& m) { return static_cast<std::int64_t>(m.kinds.front().norm_placement); }
std::int64_t qk_norm(const Model& m) { return static_cast<std::int64_t>(m.kinds.front().attention.qk_norm); }
std::int64_t first_window(const Model& m) { return m.layer(0).attention.window; }
std::int64_t position(const Model& m) { return static_cast<std::int64_t>(m.position); }
std::int64_t position_rows(const Model& m) { return m.position_rows; }
std::int64_t final_norm(const Model& m) { return m.final_norm ? 1 : 0; }
std::int64_t mtp(const Model& m) { return m.mtp_layers; }

std::int64_t windowed_layers(const Model& m) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < m.layers(); ++i) count += m.layer(i).attention.window > 0 ? 1 : 0;
  return count;
}
std::int64_t expert_layers(const Model& m) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < m.layers(); ++i) count += m.layer(i).mlp.kind == MlpKind::moe ? 1 : 0;
  return count;
}
const MlpShape& experts_of(const Model& m) {
  for (const LayerKind& kind : m.kinds) {
    if (kind.mlp.kind == MlpKind::moe) return kind.mlp;
  }
  return m.kinds.front().mlp;
}
std::int64_t experts(const Model& m) { return experts_of(m).experts; }
std::int64_t top_k(const Model& m) { return experts_of(m).top_k; }
std::int64_t expert_width(const Model& m) { return experts_of(m).expert_intermediate; }
std::int64_t shared_width(const Model& m) { return experts_of(m).shared_intermediate; }

constexpr std::int64_t as_number(NormPlacement p) { return static_cast<std::int64_t>(p); }
constexpr std::int64_t as_number(QkNorm q) { return static_cast<std::int64_t>(q); }
constexpr std::int64_t as_number(Position p) { return static_cast<std::int64_t>(p); }

struct Case {
  const char* config;
  const char* what;
  Value value;
  std::int64_t expected;
};

void check(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    INFO(c.config << " " << c.what);
    CHECK(c.value(test::model_of(c.config)) == c.expected);
  }
}

}  // namespace

TEST_CASE("absent, null and present heads and widths") {
  check({
      {R"({"model_type":"llama"})", "absent kv heads", kv_heads, 32},
      {R"({"model_type":"llama","num_key_value_heads":null})", "null kv heads", kv_heads, 32},
      {R"({"model_type":"llama","num_key_value_heads":8})", "kv heads", kv_heads, 8},
      {R"({"model_type":"llama","num_attention_heads":16})", "kv heads follow heads", kv_heads, 16},
      {R"({"model_type":"mistral"})", "absent kv heads", kv_heads, 8},
      {R"({"model_type":"mistral","num_key_value_heads":null})", "null kv heads", kv_heads, 32},
      {R"({"model_type":"starcoder2"})", "absent kv heads", kv_heads, 2},
      {R"({"model_type":"starcoder2","num_key_value_heads":null})", "null kv heads", kv_heads, 24},
      {R"({"model_type":"qwen2","num_attention_heads":64})", "absent kv heads stay the default", kv_heads, 32},
      {R"({"model_type":"qwen3","hidden_size":1024,"num_attention_heads":16,"num_key_value_heads":8})",
       "head_dim is not hidden/heads", head_dim, 128},
      {R"({"model_type":"qwen3","head_dim":null})", "null head_dim is derived", head_dim, 128},
      {R"({"model_type":"qwen3","hidden_size":2048,"head_dim":null})", "null head_dim is derived", head_dim, 64},
      {R"({"model_type":"qwen3_moe"})", "no head_dim of its own", head_dim, 64},
      {R"({"model_type":"llama","head_dim":null})", "null head_dim", head_dim, 128},
      {R"({"model_type":"gemma","hidden_size":2048,"num_attention_heads":8,"num_key_value_heads":1})",
       "absent head_dim", head_dim, 256},
      {R"({"model_type":"gemma2"})", "absent kv heads", kv_heads, 4},
      {R"({"model_type":"gpt2","n_inner":null})", "null n_inner", intermediate, 4 * 768},
      {R"({"model_type":"gpt2"})", "absent n_inner", intermediate, 4 * 768},
      {R"({"model_type":"gpt2","n_inner":1000})", "n_inner", intermediate, 1000},
      {R"({"model_type":"gpt_neo","intermediate_size":null})", "null width", intermediate, 4 * 2048},
      {R"({"model_type":"bloom","n_embed":1024,"n_inner":99})", "n_inner ignored", intermediate, 4 * 1024},
      {R"({"model_type":"falcon"})", "absent width", intermediate, 4 * 4544},
      {R"({"model_type":"falcon","ffn_hidden_size":1024})", "width", intermediate, 1024},
      {R"({"model_type":"qwen","intermediate_size":22016})", "gate and up together", intermediate, 11008},
      {R"({"model_type":"llama","hidden_size":4096.0})", "a whole number with a point", hidden, 4096},
  });
}

TEST_CASE("attribute maps: a file may use either name") {
  check({
      {R"({"model_type":"gpt2","hidden_size":1024,"num_hidden_layers":24,"num_attention_heads":16})", "", hidden, 1024},
      {R"({"model_type":"gpt2","hidden_size":1024,"num_hidden_layers":24,"num_attention_heads":16})", "", layers, 24},
      {R"({"model_type":"bloom","n_embed":14336,"n_layer":70,"num_attention_heads":112})", "", heads, 112},
      {R"({"model_type":"bloom","hidden_size":1024,"num_hidden_layers":24,"n_head":16})", "", layers, 24},
      {R"({"model_type":"mpt","hidden_size":4096,"num_attention_heads":32,"num_hidden_layers":30})", "", layers, 30},
      {R"({"model_type":"gpt_neo","num_hidden_layers":12,"num_attention_heads":8})", "", layers, 12},
      {R"({"model_type":"mixtral","num_experts":4})", "", experts, 4},
      {R"({"model_type":"deepseek_v3","num_local_experts":64})", "", experts, 64},
      {R"({"model_type":"olmoe","num_local_experts":32})", "", experts, 32},
      {R"({"model_type":"ernie4_5_moe","num_experts":32,"num_experts_per_tok":4})", "", top_k, 4},
      {R"({"model_type":"ernie4_5_moe","moe_num_experts":32,"moe_k":4})", "", experts, 32},
      {R"({"model_type":"gpt_oss","experts_per_token":2})", "", top_k, 2},
      {R"({"model_type":"hunyuan_v1_moe","num_experts":16,"moe_topk":3})", "", top_k, 3},
      {R"({"model_type":"deepseek_v3","top_k":50})", "a sampling setting is no top-k", top_k, 8},
      {R"({"model_type":"chatglm","vocab_size":1,"padded_vocab_size":65024})", "rows of the table", vocab, 65024},
  });
}

TEST_CASE("tied embeddings where the file does not say") {
  const std::vector<std::string> are_tied = {"gpt2",        "gpt_neo", "gpt_bigcode", "opt",     "bloom",
                                             "falcon",      "mpt",     "starcoder2",  "gemma",   "gemma2",
                                             "gemma3_text", "cohere",  "cohere2",     "smollm3", "ernie4_5"};
  const std::vector<std::string> are_not = {
      "llama",   "mistral", "mixtral",  "qwen2",    "qwen2_moe",  "qwen3",       "qwen3_moe", "phi",
      "phi3",    "phimoe",  "stablelm", "olmo",     "olmo2",      "olmo3",       "olmoe",     "deepseek_v3",
      "glm",     "glm4",    "glm4_moe", "granite",  "granitemoe", "nemotron",    "gptj",      "gpt_neox",
      "exaone4", "arcee",   "apertus",  "seed_oss", "dbrx",       "llama4_text", "gpt_oss"};
  for (const std::string& type : are_tied) {
    INFO(type);
    CHECK(test::model_of(nlohmann::json{{"model_type", type}}).tied_embeddings);
    CHECK_FALSE(test::model_of(nlohmann::json{{"model_type", type}, {"tie_word_embeddings", false}}).tied_embeddings);
  }
  for (const std::string& type : are_not) {
    INFO(type);
    nlohmann::json config = {{"model_type", type}, {"num_experts_per_tok", 1}, {"head_dim", 128}};
    CHECK_FALSE(test::model_of(config).tied_embeddings);
    config["tie_word_embeddings"] = true;
    CHECK(test::model_of(config).tied_embeddings);
  }
}

TEST_CASE("text_config: the language model of a multimodal file") {
  check({
      {R"({"model_type":"gemma3","text_config":{"model_type":"gemma3_text","hidden_size":2560}})", "", hidden, 2560},
      {R"({"model_type":"gemma3","text_config":{"hidden_size":2560}})", "absent model_type inside", hidden, 2560},
      {R"({"model_type":"gemma3","text_config":{"hidden_size":2560}})", "published files omit", heads, 8},
      {R"({"model_type":"gemma3","text_config":{"hidden_size":2560}})", "published files omit", vocab, 262208},
      {R"({"model_type":"gemma3","text_config":{"hidden_size":2560}})", "class default", tied, 1},
      {R"({"model_type":"gemma3","tie_word_embeddings":false,"text_config":{"tie_word_embeddings":true}})",
       "the outer one wins", tied, 0},
      {R"({"model_type":"gemma3","text_config":{"tie_word_embeddings":false}})", "else the inner one", tied, 0},
      {R"({"model_type":"mistral3","text_config":{"hidden_size":5120}})", "mistral inside", hidden, 5120},
      {R"({"model_type":"mistral3","text_config":{"model_type":"ministral3"}})", "ministral3 inside", layers, 34},
      {R"({"model_type":"llava_onevision","text_config":{"model_type":"qwen2","num_hidden_layers":24}})",
       "an outer type that no table knows", layers, 24},
      {R"({"model_type":"internvl_chat","llm_config":{"architectures":["InternLM2ForCausalLM"],"vocab_size":92553}})",
       "llm_config", vocab, 92553},
      {R"({"model_type":"qwen2_5_omni","thinker_config":{"text_config":{"num_hidden_layers":30}}})", "", layers, 30},
      {R"({"model_type":"qwen2_vl","hidden_size":1536,"num_attention_heads":12,"num_key_value_heads":2,
           "vision_config":{"hidden_size":1280}})",
       "the older flat layout", hidden, 1536},
      {R"({"model_type":"kimi_k25","text_config":{"model_type":"kimi_k2","n_routed_experts":384}})", "", experts, 384},
  });
}

TEST_CASE("no model_type: architectures name the family") {
  check({
      {R"({"architectures":["LlamaForCausalLM"],"num_hidden_layers":3})", "", layers, 3},
      {R"({"architectures":["GPT2LMHeadModel"]})", "", hidden, 768},
      {R"({"architectures":["GPTNeoXForCausalLM"]})", "", hidden, 6144},
      {R"({"architectures":["Qwen2_5_VLForConditionalGeneration"]})", "", hidden, 8192},
      {R"({"architectures":["DeepseekV3ForCausalLM"]})", "", experts, 256},
      {R"({"architectures":["HunYuanMoEV1ForCausalLM"],"num_experts":8,"moe_topk":2})", "", experts, 8},
      {R"({"architectures":["RWForCausalLM"],"n_head":128,"n_head_kv":8,"hidden_size":8192})", "new layout", kv_heads,
       8},
      {R"({"architectures":["RWForCausalLM"],"multi_query":true})", "old layout", kv_heads, 1},
      {R"({"model_type":null,"architectures":["LlamaForCausalLM"]})", "null", layers, 32},
  });
}

TEST_CASE("falcon: key and value heads and norms") {
  check({
      {R"({"model_type":"falcon"})", "multi_query is the default", kv_heads, 1},
      {R"({"model_type":"falcon","num_kv_heads":71})", "ignored with the old architecture", kv_heads, 1},
      {R"({"model_type":"falcon","multi_query":false})", "", kv_heads, 71},
      {R"({"model_type":"falcon","new_decoder_architecture":true,"num_attention_heads":64,"num_kv_heads":8})", "",
       kv_heads, 8},
      {R"({"model_type":"falcon","new_decoder_architecture":true})", "absent", kv_heads, 71},
      {R"({"model_type":"falcon","new_decoder_architecture":true,"num_kv_heads":null})", "null", kv_heads, 71},
      {R"({"model_type":"falcon"})", "one norm", norms, 1},
      {R"({"model_type":"falcon","parallel_attn":false})", "two in sequence", norms, 2},
      {R"({"model_type":"falcon","parallel_attn":false})", "", placement, as_number(NormPlacement::pre)},
      {R"({"model_type":"falcon","new_decoder_architecture":true})", "", placement,
       as_number(NormPlacement::parallel_two_norms)},
      {R"({"model_type":"falcon","new_decoder_architecture":true,"num_ln_in_parallel_attn":1})", "", norms, 1},
      {R"({"model_type":"falcon","new_decoder_architecture":true,"num_ln_in_parallel_attn":null})", "", norms, 2},
      {R"({"model_type":"falcon","alibi":true})", "", position, as_number(Position::alibi)},
      {R"({"model_type":"RefinedWeb","n_head":128,"n_head_kv":8,"n_layer":60,"hidden_size":8192})", "", kv_heads, 8},
      {R"({"model_type":"RefinedWeb","n_head":128,"n_head_kv":8,"n_layer":60,"hidden_size":8192})", "", norms, 2},
      {R"({"model_type":"RefinedWebModel"})", "", kv_heads, 1},
  });
}

TEST_CASE("latent attention: an absent query rank is not null") {
  check({
      {R"({"model_type":"deepseek_v2","num_experts_per_tok":6})", "absent", q_lora_rank, 1536},
      {R"({"model_type":"deepseek_v2","num_experts_per_tok":6,"q_lora_rank":null})", "null", q_lora_rank, 0},
      {R"({"model_type":"deepseek_v3"})", "", is_latent, 1},
      {R"({"model_type":"deepseek_v3"})", "nope and rope", head_dim, 192},
      {R"({"model_type":"deepseek_v3","head_dim":64})", "head_dim is the rope part", head_dim, 192},
      {R"({"model_type":"minicpm3"})", "absent: hidden/heads", v_head_dim, 64},
      {R"({"model_type":"deepseek"})", "the 16B model has none", is_latent, 0},
      {R"({"model_type":"deepseek_v3","num_nextn_predict_layers":1})", "", mtp, 1},
      {R"({"model_type":"deepseek_v3"})", "", mtp, 0},
      {R"({"model_type":"glm_moe_dsa"})", "", q_lora_rank, 2048},
  });
}

TEST_CASE("which layers hold experts, and how wide they are") {
  check({
      {R"({"model_type":"deepseek_v3"})", "three dense ones", expert_layers, 58},
      {R"({"model_type":"deepseek_v3","first_k_dense_replace":1})", "", expert_layers, 60},
      {R"({"model_type":"deepseek_v2","num_experts_per_tok":6})", "none dense by default", expert_layers, 32},
      {R"({"model_type":"deepseek_v2","num_experts_per_tok":6,"moe_layer_freq":2})", "", expert_layers, 16},
      {R"({"model_type":"deepseek_v2","n_routed_experts":null})", "null: dense", expert_layers, 0},
      {R"({"model_type":"deepseek"})", "absent: dense", expert_layers, 0},
      {R"({"model_type":"deepseek_v3"})", "one shared", shared_width, 2048},
      {R"({"model_type":"deepseek_v3","n_shared_experts":null})", "none shared", shared_width, 0},
      {R"({"model_type":"deepseek_v2","num_experts_per_tok":6})", "two shared", shared_width, 2 * 1407},
      {R"({"model_type":"glm4_moe_lite","mlp_layer_types":["dense","sparse","sparse"],"num_hidden_layers":3})", "",
       expert_layers, 2},
      {R"({"model_type":"qwen3_moe"})", "absent width", expert_width, 768},
      {R"({"model_type":"qwen3_moe","num_experts":0})", "", expert_layers, 0},
      {R"({"model_type":"qwen3_moe","num_experts":1})", "", expert_layers, 0},
      {R"({"model_type":"qwen3_moe","decoder_sparse_step":2})", "", expert_layers, 12},
      {R"({"model_type":"qwen3_moe","mlp_only_layers":[0,5]})", "", expert_layers, 22},
      {R"({"model_type":"qwen3_moe","mlp_only_layers":null})", "", expert_layers, 24},
      {R"({"model_type":"qwen2_moe"})", "", shared_width, 5632},
      {R"({"model_type":"mixtral"})", "", expert_width, 14336},
      {R"({"model_type":"ernie4_5_moe"})", "from layer 1 on", expert_layers, 27},
      {R"({"model_type":"ernie4_5_moe","moe_layer_end_index":10})", "", expert_layers, 10},
      {R"({"model_type":"ernie4_5_moe","moe_layer_interval":2})", "", expert_layers, 14},
      {R"({"model_type":"llama4_text"})", "", expert_layers, 48},
      {R"({"model_type":"llama4_text","interleave_moe_layer_step":2})", "", expert_layers, 24},
      {R"({"model_type":"llama4_text","moe_layers":[1,3]})", "", expert_layers, 2},
      {R"({"model_type":"llama4_text","moe_layers":[1,3]})", "dense layers are wider", intermediate, 16384},
      {R"({"model_type":"llama4_text"})", "", shared_width, 8192},
      {R"({"model_type":"granitemoehybrid","num_hidden_layers":2,"layer_types":["attention","attention"],
           "num_local_experts":0,"shared_intermediate_size":8192})",
       "the shared MLP alone", intermediate, 8192},
      {R"({"model_type":"dbrx","ffn_config":{"moe_num_experts":16,"moe_top_k":4,"ffn_hidden_size":10752}})", "",
       experts, 16},
      {R"({"model_type":"longcat_flash"})", "every other of 56", expert_layers, 28},
      {R"({"model_type":"longcat_flash"})", "a third of the choices falls on idle experts", top_k, 8},
  });
}

TEST_CASE("sliding windows") {
  check({
      {R"({"model_type":"mistral"})", "absent", first_window, 4096},
      {R"({"model_type":"mistral","sliding_window":null})", "null", first_window, 0},
      {R"({"model_type":"mixtral"})", "absent", first_window, 0},
      {R"({"model_type":"llama","sliding_window":128})", "the class has none", first_window, 0},
      {R"({"model_type":"qwen2","sliding_window":4096})", "off", windowed_layers, 0},
      {R"({"model_type":"qwen2","use_sliding_window":true})", "from layer 28 on", windowed_layers, 4},
      {R"({"model_type":"qwen2","use_sliding_window":true,"max_window_layers":0})", "", windowed_layers, 32},
      {R"({"model_type":"gemma2"})", "each other", windowed_layers, 13},
      {R"({"model_type":"gemma2"})", "the even ones", first_window, 4096},
      {R"({"model_type":"gemma3_text"})", "five of six", windowed_layers, 22},
      {R"({"model_type":"gemma3_text","_sliding_window_pattern":2})", "", windowed_layers, 13},
      {R"({"model_type":"cohere2"})", "three of four", windowed_layers, 30},
      {R"({"model_type":"olmo3"})", "three of four", windowed_layers, 24},
      {R"({"model_type":"gpt_oss"})", "each other", windowed_layers, 18},
      {R"({"model_type":"gpt_oss"})", "", first_window, 128},
      {R"({"model_type":"exaone4","sliding_window_pattern":"LLLG"})", "", windowed_layers, 24},
      {R"({"model_type":"exaone4","sliding_window":null})", "", windowed_layers, 0},
      {R"({"model_type":"gpt_neo"})", "each other", windowed_layers, 12},
      {R"({"model_type":"llama4_text"})", "chunks where positions rotate", windowed_layers, 36},
      {R"({"model_type":"llama4_text"})", "", first_window, 8192},
      {R"({"model_type":"llama4_text","num_hidden_layers":4,"no_rope_layers":[1,0,1,0]})", "", windowed_layers, 2},
      {R"({"model_type":"llama4_text","no_rope_layers":[]})", "", windowed_layers, 36},
      {R"({"model_type":"gemma3_text","num_hidden_layers":2,"layer_types":["full_attention","sliding_attention"]})",
       "an explicit list wins", windowed_layers, 1},
  });
}

TEST_CASE("biases, norms, positions and gates") {
  check({
      {R"({"model_type":"qwen2"})", "always", qkv_bias, 1},
      {R"({"model_type":"qwen2","attention_bias":false})", "no such field", qkv_bias, 1},
      {R"({"model_type":"qwen2"})", "never", output_bias, 0},
      {R"({"model_type":"llama","attention_bias":true})", "", output_bias, 1},
      {R"({"model_type":"glm"})", "absent", qkv_bias, 1},
      {R"({"model_type":"glm","attention_bias":null})", "null is false", qkv_bias, 0},
      {R"({"model_type":"seed_oss"})", "", qkv_bias, 1},
      {R"({"model_type":"seed_oss"})", "", output_bias, 0},
      {R"({"model_type":"gpt_neox"})", "", qkv_bias, 1},
      {R"({"model_type":"gpt_neo"})", "", qkv_bias, 0},
      {R"({"model_type":"gpt_neo"})", "", output_bias, 1},
      {R"({"model_type":"mpt","no_bias":false})", "", mlp_bias, 1},
      {R"({"model_type":"mpt"})", "", mlp_bias, 0},
      {R"({"model_type":"mpt"})", "absent attn_config", position, as_number(Position::alibi)},
      {R"({"model_type":"mpt","attn_config":{"alibi":false}})", "", position_rows, 2048},
      {R"({"model_type":"mpt","attn_config":{"alibi":true},"learned_pos_emb":true})", "", position_rows, 0},
      {R"({"model_type":"mpt","attn_config":{"attn_type":"grouped_query_attention","kv_n_heads":4}})", "", kv_heads, 4},
      {R"({"model_type":"mpt","attn_config":{"attn_type":"multiquery_attention"}})", "", kv_heads, 1},
      {R"({"model_type":"mpt","ffn_config":{"ffn_type":"mptgeglu","ffn_hidden_size":5000}})", "", gated, 1},
      {R"({"model_type":"mpt","ffn_config":{"ffn_type":"mptgeglu","ffn_hidden_size":5000}})", "", intermediate, 5000},
      {R"({"model_type":"mpt","expansion_ratio":2})", "", intermediate, 4096},
      {R"({"model_type":"mosaic_gpt","mlp_ratio":3,"alibi":true})", "", intermediate, 3 * 2048},
      {R"({"model_type":"opt"})", "two rows before the first", position_rows, 2050},
      {R"({"model_type":"opt","do_layer_norm_before":false})", "", final_norm, 0},
      {R"({"model_type":"opt","_remove_final_layer_norm":true})", "", final_norm, 0},
      {R"({"model_type":"opt","do_layer_norm_before":false})", "", placement, as_number(NormPlacement::original_post)},
      {R"({"model_type":"gpt_neox","use_parallel_residual":false})", "", placement, as_number(NormPlacement::pre)},
      {R"({"model_type":"stablelm","use_parallel_residual":true})", "", norms, 1},
      {R"({"model_type":"stablelm","qk_layernorm":true})", "", qk_norm, as_number(QkNorm::each_head)},
      {R"({"model_type":"cohere","use_qk_norm":true})", "", qk_norm, as_number(QkNorm::each_head)},
      {R"({"model_type":"glm4_moe","head_dim":128})", "", qk_norm, as_number(QkNorm::none)},
      {R"({"model_type":"glm4_moe","head_dim":128,"use_qk_norm":true})", "", qk_norm, as_number(QkNorm::per_head)},
      {R"({"model_type":"olmo2"})", "", qk_norm, as_number(QkNorm::full)},
      {R"({"model_type":"olmo2"})", "", placement, as_number(NormPlacement::post)},
      {R"({"model_type":"gemma2"})", "", norms, 4},
      {R"({"model_type":"glm4"})", "", norms, 4},
      {R"({"model_type":"nemotron"})", "", gated, 0},
      {R"({"model_type":"internlm2","bias":true})", "", output_bias, 1},
      {R"({"model_type":"chatglm","add_qkv_bias":true})", "", qkv_bias, 1},
      {R"({"model_type":"chatglm","multi_query_attention":true,"multi_query_group_num":2})", "", kv_heads, 2},
      {R"({"model_type":"baichuan","hidden_size":5120,"num_attention_heads":40,"model_max_length":4096})", "13B",
       position, as_number(Position::alibi)},
  });
}

TEST_CASE("gemma 4: wide global layers and experts beside the MLP") {
  const Model model = test::model_of(test::json_file("configs/models/gemma-4-26b-a4b.json"));
  const LayerKind& local = model.layer(0);
  const LayerKind& global = model.layer(5);
  CHECK(local.attention.window == 1024);
  CHECK(local.attention.head_dim == 256);
  CHECK(global.attention.window == 0);
  CHECK(global.attention.head_dim == 512);
  CHECK(global.attention.kv_heads == 2);
  CHECK(global.attention.keys_are_values);
  CHECK(global.mlp.parallel_dense_intermediate == 2112);
  CHECK(global.norm_count == 7);
  CHECK(model.kinds.size() == 2);
}

TEST_CASE("nemotron-nas: layers one by one") {
  const Model model = test::model_of(test::json_file("configs/models/llama-3.3-nemotron-super-49b.json"));
  CHECK(model.layer(1).attention.kv_heads == 8);
  CHECK(model.layer(1).mlp.intermediate == 28672);
  CHECK(model.layer(6).attention.kind == AttentionKind::none);
  CHECK(model.layer(6).norm_count == 1);
}

TEST_CASE("quantization of a checkpoint is not read") {
  const Model plain = test::model_of(R"({"model_type":"llama"})");
  const Model quantized = test::model_of(R"({"model_type":"llama","quantization_config":{"quant_method":"fp8"}})");
  CHECK(plain.kinds == quantized.kinds);
}
