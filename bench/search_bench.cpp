// What a search costs: the spaces that docs/search.md names, on as many threads as asked for (default 2). One line a
// space: layouts, how they were decided, seconds, layouts per second and core, allocations per layout.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "shardplan/catalog/catalog.hpp"
#include "shardplan/io/run_file.hpp"
#include "shardplan/plan/search.hpp"
#include "support/counting_new.hpp"

namespace {

using namespace shardplan;

struct Space {
  const char* name;
  int num_gpus;
  const char* run;  ///< of one GPU: the space decides how many there are
};

constexpr const char* gpt3 =
    R"({"model":{"model_type":"transformer","name":"gpt3-175b","hidden_size":12288,"num_hidden_layers":96,)"
    R"("num_attention_heads":96,"vocab_size":51200,"norm":"layernorm","position":"learned",)"
    R"("max_position_embeddings":2048,"hidden_act":"gelu"},"cluster":"dgx-a100-80gb","num_gpus":1,)"
    R"("training":{"framework":"megatron","seq_length":2048,"global_batch_size":512}})";
constexpr const char* llama70 =
    R"({"model":"llama-3.1-70b","cluster":"dgx-h100","num_gpus":1,)"
    R"("training":{"framework":"megatron","global_batch_size":1024}})";
constexpr const char* llama405 =
    R"({"model":"llama-3.1-405b","cluster":"dgx-h100","num_gpus":1,)"
    R"("training":{"framework":"megatron","seq_length":8192,"global_batch_size":2048}})";
constexpr const char* deepseek =
    R"({"model":"deepseek-v3","cluster":"hgx-h800","num_gpus":1,)"
    R"("training":{"framework":"megatron","precision":"fp8","global_batch_size":15360}})";

constexpr Space spaces[] = {{"llama-3.1-70b on 128 H100", 128, llama70},
                            {"GPT-3 175B on 512 A100-80GB, batch 512", 512, gpt3},
                            {"Llama-3.1-405B on 16,384 H100", 16384, llama405},
                            {"DeepSeek-V3 on 2,048 H800", 2048, deepseek}};

int run_space(const Space& space, int threads, plan::Objective objective, bool pareto) {
  const io::ReadRun read = io::read_run(io::run_input_from_json(space.run), catalog::builtin_catalog());
  if (!read.ok()) {
    for (const Diagnostic& problem : read.problems) {
      std::fputs(fmt::format("{}: {}: {}\n", space.name, problem.pointer, problem.message).c_str(), stderr);
    }
    return 1;
  }
  plan::SearchSpace all;
  all.num_gpus = {space.num_gpus};
  plan::SearchOptions options;
  options.threads = threads;
  options.objective = objective;
  options.pareto = pareto;
  const long before = test::allocations();
  const plan::SearchResult result = plan::search(plan::search_base(read.draft, read.run), read.run, all, options);
  const auto allocations = static_cast<double>(test::allocations() - before);
  const plan::SearchCounts& c = result.counts;
  std::fputs(fmt::format("{:<42} {:>12} layouts ({} but for overlap), {} with a memory verdict ({} fit), {} simulated, "
                         "{} cut: {:.3f} s, {:.2f} M layouts/s/core decided, {:.2f} M/s/core estimated, {:.4f} "
                         "allocations a layout\n",
                         space.name, c.layouts, c.without_overlap, c.estimated, c.fit, c.simulated, c.cut_by_bound,
                         result.wall_s, static_cast<double>(c.layouts) / result.wall_s / threads / 1e6,
                         static_cast<double>(c.estimated) / result.wall_s / threads / 1e6,
                         allocations / static_cast<double>(c.layouts))
                 .c_str(),
             stdout);
  if (!result.best.empty()) {
    const plan::LayoutChoice& b = result.best.front().choice;
    std::fputs(fmt::format("    best: {:.3f} s, TP{} PP{}x{} CP{} EP{}x{} mbs {} {} zero{} {} recompute {} sp {}\n",
                           result.best.front().step_s, b.tensor, b.pipeline, b.virtual_pipeline, b.context, b.expert,
                           b.expert_tensor, b.micro_batch_size, name(b.schedule), b.zero_stage, name(b.fsdp),
                           static_cast<int>(b.recompute.mode), b.sequence_parallel)
                   .c_str(),
               stdout);
  }
  return 0;
}

}  // namespace

int main(int count, char** words) {
  const int threads = count > 1 ? std::atoi(words[1]) : 2;
  const int only = count > 2 ? std::atoi(words[2]) : -1;
  const auto objective = count > 3 ? static_cast<plan::Objective>(std::atoi(words[3])) : plan::Objective::throughput;
  int failures = 0;
  int index = 0;
  for (const Space& space : spaces) {
    if (only < 0 || only == index) failures += run_space(space, threads, objective, count > 4);
    ++index;
  }
  return failures == 0 ? 0 : 1;
}
