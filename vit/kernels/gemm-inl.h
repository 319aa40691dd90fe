// Packing of weights and the matrix product with its epilogue.
//
//   packed:  panel 0                panel 1                     a panel holds kPanel output columns for all
//   k:
//            | k0: kPanel numbers | k1: ... |  | k0: ... |      one step of the loop reads one line of it
#if defined(VIT_KERNELS_GEMM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef VIT_KERNELS_GEMM_INL_H_
#undef VIT_KERNELS_GEMM_INL_H_
#else
#define VIT_KERNELS_GEMM_INL_H_
#endif

#include "hwy/highway.h"
#include "vit/kernels/kernels.h"
#include "vit/kernels/math-inl.h"
#include "vit/kernels/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vit::kernels::HWY_NAMESPACE {
namespace {

// Part of a panel that stays in the first-level cache (16 KiB for kPanel = 16) while the rows of a block pass
// it. The partial sums of the blocks of k are added up in order.
constexpr size_t kBlockK = 256;
// Rows whose partial sums are kept on the stack.
constexpr size_t kBlockRows = 10 * 12;

void pack_weight(const float* weight, size_t stride, size_t out_features, size_t in_features,
                 float* packed) noexcept {
  for (size_t column = 0; column < out_features; column += kPanel) {
    const size_t columns = HWY_MIN(kPanel, out_features - column);
    for (size_t c = 0; c < kPanel; ++c) {
      const float* const from = weight + (column + c) * stride;
      for (size_t k = 0; k < in_features; ++k) packed[k * kPanel + c] = c < columns ? from[k] : 0.0f;
    }
    packed += kPanel * in_features;
  }
}

/// One vector of a tile through the epilogue; `count` < kLanes where the matrix ends within it.
template <bool kFull>
HWY_INLINE void finish_vector(const Epilogue& e, V value, size_t row, size_t column, size_t count,
                              float* out) {
  const D d;
  const auto load = [&](const float* from)
                        HWY_ATTR { return kFull ? hn::LoadU(d, from) : load_first(from, count, 0.0f); };
  if (e.bias) value = hn::Add(value, load(e.bias + column));
  value = activated(value, e.activation);
  if (e.multiplier) value = hn::Mul(value, load(e.multiplier + row * e.multiplier_stride + column));
  if (e.scale && e.residual) {
    value = hn::MulAdd(value, load(e.scale + column), load(e.residual + row * e.residual_stride + column));
  } else if (e.scale) {
    value = hn::Mul(value, load(e.scale + column));
  } else if (e.residual) {
    value = hn::Add(value, load(e.residual + row * e.residual_stride + column));
  }
  if constexpr (kFull) {
    hn::StoreU(value, d, out);
  } else {
    store_first(value, count, out);
  }
}

/// Sends sums (rows, kPanel) through the epilogue to rows [row, row + rows) and columns [column, column +
/// columns).
HWY_NOINLINE void finish_tile(const GemmArgs& args, const float* HWY_RESTRICT sums, size_t row, size_t rows,
                              size_t column, size_t columns) {
  const D d;
  for (size_t r = 0; r < rows; ++r) {
    float* const out = args.out + (row + r) * args.out_stride + column;
    for (size_t c = 0; c < columns; c += kLanes) {
      const V value = hn::Load(d, sums + r * kPanel + c);
      if (columns - c >= kLanes) {
        finish_vector<true>(args.epilogue, value, row + r, column + c, kLanes, out + c);
      } else {
        finish_vector<false>(args.epilogue, value, row + r, column + c, columns - c, out + c);
      }
    }
  }
}

/// Asks for the lines [first, last) of what follows in the packed weight, bound for the second-level cache.
HWY_INLINE void prefetch_lines(const float* from, size_t first, size_t last) {
  for (size_t line = first; line < last; ++line) __builtin_prefetch(from + line * 16, 0, 2);
}

/// Rows [row, row + rows) of one panel; rows <= kBlockRows.
HWY_INLINE void multiply_panel(const GemmArgs& args, size_t row, size_t rows, size_t column) {
  HWY_ALIGN float sums[kBlockRows * kPanel];
  const size_t columns = HWY_MIN(kPanel, args.column_end - column);
  const float* const panel = args.packed + column * args.in_features;
  for (size_t k = 0; k < args.in_features; k += kBlockK) {
    const size_t count = HWY_MIN(kBlockK, args.in_features - k);
    const TileStart start = k == 0 ? TileStart::zero : TileStart::stored;
    const size_t num_tiles = (rows + kTileRows - 1) / kTileRows;
    const size_t lines = kBlockK * kPanel / 16;
    size_t tile = 0;
    for (size_t r = 0; r < rows; r += kTileRows, ++tile) {
      const size_t tile_rows = HWY_MIN(kTileRows, rows - r);
      prefetch_lines(panel + (k + count) * kPanel, tile * lines / num_tiles, (tile + 1) * lines / num_tiles);
      const LeftOperand left{args.in + (row + r) * args.in_stride + k, args.in_stride, 1};
      multiply(left, tile_rows, panel + k * kPanel, columns, count, start, sums + r * kPanel);
      if (k + count == args.in_features)
        finish_tile(args, sums + r * kPanel, row + r, tile_rows, column, columns);
    }
  }
}

void gemm(const GemmArgs& args) noexcept {
  for (size_t row = 0; row < args.rows; row += kBlockRows) {
    const size_t rows = HWY_MIN(kBlockRows, args.rows - row);
    for (size_t column = args.column_begin; column < args.column_end; column += kPanel) {
      multiply_panel(args, row, rows, column);
    }
  }
}

/// As many independent chains as a tile has sums, nothing but multiply-adds.
double multiply_adds(size_t rounds, float* sink) noexcept {
  // Starts that differ, or the compiler would see through twelve equal chains.
  SixRows c{set(1.0f), set(1.1f), set(1.2f), set(1.3f), set(1.4f), set(1.5f),
            set(1.6f), set(1.7f), set(1.8f), set(1.9f), set(2.0f), set(2.1f)};
  const V factor = set(0.5f);
  const V addend = set(1.0f);
  for (size_t i = 0; i < rounds; ++i) {
    c.c00 = hn::MulAdd(c.c00, factor, addend);
    c.c01 = hn::MulAdd(c.c01, factor, addend);
    c.c10 = hn::MulAdd(c.c10, factor, addend);
    c.c11 = hn::MulAdd(c.c11, factor, addend);
    c.c20 = hn::MulAdd(c.c20, factor, addend);
    c.c21 = hn::MulAdd(c.c21, factor, addend);
    c.c30 = hn::MulAdd(c.c30, factor, addend);
    c.c31 = hn::MulAdd(c.c31, factor, addend);
    c.c40 = hn::MulAdd(c.c40, factor, addend);
    c.c41 = hn::MulAdd(c.c41, factor, addend);
    c.c50 = hn::MulAdd(c.c50, factor, addend);
    c.c51 = hn::MulAdd(c.c51, factor, addend);
  }
  const V rows01 = hn::Add(hn::Add(c.c00, c.c01), hn::Add(c.c10, c.c11));
  const V rows23 = hn::Add(hn::Add(c.c20, c.c21), hn::Add(c.c30, c.c31));
  const V rows45 = hn::Add(hn::Add(c.c40, c.c41), hn::Add(c.c50, c.c51));
  *sink = hn::GetLane(hn::SumOfLanes(D(), hn::Add(hn::Add(rows01, rows23), rows45)));
  return 2.0 * 12.0 * static_cast<double>(kLanes) * static_cast<double>(rounds);
}

}  // namespace
}  // namespace vit::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // VIT_KERNELS_GEMM_INL_H_
