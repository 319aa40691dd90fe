// The one multiply loop: a tile of kTileRows x kPanel sums kept in registers. Shared by gemm and attention.
// Every sum runs over k from 0 upwards in one multiply-add chain, independent of the size of its tile.
//
#pragma once

#include "vit/kernels/activation-inl.h"
#include "vit/kernels/math-inl.h"
#include "vit/kernels/target-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vit::internal::kernels::HWY_NAMESPACE {
namespace {

// Two vectors wide. Six rows are 12 sums + 2 columns + 1 broadcast = 15 of 16 registers; with 32 registers
// twelve rows are 24 + 2 + 1.
constexpr size_t kPanel = 2 * kLanes;
#if (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3) || HWY_ARCH_ARM_A64
constexpr size_t kTileRows = 12;
#else
constexpr size_t kTileRows = 6;
#endif

enum class TileStart { zero, stored };

/// The left operand of a tile: lane (row, k) is data[row * row_step + k * k_step].
struct LeftOperand {
  const float* data;
  size_t row_step;
  size_t k_step;
};

/// The right operand: `count` lines of Form::kLine lanes.
struct RightOperand {
  const float* panel;
  size_t count;
};

/// How the loop reads a line of the right operand, as two vectors, and multiplies with it. A lane of the left
/// operand, and so a line, covers kColumns of K; kAccuracy is that of activations. bf16-inl.h has other
/// forms.
struct FloatLines {
  static constexpr Accuracy kAccuracy = Accuracy::full;
  static constexpr size_t kColumns = 1;
  static constexpr size_t kLine = kPanel;
  static HWY_INLINE V first(const float* line) { return hn::Load(D(), line); }
  static HWY_INLINE V second(const float* line) { return hn::Load(D(), line + kLanes); }
  static HWY_INLINE V multiply_add(V factor, V line, V sum) { return hn::MulAdd(factor, line, sum); }
};

/// Lanes needed for `columns` columns of K, which are the lines of a panel.
template <class Form>
constexpr size_t lanes_for(size_t columns) {
  return (columns + Form::kColumns - 1) / Form::kColumns;
}

/// Memory used by the next tiles, prefetched while the multiplications run: `stream`, a part of it in each
/// step, and the kPanel numbers at `rows` for each row of the tile. Addresses need not be valid.
struct Prefetch {
  const char* stream;
  const float* rows;
  size_t row_stride;
};
constexpr size_t kLineFloats = 16;  // of a 64-byte cache line
/// Rows that together prefetch as much as they multiply with.
constexpr size_t kFetchingRows = 96;
/// Bytes of `stream` per step.
template <class Form>
constexpr size_t kBytesPerStep = Form::kLine * sizeof(float) * kTileRows / kFetchingRows;

/// Sums of up to six rows. Separate variables: compilers keep an array of vectors in memory.
struct SixRows {
  V c00, c01, c10, c11, c20, c21, c30, c31, c40, c41, c50, c51;
};

template <class Form, size_t kVectors>
HWY_INLINE void multiply_row(const float* HWY_RESTRICT a, V b0, V b1, V& c0, V& c1) {
  const V factor = set(*a);
  c0 = Form::multiply_add(factor, b0, c0);
  if constexpr (kVectors > 1) c1 = Form::multiply_add(factor, b1, c1);
}

template <class Form, size_t kRows, size_t kVectors>
HWY_INLINE void multiply_six(const float* HWY_RESTRICT a, size_t row_step, V b0, V b1, SixRows& c) {
  multiply_row<Form, kVectors>(a, b0, b1, c.c00, c.c01);
  if constexpr (kRows > 1) multiply_row<Form, kVectors>(a + row_step, b0, b1, c.c10, c.c11);
  if constexpr (kRows > 2) multiply_row<Form, kVectors>(a + 2 * row_step, b0, b1, c.c20, c.c21);
  if constexpr (kRows > 3) multiply_row<Form, kVectors>(a + 3 * row_step, b0, b1, c.c30, c.c31);
  if constexpr (kRows > 4) multiply_row<Form, kVectors>(a + 4 * row_step, b0, b1, c.c40, c.c41);
  if constexpr (kRows > 5) multiply_row<Form, kVectors>(a + 5 * row_step, b0, b1, c.c50, c.c51);
}

/// Stores the sums of a tile in memory, rows of kPanel; adds them to existing sums depending on
/// `start`.
struct ScratchSink {
  TileStart start;
  float* sums;

  template <size_t kVectors>
  HWY_INLINE void store_row(size_t row, V c0, V c1) const {
    const D d;
    float* const to = sums + row * kPanel;
    if (start == TileStart::stored) c0 = hn::Add(hn::Load(d, to), c0);
    hn::Store(c0, d, to);
    if constexpr (kVectors > 1) {
      if (start == TileStart::stored) c1 = hn::Add(hn::Load(d, to + kLanes), c1);
      hn::Store(c1, d, to + kLanes);
    }
  }
};

template <size_t kRows, size_t kVectors, class Sink>
HWY_INLINE void store_six(const SixRows& c, size_t row, const Sink& sink) {
  sink.template store_row<kVectors>(row, c.c00, c.c01);
  if constexpr (kRows > 1) sink.template store_row<kVectors>(row + 1, c.c10, c.c11);
  if constexpr (kRows > 2) sink.template store_row<kVectors>(row + 2, c.c20, c.c21);
  if constexpr (kRows > 3) sink.template store_row<kVectors>(row + 3, c.c30, c.c31);
  if constexpr (kRows > 4) sink.template store_row<kVectors>(row + 4, c.c40, c.c41);
  if constexpr (kRows > 5) sink.template store_row<kVectors>(row + 5, c.c50, c.c51);
}

/// Rows [row, row + kRows) of left (rows, count) * panel (count, kPanel), the first kVectors vectors of each,
/// go to `sink`.
template <class Form, size_t kRows, size_t kVectors, bool kPrefetch, class Sink>
HWY_INLINE void multiply_tile(LeftOperand left, size_t row, RightOperand right, const Prefetch& prefetch,
                              const Sink& sink) {
  constexpr size_t kUpper = kRows < 6 ? kRows : 6;
  constexpr size_t kLower = kRows < 6 ? 0 : kRows - 6;
  const V zero = hn::Zero(D());
  SixRows upper{zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero};
  SixRows lower{zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero};
  const float* HWY_RESTRICT a = left.data + row * left.row_step;
  const float* HWY_RESTRICT b = right.panel;
  const char* stream = prefetch.stream;
  if constexpr (kPrefetch) {
    for (size_t r = 0; r < kRows; ++r) {
      for (size_t c = 0; c < kPanel; c += kLineFloats) {
        __builtin_prefetch(prefetch.rows + (row + r) * prefetch.row_stride + c, 1, 2);
      }
    }
  }
  for (size_t k = 0; k < right.count; ++k) {
    if constexpr (kPrefetch) {
      __builtin_prefetch(stream, 0, 2);
      stream += kBytesPerStep<Form>;
    }
    const V b0 = Form::first(b);
    const V b1 = kVectors > 1 ? Form::second(b) : b0;
    multiply_six<Form, kUpper, kVectors>(a, left.row_step, b0, b1, upper);
    if constexpr (kLower > 0) {
      multiply_six<Form, kLower, kVectors>(a + 6 * left.row_step, left.row_step, b0, b1, lower);
    }
    a += left.k_step;
    b += Form::kLine;
  }
  store_six<kUpper, kVectors>(upper, row, sink);
  if constexpr (kLower > 0) store_six<kLower, kVectors>(lower, row + 6, sink);
}

/// Rows [row, row + rows), fewer than a tile has.
template <class Form, size_t kVectors>
HWY_NOINLINE void multiply_rest(LeftOperand left, size_t row, size_t rows, RightOperand right,
                                ScratchSink sink) {
  const Prefetch none{};
  switch (rows) {
    case 1: return multiply_tile<Form, 1, kVectors, false>(left, row, right, none, sink);
    case 2: return multiply_tile<Form, 2, kVectors, false>(left, row, right, none, sink);
    case 3: return multiply_tile<Form, 3, kVectors, false>(left, row, right, none, sink);
    case 4: return multiply_tile<Form, 4, kVectors, false>(left, row, right, none, sink);
    case 5: return multiply_tile<Form, 5, kVectors, false>(left, row, right, none, sink);
#if (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3) || HWY_ARCH_ARM_A64
    case 6: return multiply_tile<Form, 6, kVectors, false>(left, row, right, none, sink);
    case 7: return multiply_tile<Form, 7, kVectors, false>(left, row, right, none, sink);
    case 8: return multiply_tile<Form, 8, kVectors, false>(left, row, right, none, sink);
    case 9: return multiply_tile<Form, 9, kVectors, false>(left, row, right, none, sink);
    case 10: return multiply_tile<Form, 10, kVectors, false>(left, row, right, none, sink);
    case 11: return multiply_tile<Form, 11, kVectors, false>(left, row, right, none, sink);
#endif
  }
}

/// The i-th tile to compute: one after the other or, for operands outside the L2 cache, from both
/// ends to the middle. If tiles follow each other at even distances, hardware prefetches the outputs of
/// the next rows, and after the last of them those that another core is writing.
template <bool kPrefetch>
HWY_INLINE size_t visited_tile(size_t i, size_t tiles) {
  if constexpr (!kPrefetch) return i;
  return i % 2 == 0 ? i / 2 : tiles - 1 - i / 2;
}

/// As many whole tiles as `rows` has.
template <class Form, size_t kVectors, bool kPrefetch, class Sink>
HWY_NOINLINE void multiply_tiles(LeftOperand left, size_t rows, RightOperand right, Prefetch prefetch,
                                 Sink sink) {
  const size_t tiles = rows / kTileRows;
  for (size_t i = 0; i < tiles; ++i) {
    multiply_tile<Form, kTileRows, kVectors, kPrefetch>(left, visited_tile<kPrefetch>(i, tiles) * kTileRows,
                                                        right, prefetch, sink);
    prefetch.stream += right.count * kBytesPerStep<Form>;
  }
}

/// Of `rows`, those in whole tiles. The sums of a few rows do not hide the latency of their chains: a rest of
/// less than half a tile shares the rows of the tile before.
HWY_INLINE size_t rows_in_tiles(size_t rows) {
  const size_t rest = rows % kTileRows;
  const bool shares = rest > 0 && rest < kTileRows / 2 && rows > kTileRows;
  return rows - rest - (shares ? kTileRows : 0);
}

template <class Form, size_t kVectors, bool kPrefetch>
HWY_INLINE void multiply_rows(LeftOperand left, size_t rows, RightOperand right, const Prefetch& prefetch,
                              ScratchSink kept) {
  size_t row = rows_in_tiles(rows);
  multiply_tiles<Form, kVectors, kPrefetch>(left, row, right, prefetch, kept);
  if (rows - row > kTileRows) {
    const size_t half = (rows - row) / 2;
    multiply_rest<Form, kVectors>(left, row, half, right, kept);
    row += half;
  }
  if (row < rows) multiply_rest<Form, kVectors>(left, row, rows - row, right, kept);
}

/// left (rows, count) * right (count, kPanel) to memory, tile after tile. `columns` <= kPanel is the used
/// part of the panel; the sums beyond may or may not be written.
template <class Form>
HWY_INLINE void multiply(LeftOperand left, size_t rows, RightOperand right, size_t columns,
                         ScratchSink kept) {
  if (columns > kLanes) return multiply_rows<Form, 2, false>(left, rows, right, {}, kept);
  multiply_rows<Form, 1, false>(left, rows, right, {}, kept);
}

/// multiply() for operands outside the L2 cache.
template <class Form>
HWY_INLINE void multiply_and_prefetch(LeftOperand left, size_t rows, RightOperand right, size_t columns,
                                      const Prefetch& prefetch, ScratchSink kept) {
  if (columns > kLanes) return multiply_rows<Form, 2, true>(left, rows, right, prefetch, kept);
  multiply_rows<Form, 1, true>(left, rows, right, prefetch, kept);
}

}  // namespace
}  // namespace vit::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
