// Each rule: a run that breaks it alone, what is said, and a neighbour that is legal.
#include <set>
#include <string>

#include "shardplan/plan/legality.hpp"
#include "shardplan/plan/validate.hpp"
#include "support/catch.hpp"
#include "support/runs.hpp"

using namespace shardplan;
using plan::Rule;

namespace {

struct RuleCase {
  Rule rule;
  const char* broken;
  const char* line;     ///< how the one problem begins, from its pointer on
  const char* way_out;  ///< words of the way out
  const char* legal;
};

#define MODEL_70B "\"model\": \"llama-3.1-70b\", \"num_gpus\": 128"
#define DENSE(more)                                                                                                 \
  "\"model\": {\"model_type\": \"transformer\", \"hidden_size\": 1024, \"num_hidden_layers\": 12, \"vocab_size\": " \
  "1000, " more "}"

const RuleCase cases[] = {
    {Rule::cluster_size, R"({"num_gpus": 24, "cluster": {"name": "c", "gpu": "h100", "num_nodes": 2}})",
     "/num_gpus: 24: the cluster has 2 nodes x 8 GPUs = 16", "at most 16",
     R"({"num_gpus": 16, "cluster": {"name": "c", "gpu": "h100", "num_nodes": 2}})"},
    {Rule::node_shape, R"({"num_gpus": 100})", "/num_gpus: 100 is above one node and not a multiple of gpus_per_node 8",
     "nearest: 96, 104", R"({"num_gpus": 5})"},
    {Rule::framework_degrees, R"({"parallel": {"tensor": 2, "pipeline": 2}, "training": {"framework": "ddp"}})",
     "/training/framework: \"ddp\" splits the batch only, but tensor is 2 and pipeline is 2", "megatron",
     R"({"training": {"framework": "ddp"}})"},
    {Rule::framework_degrees,
     R"({"model": "mixtral-8x7b", "parallel": {"expert": 8}, "training": {"framework": "nanotron"}})",
     "/training/framework: \"nanotron\" keeps whole experts on every rank, but expert is 8 and expert_tensor 1",
     "set /training/framework to \"megatron\"", R"({"model": "mixtral-8x7b", "training": {"framework": "nanotron"}})"},
    {Rule::single_node, R"({"num_gpus": 16, "training": {"framework": "dp"}})",
     "/num_gpus: 16: \"dp\" (torch.nn.DataParallel) is one process on one node",
     "set /num_gpus to 8 (the most), or set /training/framework to \"ddp\"",
     R"({"num_gpus": 8, "training": {"framework": "dp"}})"},
    {Rule::stack_framework, R"({"training": {"stack": "megatron-2021"}})",
     "/training/stack: \"megatron-2021\" is a stack of megatron, but the run's framework is ddp",
     "set /training/framework to \"megatron\"", R"({"training": {"stack": "megatron-2021", "framework": "megatron"}})"},
    {Rule::tensor_heads, "{" MODEL_70B R"(, "parallel": {"tensor": 6}})",
     "/parallel/tensor: 6 does not divide num_attention_heads 64 (8 GPUs per node allow 1, 2, 4, 8)", "",
     "{" MODEL_70B R"(, "parallel": {"tensor": 8}})"},
    {Rule::tensor_kv_heads,
     "{" DENSE(
         R"("num_attention_heads": 24, "head_dim": 64, "num_key_value_heads": 6)") R"(, "parallel": {"tensor": 4}})",
     "/parallel/tensor: 4 neither divides num_key_value_heads 6 nor is a multiple of it (8 GPUs per node allow 1, 2)",
     "",
     "{" DENSE(
         R"("num_attention_heads": 24, "head_dim": 64, "num_key_value_heads": 2)") R"(, "parallel": {"tensor": 4}})"},
    {Rule::tensor_kv_heads,
     R"({"model": "llama-3.2-1b", "num_gpus": 16, "cluster": "gb200-nvl72", "parallel": {"tensor": 16}, "training": {"framework": "nanotron"}})",
     "/parallel/tensor: 16 does not divide num_key_value_heads 8, and nanotron does not repeat KV heads",
     "set /parallel/tensor to 8",
     R"({"model": "llama-3.2-1b", "num_gpus": 16, "cluster": "gb200-nvl72", "parallel": {"tensor": 8}, "training": {"framework": "nanotron"}})"},
    {Rule::tensor_intermediate,
     "{" DENSE(R"("num_attention_heads": 16, "intermediate_size": 1026)") R"(, "parallel": {"tensor": 4}})",
     "/parallel/tensor: 4 does not divide intermediate_size 1026 (8 GPUs per node allow 1, 2)", "",
     "{" DENSE(R"("num_attention_heads": 16, "intermediate_size": 1024)") R"(, "parallel": {"tensor": 4}})"},
    {Rule::experts_missing, R"({"parallel": {"expert": 2}})", "/parallel/expert: 2: the model has no experts",
     "set /parallel/expert to 1", R"({"parallel": {"expert": 1}})"},
    {Rule::expert_count, R"({"model": "mixtral-8x7b", "num_gpus": 24, "parallel": {"expert": 3}})",
     "/parallel/expert: 3 does not divide num_experts 8 (1, 2, 4, 8 do, and fit 24 GPUs)", "",
     R"({"model": "mixtral-8x7b", "num_gpus": 24, "parallel": {"expert": 8}})"},
    {Rule::expert_tensor_missing, R"({"parallel": {"tensor": 2, "expert_tensor": 2}})",
     "/parallel/expert_tensor: 2: the model has no experts", "set /parallel/expert_tensor to 1",
     R"({"model": "mixtral-8x7b", "parallel": {"tensor": 2, "expert_tensor": 2}})"},
    {Rule::expert_tensor_width, R"({"model": "mixtral-8x7b", "num_gpus": 24, "parallel": {"expert_tensor": 3}})",
     "/parallel/expert_tensor: 3 does not divide an expert's width 14336", "",
     R"({"model": "mixtral-8x7b", "num_gpus": 24, "parallel": {"expert_tensor": 4}})"},
    {Rule::moe_options, R"({"training": {"moe": {"imbalance": 2}}})",
     "/training/moe/imbalance: 2: the model has no experts", "leave /training/moe/imbalance out",
     R"({"model": "mixtral-8x7b", "training": {"moe": {"imbalance": 2}}})"},
    {Rule::moe_options, R"({"training": {"moe": {"capacity_factor": 1.25}}})",
     "/training/moe/capacity_factor: 1.25: the model has no experts", "leave /training/moe/capacity_factor out",
     R"({"model": "mixtral-8x7b", "training": {"moe": {"capacity_factor": 1.25}}})"},
    {Rule::virtual_alone, R"({"parallel": {"virtual_pipeline": 2}})",
     "/parallel/virtual_pipeline: 2 needs pipeline >= 2, it is 1", "virtual_pipeline to 1",
     R"({"parallel": {"virtual_pipeline": 2, "pipeline": 2}})"},
    {Rule::virtual_framework,
     "{" MODEL_70B
     R"(, "parallel": {"pipeline": 4, "virtual_pipeline": 2, "schedule": "1f1b"}, "training": {"framework": "nanotron"}})",
     "/parallel/virtual_pipeline: 2: nanotron's pipeline engine has no virtual stages",
     "set /parallel/virtual_pipeline to 1",
     "{" MODEL_70B R"(, "parallel": {"pipeline": 4}, "training": {"framework": "nanotron"}})"},
    {Rule::virtual_framework,
     R"({"parallel": {"virtual_pipeline": 2, "pipeline": 2}, "training": {"framework": "deepspeed"}})",
     "/parallel/virtual_pipeline: 2: DeepSpeed's pipeline engine has no virtual stages", "framework to \"megatron\"",
     R"({"parallel": {"virtual_pipeline": 1, "pipeline": 2}, "training": {"framework": "deepspeed"}})"},
    {Rule::layers_list_length, R"({"parallel": {"pipeline": 4, "layers_per_stage": [16, 16]}})",
     "/parallel/layers_per_stage: a list of 2, but pipeline 4 wants 4 entries", "leave /parallel/layers_per_stage out",
     R"({"parallel": {"pipeline": 4, "layers_per_stage": [7, 9, 9, 7]}})"},
    {Rule::layers_list_length,
     R"({"parallel": {"pipeline": 2, "virtual_pipeline": 2, "layers_per_stage": [16, 8, 8]}})",
     "/parallel/layers_per_stage: a list of 3, but pipeline 2 wants 2 entries, or 4 (pipeline x virtual_pipeline 2)",
     "leave /parallel/layers_per_stage out",
     R"({"parallel": {"pipeline": 2, "virtual_pipeline": 2, "layers_per_stage": [8, 8, 8, 8]}})"},
    {Rule::layers_list_sum, R"({"parallel": {"pipeline": 2, "layers_per_stage": [16, 15]}})",
     "/parallel/layers_per_stage: sums to 31, but num_hidden_layers is 32", "",
     R"({"parallel": {"pipeline": 2, "layers_per_stage": [17, 15]}})"},
    {Rule::layers_list_chunks, R"({"parallel": {"pipeline": 2, "virtual_pipeline": 2, "layers_per_stage": [17, 15]}})",
     "/parallel/layers_per_stage: the 17 layers of stage 0 do not divide into virtual_pipeline 2 chunks",
     "give 4 entries", R"({"parallel": {"pipeline": 2, "virtual_pipeline": 2, "layers_per_stage": [18, 14]}})"},
    {Rule::layers_list_empty,
     R"({"parallel": {"pipeline": 4, "virtual_pipeline": 2, "layers_per_stage": [5, 5, 5, 5, 5, 7, 0, 0]}})",
     "/parallel/layers_per_stage: chunk 6 of pipeline 4 x virtual_pipeline 2 = 8 has none of the 32 layers",
     "virtual_pipeline 1, 2, 4, 8",
     R"({"parallel": {"pipeline": 4, "virtual_pipeline": 2, "layers_per_stage": [0, 5, 5, 5, 5, 5, 7, 0]}})"},
    {Rule::pipeline_layers, R"({"model": "llama-3.1-70b", "num_gpus": 96, "parallel": {"pipeline": 3}})",
     "/parallel/pipeline: 3 does not divide num_hidden_layers 80 (1, 2, 4, 5, 8, 10, 16 do); or give layers_per_stage",
     "set /parallel/layers_per_stage to [27,27,26]", "{" MODEL_70B R"(, "parallel": {"pipeline": 4}})"},
    {Rule::virtual_layers, R"({"parallel": {"pipeline": 8, "virtual_pipeline": 3}})",
     "/parallel/virtual_pipeline: 3 does not divide the 4 layers of a stage (num_hidden_layers 32 / pipeline 8; 1, 2, "
     "4 do)",
     "layers_per_stage", R"({"parallel": {"pipeline": 8, "virtual_pipeline": 4}})"},
    {Rule::world_product, "{" MODEL_70B R"(, "parallel": {"tensor": 8, "pipeline": 4, "data": 3}})",
     "/parallel/data: 3: tensor 8 x pipeline 4 x context 1 x data 3 = 96 GPUs, but num_gpus is 128",
     "leave /parallel/data out (it becomes 4), or set /num_gpus to 96",
     "{" MODEL_70B R"(, "parallel": {"tensor": 8, "pipeline": 4, "data": 4}})"},
    {Rule::world_product, R"({"parallel": {"context": 8, "data": 8, "fsdp": "full_shard"}})",
     "/parallel/data: 8: tensor 1 x pipeline 1 x context 8 x data 8 = 64 GPUs, but num_gpus is 8; the context ranks "
     "share",
     "leave /parallel/data out (it becomes 1)", R"({"parallel": {"context": 8, "data": 1, "fsdp": "full_shard"}})"},
    {Rule::world_multiple, R"({"num_gpus": 24, "parallel": {"tensor": 4, "pipeline": 4}})",
     "/num_gpus: 24 is not a multiple of tensor 4 x pipeline 4 x context 1 = 16", "nearest: 16, 32",
     R"({"num_gpus": 32, "parallel": {"tensor": 4, "pipeline": 4}})"},
    {Rule::expert_world,
     R"({"model": "mixtral-8x7b", "num_gpus": 16, "parallel": {"expert": 8, "expert_tensor": 2, "pipeline": 2}})",
     "/parallel/expert: 8: expert 8 x expert_tensor 2 x pipeline 2 = 32 does not divide num_gpus 16",
     "expert may be 1, 2, 4",
     R"({"model": "mixtral-8x7b", "num_gpus": 16, "parallel": {"expert": 4, "expert_tensor": 2, "pipeline": 2}})"},
    {Rule::zero_and_fsdp, R"({"parallel": {"zero_stage": 1, "fsdp": "full_shard"}})",
     "/parallel/zero_stage: 1: zero_stage and fsdp \"full_shard\" exclude each other", "leave /parallel/fsdp out",
     R"({"parallel": {"zero_stage": 0, "fsdp": "full_shard"}})"},
    {Rule::zero_framework, R"({"parallel": {"zero_stage": 2}, "training": {"framework": "megatron"}})",
     "/parallel/zero_stage: 2: megatron has zero_stage 0 and 1",
     "set /parallel/fsdp to \"full_shard\" and leave /parallel/zero_stage out (Megatron-FSDP)",
     R"({"parallel": {"zero_stage": 1}, "training": {"framework": "megatron"}})"},
    {Rule::zero_framework, R"({"parallel": {"zero_stage": 1}, "training": {"framework": "ddp"}})",
     "/parallel/zero_stage: 1: ddp keeps every state whole", "deepspeed", R"({"training": {"framework": "ddp"}})"},
    {Rule::zero_framework, R"({"parallel": {"zero_stage": 3}, "training": {"framework": "fsdp"}})",
     "/parallel/zero_stage: 3: zero_stage and fsdp \"full_shard\" exclude each other",
     "set /training/framework to \"deepspeed\"", R"({"training": {"framework": "fsdp"}})"},
    {Rule::fsdp_framework, R"({"parallel": {"fsdp": "full_shard"}, "training": {"framework": "deepspeed"}})",
     "/parallel/fsdp: \"full_shard\": deepspeed does not shard by fsdp",
     "set /parallel/zero_stage to 3 and leave /parallel/fsdp out",
     R"({"parallel": {"fsdp": "full_shard"}, "training": {"framework": "megatron"}})"},
    {Rule::zero_framework, R"({"parallel": {"zero_stage": 2}, "training": {"framework": "nanotron"}})",
     "/parallel/zero_stage: 2: nanotron has zero_stage 0 and 1 (its ZeroDistributedOptimizer)",
     "set /parallel/zero_stage to 1, or set /training/framework to \"deepspeed\"",
     R"({"parallel": {"zero_stage": 1}, "training": {"framework": "nanotron"}})"},
    {Rule::fsdp_framework, R"({"parallel": {"fsdp": "full_shard"}, "training": {"framework": "nanotron"}})",
     "/parallel/fsdp: \"full_shard\": nanotron does not shard by fsdp", "set /training/framework to \"fsdp\"",
     R"({"training": {"framework": "nanotron"}})"},
    {Rule::zero_context,
     R"({"parallel": {"zero_stage": 1, "context": 2, "context_comm": "all_gather"}, "training": {"framework": "nanotron"}})",
     "/parallel/zero_stage: 1 with context 2: nanotron shards over data alone", "set /parallel/zero_stage to 0",
     R"({"parallel": {"zero_stage": 0, "context": 2, "context_comm": "all_gather"}, "training": {"framework": "nanotron"}})"},
    {Rule::zero_pipeline, R"({"parallel": {"zero_stage": 2, "pipeline": 4}, "training": {"framework": "deepspeed"}})",
     "/parallel/zero_stage: 2 with pipeline 4: DeepSpeed's pipeline engine takes zero_stage 0 and 1",
     "set /parallel/zero_stage to 1, or set /parallel/pipeline to 1",
     R"({"parallel": {"zero_stage": 1, "pipeline": 4}, "training": {"framework": "deepspeed"}})"},
    {Rule::grad_sync_zero, R"({"parallel": {"zero_stage": 2, "grad_sync": "last"}})",
     "/parallel/grad_sync: \"last\": DeepSpeed's zero_stage 2 partitions gradients", "\"every\"",
     R"({"parallel": {"zero_stage": 1, "grad_sync": "last"}})"},
    {Rule::zeropp_stage, R"({"parallel": {"zero_stage": 2, "zeropp": {"qwz": true}}})",
     "/parallel/zeropp/qwz: true: ZeRO++ is of framework deepspeed with zero_stage 3", "leave /parallel/zeropp out",
     R"({"parallel": {"zero_stage": 3, "zeropp": {"qwz": true}}})"},
    {Rule::shard_group_unused, R"({"parallel": {"fsdp": "full_shard", "shard_group": 4}})",
     "/parallel/shard_group: 4 has no effect", "hybrid_shard",
     R"({"parallel": {"fsdp": "hybrid_shard", "shard_group": 4}})"},
    {Rule::shard_group_divides, R"({"parallel": {"fsdp": "hybrid_shard", "shard_group": 3}})",
     "/parallel/shard_group: 3 does not divide data 8 x context 1 = 8 (1, 2, 4, 8 do)", "",
     R"({"parallel": {"zero_stage": 3, "zeropp": {"hpz": true}, "shard_group": 2}})"},
    {Rule::context_framework, R"({"parallel": {"context": 2}, "training": {"framework": "nanotron"}})",
     "/parallel/context_comm: \"ring\" with context 2: nanotron's context parallelism gathers keys and values",
     "set /parallel/context_comm to \"all_gather\"",
     R"({"parallel": {"context": 2, "context_comm": "all_gather"}, "training": {"framework": "nanotron"}})"},
    {Rule::context_framework, R"({"parallel": {"context": 2}, "training": {"framework": "deepspeed"}})",
     "/parallel/context_comm: \"ring\" with context 2: DeepSpeed's sequence parallelism is all-to-all", "\"a2a\"",
     R"({"parallel": {"context": 2, "context_comm": "a2a"}, "training": {"framework": "deepspeed"}})"},
    {Rule::context_heads, "{" MODEL_70B R"(, "parallel": {"tensor": 8, "context": 16, "context_comm": "a2a"}})",
     "/parallel/context: 16: all-to-all splits the heads over tensor 8 x context 16 = 128, which does not divide "
     "num_attention_heads 64",
     "context may be 1, 2, 4, 8, or set /parallel/context_comm to \"ring\"",
     "{" MODEL_70B R"(, "parallel": {"tensor": 8, "context": 8, "context_comm": "a2a"}})"},
    {Rule::sequence_context, R"({"parallel": {"context": 8}, "training": {"seq_length": 4100}})",
     "/training/seq_length: 4100 is not a multiple of 2 x context 8 = 16", "nearest: 4096, 4112",
     R"({"parallel": {"context": 8}, "training": {"seq_length": 4112}})"},
    {Rule::sequence_context, R"({"parallel": {"context": 8, "context_comm": "a2a"}, "training": {"seq_length": 4100}})",
     "/training/seq_length: 4100 is not a multiple of context 8", "nearest: 4096, 4104",
     R"({"parallel": {"context": 8, "context_comm": "a2a"}, "training": {"seq_length": 4104}})"},
    {Rule::sequence_tensor, R"({"parallel": {"tensor": 8}, "training": {"seq_length": 4100}})",
     "/training/seq_length: 4100 is not a multiple of context 1 x tensor 8 = 8", "nearest: 4096, 4104",
     R"({"parallel": {"tensor": 8, "sequence_parallel": false}, "training": {"seq_length": 4100}})"},
    {Rule::sequence_positions, R"({"model": "gpt2", "training": {"seq_length": 2048}})",
     "/training/seq_length: 2048 is longer than the model's learned position table, max_position_embeddings 1024",
     "set /training/seq_length to 1024 (the most)", R"({"model": "gpt2", "training": {"seq_length": 1024}})"},
    {Rule::schedule_framework,
     "{" MODEL_70B R"(, "parallel": {"pipeline": 4, "schedule": "zb-h1"}, "training": {"framework": "nanotron"}})",
     "/parallel/schedule: \"zb-h1\": nanotron does not have it", "gpipe or 1f1b",
     "{" MODEL_70B R"(, "parallel": {"pipeline": 4, "schedule": "1f1b"}, "training": {"framework": "nanotron"}})"},
    {Rule::schedule_framework,
     R"({"parallel": {"pipeline": 2, "schedule": "gpipe"}, "training": {"framework": "deepspeed"}})",
     "/parallel/schedule: \"gpipe\": deepspeed does not have it", "1f1b",
     R"({"parallel": {"pipeline": 2, "schedule": "1f1b"}, "training": {"framework": "deepspeed"}})"},
    {Rule::schedule_framework, R"({"parallel": {"pipeline": 2, "schedule": "zb-h1", "fsdp": "full_shard"}})",
     "/parallel/schedule: \"zb-h1\": fsdp does not have it", "zb-v or dualpipe-v",
     R"({"parallel": {"pipeline": 2, "schedule": "zb-v", "virtual_pipeline": 2, "fsdp": "full_shard"}})"},
    {Rule::schedule_shape, "{" MODEL_70B R"(, "parallel": {"pipeline": 4, "schedule": "interleaved"}})",
     "/parallel/schedule: \"interleaved\" needs virtual_pipeline >= 2, it is 1",
     "set /parallel/virtual_pipeline to 2 (20 layers per stage allow 2, 4, 5, 10, 20), or set /parallel/schedule to "
     "\"1f1b\"",
     "{" MODEL_70B R"(, "parallel": {"pipeline": 4, "schedule": "interleaved", "virtual_pipeline": 5}})"},
    {Rule::schedule_shape, R"({"parallel": {"pipeline": 4, "virtual_pipeline": 2, "schedule": "1f1b"}})",
     "/parallel/schedule: \"1f1b\" has one chunk a stage, but virtual_pipeline is 2", "interleaved",
     R"({"parallel": {"pipeline": 4, "virtual_pipeline": 2, "schedule": "bfs"}})"},
    {Rule::schedule_shape, R"({"parallel": {"pipeline": 4, "schedule": "zb-v"}})",
     "/parallel/schedule: \"zb-v\" needs virtual_pipeline 2, it is 1", "set /parallel/virtual_pipeline to 2",
     R"({"parallel": {"pipeline": 4, "schedule": "zb-v", "virtual_pipeline": 2}})"},
    {Rule::schedule_shape,
     R"({"num_gpus": 6, "parallel": {"pipeline": 3, "schedule": "dualpipe", "layers_per_stage": [11, 11, 10]}})",
     "/parallel/schedule: \"dualpipe\" needs an even number of stages, pipeline is 3",
     "set /parallel/schedule to \"1f1b\"", R"({"parallel": {"pipeline": 2, "schedule": "dualpipe"}})"},
    {Rule::schedule_shape, R"({"parallel": {"schedule": "interleaved"}})",
     "/parallel/schedule: \"interleaved\" needs virtual_pipeline >= 2, it is 1", "1f1b",
     R"({"parallel": {"schedule": "1f1b"}})"},
    {Rule::batch_multiple,
     R"({"num_gpus": 32, "parallel": {"tensor": 4}, "training": {"micro_batch_size": 4, "global_batch_size": 80}})",
     "/training/global_batch_size: 80 is not a multiple of micro_batch_size 4 x data 8 = 32", "nearest: 64, 96",
     R"({"num_gpus": 32, "parallel": {"tensor": 4}, "training": {"micro_batch_size": 4, "global_batch_size": 96}})"},
    {Rule::batch_multiple, R"({"training": {"global_batch_size": 4}})",
     "/training/global_batch_size: 4 is not a multiple of micro_batch_size 1 x data 8 = 8", "nearest: 8",
     R"({"training": {"global_batch_size": 8}})"},
    {Rule::schedule_microbatches,
     "{" MODEL_70B
     R"(, "parallel": {"pipeline": 8, "schedule": "1f1b", "data": 1, "tensor": 8, "context": 2, "context_comm": "all_gather"}, "training": {"framework": "nanotron", "global_batch_size": 6}})",
     "/training/global_batch_size: 6 gives 6 microbatches (micro_batch_size 1 x data 1), \"1f1b\" wants at least "
     "pipeline "
     "- 1 = 7",
     "nearest: 7 (7)",
     "{" MODEL_70B
     R"(, "parallel": {"pipeline": 8, "schedule": "1f1b", "data": 1, "tensor": 8, "context": 2, "context_comm": "all_gather"}, "training": {"framework": "nanotron", "global_batch_size": 7}})"},
    {Rule::schedule_microbatches,
     "{" MODEL_70B
     R"(, "parallel": {"tensor": 8, "pipeline": 4, "virtual_pipeline": 5}, "training": {"global_batch_size": 1000}})",
     "/training/global_batch_size: 1000 gives 250 microbatches (micro_batch_size 1 x data 4), \"interleaved\" wants a "
     "multiple of pipeline 4",
     "nearest: 992 (248), 1008 (252)",
     "{" MODEL_70B
     R"(, "parallel": {"tensor": 8, "pipeline": 4, "virtual_pipeline": 5}, "training": {"global_batch_size": 1008}})"},
    {Rule::schedule_microbatches,
     R"({"parallel": {"pipeline": 4, "schedule": "dualpipe"}, "training": {"global_batch_size": 14}})",
     "/training/global_batch_size: 14 gives 7 microbatches (micro_batch_size 1 x data 2), \"dualpipe\" wants an even "
     "number, at least 2 x pipeline = 8",
     "nearest: 16 (8)",
     R"({"parallel": {"pipeline": 4, "schedule": "dualpipe"}, "training": {"global_batch_size": 16}})"},
    {Rule::schedule_microbatches,
     R"({"parallel": {"pipeline": 4, "virtual_pipeline": 2, "fsdp": "full_shard"}, "training": {"global_batch_size": 22}})",
     "/training/global_batch_size: 22 gives 11 microbatches (micro_batch_size 1 x data 2), \"interleaved\" wants at "
     "least "
     "pipeline 4, cut into equal rounds",
     "nearest: 20 (10), 24 (12)",
     R"({"parallel": {"pipeline": 4, "virtual_pipeline": 2, "fsdp": "full_shard"}, "training": {"global_batch_size": 20}})"},
    {Rule::interleaved_two,
     R"({"parallel": {"pipeline": 2, "virtual_pipeline": 2}, "training": {"overlap": {"p2p": false}}})",
     "/training/overlap/p2p: false: Megatron-LM interleaves two stages only with overlapped p2p",
     "set /training/overlap/p2p to true, or set /parallel/pipeline to 4",
     R"({"parallel": {"pipeline": 4, "virtual_pipeline": 2}, "training": {"overlap": {"p2p": false}}})"},
    {Rule::precision_gpu, R"({"cluster": "dgx-a100", "training": {"precision": "fp8"}})",
     "/training/precision: \"fp8\": ", "fp16 or bf16", R"({"training": {"precision": "fp8"}})"},
    {Rule::fp8_param_gather, R"({"training": {"framework": "ddp", "precision": "fp8", "fp8": {"param_gather": true}}})",
     "/training/fp8/param_gather: true with precision \"fp8\" under ddp", "zero_stage to 1",
     R"({"parallel": {"zero_stage": 1},
         "training": {"framework": "megatron", "precision": "fp8", "fp8": {"param_gather": true}}})"},
    {Rule::fp8_recipe_gpu, R"({"training": {"precision": "fp8", "fp8": {"recipe": "mxfp8"}}})",
     "/training/fp8/recipe: \"mxfp8\" needs a Blackwell GPU", "blockwise",
     R"({"training": {"precision": "fp8", "fp8": {"recipe": "blockwise"}}})"},
    {Rule::peft_framework, R"({"training": {"framework": "nanotron", "peft": {"rank": 8}}})",
     "/training/peft: nanotron trains no adapters", "leave /training/peft out, or set /training/framework to \"fsdp\"",
     R"({"training": {"framework": "fsdp", "peft": {"rank": 8}}})"},
    {Rule::peft_quant, R"({"training": {"peft": {"method": "qlora", "quant": "none"}}})",
     "/training/peft/quant: \"none\": qlora trains adapters over a quantised base", "nf4",
     R"({"training": {"peft": {"method": "lora", "quant": "none"}}})"},
    {Rule::peft_quant_tensor, R"({"parallel": {"tensor": 2}, "training": {"peft": {"method": "qlora"}}})",
     "/training/peft/quant: \"nf4\" with tensor 2: tensor parallelism does not split quantised weights",
     "set /parallel/tensor to 1", R"({"parallel": {"tensor": 2}, "training": {"peft": {"method": "lora"}}})"},
    {Rule::peft_kbit, R"({"training": {"peft": {"method": "lora", "kbit_preparation": true}}})",
     "/training/peft/kbit_preparation: true with quant \"none\"", "nf4",
     R"({"training": {"peft": {"method": "qlora", "kbit_preparation": true}}})"},
    {Rule::offload_optimizer, R"({"training": {"offload": {"optimizer": "cpu"}}})",
     "/training/offload/optimizer: \"cpu\": ddp keeps the optimizer on the GPU", "deepspeed",
     R"({"parallel": {"zero_stage": 1}, "training": {"offload": {"optimizer": "cpu"}}})"},
    {Rule::offload_optimizer, R"({"parallel": {"zero_stage": 2}, "training": {"offload": {"optimizer": "nvme"}}})",
     "/training/offload/optimizer: \"nvme\" with zero_stage 2: DeepSpeed offloads the optimizer to cpu from stage 1 on",
     "zero_stage to 3", R"({"parallel": {"zero_stage": 3}, "training": {"offload": {"optimizer": "nvme"}}})"},
    {Rule::offload_optimizer, R"({"training": {"framework": "megatron", "offload": {"optimizer": "cpu"}}})",
     "/training/offload/optimizer: \"cpu\" with zero_stage 0: Megatron-LM offloads its distributed optimizer",
     "zero_stage to 1",
     R"({"parallel": {"zero_stage": 1}, "training": {"framework": "megatron", "offload": {"optimizer": "cpu"}}})"},
    {Rule::offload_parameters, R"({"parallel": {"zero_stage": 2}, "training": {"offload": {"parameters": "cpu"}}})",
     "/training/offload/parameters: \"cpu\" with zero_stage 2: DeepSpeed offloads parameters at stage 3",
     "zero_stage to 3", R"({"parallel": {"zero_stage": 3}, "training": {"offload": {"parameters": "nvme"}}})"},
    {Rule::offload_pair, R"({"parallel": {"fsdp": "full_shard"}, "training": {"offload": {"optimizer": "cpu"}}})",
     "/training/offload: FSDP's offload keeps parameters, gradients and optimizer on the host together", "\"cpu\"",
     R"({"parallel": {"fsdp": "full_shard"}, "training": {"offload": {"optimizer": "cpu", "parameters": "cpu"}}})"},
    {Rule::offload_fraction,
     R"({"parallel": {"zero_stage": 2}, "training": {"offload": {"optimizer": "cpu", "optimizer_fraction": 0.5}}})",
     "/training/offload/optimizer_fraction: 0.5: a part of the optimizer goes to cpu with megatron",
     "optimizer_fraction to 1",
     R"({"parallel": {"zero_stage": 3}, "training": {"offload": {"optimizer": "cpu", "optimizer_fraction": 0.5}}})"},
    {Rule::offload_layers,
     R"({"parallel": {"pipeline": 2}, "training": {"offload": {"activations": "cpu", "activation_layers": 17}}})",
     "/training/offload/activation_layers: 17 is more than a stage's layers (pipeline 2)",
     "leave /training/offload/activation_layers out (those of every layer)",
     R"({"parallel": {"pipeline": 2}, "training": {"offload": {"activations": "cpu", "activation_layers": 16}}})"},
    {Rule::offload_layers, R"({"training": {"offload": {"activation_layers": 4}}})",
     "/training/offload/activation_layers: 4 without \"activations\": \"cpu\"", "activations",
     R"({"training": {"offload": {"activations": "cpu", "activation_layers": 4}}})"},
    {Rule::recompute_framework, R"({"training": {"framework": "nanotron", "recompute": "every:2"}})",
     "/training/recompute: nanotron recomputes whole layers, every one or none", "set /training/recompute to \"full\"",
     R"({"training": {"framework": "nanotron", "recompute": "full"}})"},
    {Rule::recompute_framework, R"({"training": {"framework": "megatron", "recompute": "ops"}})",
     "/training/recompute: \"ops\" is torchtitan's, but the framework is megatron", "selective",
     R"({"parallel": {"fsdp": "full_shard"}, "training": {"recompute": "ops"}})"},
    {Rule::recompute_framework, R"({"parallel": {"zero_stage": 1}, "training": {"recompute": {"modules": ["mlp"]}}})",
     "/training/recompute: {\"modules\": ...} is Megatron-Core's, but the framework is deepspeed", "full",
     R"({"training": {"framework": "megatron", "recompute": {"modules": ["mlp"]}}})"},
    {Rule::recompute_modules,
     R"({"training": {"framework": "megatron", "recompute": {"modules": ["moe", "mla_up_proj", "mlp"]}}})",
     "/training/recompute: modules moe and mla_up_proj: the model has no experts and no latent attention",
     "leave them out",
     R"({"model": "mixtral-8x7b", "training": {"framework": "megatron", "recompute": {"modules": ["moe"]}}})"},
    {Rule::recompute_layers, R"({"parallel": {"pipeline": 2}, "training": {"recompute": "full:17"}})",
     "/training/recompute: \"full:17\" is more than a stage's layers (pipeline 2", "full",
     R"({"parallel": {"pipeline": 2}, "training": {"recompute": "full:16"}})"},
    {Rule::too_large, R"({"training": {"seq_length": 268435456, "attention": "eager"}})",
     "/training/seq_length: seq_length 268435456 x micro_batch_size 1 x 1 microbatches: the byte counts of this run "
     "pass 2^60",
     "shorter", R"({"training": {"seq_length": 268435456}})"},
    {Rule::too_large,
     R"({"training": {"micro_batch_size": 1000000, "global_batch_size": 1000000000, "seq_length": 4096}, "num_gpus": 1})",
     "/training/global_batch_size: seq_length 4096 x micro_batch_size 1000000 x 1000 microbatches", "smaller",
     R"({"training": {"micro_batch_size": 1000, "global_batch_size": 1000000, "seq_length": 4096}, "num_gpus": 1})"},
};

std::vector<std::string> names(const plan::RuleSet& rules) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < plan::rule_count; ++i) {
    if (rules[i]) words.emplace_back(name(static_cast<Rule>(i)));
  }
  return words;
}

}  // namespace

TEST_CASE("each rule is one problem with pointer, value and way out, and its neighbour is legal") {
  for (const RuleCase& row : cases) {
    const io::ReadRun read = test::read_snippet(row.broken);
    const std::string lines = test::problem_lines(read.problems);
    CAPTURE(name(row.rule), row.broken, lines);
    CHECK_THAT(lines, test::StartsWith(std::string("run.json: ") + row.line));
    CHECK(read.problems.size() == 1);
    if (!read.problems.empty()) {
      CHECK_THAT(read.problems.front().way_out, test::Contains(row.way_out));
      if (*row.way_out == '\0') CHECK(read.problems.front().way_out.empty());
    }
    CAPTURE(names(plan::broken_rules(read.draft, read.run)));
    CHECK(plan::contains(plan::broken_rules(read.draft, read.run), row.rule));

    const io::ReadRun neighbour = test::read_snippet(row.legal);
    CAPTURE(row.legal, test::problem_lines(neighbour.problems));
    CHECK(neighbour.ok());
  }
}

TEST_CASE("every rule has a case, and every broken rule has words of its own") {
  std::set<Rule> covered;
  for (const RuleCase& row : cases) covered.insert(row.rule);
  const Run run = test::run_of("{}");
  for (std::size_t i = 0; i < plan::rule_count; ++i) {
    const auto rule = static_cast<Rule>(i);
    CAPTURE(name(rule));
    CHECK(covered.count(rule) == 1);
    CHECK_FALSE(plan::describe(rule, run).message.empty());
    CHECK_FALSE(plan::describe(rule, run).pointer.empty());
  }
}

TEST_CASE("a field that is wrong hides only the checks that need it") {
  struct Row {
    const char* snippet;
    std::vector<std::string> pointers;
  };
  const Row rows[] = {
      // 6 for tensor does not also report the world size; a batch that only `data` judges is.
      {"{" MODEL_70B R"(, "parallel": {"tensor": 6, "data": 5}, "training": {"global_batch_size": 7}})",
       {"/parallel/tensor", "/training/global_batch_size"}},
      {"{" MODEL_70B R"(, "parallel": {"tensor": 6}, "training": {"global_batch_size": 7}})", {"/parallel/tensor"}},
      {"{" MODEL_70B R"(, "parallel": {"tensor": 6, "pipeline": 3}, "training": {"precision": "nvfp4"}})",
       {"/parallel/tensor", "/parallel/pipeline", "/training/precision"}},
      {R"({"model": "no-such-model", "parallel": {"tensor": 3, "pipeline": 7, "data": 9}, "training": {"global_batch_size": 5}})",
       {"/model", "/parallel/data"}},
      {R"({"parallel": {"tensor": "x"}, "training": {"framework": "ddp", "global_batch_size": 13}})",
       {"/parallel/tensor"}},
      {R"({"num_gpus": 100, "parallel": {"tensor": 8}, "training": {"global_batch_size": 13}})", {"/num_gpus"}},
      {R"({"parallel": {"schedule": "2f2b", "pipeline": 2, "virtual_pipeline": 2}})", {"/parallel/schedule"}},
      {R"({"parallel": {"zero_stage": 3, "pipeline": 2}, "training": {"framework": "ddp"}})", {"/training/framework"}},
      {R"({"parallel": {"layers_per_stage": "x", "pipeline": 5}})", {"/num_gpus", "/parallel/layers_per_stage"}},
  };
  for (const Row& row : rows) {
    const io::ReadRun read = test::read_snippet(row.snippet);
    std::vector<std::string> pointers;
    for (const Diagnostic& problem : read.problems) pointers.push_back(problem.pointer);
    std::vector<std::string> expected = row.pointers;
    std::sort(pointers.begin(), pointers.end());
    std::sort(expected.begin(), expected.end());
    CAPTURE(row.snippet, test::problem_lines(read.problems));
    CHECK(pointers == expected);
  }
}

TEST_CASE("the layout's rules are codes without words, for the search") {
  const Run run = test::run_of("{" MODEL_70B R"(, "parallel": {"tensor": 8, "pipeline": 4}})");
  const plan::ModelFacts facts = plan::facts_of(run.model);
  plan::RuleInputs layout = plan::rule_inputs_of(run, true);
  static_assert(noexcept(plan::broken_layout_rules(facts, layout)));
  CHECK(plan::broken_layout_rules(facts, layout).none());
  layout.tensor = 16;
  CHECK(names(plan::broken_layout_rules(facts, layout)) == std::vector<std::string>{"world_product"});
  layout.data = 2;
  CHECK(plan::broken_layout_rules(facts, layout).none());
  layout.pipeline = 3;
  CHECK(names(plan::broken_layout_rules(facts, layout)) ==
        std::vector<std::string>{"pipeline_layers", "world_product", "world_multiple", "expert_world"});
}

TEST_CASE("extreme values break rules, never the program") {
  const Run run = test::run_of("{}");
  const plan::ModelFacts facts = plan::facts_of(run.model);
  plan::RuleInputs layout = plan::rule_inputs_of(run, true);
  layout.tensor = layout.pipeline = layout.context = layout.expert = layout.data = layout.virtual_pipeline = 1 << 20;
  layout.expert_tensor = 1 << 20;
  layout.micro_batch_size = 1 << 20;
  layout.seq_length = std::int64_t{1} << 28;
  layout.global_batch_size = std::int64_t{1} << 30;
  CHECK(plan::broken_layout_rules(facts, layout).any());
  const io::ReadRun read =
      test::read_snippet(R"({"num_gpus": 1048576, "parallel": {"tensor": 1048576, "pipeline": 1048576,
    "context": 1048576, "expert": 1048576, "data": 1048576, "virtual_pipeline": 1048576, "expert_tensor": 1048576},
    "training": {"seq_length": 268435456, "micro_batch_size": 1048576, "global_batch_size": 1073741824}})");
  CHECK_FALSE(read.ok());
}
