// Every hot loop of the library behind one table of function pointers. A table is chosen once, by name or by
// what the machine can do; callers split the work over threads. Kernels know rows, columns, tiles and heads,
// nothing of models. Letters: M = rows, N = output columns, K = input columns, T = tokens, d = width of a
// head. All matrices are row-major with a stride between rows, counted in floats. No function of a table
// allocates, throws or keeps state.
//
// Within one table every number is the result of one fixed sequence of operations: it does not depend on how
// rows, columns, heads or queries are split into calls. Between tables results differ by rounding.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "vit/base/activation.h"
#include "vit/base/rope_pairing.h"
#include "vit/kernels/bf16.h"
#include "vit/kernels/int8.h"
#include "vit/kernels/resample.h"

namespace vit::internal::kernels {

/// What follows a matrix product while a tile is still in registers:
/// out = residual + scale * (multiplier * activation(product + bias)); a null pointer leaves its term out.
struct Epilogue {
  const float* bias = nullptr;  // (N)
  Activation activation = Activation::none;
  const float* multiplier = nullptr;  // (M, N), may be the output
  std::size_t multiplier_stride = 0;
  const float* scale = nullptr;     // (N)
  const float* residual = nullptr;  // (M, N), may be the output
  std::size_t residual_stride = 0;
};

/// out = epilogue(in W^T) for the columns [column_begin, column_end) of the output.
struct GemmArgs {
  const float* in = nullptr;  // (M, K), must not overlap out
  std::size_t in_stride = 0;
  std::size_t rows = 0;
  const float* packed = nullptr;  // W (N, K) as written by pack_weight of the same table, 64-byte aligned
  std::size_t in_features = 0;    // K > 0
  std::size_t column_begin = 0;   // a multiple of panel_columns
  std::size_t column_end = 0;     // at most N
  float* out = nullptr;           // (M, N)
  std::size_t out_stride = 0;
  Epilogue epilogue{};  // pointers to column 0, row 0
};

/// out = (in - mean) / sqrt(variance + eps) * gamma + beta, row by row; variance is the biased one.
struct LayerNormArgs {
  const float* in = nullptr;  // (rows, columns), may be out
  std::size_t in_stride = 0;
  std::size_t rows = 0;
  std::size_t columns = 0;
  const float* gamma = nullptr;  // (columns)
  const float* beta = nullptr;   // (columns)
  float eps = 0.0f;
  float* out = nullptr;
  std::size_t out_stride = 0;
};

/// Rows that a kernel changes in place.
struct RowsArgs {
  float* data = nullptr;  // (rows, columns)
  std::size_t stride = 0;
  std::size_t rows = 0;
  std::size_t columns = 0;
};

/// Factors of a rotary embedding for one head. Angle j of a token turns the pair that `pairing` names:
/// x_p' = x_p cos - x_q sin,  x_q' = x_q cos + x_p sin. Null pointers: nothing is turned.
struct Rotation {
  const float* cos = nullptr;  // (tokens - num_prefix, d / 2), contiguous
  const float* sin = nullptr;
  std::size_t num_prefix = 0;  // leading tokens that are not turned
  RopePairing pairing = RopePairing::neighbours;
};

/// Keys and values of one head of one image, of which the tokens [first_token, last_token) are packed.
struct KeyValueArgs {
  const float* keys = nullptr;  // (T, d)
  std::size_t key_stride = 0;
  const float* values = nullptr;  // (T, d)
  std::size_t value_stride = 0;
  std::size_t num_tokens = 0;   // T
  std::size_t first_token = 0;  // a multiple of 4
  std::size_t last_token = 0;   // a multiple of 4, or T
  std::size_t head_dim = 0;
  Rotation rotation{};       // of the keys
  float* packed = nullptr;   // attention_packed_floats(T, d) floats, 64-byte aligned
  float* scratch = nullptr;  // attention_scratch_floats(d) floats of this thread, 64-byte aligned
};

/// Queries of one head of one image against packed keys and values: out = softmax(scale q k^T) v.
struct AttentionArgs {
  const float* queries = nullptr;  // (num_queries, d): tokens first_query, first_query + 1, ...
  std::size_t query_stride = 0;
  /// Token index of row 0, for the rotation; a multiple of 32 keeps tiles full
  std::size_t first_query = 0;
  std::size_t num_queries = 0;
  float scale = 1.0f;
  Rotation rotation{};            // of the queries
  const float* packed = nullptr;  // written by `pack` of the same AttentionKernels
  std::size_t num_tokens = 0;     // T > 0
  std::size_t head_dim = 0;
  float* out = nullptr;  // (num_queries, d); for `probabilities` (num_queries, T)
  std::size_t out_stride = 0;
  float* scratch = nullptr;  // attention_scratch_floats(d) floats of this thread, 64-byte aligned
};

struct AttentionKernels {
  void (*pack)(const KeyValueArgs& args) noexcept;
  void (*attend)(const AttentionArgs& args) noexcept;
  /// The softmax itself, one row of T weights for each query.
  void (*probabilities)(const AttentionArgs& args) noexcept;
};

struct KernelTable {
  const char* name;           // "avx2"
  const char* description;    // "AVX2 and FMA: 8 lanes"
  std::size_t panel_columns;  // output columns that lie together in a packed weight
  std::size_t tile_rows;      // rows that gemm computes together

  /// weight (N, K) with `stride` -> packed_weight_floats(table, N, K) floats, 64-byte aligned.
  void (*pack_weight)(const float* weight, std::size_t stride, std::size_t out_features,
                      std::size_t in_features, float* packed) noexcept;
  void (*gemm)(const GemmArgs& args) noexcept;
  const Bf16Kernels* bf16;
  const Int8Kernels* int8;
  void (*layer_norm)(const LayerNormArgs& args) noexcept;
  ResampleKernels resample;
  void (*softmax)(const RowsArgs& args) noexcept;
  void (*activate)(const RowsArgs& args, Activation activation) noexcept;
  /// data += addend, (rows, columns).
  void (*add)(const RowsArgs& args, const float* addend, std::size_t addend_stride) noexcept;
  /// Turns rows (tokens, d) of one head.
  void (*rotate)(const RowsArgs& args, const Rotation& rotation) noexcept;

  std::size_t (*attention_packed_floats)(std::size_t num_tokens, std::size_t head_dim) noexcept;
  std::size_t (*attention_scratch_floats)(std::size_t head_dim) noexcept;
  AttentionKernels attention;
  /// With queries, keys, values and weights rounded to bfloat16, softmax and sums in float32, where this
  /// table has products of bfloat16 pairs; `attention` elsewhere.
  AttentionKernels bf16_attention;
  /// The attention between layers in int8: queries and keys rounded to bfloat16 where bf16_attention rounds,
  /// else whole numbers of 16 bits where their products are faster than those of floats; values and weights
  /// whole numbers of 8 or 16 bits. `attention` where products of whole numbers are no faster.
  AttentionKernels int8_attention;

  /// Runs `rounds` rounds of independent multiply-adds in registers and returns the floating-point operations
  /// done; `sink` keeps the compiler from dropping them.
  double (*multiply_adds)(std::size_t rounds, float* sink) noexcept;
};

/// Floats that a weight (N, K) occupies once packed.
constexpr std::size_t packed_weight_floats(const KernelTable& table, std::size_t out_features,
                                           std::size_t in_features) {
  return (out_features + table.panel_columns - 1) / table.panel_columns * table.panel_columns * in_features;
}

/// Tables that this machine can run, fastest first; the last one is "reference", naive loops in double
/// precision.
const std::vector<const KernelTable*>& available_kernels();
/// The table of that name. Throws Error where no such table was built or this machine cannot run it.
const KernelTable& find_kernels(std::string_view name);
/// The table named by the environment variable VIT_KERNELS, else the fastest. Throws Error as find_kernels
/// does.
const KernelTable& default_kernels();

}  // namespace vit::internal::kernels
