// Element types of weight files and of arithmetic, and the exact conversions to float32.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace vit::internal {

enum class Dtype { f32, f16, bf16, f64, i8, u8, i16, u16, i32, u32, i64, u64, boolean, other };
// other: carried by a file format (8-bit floats, complex), never computed with

constexpr std::size_t dtype_bytes(Dtype dtype) {
  switch (dtype) {
    case Dtype::f64:
    case Dtype::i64:
    case Dtype::u64: return 8;
    case Dtype::f32:
    case Dtype::i32:
    case Dtype::u32: return 4;
    case Dtype::f16:
    case Dtype::bf16:
    case Dtype::i16:
    case Dtype::u16: return 2;
    case Dtype::i8:
    case Dtype::u8:
    case Dtype::boolean: return 1;
    case Dtype::other: return 0;
  }
  return 0;
}

constexpr const char* to_string(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32: return "float32";
    case Dtype::f16: return "float16";
    case Dtype::bf16: return "bfloat16";
    case Dtype::f64: return "float64";
    case Dtype::i8: return "int8";
    case Dtype::u8: return "uint8";
    case Dtype::i16: return "int16";
    case Dtype::u16: return "uint16";
    case Dtype::i32: return "int32";
    case Dtype::u32: return "uint32";
    case Dtype::i64: return "int64";
    case Dtype::u64: return "uint64";
    case Dtype::boolean: return "bool";
    case Dtype::other: return "other";
  }
  return "unknown";
}

constexpr bool is_floating(Dtype dtype) {
  return dtype == Dtype::f32 || dtype == Dtype::f16 || dtype == Dtype::bf16 || dtype == Dtype::f64;
}

/// bfloat16 is the upper half of a float32: exact.
constexpr float bf16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// IEEE binary16 to float32, exact, with subnormals, infinities and NaN. Branch-free: compilers
/// vectorize loops over it.
constexpr float f16_to_float(std::uint16_t bits) {
  constexpr std::uint32_t kBias = std::uint32_t{127 - 15} << 23;
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t exponent = bits & 0x7C00u;
  const std::uint32_t shifted = static_cast<std::uint32_t>(bits & 0x7FFFu) << 13;
  const std::uint32_t normal = shifted + kBias + (exponent == 0x7C00u ? kBias : 0u);
  const float subnormal = static_cast<float>(static_cast<std::int32_t>(bits & 0x3FFu)) * 0x1p-24f;
  return std::bit_cast<float>(sign | (exponent == 0 ? std::bit_cast<std::uint32_t>(subnormal) : normal));
}

/// float32 to bfloat16, round half to even; NaN stays NaN.
constexpr std::uint16_t float_to_bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

/// float32 to IEEE binary16, round half to even; 65520 and more are infinite, NaN stays NaN.
constexpr std::uint16_t float_to_f16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return static_cast<std::uint16_t>(sign | 0x7E00u);
  if (magnitude >= 0x477FF000u) return static_cast<std::uint16_t>(sign | 0x7C00u);
  if (magnitude < 0x38800000u) {  // below 2^-14: the last place of 0.5 is 2^-24, as for subnormals
    const float sum = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(sum) - 0x3F000000u));
  }
  return static_cast<std::uint16_t>(sign |
                                    ((magnitude - 0x38000000u + 0xFFFu + ((magnitude >> 13) & 1u)) >> 13));
}

}  // namespace vit::internal
