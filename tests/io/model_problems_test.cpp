// What cannot be read: refused families, unknown types, wrong types and ranges, every problem at once.
#include "model_support.hpp"

using namespace shardplan;

namespace {

Diagnostics problems_of(const std::string& text) {
  return io::read_model(nlohmann::json::parse(text), "m.json", "/model").problems;
}

struct Case {
  const char* config;
  const char* pointer;
  const char* message;  ///< a part of it
};

void check(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    const Diagnostics problems = problems_of(c.config);
    INFO(c.config << "\n" << test::all_messages(problems));
    REQUIRE(problems.size() == 1);
    CHECK(problems[0].file == "m.json");
    CHECK(problems[0].pointer == c.pointer);
    CHECK_THAT(problems[0].message, test::Contains(c.message));
  }
}

}  // namespace

TEST_CASE("hybrid and recurrent models are refused in one line that names the type and the way out") {
  const std::vector<std::string> types = {"jamba",      "mamba",           "mamba2",      "falcon_mamba",
                                          "nemotron_h", "qwen3_next",      "qwen3_5",     "qwen3_5_moe",
                                          "zamba2",     "bamba",           "kimi_linear", "minimax",
                                          "lfm2",       "minimax_text_01", "rwkv",        "falcon_h1",
                                          "gemma3n",    "recurrent_gemma", "mllama",      "granitemoehybrid"};
  for (const std::string& type : types) {
    const Diagnostics problems =
        problems_of(R"({"model_type":")" + type + R"(","text_config":{"model_type":"llama"}})");
    const Diagnostics flat = problems_of(R"({"model_type":")" + type + R"("})");
    INFO(type << "\n" << test::all_messages(flat));
    REQUIRE(flat.size() == 1);
    CHECK(flat[0].pointer == "/model/model_type");
    CHECK_THAT(flat[0].message, test::Contains("not supported"));
    CHECK_THAT(flat[0].message, test::Contains(type));
    CHECK_THAT(flat[0].way_out, test::Contains("\"transformer\""));
    if (type != "granitemoehybrid") CHECK(problems.size() == 1);
  }
}

TEST_CASE("hybrid models are refused wherever the recurrent layers show") {
  check({
      {R"({"model_type":"new_wrapper","text_config":{"model_type":"qwen3_5_text"}})", "/model/text_config/model_type",
       "not supported"},
      {R"({"architectures":["JambaForCausalLM"]})", "/model/model_type", "\"jamba\" is not supported"},
      {R"({"d_model":768,"n_layer":24,"ssm_cfg":{}})", "/model/model_type", "not supported"},
      {R"({"model_type":"brand_new","hybrid_override_pattern":"M*M-"})", "/model/model_type", "not supported"},
      {R"({"model_type":"llama","num_hidden_layers":2,"layer_types":["full_attention","linear_attention"]})",
       "/model/layer_types", "not supported"},
      {R"({"model_type":"granitemoehybrid","num_hidden_layers":2,"layer_types":["mamba","attention"]})",
       "/model/layer_types", "layers of type mamba"},
      {R"({"model_type":"granitemoehybrid","num_hidden_layers":2,"layers_block_type":["mamba","attention"]})",
       "/model/layers_block_type", "layers of type mamba"},
      {R"({"model_type":"gemma4_text"})", "/model/hidden_size_per_layer_input", "not supported"},
      {R"({"model_type":"chatglm","position_encoding_2d":true})", "/model/model_type", "not supported"},
      {R"({"model_type":"bert"})", "/model/model_type", "an encoder"},
  });
}

TEST_CASE("an unknown model_type says what was meant") {
  const Diagnostics near = problems_of(R"({"model_type":"lama"})");
  REQUIRE(near.size() == 1);
  CHECK_THAT(near[0].message, test::Contains("\"lama\" is an unknown model_type"));
  CHECK_THAT(near[0].way_out, test::Contains("did you mean \"llama\"?"));
  CHECK_THAT(near[0].way_out, test::Contains("\"transformer\""));
  const Diagnostics far = problems_of(R"({"model_type":"zzzzzzzzzzzz"})");
  REQUIRE(far.size() == 1);
  CHECK_THAT(far[0].way_out, test::Contains("\"transformer\""));
  check({{R"({})", "/model/model_type", "model_type is missing"},
         {R"({"model_type":""})", "/model/model_type", "model_type is missing"},
         {R"({"model_type":7})", "/model/model_type", "7 is not a text"},
         {R"({"architectures":["NewForCausalLM"]})", "/model/model_type", "names no known class"}});
}

TEST_CASE("wrong types and ranges name the value and the rule") {
  check({
      {R"({"model_type":"llama","hidden_size":"4096"})", "/model/hidden_size",
       "\"4096\" is a text, not a whole number"},
      {R"({"model_type":"llama","hidden_size":-4096})", "/model/hidden_size", "-4096 is not between 1 and 1048576"},
      {R"({"model_type":"llama","hidden_size":0})", "/model/hidden_size", "0 is not between"},
      {R"({"model_type":"llama","hidden_size":null})", "/model/hidden_size", "null is not a whole number"},
      {R"({"model_type":"llama","hidden_size":4096.5})", "/model/hidden_size", "4096.5 is not a whole number"},
      {R"({"model_type":"llama","hidden_size":1e300})", "/model/hidden_size", "is not a whole number"},
      {R"({"model_type":"llama","hidden_size":18446744073709551615})", "/model/hidden_size", "is not between"},
      {R"({"model_type":"llama","hidden_size":[4096]})", "/model/hidden_size", "a list is not a whole number"},
      {R"({"model_type":"llama","num_hidden_layers":10001})", "/model/num_hidden_layers", "is not between 1 and 10000"},
      {R"({"model_type":"llama","vocab_size":1000000000000})", "/model/vocab_size", "is not between"},
      {R"({"model_type":"mixtral","num_local_experts":100000})", "/model/num_local_experts", "is not between"},
      {R"({"model_type":"llama","attention_bias":1})", "/model/attention_bias", "1 is not true or false"},
      {R"({"model_type":"llama","hidden_act":3})", "/model/hidden_act", "3 is not a text"},
      {R"({"model_type":"llama","num_attention_heads":33})", "/model/num_attention_heads",
       "33 does not divide hidden_size 4096"},
      {R"({"model_type":"llama","num_key_value_heads":5})", "/model/num_key_value_heads",
       "5 does not divide num_attention_heads 32"},
      {R"({"model_type":"gemma","hidden_size":2048,"num_attention_heads":8})", "/model/num_key_value_heads",
       "16, the default, does not divide num_attention_heads 8"},
      {R"({"model_type":"mixtral","num_experts_per_tok":9})", "/model/num_experts_per_tok", "more than the 8 experts"},
      {R"({"model_type":"deepseek_v2"})", "/model/num_experts_per_tok", "num_experts_per_tok is missing"},
      {R"({"model_type":"gemma3_text","layer_types":["full_attention"]})", "/model/layer_types",
       "1 entries for 26 layers"},
      {R"({"model_type":"gemma3_text","num_hidden_layers":1,"layer_types":["ful_attention"]})", "/model/layer_types",
       "\"ful_attention\""},
      {R"({"model_type":"gemma3_text","layer_types":"full_attention"})", "/model/layer_types", "not a list of texts"},
      {R"({"model_type":"mpt","attn_config":"torch"})", "/model/attn_config", "is a text, not an object"},
      {R"({"model_type":"mpt","expansion_ratio":-1})", "/model/expansion_ratio", "is not between"},
      {R"({"model_type":"gemma3","text_config":[]})", "/model/text_config", "a list is not an object"},
      {R"({"model_type":"nemotron-nas","num_hidden_layers":2,"block_configs":[]})", "/model/block_configs",
       "0 entries for 2 layers"},
      {R"({"model_type":"nemotron-nas","num_hidden_layers":1,"block_configs":[{"attention":{"n_heads_in_group":3}}]})",
       "/model/block_configs/0/attention/n_heads_in_group", "3 does not divide"},
      {R"({"model_type":"mixtral","num_local_experts":65536,"intermediate_size":16777216,"num_hidden_layers":10000})",
       "/model", "parameters"},
      {R"({"model_type":"llama","shardplan":{"nmae":"x"}})", "/model/shardplan/nmae", "unknown field of \"shardplan\""},
      {R"({"model_type":"llama","shardplan":7})", "/model/shardplan", "7 is not an object"},
      {R"([])", "/model", "not a model object"},
      {R"("llama")", "/model", "not a model object"},
  });
}

TEST_CASE("every problem is reported at once") {
  const Diagnostics problems = problems_of(
      R"({"model_type":"llama","hidden_size":"x","num_hidden_layers":0,"num_attention_heads":null,"vocab_size":-1,
          "mlp_bias":"no","shardplan":{"nmae":"x"}})");
  INFO(test::all_messages(problems));
  CHECK(problems.size() == 6);
}

TEST_CASE("a problem inside text_config points into it") {
  const Diagnostics problems = problems_of(R"({"model_type":"gemma3","text_config":{"hidden_size":-1}})");
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].pointer == "/model/text_config/hidden_size");
}

TEST_CASE("the list of types is sorted, without doubles, and each can be named") {
  const auto types = io::supported_model_types();
  REQUIRE(types.size() > 80);
  for (std::size_t i = 1; i < types.size(); ++i) {
    INFO(types[i]);
    CHECK(types[i - 1] < types[i]);
  }
}
