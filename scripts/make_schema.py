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
SCHEDULES = ["naive", "gpipe", "1f1b", "interleaved", "bfs", "zb-h1", "zb-h2", "zb-v", "dualpipe", "dualpipe-v"]
PRECISIONS = ["fp32", "tf32", "fp16", "bf16", "fp8", "nvfp4"]
GB_S = {"above": 0, "high": 1e6}


def gpu():
    rates = {p: number(f"dense {p} TFLOP/s", above=0, high=1e12)
             for p in ("fp32", "tf32", "fp16", "bf16", "fp8", "fp4", "int8")}
    share = {"above": 0, "high": 1}
    kernel = members("share of the peak", {"forward": number("of the forward pass", **share),
                                           "backward": number("of the backward pass", **share),
                                           "s0": number("length at which the share is half", 0, 1e6)})
    attention = {**{k: kernel for k in ("flash-v1", "flash-v2", "flash-v3")}, "measured": boolean("not a generic curve"),
                 "source": text("where from")}
    return members("A GPU: the fields of `shardplan list gpus --json`.", {
        "name": {"type": "string"}, "aliases": {"type": "array", "items": {"type": "string"}},
        "vendor": text("maker"), "architecture": text("generation"),
        "memory_gb": number("as sold", above=0, high=1e12),
        "memory_reported_mib": number("as the driver reports it", above=0, high=1e12),
        "memory_cuda_gib": number("cudaMemGetInfo's total", above=0, high=1e12),
        "measured_like": text("the built-in GPU whose measured tables hold for this one, scaled"),
        "memory_is_estimated": boolean("memory_cuda_gib is a guess"),
        "memory_bandwidth_gb_s": {"type": "number", "exclusiveMinimum": 0, "maximum": 1e12},
        "dense_tflops": members("Dense rates, not the sparse headline.", rates),
        "scale_up_type": text("link inside a node"),
        "scale_up_gb_s_per_direction": number("per GPU and direction", above=0, high=1e12),
        "scale_up_domain": integer("GPUs that the link joins", 1, MOST),
        "multiprocessors": integer("SMs or compute units", 1, MOST),
        "compute_capability": described("CUDA, as in \"9.0\"", nullable({"type": "string", "pattern": "^[0-9]{1,2}\\.[0-9]$"})),
        "pcie_gen": integer("PCIe generation", 3, 6),
        "host_link_gb_s": number("to a CPU that more than PCIe joins (NVLink-C2C)", above=0, high=1e12),
        "tdp_w": nullable({"type": "number"}),
        "gemm_efficiency": described("How fast matrix products run.", nullable(members("", {
            "peak_fraction": number("of the peak", **share), "k0": number("elements of k lost to start-up", 0, 1e6),
            "wave_quantisation": number("0 none, 1 full", 0, 1), "launch_us": number("of a kernel", 0, 1e6),
            "memory_fraction": number("of the bandwidth", **share), "sustained": number("of a long run", above=0, high=2),
            "measured": boolean("not a generic curve"), "source": text("where from")}))),
        "attention_efficiency": described("How fast attention runs.", nullable(members("", attention))),
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
    # Fields that every family reads under these names; null is "not stated" only where the reader has a default.
    positive = lambda key: {"type": "integer", "minimum": 1, "maximum": LIMITS[key]}
    published = {"type": "object", "properties": {
        "model_type": {"enum": MODEL_TYPES}, "shardplan": own,
        "hidden_size": positive("hidden"), "num_hidden_layers": positive("layers"), "vocab_size": positive("vocab"),
        "num_attention_heads": positive("heads"), "tie_word_embeddings": nullable({"type": "boolean"})},
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
        "schedule": word("default 1f1b", *SCHEDULES),
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


def states(section, **fields):
    """For `if`: the run states these fields of a section. What is null is not stated."""
    return {"properties": {section: {"type": "object", "properties": fields, "required": list(fields)}},
            "required": [section]}


def word_is(section, field, *words):
    return states(section, **{field: {"enum": list(words)}})


def run():
    one = {"enum": [1, None]}
    rules = [
        {"if": word_is("training", "framework", "ddp", "dp"),
         "then": {"properties": {"parallel": {"properties": {k: one for k in ("tensor", "pipeline", "context", "expert")}}}}},
        {"if": word_is("training", "framework", "megatron"),
         "then": {"properties": {"parallel": {"properties": {"zero_stage": {"enum": [0, 1, None]}}}}}},
        {"if": word_is("training", "framework", "fsdp", "ddp", "dp"),
         "then": {"properties": {"parallel": {"properties": {"zero_stage": {"enum": [0, None]}}}}}},
        {"if": states("parallel", zero_stage={"enum": [2, 3]}, tensor={"minimum": 2, "type": "integer"}),
         "then": states("training", framework={"type": "string"})},
        {"if": word_is("parallel", "schedule", "interleaved"),
         "then": {"properties": {"parallel": {"required": ["virtual_pipeline"],
                                              "properties": {"virtual_pipeline": {"type": "integer", "minimum": 2}}}}}},
        {"if": word_is("parallel", "zero_stage", 1, 2, 3),
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
COUNT = {"type": "integer", "minimum": 1}
REAL = {"type": ["number", "null"]}
BOOL = {"type": "boolean"}
TEXT = {"type": "string"}


def shape(optional=None, **fields):
    """An object that has these members, may have the optional ones, and no other."""
    return {"type": "object", "properties": {**fields, **(optional or {})}, "required": list(fields),
            "additionalProperties": False}


def listing(items, **more):
    return {"type": "array", "items": items, **more}


def pair(items):
    return listing(items, minItems=2, maxItems=2)


def resolved_run():
    """A run file with every default filled in."""
    whole = run()
    return {k: v for k, v in whole.items() if k not in ("definitions", "description")} | {
        "required": ["model", "cluster", "num_gpus", "parallel", "training", "defaults"]}


def estimate_output():
    parts = {f"{p}_bytes": BYTES for p in ("parameters", "gradients", "optimizer", "activations", "transient",
                                           "communication_buffers", "framework", "total")}
    by_part = {p: BYTES for p in ("embedding", "attention", "mlp", "experts", "router", "norm", "head", "adapters")}
    moments = ["loss", "backward", "backward_end", "optimizer_step", "initialisation"]
    moment = {"enum": moments}
    stage = shape(stage=BYTES, layers=BYTES, parameters=BYTES, in_flight_microbatches=BYTES, peak_moment=moment, **parts,
                  reserved_bytes=BYTES, host_bytes=BYTES, nvme_bytes=BYTES,
                  moments=shape(optional={m: shape(**parts) for m in moments}), optional={"in_flight_chunks": BYTES})
    groups = ["tensor", "pipeline", "data", "context", "expert"]
    call = shape(name=TEXT, op={"enum": ["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send", "broadcast"]},
                 group={"enum": groups + ["expert_data", "embedding"]}, group_size=BYTES,
                 scope={"enum": ["none", "intra_node", "inter_node"]},
                 calls_per_step=BYTES, message_bytes=BYTES, sent_bytes_per_step=BYTES, time_s=REAL, exposed_s=REAL)
    times = {k: REAL for k in ("step_s", "compute_s", "recompute_s", "communication_exposed_s", "bubble_s", "optimizer_s",
                               "offload_s")}
    rates = {k: REAL for k in ("tokens_per_s", "tokens_per_s_per_gpu", "samples_per_s", "model_flop_per_token",
                               "score_flop_per_token", "peak_tflops_per_gpu", "model_tflops_per_gpu",
                               "hardware_tflops_per_gpu", "mfu", "hfu", "mfu_causal", "mfu_6n",
                               "gpu_hours_per_1e12_tokens", "price_per_1e12_tokens")}
    return dict(
        run={"$ref": "#/definitions/resolved_run"},
        model=shape(name=TEXT, parameters=BYTES, active_parameters=BYTES, trainable_parameters=BYTES,
                    padded_vocab_size=BYTES, parameters_by_part=shape(**by_part)),
        memory=shape(capacity_bytes=BYTES, peak_bytes=BYTES, peak_stage=BYTES, peak_moment=moment, reserved_bytes=BYTES,
                     reserved_band_bytes=pair(BYTES), headroom_bytes=INT, fits=BOOL, host_bytes_per_node=BYTES,
                     nvme_bytes_per_node=BYTES, stages=listing(stage, minItems=1)),
        communication=shape(calls=listing(call),
                            sent_bytes_per_step=shape(**{k: BYTES for k in groups + ["total"]})),
        pipeline=shape(schedule={"enum": SCHEDULES}, num_microbatches=BYTES, bubble_fraction=REAL,
                       ideal_bubble_fraction=REAL),
        time=shape(**times, step_band_s=pair(REAL), step_band_class={
            "enum": ["known", "mixture_of_experts", "other_fabric", "other_stack", "no_table"]}),
        throughput=shape(**rates), warnings=listing(shape(code=TEXT, path=TEXT, message=TEXT)))


def estimate_detail():
    """What --measured and --detail add."""
    operator = shape(name=TEXT, kind=TEXT, parameters=BYTES, saved_bytes=BYTES, forward_flop=BYTES, backward_flop=BYTES,
                     forward_hbm_bytes=BYTES, forward_s=REAL, backward_s=REAL, sent_bytes=BYTES)
    layer = shape(first=BYTES, count=BYTES, kind={"enum": ["dense", "moe"]}, saved_bytes=BYTES, kept_bytes=BYTES,
                  operators=listing(operator))
    overhead = shape(name=TEXT, bytes=BYTES, part={"enum": ["transient_bytes", "framework_bytes"]}, source=TEXT)
    stage = shape(stage=BYTES, first_start_s=REAL, last_end_s=REAL, busy_s=REAL, exposed_p2p_s=REAL,
                  gradients_ready_s=listing(REAL), reduce_start_s=listing(REAL),
                  activations_held=listing(pair({"type": "number"})))
    return dict(
        measured=shape(mfu=REAL, mfu_causal=REAL, hfu=REAL, ratio_to_estimate=REAL, in_band=BOOL,
                       suspect=nullable(TEXT)),
        layers=listing(layer), embedding=shape(saved_bytes=BYTES), final_norm=shape(saved_bytes=BYTES),
        head=shape(saved_bytes=BYTES, peak_bytes=BYTES), backward_transient_bytes=BYTES, overheads=listing(overhead),
        timeline=shape(makespan_s=REAL, max_span_s=REAL, stages=listing(stage)),
        offload=shape(to_host_bytes=BYTES, from_host_bytes=BYTES, nvme_read_bytes=BYTES, nvme_written_bytes=BYTES,
                      once_a_step_s=REAL, passes_s=REAL))


def figures():
    return shape(capacity_bytes=BYTES, peak_bytes=BYTES, reserved_bytes=BYTES, headroom_bytes=INT, fits=BOOL, step_s=REAL,
                 tokens_per_s_per_gpu=REAL, mfu=REAL, bubble_fraction=REAL, gpu_hours_per_1e12_tokens=REAL,
                 price_per_1e12_tokens=REAL)


def check_output():
    failure = shape(requirement={"enum": list(require()["properties"])}, limit={"type": ["number", "boolean"]},
                    actual={"type": ["number", "boolean", "null"]}, line=nullable(BYTES))
    problem = shape(file=TEXT, pointer=TEXT, message=TEXT, way_out=TEXT, line=BYTES, column=BYTES)
    path = dict(path=TEXT)
    judged = dict(failures=listing(failure), fix=nullable(TEXT), figures=figures())
    baseline = {"baseline": {"anyOf": [figures(), {"type": "null"}]}}
    file = {"oneOf": [
        shape(**path, status={"const": "pass"}, **{**judged, "failures": listing(failure, maxItems=0)}, optional=baseline),
        shape(**path, status={"const": "fail"}, **{**judged, "failures": listing(failure, minItems=1)}, optional=baseline),
        shape(**path, status={"const": "error"}, failures=listing(failure, maxItems=0), fix={"type": "null"},
              problems=listing(problem, minItems=1))]}
    return dict(passed=BYTES, failed=BYTES, errors=BYTES, files=listing(file))


def sweep_output():
    counts = ("num_gpus", "data", "global_batch_size", "num_microbatches", "peak_bytes", "need_bytes", "headroom_bytes",
              "param_bytes", "grad_bytes", "optim_bytes", "activ_bytes", "host_bytes_per_node", "sent_bytes_per_step",
              "parameters", "active_parameters", "trainable_parameters", "padded_vocab_size", "capacity_bytes", "peak_stage",
              "reserved_bytes", "nvme_bytes_per_node",
              *(f"{part}_parameters" for part in ("embedding", "attention", "mlp", "experts", "router", "norm", "head",
                                                  "adapters")),
              *(f"sent_{group}_bytes_per_step" for group in ("tensor", "pipeline", "data", "context", "expert")))
    reals = ("step_s", "compute_s", "communication_exposed_s", "bubble_fraction", "tokens_per_s", "tokens_per_s_per_gpu",
             "model_tflops_per_gpu", "mfu", "mfu_causal", "mfu_6n", "hfu", "gpu_hours_per_1e12_tokens",
             "price_per_1e12_tokens", "ideal_bubble_fraction", "recompute_s", "bubble_s", "optimizer_s", "offload_s",
             "samples_per_s", "model_flop_per_token", "score_flop_per_token", "peak_tflops_per_gpu",
             "hardware_tflops_per_gpu")
    columns = {**{k: nullable(INT) for k in counts}, **{k: REAL for k in reals}}
    always = {k: columns.pop(k) for k in ("peak_bytes", "step_s", "mfu", "tokens_per_s")}
    point = shape(values=listing({}, minItems=1), status={"enum": ["fits", "does_not_fit", "illegal"]},
                  rule=nullable(TEXT), **always, optional=columns)
    return dict(vary=listing(TEXT, minItems=1), points=listing(point))


def search_output():
    degrees = {k: COUNT for k in ("tensor", "pipeline", "virtual_pipeline", "context", "expert", "expert_tensor", "data")}
    layout = shape(**degrees, sequence_parallel=BOOL, zero_stage={"enum": [0, 1, 2, 3, None]},
                   fsdp=nullable({"enum": ["full_shard", "shard_grad_op", "no_shard", "hybrid_shard"]}),
                   schedule={"enum": SCHEDULES}, optional={"shard_group": COUNT, "layers_per_stage": listing(BYTES)})
    fields = training()["properties"]
    options = shape(micro_batch_size=COUNT, recompute=fields["recompute"], attention=fields["attention"],
                    offload=nullable(shape(optimizer=nullable(TEXT), parameters=nullable(TEXT), activations=nullable(TEXT))),
                    overlap=shape(grad_reduce=BOOL, param_gather=BOOL, tp=BOOL, p2p=BOOL),
                    optional={"global_batch_size": COUNT, "framework": fields["framework"]})
    row = dict(pareto=BOOL, num_gpus=COUNT, parallel=layout, training=options, peak_bytes=BYTES, reserved_bytes=BYTES,
               headroom_bytes=INT, **{k: REAL for k in ("step_s", "tokens_per_s", "tokens_per_s_per_gpu", "mfu",
                                                        "bubble_fraction", "gpu_hours_per_1e12_tokens",
                                                        "price_per_1e12_tokens")})
    space = shape(**{k: BYTES for k in ("layouts", "layouts_without_overlap", "estimated", "simulated", "cut_by_bound",
                                        "does_not_fit", "misses_requirement", "fit")},
                  illegal={"type": "object", "additionalProperties": COUNT},
                  over_by=shape(**{k: BYTES for k in ("tenth_of_card", "card", "more", "host")}))
    term = shape(term=TEXT, best_s=REAL, other_s=REAL)
    why = shape(change=TEXT, reason=TEXT, over_bytes=INT, step_s=REAL, optional={"terms": listing(term)})
    stated = shape(rank=nullable(COUNT), fits=BOOL, step_s=REAL, peak_bytes=BYTES, headroom_bytes=INT)
    sensitivity = shape(hardware=TEXT, step_s=REAL, gain=REAL, layout=TEXT)
    always = dict(objective={"enum": ["throughput", "price", "headroom", "gpus"]}, complete=BOOL, space=space, wall_s=REAL,
                  threads=COUNT, layouts_per_s_per_core=REAL, best=listing(shape(rank=COUNT, **row)),
                  pareto=listing(shape(**row)), why_not=listing(why))
    return always, dict(nearest=listing(shape(**row)), stated=stated, sensitivity=listing(sensitivity))


def explain_output():
    """A topic or a term, every topic, the addresses of an estimate."""
    symbol = shape(symbol=TEXT, meaning=TEXT, value=REAL, unit=TEXT, optional={"address": TEXT})
    card = dict(topic=TEXT, value=REAL, unit=TEXT, formula=TEXT, symbols=listing(symbol), substitution=TEXT,
                sources=listing(TEXT), beware=nullable(TEXT), title=nullable(TEXT),
                parts=listing(shape(address=TEXT, value=REAL, meaning=TEXT)),
                remarks=listing(shape(label=TEXT, text=TEXT)))
    card["try"] = nullable(TEXT)
    address = shape(address=TEXT, value=REAL, unit=TEXT, meaning=TEXT)
    # Of several runs each card names its own.
    return [card, dict(topics=listing(shape(**card, optional={"run": TEXT}))), dict(addresses=listing(address))]


def list_output():
    texts = lambda *names: {n: TEXT for n in names}
    aliases = listing(TEXT)
    number_or_flag = {"type": "object", "additionalProperties": {"type": ["number", "boolean"]}}
    sizes = ("parameters", "active_parameters", "num_hidden_layers", "hidden_size", "num_attention_heads",
             "num_key_value_heads", "head_dim", "intermediate_size", "num_experts", "num_experts_per_tok", "vocab_size",
             "max_position_embeddings")
    fields = training()["properties"]
    items = {
        "kinds": shape(**texts("name", "description")),
        "models": shape(**texts("name", "model_type", "source"), aliases=aliases, tie_word_embeddings=BOOL,
                        **{k: nullable(BYTES) for k in sizes}),
        "gpus": gpu(), "clusters": cluster(),
        "stacks": shape(**texts("name", "framework", "description", "loss", "flash", "source"),
                        kernels=fields["kernels"], optimizer_impl=fields["optimizer_impl"], compile=BOOL, autocast=BOOL,
                        overlap=fields["overlap"], memory=number_or_flag, timing=number_or_flag,
                        optional={"fsdp_version": COUNT, "tensor_is_sequence_parallel": BOOL}),
        "schedules": shape(**texts("name", "description", "needs", "bubble_fraction", "source")),
        "optimizers": shape(**texts("name", "description", "form", "matrices", "source"), aliases=aliases,
                            state_tensors=REAL, matrix_state_tensors=REAL, fixed_bytes_per_parameter=REAL, paged=BOOL,
                            timed=BOOL),
        "dtypes": shape(**texts("name", "use", "source"), **{k: REAL for k in (
            "bits", "sign_bits", "exponent_bits", "fraction_bits", "exponent_bias", "max", "min_normal", "min_subnormal",
            "epsilon")}),
        "topics": shape(**texts("name", "section", "description", "notes"), aliases=aliases)}
    return [dict(kind={"const": kind}, items=listing(item)) for kind, item in items.items()]


def outputs():
    """The objects of each schema name, each as its members and its optional members."""
    row = shape(path=TEXT, values=listing({}, minItems=2))
    following = shape(value=INT, over_bytes=BYTES, why=TEXT)
    return {
        "estimate": [(estimate_output(), estimate_detail())], "check": [(check_output(), {})],
        "sweep": [(sweep_output(), {})],
        "compare": [(dict(runs=listing(TEXT, minItems=2), inputs=listing(row), results=listing(row)), {})],
        "search": [search_output()],
        "solve": [(dict(field=TEXT, goal={"enum": ["largest", "smallest"]}, value=nullable(INT), step=COUNT,
                        next=nullable(following),
                        otherwise=listing(shape(flags=TEXT, value=nullable(INT))),
                        estimate=nullable({"$ref": "#/definitions/estimate"})), {})],
        "explain": [(form, {"run": TEXT} if "topic" in form else {}) for form in explain_output()],
        "list": [(kind, {}) for kind in list_output()]}


def output():
    kinds = []
    definitions = {**run()["definitions"], "resolved_run": resolved_run()}
    for name, forms in outputs().items():
        for fields, optional in forms:
            kinds.append(shape(schema={"const": f"shardplan/{name}/v1"}, version=TEXT, **fields, optional=optional))
    definitions["estimate"] = kinds[0]
    kinds[0] = {"$ref": "#/definitions/estimate"}
    number_list = listing({"type": "number"})
    op = {"type": "array", "items": [TEXT, {"type": "number"}, {"type": "number"}], "minItems": 3, "additionalItems": False}
    kinds.append(shape(schema={"const": "shardplan/schedule/v1"}, makespan={"type": "number"}, busy=number_list,
                       bubble_time=number_list, bubble_of_total=REAL, bubble_of_ideal=REAL, max_span={"type": "number"},
                       peak_inflight=listing({"type": "number"}), ops=listing(listing(op))))
    return described("What this version's commands print with --json; later versions may add members.",
                     {"oneOf": kinds, "definitions": definitions})


def document(title, schema):
    return {"$schema": "http://json-schema.org/draft-07/schema#", "title": title, **schema}


def main():
    schemas = {"output": document("shardplan output", output())}
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
