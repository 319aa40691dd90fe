// The two resampling passes: along the rows on the widest vectors, one row per block of 128 bits, across the
// rows on vectors of one block. A weight is split as high * 2^11 + low, so that products of 16-bit pairs (one
// instruction for two taps) are exact.
#pragma once

#include "vit/kernels/target-inl.h"

#include <cstring>

#include "vit/kernels/resample.h"

HWY_BEFORE_NAMESPACE();
namespace vit::internal::kernels::HWY_NAMESPACE {
namespace {
#if HWY_TARGET == HWY_SCALAR  // no vectors at all: the definition is the implementation

inline void resample_columns_rgb(const ResampleRows& rows, std::size_t num_rows, std::size_t,
                                 const ResampleAxis& axis) noexcept {
  resample_columns_reference(rows, num_rows, 3, axis);
}
inline void resample_rows(const ResampleRows& rows, std::size_t row_bytes,
                          const ResampleAxis& axis) noexcept {
  resample_rows_reference(rows, row_bytes, axis);
}

#else
namespace hn = hwy::HWY_NAMESPACE;

using D8 = hn::FixedTag<std::uint8_t, 16>;
using D16 = hn::FixedTag<std::int16_t, 8>;
using D32 = hn::FixedTag<std::int32_t, 4>;

/// Running sums of adjacent pairs, from zero: `first` holds the result on machines with a pair product, both
/// parts elsewhere.
template <class D>
struct PairSums {
  hn::Vec<D> first;
  hn::Vec<D> second;

  // Explicit: on aarch64, g++ 12 compiles the implicit one for another instruction set.
  HWY_INLINE PairSums() : first(hn::Zero(D())), second(hn::Zero(D())) {}
};

template <class D>
HWY_INLINE void add_pairs(hn::Vec<hn::RepartitionToNarrow<D> > pixels,
                          hn::Vec<hn::RepartitionToNarrow<D> > weights, PairSums<D>& sums) {
  sums.first = hn::ReorderWidenMulAccumulate(D(), pixels, weights, sums.first, sums.second);
}

/// (high * 2^11 + low + half) >> shift.
template <bool kSplit, class D>
HWY_INLINE hn::Vec<D> finish(const PairSums<D>& low, const PairSums<D>& high, hn::Vec<D> half, int shift) {
  auto sum = hn::Add(hn::RearrangeToOddPlusEven(low.first, low.second), half);
  if constexpr (kSplit) {
    sum =
        hn::Add(sum, hn::ShiftLeft<kResampleSplitBits>(hn::RearrangeToOddPlusEven(high.first, high.second)));
  }
  return hn::ShiftRightSame(sum, shift);
}

/// Sixteen bytes of each of kRows rows, one row per block of the vector.
template <int kRows>
HWY_INLINE hn::Vec<hn::FixedTag<std::uint8_t, 16 * kRows> > load_blocks(const std::uint8_t* bytes,
                                                                        std::size_t stride) {
  const hn::FixedTag<std::uint8_t, 16 * kRows> d;
  if constexpr (kRows == 1) {
    return hn::LoadU(d, bytes);
  } else {
    return hn::Combine(d, load_blocks<kRows / 2>(bytes + kRows / 2 * stride, stride),
                       load_blocks<kRows / 2>(bytes, stride));
  }
}

/// One output column of kVectors x kRows rows, kRows of them to a vector. Each step takes four taps, twelve
/// bytes of a row:
///   bytes   R0 G0 B0 R1 G1 B1 R2 ...   ->   16-bit  | R0 R1 | G0 G1 | B0 B1 | 0 0 |   and the same for taps
///   2, 3
template <bool kSplit, int kVectors, int kRows>
HWY_INLINE void column_of_rows(const std::uint8_t* taps, std::size_t in_stride, std::uint8_t* out,
                               std::size_t out_stride, const std::int32_t* low, const std::int32_t* high,
                               std::size_t num_steps, int shift) {
  const hn::FixedTag<std::uint8_t, 16 * kRows> d8;
  const hn::FixedTag<std::int16_t, 8 * kRows> d16;
  const hn::FixedTag<std::int32_t, 4 * kRows> d32;
  using Sums = PairSums<hn::FixedTag<std::int32_t, 4 * kRows> >;
  alignas(16) static constexpr std::uint8_t kFront[16] = {0, 128, 3, 128, 1,   128, 4,   128,
                                                          2, 128, 5, 128, 128, 128, 128, 128};
  alignas(16) static constexpr std::uint8_t kBack[16] = {6, 128, 9,  128, 7,   128, 10,  128,
                                                         8, 128, 11, 128, 128, 128, 128, 128};
  const auto front = hn::LoadDup128(d8, kFront);
  const auto back = hn::LoadDup128(d8, kBack);
  Sums low_sums[kVectors];
  Sums high_sums[kVectors];

  for (std::size_t step = 0; step < num_steps; ++step) {
    const auto low0 = hn::BitCast(d16, hn::Set(d32, low[2 * step]));
    const auto low1 = hn::BitCast(d16, hn::Set(d32, low[2 * step + 1]));
    const auto high0 = hn::BitCast(d16, hn::Set(d32, kSplit ? high[2 * step] : 0));
    const auto high1 = hn::BitCast(d16, hn::Set(d32, kSplit ? high[2 * step + 1] : 0));
    for (std::size_t v = 0; v < kVectors; ++v) {
      const auto bytes = load_blocks<kRows>(taps + v * kRows * in_stride + 12 * step, in_stride);
      const auto pixels0 = hn::BitCast(d16, hn::TableLookupBytesOr0(bytes, front));
      const auto pixels1 = hn::BitCast(d16, hn::TableLookupBytesOr0(bytes, back));
      add_pairs(pixels0, low0, low_sums[v]);
      add_pairs(pixels1, low1, low_sums[v]);
      if constexpr (kSplit) {
        add_pairs(pixels0, high0, high_sums[v]);
        add_pairs(pixels1, high1, high_sums[v]);
      }
    }
  }

  const auto half = hn::Set(d32, 1 << (shift - 1));
  for (std::size_t v = 0; v < kVectors; ++v) {
    const auto value = finish<kSplit>(low_sums[v], high_sums[v], half, shift);
    const hn::FixedTag<std::uint8_t, 4 * kRows> d_pixels;
    const auto pixels = hn::DemoteTo(d_pixels, hn::DemoteTo(hn::FixedTag<std::int16_t, 4 * kRows>(), value));
    alignas(16) std::uint8_t lanes[16];
    hn::Store(pixels, d_pixels, lanes);
    for (std::size_t r = 0; r < kRows; ++r) std::memcpy(out + (v * kRows + r) * out_stride, lanes + 4 * r, 3);
  }
}

template <bool kSplit>
void columns_rgb(const ResampleRows& rows, std::size_t num_rows, std::size_t row_bytes,
                 const ResampleAxis& axis) {
  constexpr std::size_t kRows = 4;  // 4 x (2 or 4) sums of one row each stay in 16 registers
  constexpr int kRowsOfVector = HWY_MAX_BYTES >= 64 ? 4 : HWY_MAX_BYTES >= 32 ? 2 : 1;
  // Sixteen bytes are loaded but only twelve used: the last outputs of a row are left to the plain loop.
  std::size_t num_inside = 0;
  while (num_inside < axis.num_outputs) {
    const std::size_t steps = (static_cast<std::size_t>(axis.count[num_inside]) + 3) / 4;
    if (static_cast<std::size_t>(axis.first[num_inside]) * 3 + 12 * steps + 4 > row_bytes) break;
    ++num_inside;
  }
  for (std::size_t y = 0; y < num_rows; y += kRows) {
    const std::uint8_t* const in = rows.in + y * rows.in_stride;
    std::uint8_t* const out = rows.out + y * rows.out_stride;
    const std::size_t block = num_rows - y < kRows ? num_rows - y : kRows;
    for (std::size_t i = 0; i < num_inside; ++i) {
      const std::uint8_t* const taps = in + static_cast<std::size_t>(axis.first[i]) * 3;
      const std::size_t steps = (static_cast<std::size_t>(axis.count[i]) + 3) / 4;
      const std::int32_t* const low = axis.low + axis.offset[i] / 2;
      const std::int32_t* const high = kSplit ? axis.high + axis.offset[i] / 2 : nullptr;
      if (block == kRows) {
        column_of_rows<kSplit, kRows / kRowsOfVector, kRowsOfVector>(
            taps, rows.in_stride, out + 3 * i, rows.out_stride, low, high, steps, axis.shift);
      } else {
        for (std::size_t r = 0; r < block; ++r) {
          column_of_rows<kSplit, 1, 1>(taps + r * rows.in_stride, 0, out + r * rows.out_stride + 3 * i, 0,
                                       low, high, steps, axis.shift);
        }
      }
    }
  }
  if (num_inside == axis.num_outputs) return;
  ResampleAxis rest = axis;
  rest.num_outputs -= num_inside;
  rest.first += num_inside;
  rest.count += num_inside;
  rest.offset += num_inside;
  ResampleRows tail = rows;
  tail.out += 3 * num_inside;
  resample_columns_reference(tail, num_rows, 3, rest);
}

/// Sixteen bytes of one output row; rows are taken in pairs.
template <bool kSplit>
HWY_INLINE void row_of_bytes(const std::uint8_t* taps, std::size_t in_stride, std::uint8_t* out,
                             const std::int32_t* low, const std::int32_t* high, std::size_t count,
                             int shift) {
  const D8 d8;
  const D16 d16;
  const D32 d32;
  PairSums<D32> low_sums[4];
  PairSums<D32> high_sums[4];
  const auto zero = hn::Zero(d8);
  for (std::size_t j = 0; j < count; j += 2) {
    const std::uint8_t* const row = taps + j * in_stride;
    const auto upper = hn::LoadU(d8, row);
    const auto lower =
        hn::LoadU(d8, j + 1 < count ? row + in_stride : row);  // weight zero if there is no row
    const auto left = hn::InterleaveLower(d8, upper, lower);
    const auto right = hn::InterleaveUpper(d8, upper, lower);
    const hn::Vec<D16> pixels[4] = {hn::BitCast(d16, hn::InterleaveLower(d8, left, zero)),
                                    hn::BitCast(d16, hn::InterleaveUpper(d8, left, zero)),
                                    hn::BitCast(d16, hn::InterleaveLower(d8, right, zero)),
                                    hn::BitCast(d16, hn::InterleaveUpper(d8, right, zero))};
    const auto low_pair = hn::BitCast(d16, hn::Set(d32, low[j / 2]));
    const auto high_pair = hn::BitCast(d16, hn::Set(d32, kSplit ? high[j / 2] : 0));
    for (int k = 0; k < 4; ++k) {
      add_pairs(pixels[k], low_pair, low_sums[k]);
      if constexpr (kSplit) add_pairs(pixels[k], high_pair, high_sums[k]);
    }
  }
  const auto half = hn::Set(d32, 1 << (shift - 1));
  const hn::FixedTag<std::int16_t, 4> d16_half;
  const hn::FixedTag<std::uint8_t, 4> d8_quarter;
  for (int k = 0; k < 4; ++k) {
    const auto value = finish<kSplit>(low_sums[k], high_sums[k], half, shift);
    hn::StoreU(hn::DemoteTo(d8_quarter, hn::DemoteTo(d16_half, value)), d8_quarter, out + 4 * k);
  }
}

template <bool kSplit>
void rows_of_bytes(const ResampleRows& rows, std::size_t row_bytes, const ResampleAxis& axis) {
  for (std::size_t i = 0; i < axis.num_outputs; ++i) {
    const std::uint8_t* const taps = rows.in + static_cast<std::size_t>(axis.first[i]) * rows.in_stride;
    std::uint8_t* const out = rows.out + i * rows.out_stride;
    const std::size_t count = static_cast<std::size_t>(axis.count[i]);
    const std::int32_t* const low = axis.low + axis.offset[i] / 2;
    const std::int32_t* const high = kSplit ? axis.high + axis.offset[i] / 2 : nullptr;
    for (std::size_t x = 0; x < row_bytes; x += 16) {
      if (row_bytes - x < 16) x = row_bytes - 16;  // the last vector overlaps the one before it
      row_of_bytes<kSplit>(taps + x, rows.in_stride, out + x, low, high, count, axis.shift);
    }
  }
}

inline void resample_columns_rgb(const ResampleRows& rows, std::size_t num_rows, std::size_t row_bytes,
                                 const ResampleAxis& axis) noexcept {
  if (axis.high != nullptr) {
    columns_rgb<true>(rows, num_rows, row_bytes, axis);
  } else {
    columns_rgb<false>(rows, num_rows, row_bytes, axis);
  }
}

inline void resample_rows(const ResampleRows& rows, std::size_t row_bytes,
                          const ResampleAxis& axis) noexcept {
  if (row_bytes < 16) {
    resample_rows_reference(rows, row_bytes, axis);
  } else if (axis.high != nullptr) {
    rows_of_bytes<true>(rows, row_bytes, axis);
  } else {
    rows_of_bytes<false>(rows, row_bytes, axis);
  }
}

#endif  // HWY_SCALAR
}  // namespace
}  // namespace vit::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
