// The two resampling passes as plain loops: the definition with which the vector version is compared.
#include "vit/kernels/resample.h"

namespace vit::internal::kernels {

namespace {

// Sums wrap modulo 2^32, as they do in every implementation; the true value fits.
std::uint8_t rounded(std::uint32_t sum, int shift) {
  const std::int32_t value = static_cast<std::int32_t>(sum + (1u << (shift - 1))) >> shift;
  return static_cast<std::uint8_t>(value < 0 ? 0 : value > 255 ? 255 : value);
}

}  // namespace

void resample_columns_reference(const ResampleRows& rows, std::size_t num_rows, std::size_t channels,
                                const ResampleAxis& axis) noexcept {
  for (std::size_t y = 0; y < num_rows; ++y) {
    const std::uint8_t* const in = rows.in + y * rows.in_stride;
    std::uint8_t* const out = rows.out + y * rows.out_stride;
    for (std::size_t i = 0; i < axis.num_outputs; ++i) {
      const std::int32_t* const weights = axis.weights + axis.offset[i];
      const std::uint8_t* const taps = in + static_cast<std::size_t>(axis.first[i]) * channels;
      for (std::size_t c = 0; c < channels; ++c) {
        std::uint32_t sum = 0;
        for (std::int32_t j = 0; j < axis.count[i]; ++j) {
          sum += static_cast<std::uint32_t>(weights[j]) * taps[static_cast<std::size_t>(j) * channels + c];
        }
        out[i * channels + c] = rounded(sum, axis.shift);
      }
    }
  }
}

void resample_rows_reference(const ResampleRows& rows, std::size_t row_bytes,
                             const ResampleAxis& axis) noexcept {
  for (std::size_t i = 0; i < axis.num_outputs; ++i) {
    const std::int32_t* const weights = axis.weights + axis.offset[i];
    const std::uint8_t* const taps = rows.in + static_cast<std::size_t>(axis.first[i]) * rows.in_stride;
    std::uint8_t* const out = rows.out + i * rows.out_stride;
    for (std::size_t x = 0; x < row_bytes; ++x) {
      std::uint32_t sum = 0;
      for (std::int32_t j = 0; j < axis.count[i]; ++j) {
        sum +=
            static_cast<std::uint32_t>(weights[j]) * taps[static_cast<std::size_t>(j) * rows.in_stride + x];
      }
      out[x] = rounded(sum, axis.shift);
    }
  }
}

}  // namespace vit::internal::kernels
