#include "shardplan/io/gpu_file.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "catalog_lookup.hpp"
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
  const auto marketed = reader.number("memory_gb", positive);
  const auto reported = reader.number("memory_reported_mib", positive);
  const auto usable = reader.number("memory_cuda_gib", positive);
  gpu.memory_reported_bytes = reported ? *reported * mib : marketed ? *marketed * 1e9 : usable.value_or(0) * gib;
  gpu.memory_is_estimated = reader.boolean("memory_is_estimated").value_or(!usable);
  gpu.memory_cuda_bytes = usable ? *usable * gib : gpu.memory_reported_bytes * usable_share;
  if (!marketed && !reported && !usable && reader.is_object() && reader.member("memory_gb") == nullptr &&
      reader.member("memory_reported_mib") == nullptr && reader.member("memory_cuda_gib") == nullptr) {
    reader.problem("memory_cuda_gib", "is required where memory_reported_mib and memory_gb are absent");
  }
}

void read_rates(ObjectReader& reader, Gpu& gpu) {
  const nlohmann::json* rates = reader.member("dense_tflops");
  if (rates == nullptr) {
    reader.require("dense_tflops");
    return;
  }
  ObjectReader table(*rates, reader.file(), reader.pointer_of("dense_tflops"), reader.problems());
  bool any = false;
  const auto read = [&](std::string_view key) {
    const double rate = table.number(key, positive).value_or(0);
    any = any || table.member(key) != nullptr;
    return rate * 1e12;
  };
  const auto set = [&](Precision precision, double rate) {
    gpu.peak_flop_per_s[static_cast<std::size_t>(precision)] = rate;
  };
  set(Precision::fp32, read("fp32"));
  set(Precision::tf32, read("tf32"));
  set(Precision::fp16, read("fp16"));
  set(Precision::bf16, read("bf16"));
  set(Precision::fp8, read("fp8"));
  // AMD's four-bit format is MXFP4: NVFP4 does not run there.
  const double fp4 = read("fp4");
  set(Precision::nvfp4, gpu.vendor == "AMD" ? 0.0 : fp4);
  read("int8");
  table.finish();
  if (!any) reader.problem("dense_tflops", "needs a rate of fp32, tf32, fp16, bf16, fp8 or fp4");
}

void read_capability(ObjectReader& reader, Gpu& gpu) {
  const auto text = reader.text("compute_capability");
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
  const nlohmann::json* value = reader.member("gemm_efficiency");
  if (value == nullptr) return;
  ObjectReader curve(*value, reader.file(), reader.pointer_of("gemm_efficiency"), reader.problems());
  GemmEfficiency& gemm = gpu.gemm;
  gemm.peak_fraction = curve.number("peak_fraction", share).value_or(gemm.peak_fraction);
  gemm.k0 = curve.number("k0", {std::nullopt, 0, 1e6}).value_or(gemm.k0);
  gemm.wave_quantisation = curve.number("wave_quantisation", {std::nullopt, 0, 1}).value_or(gemm.wave_quantisation);
  gemm.launch_s = curve.number("launch_us", {std::nullopt, 0, 1e6}).value_or(gemm.launch_s * 1e6) * 1e-6;
  gemm.memory_fraction = curve.number("memory_fraction", share).value_or(gemm.memory_fraction);
  gemm.sustained = curve.number("sustained", {0, std::nullopt, 2}).value_or(gemm.sustained);
  gemm.measured = curve.boolean("measured").value_or(false);
  curve.text("source");
  curve.finish();
}

void read_attention(ObjectReader& reader, Gpu& gpu) {
  const nlohmann::json* value = reader.member("attention_efficiency");
  if (value == nullptr) return;
  ObjectReader kernels(*value, reader.file(), reader.pointer_of("attention_efficiency"), reader.problems());
  const auto read = [&](std::string_view name, AttentionEfficiency& kernel) {
    const nlohmann::json* entry = kernels.member(name);
    if (entry == nullptr) return;
    ObjectReader curve(*entry, reader.file(), kernels.pointer_of(name), reader.problems());
    kernel.forward = curve.number("forward", share).value_or(kernel.forward);
    kernel.backward = curve.number("backward", share).value_or(kernel.backward);
    kernel.s0 = curve.number("s0", {std::nullopt, 0, 1e6}).value_or(kernel.s0);
    curve.finish();
  };
  // A kernel that was not measured runs as FlashAttention-2 does.
  read("flash-v2", gpu.attention);
  gpu.attention_v1 = gpu.attention;
  gpu.attention_v3 = gpu.attention;
  read("flash-v1", gpu.attention_v1);
  read("flash-v3", gpu.attention_v3);
  kernels.boolean("measured");
  kernels.text("source");
  kernels.finish();
}

void read_inter_node(ObjectReader& reader, Gpu& gpu) {
  const nlohmann::json* value = reader.member("inter_node_efficiency");
  if (value == nullptr) return;
  ObjectReader fabrics(*value, reader.file(), reader.pointer_of("inter_node_efficiency"), reader.problems());
  for (std::size_t i = 0; i < names_of<FabricType>.size(); ++i) {
    double& efficiency = gpu.inter_node_efficiency[i];
    const auto known = fabrics.number(names_of<FabricType>[i], share);
    efficiency = known.value_or(efficiency);
    gpu.fabric_measured[i] = known.has_value();
  }
  fabrics.text("source");
  fabrics.finish();
}

/// Which measured tables hold for it: its own, or those of the GPU that it is like.
void read_tables(ObjectReader& reader, Gpu& gpu) {
  const auto like = reader.text("measured_like");
  const int own = measured_table(gpu.name);
  const int other = like ? measured_table(*like) : no_table;
  if (like && other == no_table) {
    reader.problem("measured_like", fmt::format("\"{}\" has no measured tables", *like),
                   fmt::format("{} have some", measured_gpus()));
  }
  gpu.gemm.table = has_gemm_table(own) ? own : has_gemm_table(other) ? other : no_table;
  gpu.attention_table = has_attention_table(own) ? own : has_attention_table(other) ? other : no_table;
  gpu.collective_table = has_collective_table(own) ? own : has_collective_table(other) ? other : no_table;
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

Result<Gpu> read_gpu(const nlohmann::json& object, std::string_view file, std::string_view pointer) {
  Result<Gpu> result;
  Gpu& gpu = result.value;
  ObjectReader reader(object, file, std::string(pointer), result.problems);
  gpu.name = reader.text("name").value_or("");
  reader.require("name");
  gpu.vendor = reader.text("vendor").value_or("");
  gpu.architecture = reader.text("architecture").value_or("");
  read_memory(reader, gpu);
  gpu.memory_bandwidth = reader.number("memory_bandwidth_gb_s", positive).value_or(0) * 1e9;
  reader.require("memory_bandwidth_gb_s");
  read_rates(reader, gpu);
  gpu.link_type = reader.text("scale_up_type").value_or("");
  gpu.link_bandwidth = reader.number("scale_up_gb_s_per_direction", positive).value_or(0) * 1e9;
  gpu.scale_up_domain = static_cast<int>(reader.integer("scale_up_domain", 1, 1'000'000).value_or(1));
  gpu.multiprocessors = static_cast<int>(reader.integer("multiprocessors", 1, 1'000'000).value_or(0));
  read_capability(reader, gpu);
  gpu.pcie_bandwidth = pcie_bandwidth(static_cast<int>(reader.integer("pcie_gen", 3, 6).value_or(0)));
  // A CPU that is joined by more than PCIe (NVLink-C2C).
  if (const auto link = reader.number("host_link_gb_s", positive)) gpu.pcie_bandwidth = *link * 1e9;
  read_gemm(reader, gpu);
  read_attention(reader, gpu);
  read_inter_node(reader, gpu);
  read_tables(reader, gpu);
  gpu.source = reader.text("source").value_or("");
  gpu.trust = reader.text("trust").value_or("");
  reader.accept({"aliases", "tdp_w", "notes"});
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
