#include "shardplan/io/gpu_file.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "catalog_lookup.hpp"
#include "file_members.hpp"
#include "object_reader.hpp"
#include "shardplan/core/bytes.hpp"
#include "shardplan/io/cluster_file.hpp"
#include "shardplan/physics/measured.hpp"

namespace shardplan::io {
namespace {

/// cudaMemGetInfo's total over the size that nvidia-smi reports, where the former is not known.
constexpr double usable_share = 0.99;

const NumberRange positive = {0, std::nullopt, 1e12};
const NumberRange share = {0, std::nullopt, 1};

void read_memory(ObjectReader& reader, Gpu& gpu) {
  const auto marketed = reader.number("memory_gb", positive, "as sold");
  const auto reported = reader.number("memory_reported_mib", positive, "as the driver reports it");
  const auto usable = reader.number("memory_cuda_gib", positive, "cudaMemGetInfo's total");
  gpu.memory_reported_bytes = reported ? *reported * mib : marketed ? *marketed * 1e9 : usable.value_or(0) * gib;
  gpu.memory_is_estimated = reader.boolean("memory_is_estimated", "memory_cuda_gib is a guess").value_or(!usable);
  gpu.memory_cuda_bytes = usable ? *usable * gib : gpu.memory_reported_bytes * usable_share;
  if (!marketed && !reported && !usable && reader.is_object() && reader.member("memory_gb") == nullptr &&
      reader.member("memory_reported_mib") == nullptr && reader.member("memory_cuda_gib") == nullptr) {
    reader.problem("memory_cuda_gib", "is required where memory_reported_mib and memory_gb are absent");
  }
}

void read_rates(ObjectReader& reader, Gpu& gpu) {
  bool any = false;
  reader.object("dense_tflops", "Dense rates, not the sparse headline.", [&](ObjectReader& table) {
    const auto read = [&](std::string_view key) {
      const double rate = table.number(key, positive, fmt::format("dense {} TFLOP/s", key)).value_or(0);
      any = any || table.member(key) != nullptr;
      return rate * 1e12;
    };
    const auto set = [&](Precision precision, double rate) {
      gpu.peak_flop_per_s[static_cast<std::size_t>(precision)] = rate;
    };
    for (const Precision precision :
         {Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16, Precision::fp8})
      set(precision, read(name(precision)));
    // AMD's four-bit format is MXFP4: NVFP4 does not run there.
    const double fp4 = read("fp4");
    set(Precision::nvfp4, gpu.vendor == "AMD" ? 0.0 : fp4);
    read("int8");
  });
  const bool there = reader.member("dense_tflops") != nullptr;
  reader.require("dense_tflops");
  if (there && !any) reader.problem("dense_tflops", "needs a rate of fp32, tf32, fp16, bf16, fp8 or fp4");
}

void read_capability(ObjectReader& reader, Gpu& gpu) {
  const auto text = reader.text("compute_capability", "CUDA, as in \"9.0\"");
  if (!text) return;
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  const std::size_t point = text->find('.');
  if (point != std::string::npos && point >= 1 && point <= 2 && text->size() == point + 2 && digit(text->back()) &&
      digit(text->front()) && digit((*text)[point - 1])) {
    gpu.major = std::stoi(text->substr(0, point));
    gpu.minor = text->back() - '0';
    return;
  }
  reader.problem("compute_capability", fmt::format("\"{}\" is not two numbers as in \"9.0\"", *text));
}

void read_gemm(ObjectReader& reader, Gpu& gpu) {
  reader.object("gemm_efficiency", "How fast matrix products run.", [&](ObjectReader& curve) {
    GemmEfficiency& gemm = gpu.gemm;
    const NumberRange whole = {std::nullopt, 0, 1};
    const NumberRange some = {std::nullopt, 0, 1e6};
    gemm.peak_fraction = curve.number("peak_fraction", share, "of the peak").value_or(gemm.peak_fraction);
    gemm.k0 = curve.number("k0", some, "elements of k lost to start-up").value_or(gemm.k0);
    gemm.wave_quantisation =
        curve.number("wave_quantisation", whole, "0 none, 1 full").value_or(gemm.wave_quantisation);
    gemm.launch_s = curve.number("launch_us", some, "of a kernel").value_or(gemm.launch_s * 1e6) * 1e-6;
    gemm.memory_fraction = curve.number("memory_fraction", share, "of the bandwidth").value_or(gemm.memory_fraction);
    gemm.sustained = curve.number("sustained", {0, std::nullopt, 2}, "of a long run").value_or(gemm.sustained);
    gemm.measured = curve.boolean("measured", "not a generic curve").value_or(false);
    curve.text("source", "where from");
  });
}

void read_attention(ObjectReader& reader, Gpu& gpu) {
  reader.object("attention_efficiency", "How fast attention runs.", [&](ObjectReader& kernels) {
    const auto read = [&](std::string_view name, AttentionEfficiency& kernel) {
      kernels.object(name, "share of the peak", [&](ObjectReader& curve) {
        kernel.forward = curve.number("forward", share, "of the forward pass").value_or(kernel.forward);
        kernel.backward = curve.number("backward", share, "of the backward pass").value_or(kernel.backward);
        kernel.s0 = curve.number("s0", {std::nullopt, 0, 1e6}, "length at which the share is half").value_or(kernel.s0);
      });
    };
    // A kernel that was not measured runs as FlashAttention-2 does.
    read("flash-v2", gpu.attention);
    gpu.attention_v1 = gpu.attention;
    gpu.attention_v3 = gpu.attention;
    read("flash-v1", gpu.attention_v1);
    read("flash-v3", gpu.attention_v3);
    kernels.boolean("measured", "not a generic curve");
    kernels.text("source", "where from");
  });
}

void read_inter_node(ObjectReader& reader, Gpu& gpu) {
  reader.object("inter_node_efficiency", "What collectives reach across nodes.", [&](ObjectReader& fabrics) {
    for (std::size_t i = 0; i < names_of<FabricType>.size(); ++i) {
      double& efficiency = gpu.inter_node_efficiency[i];
      const auto known = fabrics.number(names_of<FabricType>[i], share, "share of the NIC's rate");
      efficiency = known.value_or(efficiency);
      gpu.fabric_measured[i] = known.has_value();
    }
    fabrics.text("source", "where from");
  });
}

/// Which measured tables hold for it: its own, or those of the GPU that it is like.
void read_tables(ObjectReader& reader, Gpu& gpu) {
  const auto like = reader.text("measured_like", "the built-in GPU whose measured tables hold for this one, scaled");
  const int own = measured_table(gpu.name);
  const int other = like ? measured_table(*like) : no_measured_table;
  if (like && other == no_measured_table) {
    reader.problem("measured_like", fmt::format("\"{}\" has no measured tables", *like),
                   fmt::format("{} have some", measured_gpus()));
  }
  gpu.gemm.table = has_gemm_table(own) ? own : has_gemm_table(other) ? other : no_measured_table;
  gpu.attention_table = has_attention_table(own) ? own : has_attention_table(other) ? other : no_measured_table;
  gpu.collective_table = has_collective_table(own) ? own : has_collective_table(other) ? other : no_measured_table;
}

}  // namespace

double pcie_bandwidth(int generation) noexcept {
  switch (generation) {
    case 3: return 13e9;
    case 4: return 26e9;
    case 5: return 52e9;
    case 6: return 104e9;
    default: return 0;
  }
}

void read_gpu_members(ObjectReader& reader, Gpu& gpu) {
  constexpr std::int64_t most = 1'000'000;
  gpu.name = reader.text("name").value_or("");
  reader.require("name");
  gpu.vendor = reader.text("vendor", "maker").value_or("");
  gpu.architecture = reader.text("architecture", "generation").value_or("");
  read_memory(reader, gpu);
  gpu.memory_bandwidth = reader.number("memory_bandwidth_gb_s", positive).value_or(0) * 1e9;
  reader.require("memory_bandwidth_gb_s");
  read_rates(reader, gpu);
  gpu.link_type = reader.text("scale_up_type", "link inside a node").value_or("");
  gpu.link_bandwidth =
      reader.number("scale_up_gb_s_per_direction", positive, "per GPU and direction").value_or(0) * 1e9;
  gpu.scale_up_domain =
      static_cast<int>(reader.integer("scale_up_domain", 1, most, "GPUs that the link joins").value_or(1));
  gpu.multiprocessors =
      static_cast<int>(reader.integer("multiprocessors", 1, most, "SMs or compute units").value_or(0));
  read_capability(reader, gpu);
  gpu.pcie_bandwidth =
      pcie_bandwidth(static_cast<int>(reader.integer("pcie_gen", 3, 6, "PCIe generation").value_or(0)));
  const auto link = reader.number("host_link_gb_s", positive, "to a CPU that more than PCIe joins (NVLink-C2C)");
  if (link) gpu.pcie_bandwidth = *link * 1e9;
  read_gemm(reader, gpu);
  read_attention(reader, gpu);
  read_inter_node(reader, gpu);
  read_tables(reader, gpu);
  gpu.source = reader.text("source", "where the numbers are from").value_or("");
  gpu.trust = reader.text("trust", "A, B or C").value_or("");
  reader.accept({"aliases", "tdp_w", "notes"});
}

Result<Gpu> read_gpu(const nlohmann::json& object, std::string_view file, std::string_view pointer) {
  Result<Gpu> result;
  ObjectReader reader(object, file, std::string(pointer), result.problems);
  read_gpu_members(reader, result.value);
  reader.finish();
  return result;
}

Result<Gpu> find_gpu(std::string_view name, std::string_view file, std::string_view pointer,
                     const CatalogSource& catalog) {
  Result<Gpu> result;
  const auto object = look_up(CatalogKind::gpus, name, file, pointer, catalog, result.problems);
  if (object) result = read_gpu(*object, name, "");
  return result;
}

}  // namespace shardplan::io
