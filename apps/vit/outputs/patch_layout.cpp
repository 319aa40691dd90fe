#include "apps/vit/outputs/patch_layout.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "apps/vit/inputs/input_reader.h"
#include "vit/base/check.h"
#include "vit/config.h"

namespace vit::app {
namespace {

constexpr Where kWhere{"show", ErrorKind::argument};

/// Planes (3, H, W) as an image, smallest number black and largest white.
Image to_image(TensorView<const float> pixels) {
  const auto [low, high] = std::ranges::minmax(pixels.flat());
  const float range = high > low ? high - low : 1.0f;
  Image image(pixels.dim(1), pixels.dim(2));
  for (std::size_t c = 0; c < 3; ++c) {
    const TensorView<const float> plane = pixels[c];
    for (std::size_t i = 0; i < plane.num_elements(); ++i)
      image.data()[3 * i + c] = static_cast<std::uint8_t>(255.0f * (plane.data()[i] - low) / range);
  }
  return image;
}

PatchLayout layout_of(const Model& model, ImageSize source, ImageSize input, const SourceMap& map) {
  return {.source = source,
          .grid = model.grid_for(input.height, input.width),
          .patch_size = model.config().patch.size,
          .map = map};
}

}  // namespace

std::size_t PatchLayout::patch_at(std::size_t x, std::size_t y) const {
  VIT_CHECK(x < source.width && y < source.height, kWhere, "pixel ", x, ",", y,
            " lies outside of the image of ", source.width, " x ", source.height, " (width x height)");
  const double patch = static_cast<double>(patch_size);
  const double column = std::floor((static_cast<double>(x) + 0.5 - map.left) / map.x_step / patch);
  const double row = std::floor((static_cast<double>(y) + 0.5 - map.top) / map.y_step / patch);
  const auto is_inside = [](double at, std::size_t count) {
    return at >= 0 && at < static_cast<double>(count);
  };
  VIT_CHECK(is_inside(column, grid.columns) && is_inside(row, grid.rows), kWhere, "pixel ", x, ",", y,
            " is outside the area covered by patches: ", std::lround(std::max(0.0, map.left)), ",",
            std::lround(std::max(0.0, map.top)), " to ", std::lround(map.left + width()) - 1, ",",
            std::lround(map.top + height()) - 1);
  return static_cast<std::size_t>(row) * grid.columns + static_cast<std::size_t>(column);
}

SourcePoint PatchLayout::center(std::size_t patch) const {
  const auto middle = [this](std::size_t index) {
    return (static_cast<double>(index) + 0.5) * static_cast<double>(patch_size);
  };
  return {map.left + middle(patch % grid.columns) * map.x_step,
          map.top + middle(patch / grid.columns) * map.y_step};
}

Image image_of_input(const Input& input, const Preprocessor& preprocessor) {
  if (input.pixels) return to_image(input.pixels->load(input.pixels_index));
  return decode_input(input, preprocessor.decode_options());
}

SeenImage PatchRun::preprocess_only(const Input& input) const {
  if (input.pixels) {
    const Tensor<float> pixels = input.pixels->load(input.pixels_index);
    const ImageSize size{pixels.dim(1), pixels.dim(2)};
    return {.source = to_image(pixels), .layout = layout_of(model(), size, size, {})};
  }
  const Preprocessor& preprocessor = session_.preprocessor();
  Image source = decode_input(input, preprocessor.decode_options());
  const PatchLayout layout = layout_of(model(), source.size(), preprocessor.output_size(source.size()),
                                       preprocessor.source_map(source.size()));
  return {.source = std::move(source), .layout = layout};
}

SeenImage PatchRun::run(const Input& input, const std::function<Request(const PatchLayout&)>& request,
                        Outputs& outputs) {
  SeenImage seen = preprocess_only(input);
  const Request wanted = request(seen.layout);
  if (input.pixels) {
    const Tensor<float> pixels = input.pixels->load(input.pixels_index);
    session_.forward({pixels.data(), Shape{1, pixels.dim(0), pixels.dim(1), pixels.dim(2)}}, wanted, outputs);
  } else {
    session_.run(seen.source, wanted, outputs);
  }
  return seen;
}

}  // namespace vit::app
