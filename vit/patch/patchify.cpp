#include "vit/patch/patchify.h"

#include <algorithm>

#include "vit/base/check.h"

namespace vit::internal {

void patchify(TensorView<const float> pixels, const PatchConfig& cut, std::size_t grid_row,
              TensorView<float> rows, std::span<const std::uint32_t> places) {
  VIT_CHECK(pixels.rank() == 3, "patchify", "pixels must have shape (channels, H, W), got ",
            pixels.shape().to_string());
  const std::size_t num_channels = pixels.dim(0), height = pixels.dim(1);
  const std::size_t patch_size = cut.size, padding = cut.padding;
  const GridSize steps = cut.steps();
  const GridSize grid = cut.grid(height, pixels.dim(2));
  VIT_CHECK(grid_row < grid.rows, "patchify", "no row ", grid_row, " among ", grid.rows);
  const Shape expected{grid.rows * grid.columns, num_channels * patch_size * patch_size};
  VIT_CHECK(rows.shape() == expected && (places.empty() || places.size() == expected[0]), "patchify",
            "rows must have shape ", expected.to_string(), ", got ", rows.shape().to_string(), " and ",
            places.size(), " places");
  for (std::size_t channel = 0; channel < num_channels; ++channel) {
    for (std::size_t y = 0; y < patch_size; ++y) {
      const std::size_t row = grid_row * steps.rows + y;  // plus the padding
      const bool is_outside = row < padding;
      const float* source = pixels.row(channel * height + (is_outside ? 0 : row - padding));
      const std::size_t offset = (channel * patch_size + y) * patch_size;
      for (std::size_t c = 0; c < grid.columns; ++c) {
        const std::size_t patch = grid_row * grid.columns + c;
        float* const to = rows.row(places.empty() ? patch : places[patch]) + offset;
        const std::size_t zeros = is_outside ? patch_size : c == 0 ? padding : 0;
        std::fill_n(to, zeros, 0.0f);
        if (!is_outside)
          std::copy_n(source + c * steps.columns + zeros - padding, patch_size - zeros, to + zeros);
      }
    }
  }
}

}  // namespace vit::internal
