// Weighted sums of 8-bit pixels in fixed point, along rows and across rows: the two passes of an antialiased
// resize. The caller computes the weights; every implementation gives the same bytes, because integer
// sums do not round.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vit::internal::kernels {

/// Weights of the outputs of one axis. Output i is clip((sum_j w_ij * in[first_i + j] + half) >> shift) with
/// half = 2^(shift - 1), j < count_i, clipped to 0..255; w_ij = weights[offset_i + j].
/// Every offset is a multiple of four, and the weights of an output are followed by zeros up to a multiple of
/// four.
struct ResampleAxis {
  std::size_t num_outputs = 0;
  const std::int32_t* first = nullptr;    // (num_outputs)
  const std::int32_t* count = nullptr;    // (num_outputs)
  const std::size_t* offset = nullptr;    // (num_outputs)
  const std::int32_t* weights = nullptr;  // |w| < 2^26
  /// `weights` as pairs of int16, two to an int32, lower half first; entry offset_i / 2 + k holds taps
  /// 2k, 2k+1. w = high * 2^11 + low. high is null if all weights fit low.
  const std::int32_t* low = nullptr;
  const std::int32_t* high = nullptr;
  int shift = 0;
};

/// Plain rows of pixels.
struct ResampleRows {
  const std::uint8_t* in = nullptr;
  std::size_t in_stride = 0;  // bytes
  std::uint8_t* out = nullptr;
  std::size_t out_stride = 0;  // bytes
};

constexpr int kResampleSplitBits = 11;

/// Pass along the rows, any number of channels: the definition.
void resample_columns_reference(const ResampleRows& rows, std::size_t num_rows, std::size_t channels,
                                const ResampleAxis& axis) noexcept;
/// Pass across the rows, `row_bytes` = width * channels: the definition.
void resample_rows_reference(const ResampleRows& rows, std::size_t row_bytes,
                             const ResampleAxis& axis) noexcept;

/// The two passes of a kernel table; every table gives the same bytes.
struct ResampleKernels {
  /// Along the rows, three channels; `row_bytes` (3 x input width) bytes of every input row are readable.
  void (*columns_rgb)(const ResampleRows& rows, std::size_t num_rows, std::size_t row_bytes,
                      const ResampleAxis& axis) noexcept;
  /// Across the rows.
  void (*rows)(const ResampleRows& rows, std::size_t row_bytes, const ResampleAxis& axis) noexcept;
};

}  // namespace vit::internal::kernels
