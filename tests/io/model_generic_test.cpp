// The generic model_type "transformer".
#include <set>

#include "model_support.hpp"
#include "shardplan/physics/parameters.hpp"

using namespace shardplan;

namespace {

nlohmann::json small() {
  return nlohmann::json::parse(
      R"({"model_type":"transformer","hidden_size":1024,"num_hidden_layers":4,"num_attention_heads":16,"vocab_size":32000})");
}

nlohmann::json with(const std::string& more) {
  nlohmann::json config = small();
  config.update(nlohmann::json::parse(more));
  return config;
}

Diagnostics problems_of(const nlohmann::json& config) { return io::read_model(config, "m.json", "/model").problems; }

}  // namespace

TEST_CASE("defaults of the generic type") {
  const Model model = test::model_of(small());
  const LayerKind& layer = model.kinds.front();
  CHECK(model.family == "transformer");
  CHECK(layer.attention.kv_heads == 16);
  CHECK(layer.attention.head_dim == 64);
  CHECK(layer.mlp.intermediate == 4096);
  CHECK(layer.mlp.gated);
  CHECK(model.norm == Norm::rmsnorm);
  CHECK(model.position == Position::rope);
  CHECK(model.activation == Activation::silu);
  CHECK_FALSE(model.tied_embeddings);
  CHECK_FALSE(layer.attention.qkv_bias);
  CHECK_FALSE(layer.attention.output_bias);
  CHECK_FALSE(layer.mlp.up_bias);
  CHECK(layer.attention.window == 0);
  CHECK(model.max_position_embeddings == 0);
  CHECK(model.mtp_layers == 0);
}

TEST_CASE("null is the same as absent in the generic type") {
  nlohmann::json config = small();
  for (const char* field : {"num_key_value_heads",
                            "head_dim",
                            "intermediate_size",
                            "tie_word_embeddings",
                            "hidden_act",
                            "gated_mlp",
                            "norm",
                            "position",
                            "attention_bias",
                            "qkv_bias",
                            "mlp_bias",
                            "qk_norm",
                            "sliding_window",
                            "layer_types",
                            "num_experts",
                            "num_experts_per_tok",
                            "moe_intermediate_size",
                            "q_lora_rank",
                            "kv_lora_rank",
                            "qk_nope_head_dim",
                            "name",
                            "v_head_dim",
                            "num_nextn_predict_layers",
                            "max_position_embeddings",
                            "shardplan"}) {
    config[field] = nullptr;
  }
  CHECK(test::model_of(config).kinds == test::model_of(small()).kinds);
}

TEST_CASE("gated_mlp follows the activation") {
  const std::vector<std::pair<const char*, bool>> cases = {{"silu", true},   {"swiglu", true},   {"geglu", true},
                                                           {"gelu", false},  {"relu", false},    {"relu2", false},
                                                           {"xielu", false}, {"gelu_new", false}};
  for (const auto& [activation, gated] : cases) {
    INFO(activation);
    nlohmann::json config = small();
    config["hidden_act"] = activation;
    CHECK(test::model_of(config).kinds.front().mlp.gated == gated);
    config["gated_mlp"] = !gated;
    CHECK(test::model_of(config).kinds.front().mlp.gated == !gated);
  }
}

TEST_CASE("biases of the generic type") {
  const AttentionShape all = test::model_of(with(R"({"attention_bias":true})")).kinds.front().attention;
  CHECK(all.qkv_bias);
  CHECK(all.output_bias);
  const AttentionShape qkv = test::model_of(with(R"({"qkv_bias":true})")).kinds.front().attention;
  CHECK(qkv.qkv_bias);
  CHECK_FALSE(qkv.output_bias);
  const AttentionShape output =
      test::model_of(with(R"({"attention_bias":true,"qkv_bias":false})")).kinds.front().attention;
  CHECK_FALSE(output.qkv_bias);
  CHECK(output.output_bias);
}

TEST_CASE("windows, sinks and norms of the generic type") {
  const Model all = test::model_of(with(R"({"sliding_window":128,"attention_sinks":true,"qk_norm":true})"));
  REQUIRE(all.kinds.size() == 1);
  CHECK(all.layer(3).attention.window == 128);
  CHECK(all.layer(3).attention.sinks);
  CHECK(all.layer(3).attention.qk_norm == QkNorm::per_head);
  const Model some = test::model_of(with(
      R"({"sliding_window":128,"layer_types":["sliding_attention","full_attention","sliding_attention","full_attention"]})"));
  CHECK(some.kinds.size() == 2);
  CHECK(some.layer(0).attention.window == 128);
  CHECK(some.layer(1).attention.window == 0);
}

TEST_CASE("learned positions have the stated rows, or as many as the sequence") {
  CHECK(test::model_of(with(R"({"position":"learned","max_position_embeddings":2048})")).position_rows == 2048);
  const Model open = test::model_of(with(R"({"position":"learned"})"));
  CHECK(open.position == Position::learned);
  CHECK(open.position_rows == 0);
}

TEST_CASE("experts of the generic type") {
  const auto config = with(R"({"num_experts":8,"num_experts_per_tok":2,"moe_intermediate_size":512,
                               "num_shared_experts":2,"first_k_dense_replace":1})");
  const Model model = test::model_of(config);
  CHECK(model.layer(0).mlp.kind == MlpKind::dense);
  const MlpShape& experts = model.layer(1).mlp;
  CHECK(experts.kind == MlpKind::moe);
  CHECK(experts.experts == 8);
  CHECK(experts.top_k == 2);
  CHECK(experts.expert_intermediate == 512);
  CHECK(experts.shared_intermediate == 1024);
  CHECK(test::model_of(with(R"({"num_experts":8,"num_experts_per_tok":2})")).layer(0).mlp.expert_intermediate == 4096);
  CHECK(test::model_of(with(R"({"num_experts":8,"num_experts_per_tok":2,"shared_expert_intermediate_size":300})"))
            .layer(0)
            .mlp.shared_intermediate == 300);
  CHECK(test::model_of(with(R"({"num_experts":8,"num_experts_per_tok":2,"num_shared_experts":0,
                                "shared_expert_intermediate_size":300})"))
            .layer(0)
            .mlp.shared_intermediate == 0);
  CHECK_FALSE(test::model_of(with(R"({"num_experts":1})")).has_experts());
}

TEST_CASE("DeepSeek-V3 described generically counts like its config.json, correction biases apart") {
  const Model generic = test::model_of(R"({"model_type":"transformer","name":"v3","hidden_size":7168,
      "num_hidden_layers":61,"num_attention_heads":128,"num_key_value_heads":128,"intermediate_size":18432,
      "vocab_size":129280,"num_experts":256,"num_experts_per_tok":8,"moe_intermediate_size":2048,"num_shared_experts":1,
      "first_k_dense_replace":3,"q_lora_rank":1536,"kv_lora_rank":512,"qk_nope_head_dim":128,"qk_rope_head_dim":64,
      "v_head_dim":128,"num_nextn_predict_layers":1})");
  CHECK(generic.name == "v3");
  CHECK(generic.mtp_layers == 1);
  CHECK(count_parameters(generic).parameters == 671026419200 - 58 * 256);
}

TEST_CASE("an unknown field of the generic type is an error with a did-you-mean") {
  const Diagnostics problems = problems_of(with(R"({"num_atention_heads":8,"n_embd":12})"));
  INFO(test::all_messages(problems));
  REQUIRE(problems.size() == 2);
  CHECK(problems[0].pointer == "/model/n_embd");
  CHECK(problems[1].pointer == "/model/num_atention_heads");
  CHECK_THAT(problems[1].way_out, test::Contains("did you mean \"num_attention_heads\"?"));
}

TEST_CASE("what the generic type refuses") {
  struct Case {
    const char* more;
    const char* pointer;
    const char* message;
  };
  const std::vector<Case> cases = {
      {R"({"hidden_act":"sillu"})", "/model/hidden_act", "\"sillu\" is not silu"},
      {R"({"norm":"batchnorm"})", "/model/norm", "\"batchnorm\" is not rmsnorm"},
      {R"({"position":"rotary"})", "/model/position", "\"rotary\" is not rope, learned, alibi or none"},
      {R"({"num_experts":8})", "/model/num_experts_per_tok", "is missing"},
      {R"({"num_experts":8,"num_experts_per_tok":9})", "/model/num_experts_per_tok", "9 is more than the 8 experts"},
      {R"({"qk_rope_head_dim":64})", "/model/qk_rope_head_dim", "needs kv_lora_rank"},
      {R"({"layer_types":["sliding_attention","full_attention","full_attention","full_attention"]})",
       "/model/layer_types", "needs sliding_window"},
      {R"({"sliding_window":9,"layer_types":["mamba","full_attention","full_attention","full_attention"]})",
       "/model/layer_types", "not supported"},
      {R"({"num_attention_heads":3})", "/model/num_attention_heads", "3 does not divide hidden_size 1024"},
      {R"({"num_attention_heads":null})", "/model/num_attention_heads", "null is not a whole number"},
      {R"({"vocab_size":2.5})", "/model/vocab_size", "2.5 is not a whole number"},
      {R"({"qk_norm":"yes"})", "/model/qk_norm", "not true or false"},
      {R"({"norm_topk_prob":1})", "/model/norm_topk_prob", "1 is not true or false"},
      {R"({"name":5})", "/model/name", "5 is not a text"},
  };
  for (const Case& c : cases) {
    const Diagnostics problems = problems_of(with(c.more));
    INFO(c.more << "\n" << test::all_messages(problems));
    REQUIRE(problems.size() == 1);
    CHECK(problems[0].pointer == c.pointer);
    CHECK_THAT(problems[0].message, test::Contains(c.message));
  }
  const Diagnostics empty = problems_of(nlohmann::json{{"model_type", "transformer"}});
  INFO(test::all_messages(empty));
  std::set<std::string> missing;
  for (const Diagnostic& problem : empty) missing.insert(problem.pointer);
  CHECK(missing == std::set<std::string>{"/model/hidden_size", "/model/num_attention_heads", "/model/num_hidden_layers",
                                         "/model/vocab_size"});
  CHECK(problems_of(with(R"({"kv_lora_rank":512})")).size() == 3);
}

TEST_CASE("the name of a model") {
  CHECK(test::model_of(with(R"({"name":"mine"})")).name == "mine");
  CHECK(test::model_of(with(R"({"name":"mine","shardplan":{"name":"ours"}})")).name == "ours");
  CHECK(test::model_of(R"({"model_type":"llama","shardplan":{"name":"ours","aliases":["o"],"source":"s"}})").name ==
        "ours");
  CHECK(test::model_of(R"({"model_type":"llama"})").name.empty());
  const auto aliases = io::model_aliases(nlohmann::json::parse(R"({"shardplan":{"aliases":["a","b"]}})"));
  CHECK(aliases == std::vector<std::string>{"a", "b"});
  CHECK(io::model_aliases(nlohmann::json::parse(R"({})")).empty());
  CHECK(io::model_aliases(nlohmann::json::parse(R"([1])")).empty());
}
