// Transposition of a matrix in 4 x 4 squares.
#pragma once

#include "vit/kernels/math-inl.h"
#include "vit/kernels/target-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vit::internal::kernels::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR
constexpr size_t kSquare = 1;

HWY_INLINE void transpose_square(const float* from, size_t, float* to, size_t) {
  *to = *from;
}
#else
constexpr size_t kSquare = 4;

HWY_INLINE void transpose_square(const float* from, size_t from_stride, float* to, size_t to_stride) {
  const hn::FixedTag<float, 4> d;
  const auto row0 = hn::LoadU(d, from);
  const auto row1 = hn::LoadU(d, from + from_stride);
  const auto row2 = hn::LoadU(d, from + 2 * from_stride);
  const auto row3 = hn::LoadU(d, from + 3 * from_stride);
  const auto lower02 = hn::InterleaveLower(d, row0, row2);  // 00 20 01 21
  const auto lower13 = hn::InterleaveLower(d, row1, row3);  // 10 30 11 31
  const auto upper02 = hn::InterleaveUpper(d, row0, row2);
  const auto upper13 = hn::InterleaveUpper(d, row1, row3);
  hn::StoreU(hn::InterleaveLower(d, lower02, lower13), d, to);
  hn::StoreU(hn::InterleaveUpper(d, lower02, lower13), d, to + to_stride);
  hn::StoreU(hn::InterleaveLower(d, upper02, upper13), d, to + 2 * to_stride);
  hn::StoreU(hn::InterleaveUpper(d, upper02, upper13), d, to + 3 * to_stride);
}
#endif

/// to (columns, rows) = the transpose of from (rows, columns).
HWY_INLINE void transpose(const float* from, size_t from_stride, size_t rows, size_t columns, float* to,
                          size_t to_stride) {
  const size_t whole_rows = rows / kSquare * kSquare;
  const size_t whole_columns = columns / kSquare * kSquare;
  for (size_t c = 0; c < whole_columns; c += kSquare) {
    for (size_t r = 0; r < whole_rows; r += kSquare) {
      transpose_square(from + r * from_stride + c, from_stride, to + c * to_stride + r, to_stride);
    }
  }
  for (size_t c = 0; c < columns; ++c) {
    for (size_t r = c < whole_columns ? whole_rows : 0; r < rows; ++r)
      to[c * to_stride + r] = from[r * from_stride + c];
  }
}

}  // namespace
}  // namespace vit::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
