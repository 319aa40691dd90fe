// Products of whole numbers, the part of a kernel table for linear layers in int8. Letters: M = rows, N =
// output columns, K = input columns, G = groups of K.
//
// A weight has one scale per output column and group of kInt8Group columns of K, an input row one per group:
//   w[n][k] = weight_scale[n][g(k)] q[n][k],   x[m][k] = step[m][g(k)] (q[m][k] - zero[m][g(k)]),
// q[n][k] whole in [-127, 127]. Products of int16 pairs hold the weights in 16 bits anyway, so the inputs use
// all of theirs: q[m][k] in [-L, L], L = 32767, and zero = 0. Products of bytes have few steps, which are
// laid over what the group holds: q[m][k] in [0, 255] from its lowest number, or 0, to its highest. Where two
// of them are added in 16 bits, neighbours q[n][2i] and q[n][2i + 1] must not be large together; a group
// where they would be gets a larger scale, and nothing saturates. Sums over a group are exact in int32; those
// of the groups are added in float32, in order. Short groups keep a channel that is far larger than the
// others from taking the precision of a whole row.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vit::internal::kernels {

struct Epilogue;

constexpr std::size_t kInt8Group = 192;
static_assert(kInt8Group * 127 * 32'767 <= std::size_t{INT32_MAX});

constexpr std::size_t int8_groups(std::size_t in_features) {
  return (in_features + kInt8Group - 1) / kInt8Group;
}

/// How the whole numbers of a group of a row stand for numbers: x = step (q - zero).
struct InputScale {
  float step = 0.0f;
  float zero = 0.0f;  // whole
  friend bool operator==(const InputScale&, const InputScale&) = default;
};

/// A step is at most the largest magnitude / input_largest, halves go to even, 0 is kept exactly. A group
/// without magnitude above 1e-30 counts as zero; one that is not finite gets the step NaN, so that what is
/// computed from it is NaN.
struct QuantiseArgs {
  const float* in = nullptr;  // (M, K)
  std::size_t in_stride = 0;
  std::size_t rows = 0;
  std::size_t in_features = 0;
  std::byte* out = nullptr;      // (M, row_bytes(K)), 64-byte aligned
  InputScale* scales = nullptr;  // (M, G)
};

struct Int8PackArgs {
  const std::int8_t* weight = nullptr;  // (N, K)
  const float* scales = nullptr;        // (N, G)
  std::size_t out_features = 0;
  std::size_t in_features = 0;
  std::byte* packed = nullptr;  // packed_bytes(N rounded up to panels, K), 64-byte aligned
};

/// out = epilogue(x W^T) for the columns [column_begin, column_end) of the output.
struct Int8GemmArgs {
  const std::byte* in = nullptr;          // (M, row_bytes(K)) as written by quantise of the same table
  const InputScale* in_scales = nullptr;  // (M, G)
  std::size_t rows = 0;
  const std::byte* packed = nullptr;  // W (N, K) as written by pack of the same table, 64-byte aligned
  std::size_t in_features = 0;        // K > 0
  std::size_t column_begin = 0;       // a multiple of panel_columns
  std::size_t column_end = 0;         // at most N
  float* out = nullptr;               // (M, N)
  std::size_t out_stride = 0;
  const Epilogue* epilogue = nullptr;  // pointers to column 0, row 0
};

struct Int8Kernels {
  const char* description;
  int input_largest;  // steps from 0 to the largest magnitude, at least: 32767, or 127 for products of bytes
  int pair_largest;   // that the sum of the neighbours q[n][2i] and q[n][2i + 1] may be, either sign
  /// Bytes of a quantised row, a multiple of 64.
  std::size_t (*row_bytes)(std::size_t in_features) noexcept;
  /// Bytes of `columns` packed columns, a multiple of 64; columns is a multiple of panel_columns of the
  /// table.
  std::size_t (*packed_bytes)(std::size_t columns, std::size_t in_features) noexcept;
  void (*pack)(const Int8PackArgs& args) noexcept;
  void (*quantise)(const QuantiseArgs& args) noexcept;
  void (*gemm)(const Int8GemmArgs& args) noexcept;
};

}  // namespace vit::internal::kernels
