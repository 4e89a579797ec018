// What a search costs, over the spaces that docs/search.md names: layouts, how they were decided, seconds, layouts per
// second and core, allocations per layout.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
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
constexpr const char* llama70 = R"({"model":"llama-3.1-70b","cluster":"dgx-h100","num_gpus":1,)"
                                R"("training":{"framework":"megatron","global_batch_size":1024}})";
constexpr const char* llama405 = R"({"model":"llama-3.1-405b","cluster":"dgx-h100","num_gpus":1,)"
                                 R"("training":{"framework":"megatron","seq_length":8192,"global_batch_size":2048}})";
constexpr const char* deepseek = R"({"model":"deepseek-v3","cluster":"hgx-h800","num_gpus":1,)"
                                 R"("training":{"framework":"megatron","precision":"fp8","global_batch_size":15360}})";

/// Calculon (github.com/calculon-ai/calculon) chooses tensor, pipeline and data degrees, interleaving, microbatch,
/// recomputation (full, attention, none), sequence parallelism, overlap of tensor and data traffic, sharded optimizer,
/// and offload of weights, activations and optimizer; it has no context, ZeRO-2/3 or FSDP. 6,582,816 configurations for
/// this run, of which it tries 78 to 257 a second and core.
constexpr const char* calculon =
    R"({"model":{"model_type":"transformer","name":"gpt3-175b","hidden_size":12288,"num_hidden_layers":96,)"
    R"("num_attention_heads":96,"vocab_size":51200,"norm":"layernorm","position":"learned",)"
    R"("max_position_embeddings":2048,"hidden_act":"gelu"},"cluster":"dgx-a100-80gb","num_gpus":1,)"
    R"("training":{"framework":"textbook","attention":"eager","seq_length":2048,"global_batch_size":512}})";

constexpr Space spaces[] = {{"llama-3.1-70b on 128 H100, batch 1024", 128, llama70},
                            {"GPT-3 175B on 512 A100-80GB, batch 512", 512, gpt3},
                            {"Llama-3.1-405B on 16,384 H100, batch 2048", 16384, llama405},
                            {"DeepSeek-V3 on 2,048 H800, batch 15,360", 2048, deepseek},
                            {"GPT-3 175B, the options that Calculon enumerates", 512, calculon}};

plan::SearchSpace space_of(const Space& space) {
  plan::SearchSpace all;
  all.num_gpus = {space.num_gpus};
  if (space.run != calculon) return all;
  all.tensor = std::vector<int>{1, 2, 4, 8, 16, 32};
  all.context = std::vector<int>{1};
  all.schedule = std::vector<ScheduleKind>{ScheduleKind::one_f_one_b, ScheduleKind::interleaved};
  all.zero = std::vector<int>{0, 1};
  all.recompute = std::vector<Recompute>{
      {RecomputeMode::none, 0, 0}, {RecomputeMode::selective, 0, 0}, {RecomputeMode::full, 0, 0}};
  return all;
}

std::string layout_words(const Layout& c) {
  return fmt::format("TP{} PP{}x{} CP{} EP{}x{} mbs {} {} ZeRO-{} {} recompute {} SP {} offload {}{}{}", c.tensor,
                     c.pipeline, c.virtual_pipeline, c.context, c.expert, c.expert_tensor, c.micro_batch_size,
                     name(c.schedule), c.zero_stage, name(c.fsdp), static_cast<int>(c.recompute.mode),
                     c.sequence_parallel, static_cast<int>(c.offload_optimizer), static_cast<int>(c.offload_parameters),
                     static_cast<int>(c.offload_activations));
}

/// `uncut`: most free memory is asked for, which only exact verdicts answer: every layout is estimated.
bool run_space(const Space& space, int threads, bool uncut) {
  const io::ReadRun read = io::read_run(io::run_input_from_json(space.run), catalog::builtin_catalog());
  if (!read.ok()) {
    for (const Diagnostic& problem : read.problems) {
      fmt::print(stderr, "{}: {}: {}\n", space.name, problem.pointer, problem.message);
    }
    return false;
  }
  const plan::SearchSpace all = space_of(space);
  plan::SearchOptions options;
  options.threads = threads;
  if (uncut) options.objective = plan::Objective::headroom;
  const long before = test::allocations();
  const std::clock_t clock = std::clock();
  const plan::SearchResult result = plan::search(plan::search_base(read.draft, read.run), read.run, all, options);
  const long allocations = test::allocations() - before;
  const plan::SearchCounts& c = result.counts;
  const double cores = static_cast<double>(std::clock() - clock) / CLOCKS_PER_SEC;  // of processor, not of the wall
  fmt::print("{}{}\n", space.name, uncut ? ", nothing cut" : "");
  fmt::print("  {} legal layouts, {} but for overlap options\n", c.layouts, c.without_overlap);
  fmt::print("  {} with a memory verdict ({} fit, {} do not), {} simulated, {} cut by a bound\n", c.estimated, c.fit,
             c.does_not_fit, c.simulated, c.cut_by_bound);
  fmt::print(
      "  {:.3f} s on {} threads, {:.3f} s of processor: {:.2f} M layouts/s/core decided, {:.2f} M estimated; {} "
      "allocations, {:.4f} a layout\n",
      result.wall_s, threads, cores, static_cast<double>(c.layouts) / cores / 1e6,
      static_cast<double>(c.estimated) / cores / 1e6, allocations,
      static_cast<double>(allocations) / static_cast<double>(c.layouts));
  if (!result.best.empty()) {
    fmt::print("  best {:.3f} s: {}\n", result.best.front().step_s, layout_words(result.best.front().layout));
  }
  return true;
}

}  // namespace

/// search_bench [THREADS [SPACE]]: all spaces, or one by its number.
int main(int count, char** words) {
  const int threads = count > 1 ? std::max(1, std::atoi(words[1])) : 2;
  const int only = count > 2 ? std::atoi(words[2]) : -1;
  bool fine = true;
  int index = 0;
  for (const Space& space : spaces) {
    if (only < 0 || only == index) {
      fine = run_space(space, threads, false) && fine;
      // Of the largest space the uncut run would take a minute.
      if (space.run != deepseek) fine = run_space(space, threads, true) && fine;
    }
    ++index;
  }
  return fine ? 0 : 1;
}
