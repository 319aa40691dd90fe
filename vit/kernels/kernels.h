// Every hot loop of the library through one table of function pointers. A table is chosen once, by name or by
// the machine's capabilities; callers split the work over threads. Kernels handle rows, columns, tiles and
// heads, not models. Letters: M = rows, N = output columns, K = input columns, T = tokens, d = width of a
// head. All matrices are row-major with a stride between rows, counted in floats. No function of a table
// allocates, throws or keeps state.
//
// Within one table every number is the result of one fixed sequence of operations: it does not depend on how
// rows, columns, heads or queries are split into calls. Between tables results differ by rounding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "vit/base/choices.h"
#include "vit/kernels/convolution.h"
#include "vit/kernels/maps.h"
#include "vit/kernels/resample.h"

namespace vit::internal::kernels {

/// The operations after a matrix product while a tile is still in registers:
/// out = residual + scale * (multiplier * activation(product + bias)); a null pointer omits its term.
struct Epilogue {
  const float* bias = nullptr;  // (N)
  Activation activation = Activation::none;
  const float* multiplier = nullptr;  // (M, N), may be the output
  std::size_t multiplier_stride = 0;
  const float* scale = nullptr;     // (N)
  const float* residual = nullptr;  // (M, N), may be the output
  std::size_t residual_stride = 0;
};

/// Columns of K whose products int8 computes in float32 and adds: their inputs are far larger than the others
/// and would take the steps of these (LLM.int8(), Dettmers et al. 2022).
struct OutlierColumns {
  const std::uint32_t* columns = nullptr;
  std::size_t count = 0;
};

/// Converts rows of float32 to the row format of a product.
struct ConvertArgs {
  const float* in = nullptr;  // (rows, K)
  std::size_t in_stride = 0;
  std::size_t rows = 0;
  std::size_t in_features = 0;
  std::byte* out = nullptr;   // (rows, row_bytes(K)), 64-byte aligned
  OutlierColumns outliers{};  // converted as 0; only for kernels that have outliers
};

struct PackArgs {
  const float* weight = nullptr;  // (N, K)
  std::size_t stride = 0;
  std::size_t out_features = 0;
  std::size_t in_features = 0;
  std::byte* packed = nullptr;  // packed_bytes(N rounded up to panels, K), 64-byte aligned
};

/// The second term of a product: x V^T, x the outlier columns of the rows.
struct OutlierProduct {
  OutlierColumns columns{};
  const float* in = nullptr;  // (M, K), the rows in float32
  std::size_t in_stride = 0;
  const float* weight = nullptr;  // (count, N rounded up to panels): V transposed
  std::size_t weight_stride = 0;
};

/// out = epilogue(in W^T) for the columns [column_begin, column_end) of the output.
struct GemmArgs {
  const std::byte* in = nullptr;  // (M, K): rows of float32, or of convert_rows; must not overlap out
  std::size_t in_step = 0;        // bytes from one row to the next
  std::size_t rows = 0;
  /// A row of `in` is one piece, or several of the same length, each piece_step bytes after the one before,
  /// like the rows of a convolution's window. More than one only for float32 rows; rows may overlap.
  std::size_t pieces = 1;
  std::size_t piece_step = 0;
  const std::byte* packed = nullptr;  // W (N, K) as written by pack of the same kernels, 64-byte aligned
  std::size_t in_features = 0;        // K > 0, of all pieces
  std::size_t column_begin = 0;       // a multiple of panel_columns
  std::size_t column_end = 0;         // at most N
  float* out = nullptr;               // (M, N)
  std::size_t out_stride = 0;
  Epilogue epilogue{};        // pointers to column 0, row 0
  OutlierProduct outliers{};  // only for kernels that have outliers
};

/// Products of rows with a weight, in one arithmetic.
struct LinearKernels {
  const char* description;    // "products of int16 pairs"
  std::size_t panel_columns;  // output columns stored together in a packed weight
  std::size_t tile_rows;      // rows computed together by gemm
  /// Bytes of a converted row, a multiple of 64; 0 if gemm takes float32 directly.
  std::size_t (*row_bytes)(std::size_t in_features) noexcept;
  void (*convert_rows)(const ConvertArgs& args) noexcept;  // null if row_bytes is 0
  /// Bytes of `columns` packed columns; columns is a multiple of panel_columns.
  std::size_t (*packed_bytes)(std::size_t columns, std::size_t in_features) noexcept;
  /// False if a weight is not representable; int8 requires finite weights.
  bool (*pack)(const PackArgs& args) noexcept;
  void (*gemm)(const GemmArgs& args) noexcept;
  bool has_outliers = false;  // columns that stay float32
};

/// out = (in - mean) / sqrt(variance + eps) * gamma + beta, row by row; variance is the biased one. Without a
/// beta it is RMSNorm: out = in / sqrt(mean of squares + eps) * gamma.
struct LayerNormArgs {
  const float* in = nullptr;  // (rows, columns), may be out
  std::size_t in_stride = 0;
  std::size_t rows = 0;
  std::size_t columns = 0;
  const float* gamma = nullptr;  // (columns)
  const float* beta = nullptr;   // (columns), or null
  float eps = 0.0f;
  float* out = nullptr;
  std::size_t out_stride = 0;
};

/// Factors of a rotary embedding for one head. Angle j of a token rotates the pair defined by `pairing`:
/// x_p' = x_p cos - x_q sin,  x_q' = x_q cos + x_p sin. With an angle per channel there are d angles, and
/// x_p' uses that of p, x_q' that of q. Null pointers: nothing is rotated.
struct Rotation {
  const float* cos = nullptr;  // (tokens - num_prefix, num_angles), contiguous
  const float* sin = nullptr;
  std::size_t num_prefix = 0;  // leading tokens that are not rotated
  RopePairing pairing = RopePairing::neighbors;
  RopeAngles angles = RopeAngles::per_pair;
};

/// Keys and values of one head of one image, of which the tokens [first_token, last_token) are packed.
struct KeyValueArgs {
  const float* keys = nullptr;  // (T, d), or its rows from first_row on
  std::size_t key_stride = 0;
  const float* values = nullptr;  // alike
  std::size_t value_stride = 0;
  std::size_t num_tokens = 0;   // T
  std::size_t first_token = 0;  // a multiple of 4
  std::size_t last_token = 0;   // a multiple of 4, or T
  std::size_t first_row = 0;    // token of the first row of keys and values
  std::size_t head_dim = 0;
  Rotation rotation{};       // of the keys
  float* packed = nullptr;   // packed_floats(T, d) floats, 64-byte aligned
  float* scratch = nullptr;  // scratch_floats(d) floats of this thread, 64-byte aligned

  const float* key_row(std::size_t token) const { return keys + (token - first_row) * key_stride; }
  const float* value_row(std::size_t token) const { return values + (token - first_row) * value_stride; }
};

/// Queries processed per block of keys and values (126 KB for heads 64 wide) while it is in the L2 cache:
/// at most this many, with 0.5 KB of state each. Each byte read from L3 or memory
/// is used for half as many operations as there are queries: with 128, a core needs less than 4 GB/s.
constexpr std::size_t kQueriesAtOnce = 512;

/// Keys that some queries do not read.
struct HiddenKeys {
  const std::uint8_t* flags = nullptr;  // (queries, keys): not 0 where a key is hidden; null = none is
  std::size_t queries = 0;              // tokens 0 .. queries - 1 as queries
  std::size_t keys = 0;                 // the last of the sequence
};

/// A term of the scores that depends on the positions of query and key: score = scale q . k + bias. It is a
/// number of a table, or comes from two small tables of vectors, one for each axis of a grid of U rows and V
/// columns. Null pointers: no such term.
struct ScoreBias {
  /// bias = table[query_places[i] - key_places[j]]
  const float* table = nullptr;
  const std::int32_t* query_places = nullptr;  // (T)
  const std::int32_t* key_places = nullptr;    // (T)
  /// bias = q_i . (vector of the distance in rows + vector of the distance in columns), where q is neither
  /// rotated nor scaled: (d, axes_stride), transposed. Column e is for a query e - (U - 1) rows above the
  /// key, 2 U - 1 of them, then the same of V; readable kAxesPadding floats beyond the end.
  const float* axes = nullptr;
  std::size_t axes_stride = 0;
  std::size_t num_rows = 0;                // U
  std::size_t num_columns = 0;             // V
  const std::uint16_t* rows = nullptr;     // (T): row of each token, less than U
  const std::uint16_t* columns = nullptr;  // (T): column of each token, less than V
  float* terms = nullptr;                  // axis_terms(U, V) floats of this thread, 64-byte aligned
};
constexpr std::size_t kAxesPadding = 64;

/// Queries whose terms of both axes are kept at a time, and those of a panel on their way.
constexpr std::size_t axis_terms(std::size_t num_rows, std::size_t num_columns) {
  constexpr std::size_t kMostPanel = 64;
  return (kQueriesAtOnce + kMostPanel) * (num_rows + num_columns);
}

/// Queries of one head of one image against packed keys and values: out = softmax(scale q k^T + bias) v.
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
  bool causal = false;   // the query of token i attends only to the keys 0 .. i, as if T were i + 1
  ScoreBias bias{};      // of these queries and all keys
  HiddenKeys hidden{};   // keys whose weights are 0 for some queries; each query reads one key at least
  float* out = nullptr;  // (num_queries, d); for `probabilities` (num_queries, T)
  std::size_t out_stride = 0;
  float* scratch = nullptr;  // scratch_floats(d) floats of this thread, 64-byte aligned
};

/// Attention of one head, in one arithmetic.
struct AttentionKernels {
  std::size_t (*packed_floats)(std::size_t num_tokens, std::size_t head_dim) noexcept;
  std::size_t (*scratch_floats)(std::size_t head_dim) noexcept;
  void (*pack)(const KeyValueArgs& args) noexcept;
  void (*attend)(const AttentionArgs& args) noexcept;
  /// The softmax itself, one row of T weights for each query.
  void (*probabilities)(const AttentionArgs& args) noexcept;
  /// Runs rounds of the products of both matrices in registers, as many of one as of the other, and returns
  /// the operations done; `sink` keeps the compiler from removing them. Null: those of a processor's scalars.
  double (*multiply_adds)(std::size_t rounds, float* sink) noexcept;
};

/// The kernels of the blocks, one struct per arithmetic.
struct Arithmetic {
  const LinearKernels* linear;
  AttentionKernels attention;
  /// For the few products that all others depend on: higher precision at negligible cost.
  const LinearKernels* fine;
};

struct KernelTable {
  const char* name;         // "avx2"
  const char* description;  // "AVX2 and FMA: 8 lanes"
  /// Whether products are fused and added in the one order of all instruction sets (tile-inl.h, sums-inl.h):
  /// float32 results have the bits of every other table for which this holds.
  bool is_portable;
  void (*layer_norm)(const LayerNormArgs& args) noexcept;
  ResampleKernels resample;
  MapKernels maps;
  ConvolutionKernels convolution;  // of 3x3, float32
  const Arithmetic* float32;
  /// Weights rounded to bfloat16; inputs, queries, keys and values too if this table has products of
  /// bfloat16 pairs. Sums are float32.
  const Arithmetic* bfloat16;
  /// Linear layers as described in int8.h. Attention uses the formats that this table multiplies fastest:
  /// bfloat16 or integers of 8 or 16 bits, or float32 if none is faster.
  const Arithmetic* int8;
  /// The arithmetics of these precisions that have the same bits under every table with is_portable; null
  /// without it.
  const Arithmetic* portable_bfloat16 = nullptr;
  const Arithmetic* portable_int8 = nullptr;
};

constexpr const Arithmetic& arithmetic_of(const KernelTable& table, Precision precision) {
  switch (precision) {
    case Precision::bfloat16: return *table.bfloat16;
    case Precision::int8: return *table.int8;
    case Precision::float32: break;
  }
  return *table.float32;
}

/// Whether results in this precision have the bits of every other table with is_portable.
bool keeps_bits(const KernelTable& table, Precision precision);

/// Tables that this machine supports, fastest first; the last one is "reference", naive loops in double
/// precision.
const std::vector<const KernelTable*>& available_kernels();
/// The table of that name, default_kernels() for ""; NAME:portable, or :portable for the default one, has the
/// portable arithmetics for bfloat16 and int8. Throws Error if no such table was built, or this machine does
/// not support it.
const KernelTable& find_kernels(std::string_view name);
/// The table named by the environment variable VIT_KERNELS (:portable: of the fastest), else the fastest.
/// Throws Error as find_kernels does.
const KernelTable& default_kernels();

}  // namespace vit::internal::kernels
