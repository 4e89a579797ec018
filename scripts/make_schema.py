#!/usr/bin/env python3
"""Writes configs/schema/*.schema.json: the JSON Schemas (draft 7) of run, cluster and model files and of the output.

  scripts/make_schema.py [--check]

Names come from configs/; tests/schema holds the result against the reader: every field, every word, every range, every
file of configs/, the malformed inputs and the program's own output. What a schema cannot say (one number divides
another, a file exists) only the reader checks.
"""
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CONFIGS = ROOT / "configs"
DEGREE = 1 << 20
LAYERS = 1 << 20
MOST = 1_000_000

MODEL_TYPES = """RefinedWeb RefinedWebModel Yi apertus arcee aya_vision baichuan bloom chatglm codegen cohere cohere2
cohere2_vision dbrx decilm deepseek deepseek_v2 deepseek_v3 deepseek_v32 dots1 ernie4_5 ernie4_5_moe exaone exaone4
exaone4_5 exaone4_5_text falcon gemma gemma2 gemma3 gemma3_text gemma4 gemma4_text glm glm4 glm4_moe glm4_moe_lite glm4v
glm4v_moe glm4v_moe_text glm4v_text glm_moe_dsa gpt2 gpt_bigcode gpt_neo gpt_neox gpt_oss gptj granite granitemoe
granitemoehybrid granitemoeshared helium hunyuan_v1_dense hunyuan_v1_moe hunyuandensev1 hunyuanmoev1 internlm internlm2
kimi_k2 kimi_k25 kimi_vl llama llama4 llama4_text llava llava_next longcat longcat_flash mimo minicpm minicpm3 minimax_m2
ministral ministral3 mistral mistral3 mixformersequential mixtral mosaic_gpt mpt nemotron nemotron-nas olmo olmo2 olmo3
olmoe opt paligemma persimmon phi phi-msft phi3 phimoe pixtral qwen qwen2 qwen2_5_omni qwen2_5_omni_text qwen2_5_vl
qwen2_5_vl_text qwen2_moe qwen2_vl qwen2_vl_text qwen3 qwen3_moe qwen3_omni_moe qwen3_omni_moe_text qwen3_vl qwen3_vl_moe
qwen3_vl_moe_text qwen3_vl_text seed_oss smollm3 stablelm stablelm_epoch starcoder2 transformer xglm xverse""".split()

OPTIMIZERS = """sgd sgd-momentum adam adamw adamw-amsgrad precision-aware adamw-8bit adamw-4bit adamw-fp8
paged-adamw-8bit paged-adamw-32bit lion lion-8bit paged-lion-32bit paged-lion-8bit adagrad rmsprop lamb ademamix
ademamix-8bit paged-ademamix-32bit paged-ademamix-8bit adafactor adafactor-momentum adam-mini came sm3 sophia
schedule-free-adamw prodigy muon dion shampoo soap galore galore-8bit q-galore apollo apollo-mini lomo adalomo badam
one-bit-adam kahan-adamw fp8-lm coat""".split()
OPTIMIZER_ALIASES = """adamw-torch adamw-torch-xla adamw-torch-fused adamw-torch-npu-fused adamw-apex-fused fused-adam
adamw-bnb-8bit adam-8bit adamw-torch-8bit adamw-torch-4bit paged-adamw paged-adam-32bit paged-adam-8bit lion-32bit
paged-lion adamw-anyprecision anyprecision-adamw amsgrad galore-adamw galore-adamw-8bit apollo-adamw qgalore
q-galore-adamw-8bit onebitadam 1-bit-adam schedulefree-adamw msamp ms-amp dist-muon distributed-shampoo
rmsprop-bnb-32bit rmsprop-bnb sgd-nesterov""".split()


def nullable(schema):
    """null means "not stated" everywhere."""
    if "enum" in schema:
        return {**schema, "enum": schema["enum"] + [None]}
    if isinstance(schema.get("type"), str):
        return {**schema, "type": [schema["type"], "null"]}
    rest = {k: v for k, v in schema.items() if k != "description"}
    about = {k: v for k, v in schema.items() if k == "description"}
    return {**about, "anyOf": [rest, {"type": "null"}]}


def described(text, schema):
    return {"description": text, **schema}


def integer(text, low, high):
    return described(text, nullable({"type": "integer", "minimum": low, "maximum": high}))


def number(text, low=None, high=1e15, above=None):
    schema = {"type": "number", "maximum": high}
    if low is not None:
        schema["minimum"] = low
    if above is not None:
        schema["exclusiveMinimum"] = above
    return described(text, nullable(schema))


def rate(text):
    return described(text, nullable({"type": "number", "minimum": 0, "exclusiveMaximum": 1}))


def boolean(text):
    return described(text, nullable({"type": "boolean"}))


def text(about):
    return described(about, nullable({"type": "string"}))


def word(about, *words):
    return described(about, nullable({"enum": list(words)}))


def members(about, fields, **more):
    return described(about, {"type": "object", "properties": fields, "additionalProperties": False, **more})


def any_case(names):
    """A pattern for names whose case does not count."""
    def letters(name):
        out = ""
        for c in name:
            if c.isalpha():
                out += f"[{c.lower()}{c.upper()}]"
            elif c in ".+":
                out += "\\" + c
            else:
                out += c
        return out
    return "^(" + "|".join(letters(n) for n in names) + ")$"


def load(path):
    return json.loads(path.read_text())


def names_of(kind):
    """Names and aliases of a kind, natural order."""
    names, aliases = [], []
    for path in sorted((CONFIGS / kind).glob("*.json")):
        entry = load(path)
        if kind == "gpus":
            for gpu in entry["gpus"]:
                names.append(gpu["name"])
                aliases += gpu.get("aliases", [])
        else:
            names.append(path.stem)
            own = entry.get("shardplan", {}) if kind == "models" else entry
            aliases += own.get("aliases", [])
    return names, aliases


def reference(about, kind, inline, path=True):
    names, aliases = names_of(kind)
    ways = [{"enum": names}, {"type": "string", "pattern": any_case(names + aliases)}]
    if path:
        ways.append({"type": "string", "pattern": "/|\\.json$|^-$",
                     "description": "a path, relative to the file; a folder or a file without .json needs a /"})
    ways.append(inline)
    return described(about, {"anyOf": ways})


FABRICS = ["infiniband", "roce", "efa", "omni-path", "ethernet"]
PRECISIONS = ["fp32", "tf32", "fp16", "bf16", "fp8", "nvfp4"]
GB_S = {"above": 0, "high": 1e6}


def gpu():
    rates = {p: number(f"dense {p} TFLOP/s", above=0, high=1e12)
             for p in ("fp32", "tf32", "fp16", "bf16", "fp8", "fp4", "int8")}
    share = {"above": 0, "high": 1}
    kernel = members("share of the peak", {"forward": number("of the forward pass", **share),
                                           "backward": number("of the backward pass", **share),
                                           "s0": number("length at which the share is half", 0, 1e6)})
    attention = {k: kernel for k in ("flash", "flash_v1", "flash_v2", "flash_v3", "eager", "forward", "backward")}
    del attention["forward"], attention["backward"], attention["eager"]
    return members("A GPU: the fields of `shardplan list gpus --json`.", {
        "name": {"type": "string"}, "aliases": {"type": "array", "items": {"type": "string"}},
        "vendor": text("maker"), "architecture": text("generation"),
        "memory_gb": number("as sold", above=0, high=1e12),
        "memory_reported_mib": number("as the driver reports it", above=0, high=1e12),
        "memory_cuda_gib": number("cudaMemGetInfo's total", above=0, high=1e12),
        "memory_is_estimated": boolean("memory_cuda_gib is a guess"),
        "memory_bandwidth_gb_s": {"type": "number", "exclusiveMinimum": 0, "maximum": 1e12},
        "dense_tflops": members("Dense rates, not the sparse headline.", rates),
        "scale_up_type": text("link inside a node"),
        "scale_up_gb_s_per_direction": number("per GPU and direction", above=0, high=1e12),
        "scale_up_domain": integer("GPUs that the link joins", 1, MOST),
        "multiprocessors": integer("SMs or compute units", 1, MOST),
        "compute_capability": described("CUDA, as in \"9.0\"", nullable({"type": "string", "pattern": "^[0-9]{1,2}\\.[0-9]$"})),
        "pcie_gen": integer("PCIe generation", 3, 6), "tdp_w": nullable({"type": "number"}),
        "gemm_efficiency": described("How fast matrix products run.", nullable(members("", {
            "peak_fraction": number("of the peak", **share), "k0": number("elements of k lost to start-up", 0, 1e6),
            "wave_quantisation": number("0 none, 1 full", 0, 1), "launch_us": number("of a kernel", 0, 1e6),
            "memory_fraction": number("of the bandwidth", **share), "sustained": number("of a long run", above=0, high=2),
            "measured": boolean("not a generic curve"), "source": text("where from")}))),
        "attention_efficiency": nullable({"type": "object"}),
        "inter_node_efficiency": nullable({"type": "object", "properties": {
            **{f: number("share of the NIC's rate", **share) for f in FABRICS}, "source": text("where from")},
            "additionalProperties": False}),
        "source": text("where the numbers are from"), "trust": text("A, B or C"), "notes": {}},
        required=["name", "memory_bandwidth_gb_s", "dense_tflops"])


def efficiency():
    def size(about, high=MOST * 1000):
        return described(about, {"type": "integer", "minimum": 1, "maximum": high})
    time = {"seconds": number("measured", above=0, high=1e12)}
    entry = lambda fields: {"type": "array", "items": {"type": "object", "properties": fields,
                                                       "additionalProperties": False}}
    return members("The user's own measured tables (docs/catalog.md).", {
        "gemm": entry({"m": size("rows"), "n": size("columns"), "k": size("inner"), "dtype": {"enum": PRECISIONS},
                       "tflops": number("measured", above=0, high=1e12), **time}),
        "attention": entry({"batch": size("sequences"), "heads": size("heads"), "seq_length": size("tokens"),
                            "head_dim": size("width"), "pass": {"enum": ["forward", "backward"]},
                            "tflops": number("measured", above=0, high=1e12), **time}),
        "collectives": entry({"op": {"enum": ["all_reduce", "all_gather", "reduce_scatter", "all_to_all"]},
                              "group_size": {**size("ranks"), "minimum": 2}, "message_bytes": size("bytes", 1 << 50),
                              "bus_gb_s": number("as nccl-tests count it", above=0, high=1e12), **time}),
        "source": text("where from")})


def cluster():
    link = {"bandwidth_gb_s": number("10^9 bytes/s per GPU and direction", **GB_S),
            "latency_us": number("of the wire", 0, 1e6)}
    return members("Nodes, links and hosts around a GPU.", {
        "$schema": {"type": "string"}, "name": text("for reports"),
        "aliases": {"type": "array", "items": {"type": "string"}},
        "gpu": reference("A built-in GPU (`shardplan list gpus`) or its fields.", "gpus", gpu(), path=False),
        "gpus_per_node": integer("default 8", 1, MOST),
        "scale_up_domain": integer("GPUs one NVLink domain spans; default the node", 1, MOST),
        "num_nodes": integer("default: as many as num_gpus needs", 1, MOST),
        "intra_node": nullable(members("Link inside a node.", link)),
        "inter_node": nullable(members("Link between nodes.", {"type": word("fabric", *FABRICS), **link})),
        "host": nullable(members("Of a node.", {
            "memory_gib": number("host memory", above=0, high=1e9), "pcie_gb_s": number("per GPU and direction", **GB_S),
            "nvme_gb_s": number("of the node", **GB_S), "nvme_tib": number("of the node", above=0, high=1e9)})),
        "price_per_gpu_hour": number("any currency", 0, 1e9), "efficiency": nullable(efficiency()),
        "source": text("where the numbers are from"), "trust": text("A, B or C"), "notes": {}}, required=["gpu"])


# As in src/io/families/family.hpp.
LIMITS = {"hidden": 1 << 20, "layers": 10_000, "heads": 65_536, "vocab": 1 << 24, "head_dim": 65_536,
          "intermediate": 1 << 24, "positions": 1 << 40, "experts": 65_536}


def model():
    own = members("What the Hub does not have.", {
        "name": text("for reports"), "aliases": {"type": "array", "items": {"type": "string"}},
        "source": text("where it is from"), "trust": text("A, B or C")})
    count = lambda about, key, low=1: integer(about, low, LIMITS[key])
    generic = {
        "$schema": {"type": "string"}, "shardplan": own, "model_type": {"const": "transformer"}, "name": text("for reports"),
        "hidden_size": count("width of the residual stream", "hidden"),
        "num_hidden_layers": count("decoder layers", "layers"),
        "num_attention_heads": count("query heads", "heads"),
        "num_key_value_heads": count("default: num_attention_heads", "heads"),
        "head_dim": count("default: hidden_size / num_attention_heads", "head_dim"),
        "intermediate_size": count("default: 4 hidden_size", "intermediate"),
        "vocab_size": count("rows of the embedding", "vocab"),
        "max_position_embeddings": count("longest sequence", "positions"),
        "tie_word_embeddings": boolean("default false"),
        "hidden_act": word("default silu", "silu", "swish", "swiglu", "gelu", "gelu_new", "gelu_fast",
                           "gelu_pytorch_tanh", "quick_gelu", "geglu", "relu", "reglu", "relu2", "xielu"),
        "gated_mlp": boolean("default true for silu, geglu and reglu"),
        "norm": word("default rmsnorm", "rmsnorm", "layernorm", "layernorm_no_bias", "layernorm_no_weights"),
        "position": word("default rope", "rope", "learned", "alibi", "none"),
        "attention_bias": boolean("of q, k, v and o"), "qkv_bias": boolean("of q, k and v"), "mlp_bias": boolean("of the MLP"),
        "qk_norm": boolean("norms of queries and keys"), "sliding_window": count("keys that a query sees", "positions", 0),
        "layer_types": nullable({"type": "array", "items": {"enum": ["full_attention", "sliding_attention"]}}),
        "attention_sinks": boolean("one learned number per head"),
        "num_experts": count("routed experts of a layer", "experts", 0),
        "num_experts_per_tok": count("experts that a token passes", "experts"),
        "moe_intermediate_size": count("width of an expert", "intermediate"),
        "num_shared_experts": count("experts that every token passes", "experts", 0),
        "shared_expert_intermediate_size": count("width of the shared experts together", "intermediate", 0),
        "first_k_dense_replace": count("first layers without experts", "layers", 0),
        "norm_topk_prob": boolean("has no effect on size or time"),
        "q_lora_rank": count("latent attention", "hidden", 0), "kv_lora_rank": count("latent attention", "hidden"),
        "qk_nope_head_dim": count("latent attention", "head_dim"), "qk_rope_head_dim": count("latent attention", "head_dim"),
        "v_head_dim": count("latent attention", "head_dim"),
        "num_nextn_predict_layers": count("multi-token prediction", "layers", 0)}
    needed = ["hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size"]
    published = {"type": "object", "properties": {
        "model_type": {"enum": MODEL_TYPES}, "shardplan": own},
        "anyOf": [{"required": ["model_type"]}, {"required": ["architectures"]}]}
    return described("A Hugging Face config.json as published, or the generic model_type \"transformer\".", {
        "type": "object",
        "if": {"properties": {"model_type": {"const": "transformer"}}, "required": ["model_type"]},
        "then": {"properties": generic, "additionalProperties": False, "required": needed},
        "else": published,
        "properties": {"model_type": {"enum": MODEL_TYPES}}})


def parallel():
    degree = lambda about: integer(about, 1, DEGREE)
    return members("How the run is laid out.", {
        "tensor": degree("ranks that split each matrix"), "pipeline": degree("pipeline stages"),
        "virtual_pipeline": degree("model chunks of each stage"), "context": degree("ranks that split each sequence"),
        "expert": degree("ranks that share out the experts"), "expert_tensor": degree("ranks that split each expert"),
        "data": degree("replicas; follows from num_gpus when left out"),
        "sequence_parallel": boolean("default true for megatron with tensor > 1"),
        "zero_stage": integer("what data parallel ranks share out", 0, 3),
        "fsdp": word("exclusive with zero_stage", "none", "full_shard", "shard_grad_op", "no_shard", "hybrid_shard"),
        "fsdp_version": integer("default 2", 1, 2), "grad_sync": word("reduce gradients", "every", "last"),
        "context_comm": word("default ring", "ring", "all_gather", "a2a"),
        "shard_group": degree("ranks one shard set spans (hybrid_shard, hpZ)"),
        "zeropp": nullable(members("ZeRO++", {"hpz": boolean("secondary shards in the node"), "qwz": boolean("int8 weights"),
                                     "qgz": boolean("int4 gradients")})),
        "schedule": word("default 1f1b", "naive", "gpipe", "1f1b", "interleaved", "bfs", "zb-h1", "zb-h2", "zb-v",
                         "dualpipe", "dualpipe-v"),
        "layers_per_stage": described("decoder layers of each stage or chunk, in model order", nullable(
            {"type": "array", "minItems": 1, "items": {"type": "integer", "minimum": 0, "maximum": DEGREE}})),
        "order": described("which ranks are neighbours", nullable({
            "type": "string", "pattern": "^(?!.*(tp|cp|ep|dp|pp).*\\1)(tp|cp|ep|dp|pp)(-(tp|cp|ep|dp|pp)){4}$"}))})


def training():
    pairs = lambda first, second: word("default: the framework's or the stack's", first, second)
    return members("How the run trains.", {
        "seq_length": integer("tokens of a sequence", 1, 1 << 28),
        "micro_batch_size": integer("sequences of a microbatch, per replica", 1, DEGREE),
        "global_batch_size": integer("sequences of a step, all replicas", 1, 1 << 30),
        "precision": word("default bf16", *PRECISIONS),
        "fp8": nullable(members("fp8", {
            "recipe": word("scaling", "delayed", "current", "tensorwise", "rowwise", "blockwise", "mxfp8"),
            "param_gather": boolean("weights are gathered in fp8")})),
        "compile": boolean("torch.compile"),
        "framework": word("the physics family", "textbook", "megatron", "deepspeed", "fsdp", "ddp", "dp"),
        "stack": described("dated software profile (`shardplan list stacks`)", nullable({"anyOf": [
            {"enum": [n for n in names_of("stacks")[0] if not n.startswith("framework-")]},
            {"type": "string", "pattern": any_case([n for n in names_of("stacks")[0] if not n.startswith("framework-")]
                                                   + names_of("stacks")[1])}]})),
        "initialisation": word("default sharded", "sharded", "full"),
        "optimizer": described("default adamw (`shardplan list optimizers`)", nullable({"anyOf": [
            {"enum": OPTIMIZERS},
            {"type": "string", "pattern": any_case(OPTIMIZERS + OPTIMIZER_ALIASES).replace("-", "[-_]")}]})),
        "optimizer_impl": word("default: the stack's", "foreach", "fused", "for_loop"),
        "recompute": described("default none", nullable({"anyOf": [
            {"enum": ["none", "selective", "full", "ops"]},
            {"type": "string", "pattern": "^(full|every):0*[1-9][0-9]{0,6}$"},
            members("Megatron-Core's modules", {"modules": {"type": "array", "minItems": 1, "items": {
                "enum": ["core_attn", "mlp", "layernorm", "moe_act", "moe", "mla_up_proj"]}}}, required=["modules"])]})),
        "attention": word("default flash", "eager", "flash", "flash-v1", "flash-v3"),
        "loss": described("cross-entropy; default: the framework's", nullable({"anyOf": [
            {"enum": ["hf", "hf-shift", "hf-external", "hf-native", "fused-ce", "fused-ce-native", "compiled", "logits16",
                      "megatron", "te", "liger"]},
            {"type": "string", "pattern": "^chunked:0*[1-9][0-9]{0,6}$"}]})),
        "keep_logits": boolean("the loop holds the logits through backward"),
        "kernels": nullable(members("Which kernels run; each null is the stack's.", {
            "norm": pairs("fused", "naive"), "mlp": pairs("fused", "naive"), "qkv": pairs("fused", "separate"),
            "softmax": pairs("fused16", "fp32"), "sp_input": pairs("regather", "keep"), "wgrad": pairs("fused", "separate"),
            "attention_output_copy": boolean("the output is copied"), "kv_expanded": boolean("K and V are repeated"),
            "reentrant_checkpoint": boolean("torch.utils.checkpoint's older form"),
            "te_dummy_wgrad": boolean("cached dummy weight gradients"), "moe_dispatch": pairs("permute", "loop"),
            "moe_probs": pairs("activation", "after"), "moe_combine": pairs("scatter_add", "index_add")})),
        "dropout": rate("default 0"), "attention_dropout": rate("default: dropout"),
        "autocast": boolean("torch.autocast around the forward"),
        "param_dtype": word("default: the framework's", "fp32", "bf16", "fp16", "fp8"),
        "grad_dtype": word("default: the framework's", "fp32", "bf16", "fp16", "fp8"),
        "master_weights": boolean("an fp32 copy"),
        "optimizer_state_dtype": word("default: the framework's", "fp32", "bf16", "fp16", "fp8"),
        "make_vocab_size_divisible_by": integer("always times tensor", 1, DEGREE),
        "moe": nullable(members("Mixture of experts", {
            "capacity_factor": number("null: dropless", above=0, high=1e6),
            "imbalance": number("tokens of the busiest expert rank / mean", 1, 1e6)})),
        "peft": nullable(members("Adapters", {
            "method": word("default lora", "lora", "qlora", "dora", "rslora"), "rank": integer("default 16", 1, 1 << 16),
            "alpha": number("default 32", above=0, high=1e9), "dropout": rate("default 0"),
            "targets": described("matrices with adapters", nullable({"anyOf": [
                {"type": "string"}, {"type": "array", "items": {"type": "string"}}]})),
            "quant": word("of the frozen base", "none", "nf4", "int8", "gptq4"),
            "double_quant": boolean("quantised constants"), "adapter_dtype": word("default fp32", "fp32", "bf16"),
            "kbit_preparation": boolean("prepare_model_for_kbit_training"), "fused": boolean("FOAK, Unsloth")})),
        "offload": nullable(members("What lives on the host", {
            "optimizer": word("default none", "none", "cpu", "nvme"), "parameters": word("default none", "none", "cpu", "nvme"),
            "activations": word("default none", "none", "cpu"), "activation_layers": integer("of each stage", 0, LAYERS),
            "optimizer_fraction": number("default 1", above=0, high=1)})),
        "overlap": nullable(members("What hides behind compute", {
            "grad_reduce": boolean("reduction of gradients"), "param_gather": boolean("gathering of weights"),
            "tp": boolean("tensor parallel exchange"), "p2p": boolean("pipeline sends")}))})


def require():
    return members("What `shardplan check` asks for.", {
        "fits": boolean("default true; false: need not fit"), "min_headroom_gib": number("GiB that stay free", 0),
        "min_mfu": number("fraction", 0, 1), "max_bubble": number("fraction", 0, 1), "max_step_s": number("seconds", above=0),
        "min_tokens_per_s_per_gpu": number("tokens", 0), "max_gpu_hours_per_1e12_tokens": number("GPU hours", above=0)})


def word_is(section, field, *words):
    return {"properties": {section: {"properties": {field: {"enum": list(words)}}, "required": [field]}},
            "required": [section]}


def run():
    one = {"enum": [1, None]}
    rules = [
        {"if": word_is("training", "framework", "ddp", "dp"),
         "then": {"properties": {"parallel": {"properties": {k: one for k in ("tensor", "pipeline", "context", "expert")}}}}},
        {"if": word_is("training", "framework", "megatron"),
         "then": {"properties": {"parallel": {"properties": {"zero_stage": {"enum": [0, 1, None]}}}}}},
        {"if": word_is("training", "framework", "fsdp", "ddp", "dp"),
         "then": {"properties": {"parallel": {"properties": {"zero_stage": {"enum": [0, None]}}}}}},
        {"if": {"properties": {"parallel": {"properties": {"zero_stage": {"enum": [2, 3]}, "tensor": {"minimum": 2, "type": "integer"}},
                                            "required": ["zero_stage", "tensor"]}}, "required": ["parallel"]},
         "then": {"properties": {"training": {"required": ["framework"], "properties": {"framework": {"type": "string"}}}},
                  "required": ["training"]}},
        {"if": word_is("parallel", "schedule", "interleaved"),
         "then": {"properties": {"parallel": {"required": ["virtual_pipeline"],
                                              "properties": {"virtual_pipeline": {"type": "integer", "minimum": 2}}}}}},
        {"if": {"properties": {"parallel": {"properties": {"zero_stage": {"enum": [1, 2, 3]}}, "required": ["zero_stage"]}},
                "required": ["parallel"]},
         "then": {"properties": {"parallel": {"properties": {"fsdp": {"enum": ["none", None]}}}}}},
        {"anyOf": [
            {"required": ["num_gpus"], "properties": {"num_gpus": {"type": "integer"}}},
            {"properties": {"cluster": {"type": "object", "required": ["num_nodes"]}}},
            {"properties": {"cluster": {"type": "string", "pattern": "/|\\.json$"}}}]}]
    return members("A training run: model, cluster, layout, options, requirements (docs/run.md).", {
        "$schema": {"type": "string"}, "model": {"$ref": "#/definitions/model_reference"},
        "cluster": {"$ref": "#/definitions/cluster_reference"}, "num_gpus": integer("GPUs of the run", 1, DEGREE),
        "parallel": nullable({"$ref": "#/definitions/parallel"}), "training": nullable({"$ref": "#/definitions/training"}),
        "require": nullable({"$ref": "#/definitions/require"}),
        "defaults": described("pointers of members that were not stated, as the resolved run has them",
                              nullable({"type": "array", "items": {"type": "string"}}))},
        required=["model", "cluster"], allOf=rules, definitions={
            "model_reference": reference("A built-in model (`shardplan list models`), a path or a config.json.", "models", model()),
            "cluster_reference": reference("A built-in cluster (`shardplan list clusters`), a path or an object.", "clusters", cluster()),
            "parallel": parallel(), "training": training(), "require": require()})


# ---- output

INT = {"type": "integer"}
BYTES = {"type": "integer", "minimum": 0}
REAL = {"type": ["number", "null"]}
BOOL = {"type": "boolean"}
TEXT = {"type": "string"}


def shape(**fields):
    """An object that has these members, and may get more."""
    return {"type": "object", "properties": fields, "required": list(fields)}


def listing(items):
    return {"type": "array", "items": items}


def estimate_output():
    parts = {f"{p}_bytes": BYTES for p in ("parameters", "gradients", "optimizer", "activations", "transient",
                                           "communication_buffers", "framework", "total")}
    by_part = {p: BYTES for p in ("embedding", "attention", "mlp", "experts", "router", "norm", "head", "adapters")}
    moment = {"enum": ["loss", "backward", "backward_end", "optimizer_step", "initialisation"]}
    stage = shape(stage=INT, layers=INT, parameters=BYTES, in_flight_microbatches=INT, peak_moment=moment, **parts,
                  reserved_bytes=BYTES, host_bytes=BYTES, nvme_bytes=BYTES,
                  moments={"type": "object", "additionalProperties": shape(**parts)})
    call = shape(name=TEXT, op=TEXT, group=TEXT, group_size=INT, scope={"enum": ["none", "intra_node", "inter_node"]},
                 calls_per_step=INT, message_bytes=BYTES, sent_bytes_per_step=BYTES, time_s=REAL, exposed_s=REAL)
    times = {k: REAL for k in ("step_s", "compute_s", "recompute_s", "communication_exposed_s", "bubble_s", "optimizer_s",
                               "offload_s")}
    rates = {k: REAL for k in ("tokens_per_s", "tokens_per_s_per_gpu", "samples_per_s", "model_flop_per_token",
                               "score_flop_per_token", "peak_tflops_per_gpu", "model_tflops_per_gpu",
                               "hardware_tflops_per_gpu", "mfu", "hfu", "mfu_causal", "mfu_6n",
                               "gpu_hours_per_1e12_tokens", "price_per_1e12_tokens")}
    return dict(
        run={"type": "object", "required": ["model", "cluster", "num_gpus", "parallel", "training", "defaults"]},
        model=shape(name=TEXT, parameters=BYTES, active_parameters=BYTES, trainable_parameters=BYTES,
                    padded_vocab_size=BYTES, parameters_by_part=shape(**by_part)),
        memory=shape(capacity_bytes=BYTES, peak_bytes=BYTES, peak_stage=INT, peak_moment=moment, reserved_bytes=BYTES,
                     reserved_band_bytes=listing(BYTES), headroom_bytes=INT, fits=BOOL, host_bytes_per_node=BYTES,
                     nvme_bytes_per_node=BYTES, stages=listing(stage)),
        communication=shape(calls=listing(call), sent_bytes_per_step=shape(
            **{k: BYTES for k in ("tensor", "pipeline", "data", "context", "expert", "total")})),
        pipeline=shape(schedule=TEXT, num_microbatches=INT, bubble_fraction=REAL, ideal_bubble_fraction=REAL),
        time=shape(**times, step_band_s=listing(REAL)), throughput=shape(**rates),
        warnings=listing(shape(code=TEXT, path=TEXT, message=TEXT)))


def figures():
    return shape(capacity_bytes=BYTES, peak_bytes=BYTES, reserved_bytes=BYTES, headroom_bytes=INT, fits=BOOL, step_s=REAL,
                 tokens_per_s_per_gpu=REAL, mfu=REAL, bubble_fraction=REAL, gpu_hours_per_1e12_tokens=REAL,
                 price_per_1e12_tokens=REAL)


def check_output():
    failure = shape(requirement={"enum": list(require()["properties"])}, limit={"type": ["number", "boolean"]},
                    actual={"type": ["number", "boolean"]}, line=INT)
    problem = shape(file=TEXT, pointer=TEXT, message=TEXT, way_out=TEXT, line=INT, column=INT)
    file = shape(path=TEXT, status={"enum": ["pass", "fail", "error"]}, failures=listing(failure),
                 fix={"type": ["string", "null"]})
    file["properties"].update(figures=figures(), baseline={"anyOf": [figures(), {"type": "null"}]}, problems=listing(problem))
    return dict(passed=BYTES, failed=BYTES, errors=BYTES, files=listing(file))


def outputs():
    row = shape(path=TEXT, values={"type": "array"})
    point = shape(values={"type": "array"}, status={"enum": ["fits", "does_not_fit", "illegal"]},
                  rule={"type": ["string", "null"]}, peak_bytes={"type": ["integer", "null"]}, step_s=REAL, mfu=REAL,
                  tokens_per_s=REAL)
    layout = {"type": "object"}
    return {
        "estimate": estimate_output(), "check": check_output(),
        "sweep": dict(vary=listing(TEXT), points=listing(point)),
        "compare": dict(runs=listing(TEXT), inputs=listing(row), results=listing(row)),
        "search": dict(space={"type": "object"}, wall_s=REAL, threads=INT, best=listing(layout), pareto=listing(layout),
                       why_not=listing(layout)),
        "solve": dict(field=TEXT, value={}, otherwise=listing(layout), estimate={"type": ["object", "null"]}),
        "explain": dict(topic=TEXT, value={}, unit=TEXT, formula=TEXT, symbols=listing(layout), sources=listing(TEXT)),
        "list": dict(kind=TEXT, items=listing({"type": "object"}))}


def output():
    kinds = []
    for name, fields in outputs().items():
        kinds.append(shape(schema={"const": f"shardplan/{name}/v1"}, version=TEXT, **fields))
        if name == "explain":  # a topic, the list of topics, the list of addresses
            kinds[-1]["required"] = ["schema", "version"]
            topic = ["topic", "value", "unit", "formula", "symbols", "substitution", "sources", "beware", "try"]
            kinds[-1]["anyOf"] = [{"required": topic}, {"required": ["topics"]}, {"required": ["addresses"]}]
    reals = listing({"type": "number"})
    kinds.append(shape(schema={"const": "shardplan/schedule/v1"}, makespan={"type": "number"}, busy=reals, bubble_time=reals,
                       ops=listing(listing({"type": "array"}))))
    return described("What commands print with --json; more members may be added.", {"oneOf": kinds})


def document(title, schema):
    return {"$schema": "http://json-schema.org/draft-07/schema#", "title": title, **schema}


def main():
    schemas = {"run": document("shardplan run file", run()), "cluster": document("shardplan cluster file", cluster()),
               "model": document("shardplan model file", model()), "output": document("shardplan output", output())}
    stale = []
    for name, schema in schemas.items():
        path = CONFIGS / "schema" / f"{name}.schema.json"
        content = json.dumps(schema, indent=1) + "\n"
        if "--check" in sys.argv:
            if not path.exists() or path.read_text() != content:
                stale.append(str(path.relative_to(ROOT)))
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(content)
    if stale:
        sys.exit("run scripts/make_schema.py: not up to date: " + ", ".join(stale))


if __name__ == "__main__":
    main()
