#include "levers.hpp"

#include <fmt/format.h>

#include <utility>

#include "shardplan/physics/frameworks/facts.hpp"

namespace shardplan::cli {

using plan::Draft;
using plan::Field;
using plan::FieldSet;

Lever tensor_lever(int tensor, std::string_view reason) {
  return {fmt::format("--tp {}", tensor), reason, FieldSet(Field::tensor),
          [tensor](Draft& d) { d.run.parallel.tensor = tensor; }};
}

Lever pipeline_lever(int pipeline, std::string_view reason) {
  return {fmt::format("--pp {}", pipeline), reason, FieldSet(Field::pipeline),
          [pipeline](Draft& d) { d.run.parallel.pipeline = pipeline; }};
}

Lever zero_lever(int stage, std::string_view reason) {
  return {fmt::format("--zero {}", stage), reason, FieldSet(Field::zero_stage),
          [stage](Draft& d) { d.run.parallel.zero_stage = stage; }};
}

Lever fsdp_lever(const Draft& draft, Fsdp mode, std::string_view reason, Framework keep) {
  const bool drop_zero = draft.given.has(Field::zero_stage);
  const bool state = !facts_of(keep).shards_by_fsdp() && !draft.given.has(Field::framework);
  std::string flags = fmt::format("--fsdp {}", name(mode));
  if (state) flags += fmt::format(" --framework {}", name(keep));
  FieldSet fields(Field::fsdp);
  if (state) fields.add(Field::framework);
  return {std::move(flags), reason, fields, [mode, drop_zero, state, keep](Draft& d) {
            d.run.parallel.fsdp = mode;
            if (drop_zero) d.given.remove(Field::zero_stage);
            if (state) d.run.training.framework = keep;
          }};
}

Lever recompute_lever(std::string word, Recompute recompute, std::string_view reason) {
  return {"--recompute " + std::move(word), reason, FieldSet(Field::recompute),
          [recompute](Draft& d) { d.run.training.recompute = recompute; }};
}

Lever micro_batch_lever(std::int64_t batch, std::string_view reason) {
  return {fmt::format("--mbs {}", batch), reason, FieldSet(Field::micro_batch_size),
          [batch](Draft& d) { d.run.training.micro_batch_size = batch; }};
}

Lever chunks_lever(const Draft& draft, const Run& run, int chunks, std::string_view reason) {
  const bool restate = draft.given.has(Field::schedule) && run.parallel.schedule != ScheduleKind::interleaved;
  return {fmt::format("--vpp {}{}", chunks, restate ? " --schedule interleaved" : ""), reason,
          restate ? FieldSet(Field::virtual_pipeline, Field::schedule) : FieldSet(Field::virtual_pipeline),
          [chunks](Draft& d) {
            d.run.parallel.virtual_pipeline = chunks;
            d.run.parallel.schedule = ScheduleKind::interleaved;
          }};
}

Lever context_lever(int context, std::string_view reason) {
  return {fmt::format("--cp {}", context), reason, FieldSet(Field::context),
          [context](Draft& d) { d.run.parallel.context = context; }};
}

Lever expert_lever(int expert, std::string_view reason) {
  return {fmt::format("--ep {}", expert), reason, FieldSet(Field::expert),
          [expert](Draft& d) { d.run.parallel.expert = expert; }};
}

Lever attention_lever(AttentionKernel kernel, std::string_view reason) {
  return {fmt::format("--attention {}", name(kernel)), reason, FieldSet(Field::attention),
          [kernel](Draft& d) { d.run.training.attention = kernel; }};
}

Lever more_gpus(int num_gpus) {
  return {fmt::format("--gpus {}", num_gpus), "", FieldSet(Field::num_gpus),
          [num_gpus](Draft& d) { d.run.num_gpus = num_gpus; }};
}

}  // namespace shardplan::cli
