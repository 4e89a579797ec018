// Number formats by their bits: range and precision follow from the widths of the fields.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace shardplan {

/// Which codes of the highest exponent are no numbers.
///   ieee: all of them (infinity and NaN).  one_nan: the one with all fraction bits set (OCP FP8 e4m3).
///   none: every code is a number (OCP MX e2m1).
enum class SpecialCodes : std::uint8_t { ieee, one_nan, none };

struct NumberFormat {
  std::string_view name;
  int exponent_bits = 0;
  int fraction_bits = 0;
  SpecialCodes specials = SpecialCodes::ieee;
  std::string_view use;
  std::string_view source;

  constexpr int bits() const noexcept { return 1 + exponent_bits + fraction_bits; }
  constexpr int bias() const noexcept { return (1 << (exponent_bits - 1)) - 1; }
  constexpr double max() const noexcept {
    const int top = (1 << exponent_bits) - 1 - bias() - (specials == SpecialCodes::ieee ? 1 : 0);
    const double last = specials == SpecialCodes::one_nan ? 2 * epsilon() : epsilon();
    return (2 - last) * power_of_two(top);
  }
  constexpr double min_normal() const noexcept { return power_of_two(1 - bias()); }
  constexpr double min_subnormal() const noexcept { return power_of_two(1 - bias() - fraction_bits); }
  /// Step from 1 to the next number.
  constexpr double epsilon() const noexcept { return power_of_two(-fraction_bits); }

  static constexpr double power_of_two(int exponent) noexcept {
    double value = 1;
    for (int i = 0; i < exponent; ++i) value *= 2;
    for (int i = 0; i > exponent; --i) value /= 2;
    return value;
  }
};

inline constexpr std::array<NumberFormat, 7> number_formats = {{
    {"fp32", 8, 23, SpecialCodes::ieee, "master weights, optimizer states, reductions", "IEEE 754-2019 binary32"},
    {"tf32", 8, 10, SpecialCodes::ieee, "inputs of fp32 matrix products; stored as fp32 (4 bytes)",
     "NVIDIA A100 whitepaper 2020"},
    {"bf16", 8, 7, SpecialCodes::ieee, "weights, activations, gradients", "Kalamkar et al. 2019 (arXiv:1905.12322)"},
    {"fp16", 5, 10, SpecialCodes::ieee, "weights, activations, gradients with loss scaling", "IEEE 754-2019 binary16"},
    {"fp8-e4m3", 4, 3, SpecialCodes::one_nan, "inputs of matrix products, forward",
     "Micikevicius et al. 2022 (arXiv:2209.05433)"},
    {"fp8-e5m2", 5, 2, SpecialCodes::ieee, "gradients as inputs of matrix products",
     "Micikevicius et al. 2022 (arXiv:2209.05433)"},
    {"fp4-e2m1", 2, 1, SpecialCodes::none, "nvfp4 and mxfp4 elements, scaled in blocks of 16 and 32",
     "OCP Microscaling Formats v1.0"},
}};

}  // namespace shardplan
