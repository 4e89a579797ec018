// Names of modules in peft.targets.
#include "model_support.hpp"

using namespace shardplan;

namespace {

constexpr MatrixSet q = set_of(MatrixId::q_proj);
constexpr MatrixSet qkv = set_of(MatrixId::q_proj, MatrixId::k_proj, MatrixId::v_proj);
constexpr MatrixSet o = set_of(MatrixId::o_proj);
constexpr MatrixSet gate = set_of(MatrixId::gate_proj);
constexpr MatrixSet up = set_of(MatrixId::up_proj);
constexpr MatrixSet down = set_of(MatrixId::down_proj);
constexpr MatrixSet experts_gate = set_of(MatrixId::expert_gate_proj);
constexpr MatrixSet experts_up = set_of(MatrixId::expert_up_proj);
constexpr MatrixSet experts_down = set_of(MatrixId::expert_down_proj);
constexpr MatrixSet shared = set_of(MatrixId::shared_gate_proj, MatrixId::shared_up_proj, MatrixId::shared_down_proj);

struct Case {
  const char* config;
  const char* target;
  MatrixSet expected;  ///< 0: no such module
};

constexpr const char* llama = R"({"model_type":"llama"})";
constexpr const char* gpt2 = R"({"model_type":"gpt2"})";
constexpr const char* mixtral = R"({"model_type":"mixtral"})";
constexpr const char* generic =
    R"({"model_type":"transformer","hidden_size":64,"num_hidden_layers":1,"num_attention_heads":4,"vocab_size":100})";

constexpr const char* generic_moe =
    R"({"model_type":"transformer","hidden_size":64,"num_hidden_layers":1,"num_attention_heads":4,"vocab_size":100,
        "num_experts":4,"num_experts_per_tok":1})";

}  // namespace

TEST_CASE("module names are the family's own, then those of the generic type") {
  const std::vector<Case> cases = {
      {llama, "q_proj", q},
      {llama, "self_attn.q_proj", q},
      {llama, "attn.q_proj", 0},
      {llama, "proj", 0},
      {llama, "", 0},
      {llama, "embed_tokens", set_of(MatrixId::embed_tokens)},
      {llama, "lm_head", set_of(MatrixId::lm_head)},
      {llama, "gate_up_proj", gate | up},
      {llama, "experts.gate_proj", 0},
      {llama, "all-linear", qkv | o | gate | up | down},
      {gpt2, "c_attn", qkv},
      {gpt2, "c_proj", o | down},
      {gpt2, "attn.c_proj", o},
      {gpt2, "mlp.c_proj", down},
      {gpt2, "c_fc", up},
      {gpt2, "gate_proj", 0},
      {gpt2, "wte", set_of(MatrixId::embed_tokens)},
      {gpt2, "wpe", set_of(MatrixId::position_embeddings)},
      {gpt2, "all-linear", qkv | o | up | down},
      {R"({"model_type":"gpt_neox"})", "query_key_value", qkv},
      {R"({"model_type":"gpt_neox"})", "dense", o},
      {R"({"model_type":"gpt_neox"})", "dense_h_to_4h", up},
      {R"({"model_type":"gpt_neox"})", "dense_4h_to_h", down},
      {R"({"model_type":"gpt_neox"})", "embed_out", set_of(MatrixId::lm_head)},
      {R"({"model_type":"bloom"})", "query_key_value", qkv},
      {R"({"model_type":"falcon"})", "dense", o},
      {R"({"model_type":"opt"})", "out_proj", o},
      {R"({"model_type":"opt"})", "fc1", up},
      {R"({"model_type":"opt"})", "fc2", down},
      {R"({"model_type":"mpt"})", "Wqkv", qkv},
      {R"({"model_type":"phi"})", "dense", o},
      {R"({"model_type":"phi3"})", "qkv_proj", qkv},
      {R"({"model_type":"phi3"})", "gate_up_proj", gate | up},
      {R"({"model_type":"phi-msft"})", "Wqkv", qkv},
      {R"({"model_type":"starcoder2"})", "c_proj", down},
      {R"({"model_type":"baichuan"})", "W_pack", qkv},
      {R"({"model_type":"internlm2"})", "wqkv", qkv},
      {R"({"model_type":"internlm2"})", "wo", o},
      {R"({"model_type":"internlm2"})", "w1", gate},
      {R"({"model_type":"internlm2"})", "w2", down},
      {R"({"model_type":"internlm2"})", "w3", up},
      {R"({"model_type":"chatglm"})", "query_key_value", qkv},
      {R"({"model_type":"chatglm"})", "dense_h_to_4h", gate | up},
      {R"({"model_type":"glm4"})", "gate_up_proj", gate | up},
      {R"({"model_type":"qwen"})", "w1", up},
      {R"({"model_type":"qwen"})", "w2", gate},
      {R"({"model_type":"qwen"})", "c_proj", o | down},
      {R"({"model_type":"exaone"})", "c_fc_0", gate},
      {mixtral, "w1", experts_gate},
      {mixtral, "w2", experts_down},
      {mixtral, "w3", experts_up},
      {mixtral, "gate", set_of(MatrixId::router)},
      {mixtral, "down_proj", experts_down},
      {mixtral, "all-linear", qkv | o | experts_gate | experts_up | experts_down},
      {R"({"model_type":"gpt_oss"})", "all-linear", qkv | o},
      {R"({"model_type":"qwen2_moe"})", "gate_proj", experts_gate | set_of(MatrixId::shared_gate_proj)},
      {R"({"model_type":"qwen2_moe"})", "shared_expert.gate_proj", set_of(MatrixId::shared_gate_proj)},
      {R"({"model_type":"deepseek_v3"})", "down_proj", down | experts_down | set_of(MatrixId::shared_down_proj)},
      {R"({"model_type":"deepseek_v3"})", "kv_a_proj_with_mqa", set_of(MatrixId::kv_a_proj)},
      {R"({"model_type":"deepseek_v3"})", "kv_a_proj", set_of(MatrixId::kv_a_proj)},
      {R"({"model_type":"deepseek_v3"})", "q_proj", 0},
      {R"({"model_type":"deepseek_v3","q_lora_rank":null})", "q_proj", q},
      {R"({"model_type":"deepseek_v3"})", "all-linear",
       o | gate | up | down | experts_gate | experts_up | experts_down | shared |
           set_of(MatrixId::q_a_proj, MatrixId::q_b_proj, MatrixId::kv_a_proj, MatrixId::kv_b_proj)},
      {generic, "c_attn", qkv},
      {generic, "qkv_proj", qkv},
      {generic, "c_proj", o},
      {generic, "attn.c_proj", o},
      {generic, "output_proj", o},
      {generic, "w1", gate},
      {generic, "gate", gate},
      {generic, "w2", up},
      {generic, "c_fc", up},
      {generic, "up", up},
      {generic, "w3", down},
      {generic, "down", down},
      {generic, "gate_up_proj", gate | up},
      {generic, "lm_head", set_of(MatrixId::lm_head)},
      {generic_moe, "gate", experts_gate},
      {generic_moe, "router", set_of(MatrixId::router)},
      {generic, "query_key_value", 0},
      {generic, "position_embeddings", 0},
  };
  for (const Case& c : cases) {
    INFO(c.config << " " << c.target);
    const auto found = io::module_matrices(test::model_of(c.config), c.target);
    CHECK(found.value_or(0) == c.expected);
    CHECK(found.has_value() == (c.expected != 0));
  }
}

TEST_CASE("the names that messages list") {
  const Model model = test::model_of(gpt2);
  const auto names = io::module_names(model);
  const std::vector<std::string_view> expected = {"c_attn", "c_proj", "c_fc", "wte", "wpe", "lm_head"};
  CHECK(names == expected);
}
