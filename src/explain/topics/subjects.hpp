// Words that people know a topic by: sections, questions and Chinese terms of docs/interview.md, tools, general terms.
#pragma once

#include <array>
#include <string_view>

namespace shardplan::explain {

/// Words, separated by spaces, and the topics that they mean, likewise.
struct Subject {
  std::string_view words;
  std::string_view topics;
};

/// Sections and questions of docs/interview.md, each one word.
inline constexpr std::array places = std::to_array<Subject>({
    {"1", "model-states activations checkpointing logits transients reserved"},
    {"1.1", "model-states logits transients reserved"},
    {"1.2", "model-states activations checkpointing"},
    {"2", "ddp ring-allreduce bucketing"},
    {"2.1", "ddp"},
    {"2.2", "ring-allreduce bucketing"},
    {"3", "zero zero-traffic zeropp offload infinity"},
    {"3.1", "zero zero-traffic zeropp"},
    {"3.2", "offload"},
    {"3.3", "infinity"},
    {"4", "fsdp hsdp fsdp-or-zero3"},
    {"4.1", "fsdp fsdp-or-zero3"},
    {"4.2", "fsdp hsdp"},
    {"5", "tensor-parallel column-parallel"},
    {"5.1", "tensor-parallel"},
    {"5.2", "column-parallel"},
    {"6", "pipeline 1f1b interleaved bubble zero-bubble dualpipe"},
    {"6.1", "pipeline 1f1b interleaved zero-bubble dualpipe"},
    {"6.2", "bubble"},
    {"7", "3d rank-order sequence-parallel context-parallel expert-parallel"},
    {"8", "lora qlora nf4 double-quantisation paged-optimizers dora rslora"},
    {"8.1", "lora"},
    {"8.2", "qlora nf4 double-quantisation paged-optimizers"},
    {"8.3", "dora rslora"},
    {"9", "flash-attention online-softmax flash-versions"},
    {"9.1", "flash-attention online-softmax"},
    {"9.2", "flash-versions"},
    {"9.3", "flash-versions"},
    {"10", "bf16 loss-scaling"},
    {"10.1", "bf16"},
    {"10.2", "loss-scaling"},
    {"11", "grad-accum grad-clipping"},
    {"12", "ddp-or-zero fsdp-or-zero3 gpu-count loss-spike lora-or-full mfu throughput peak-flops"},
    {"Q1", "ddp-or-zero"},
    {"Q2", "fsdp-or-zero3"},
    {"Q3", "tensor-parallel pipeline rank-order"},
    {"Q4", "flash-attention online-softmax"},
    {"Q5", "lora"},
    {"Q6", "qlora nf4"},
    {"Q7", "bf16"},
    {"Q8", "grad-accum grad-clipping"},
    {"Q9", "gpu-count"},
    {"Q10", "checkpointing"},
    {"Q11", "ring-allreduce"},
    {"Q12", "sequence-parallel"},
    {"Q13", "loss-spike"},
    {"Q14", "lora-or-full"},
    {"Q15", "mfu throughput peak-flops"},
});

/// General words, tools, and the Chinese headings and terms of docs/interview.md.
inline constexpr std::array subjects = std::to_array<Subject>({
    {"memory 显存 显存分析 训练显存分析 显存组成 训练显存",
     "model-states activations checkpointing logits transients reserved offload"},
    {"参数 梯度 优化器 优化器状态 模型状态 optimizer optimizer-states gradients parameters weights", "model-states"},
    {"计算公式 formula", "model-states activations"},
    {"激活 激活值 激活值显存", "activations checkpointing"},
    {"重计算 激活重计算 梯度检查点 检查点 空间换时间 checkpoint activation-checkpointing", "checkpointing"},
    {"数据并行 数据并行(ddp)", "ddp ring-allreduce bucketing zero fsdp"},
    {"通信机制 通信 communication", "ring-allreduce bucketing zero-traffic tensor-parallel"},
    {"梯度分桶 分桶 bucket", "bucketing"},
    {"切分 分片 sharding", "zero fsdp hsdp tensor-parallel"},
    {"通信量 traffic", "zero-traffic ring-allreduce"},
    {"卸载 cpu-offload", "offload infinity"},
    {"deepspeed", "zero zero-traffic zeropp offload infinity fsdp-or-zero3"},
    {"megatron megatron-lm megatron-core", "tensor-parallel sequence-parallel interleaved 3d rank-order"},
    {"pytorch torch", "ddp bucketing fsdp hsdp loss-scaling"},
    {"原理与对比", "fsdp fsdp-or-zero3"},
    {"sharding策略 切分策略 混合分片", "fsdp hsdp"},
    {"张量并行", "tensor-parallel column-parallel"},
    {"列切分 行切分 列切分与行切分 按head切分", "column-parallel"},
    {"流水线 流水线并行", "pipeline bubble 1f1b interleaved zero-bubble dualpipe"},
    {"气泡 流水线气泡 气泡率 bubble率 bubble率分析", "bubble"},
    {"gpipe与1f1b", "pipeline 1f1b"},
    {"schedule schedules 调度", "pipeline 1f1b interleaved zero-bubble dualpipe"},
    {"3d并行 3d并行与混合策略 混合策略 混合并行 layout parallelism 并行策略", "3d rank-order"},
    {"序列并行", "sequence-parallel"},
    {"上下文并行 长序列 long-context", "context-parallel"},
    {"专家并行 专家 混合专家 experts mixtral", "expert-parallel"},
    {"机内 nvlink 机内通信 topology", "rank-order tensor-parallel"},
    {"peft 参数高效微调 微调 finetuning fine-tuning lora系列 adapter", "lora qlora dora rslora lora-or-full"},
    {"lora原理 低秩", "lora"},
    {"量化 quantization quantisation 4bit", "qlora nf4 double-quantisation"},
    {"双重量化", "double-quantisation"},
    {"分页优化器 统一内存", "paged-optimizers"},
    {"dora与rslora", "dora rslora"},
    {"gqa grouped-query grouped-query-attention mqa", "activations tensor-parallel context-parallel flash-attention"},
    {"注意力 softmax", "flash-attention online-softmax flash-versions"},
    {"计算复杂度 io复杂度 计算复杂度不变", "flash-attention"},
    {"flashattention2 flashattention3", "flash-versions"},
    {"mixed-precision amp autocast 混合精度 混合精度训练 精度 precision", "bf16 loss-scaling model-states"},
    {"fp16与bf16", "bf16"},
    {"损失缩放 grad-scaler", "loss-scaling"},
    {"梯度累积", "grad-accum"},
    {"梯度裁剪", "grad-clipping"},
    {"梯度累积与梯度裁剪", "grad-accum grad-clipping"},
    {"损失尖峰 loss尖峰", "loss-spike"},
    {"吞吐 吞吐量 token吞吐量 speed", "throughput mfu peak-flops"},
    {"利用率 算力利用率 flops", "mfu peak-flops"},
    {"全量微调 full-fine-tuning", "lora-or-full"},
    {"多少卡 卡数 sizing", "gpu-count"},
    {"面试 面试题 面试真题集 interview questions",
     "ddp-or-zero fsdp-or-zero3 tensor-parallel flash-attention lora qlora bf16 grad-accum gpu-count checkpointing "
     "ring-allreduce sequence-parallel loss-spike lora-or-full mfu"},
});

}  // namespace shardplan::explain
