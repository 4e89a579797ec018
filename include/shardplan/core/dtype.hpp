// Number formats: storage width and what a run may compute in.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "shardplan/core/names.hpp"

namespace shardplan {

/// Storage types of states and activations.
enum class DType : std::uint8_t { fp32, bf16, fp16, fp8 };
template <>
inline constexpr std::array<std::string_view, 4> names_of<DType> = {"fp32", "bf16", "fp16", "fp8"};

/// Bytes per element.
constexpr double bytes_of(DType type) noexcept {
  constexpr std::array<double, 4> width = {4, 2, 2, 1};
  return width[static_cast<std::size_t>(type)];
}

/// What matrix products run in (`training.precision`).
enum class Precision : std::uint8_t { fp32, tf32, fp16, bf16, fp8, nvfp4 };
template <>
inline constexpr std::array<std::string_view, 6> names_of<Precision> = {"fp32", "tf32", "fp16", "bf16", "fp8", "nvfp4"};

/// The type activations are kept in: fp32 and tf32 runs keep four bytes, fp8 and nvfp4 runs keep bf16.
constexpr DType activation_dtype(Precision precision) noexcept {
  switch (precision) {
    case Precision::fp32:
    case Precision::tf32: return DType::fp32;
    case Precision::fp16: return DType::fp16;
    default: return DType::bf16;
  }
}

constexpr bool is_16_bit_or_less(Precision precision) noexcept {
  return precision != Precision::fp32 && precision != Precision::tf32;
}

/// How a frozen base weight is stored (`peft.quant`).
enum class Quantization : std::uint8_t { none, nf4, int8, gptq4 };
template <>
inline constexpr std::array<std::string_view, 4> names_of<Quantization> = {"none", "nf4", "int8", "gptq4"};

}  // namespace shardplan
