// Passes that compute the maps of a dense head: its taps are block outputs like those a caller can request.
#include <algorithm>
#include <utility>

#include "vit/base/check.h"
#include "vit/base/parallel.h"
#include "vit/config/output_table.h"
#include "vit/towers/image_windows.h"
#include "vit/towers/vision_transformer.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"VisionTransformer", ErrorKind::argument};

/// Pixels (B, 3, H, W) with zeros around them, up to whole patches; unchanged if they are already.
TensorView<const float> padded(TensorView<const float> pixels, std::size_t patch, Tensor<float>& memory) {
  const std::size_t images = pixels.dim(0), height = pixels.dim(2), width = pixels.dim(3);
  const std::size_t rows = round_up(height, patch), columns = round_up(width, patch);
  if (rows == height && columns == width) return pixels;
  const Shape shape{images, pixels.dim(1), rows, columns};
  if (memory.empty() || !(memory.shape() == shape)) memory = Tensor<float>(shape);
  std::ranges::fill(memory.flat(), 0.0f);
  const std::size_t top = (rows - height) / 2, left = (columns - width) / 2;
  for (std::size_t plane = 0; plane < images * pixels.dim(1); ++plane) {
    for (std::size_t y = 0; y < height; ++y)
      std::copy_n(pixels.row(plane * height + y), width, memory.view().row(plane * rows + top + y) + left);
  }
  return memory;
}

/// Square windows (B * count, 3, E, E) of pixels (B, 3, H, W), evenly along the longer edge.
TensorView<const float> cut(TensorView<const float> pixels, std::size_t count, std::size_t edge,
                            Tensor<float>& memory) {
  const std::size_t images = pixels.dim(0), channels = pixels.dim(1), height = pixels.dim(2);
  const bool along_rows = height > pixels.dim(3);
  const Shape shape{images * count, channels, edge, edge};
  if (memory.empty() || !(memory.shape() == shape)) memory = Tensor<float>(shape);
  for (std::size_t i = 0; i < images * count; ++i) {
    const std::size_t start = window_start(i % count, count, edge, std::max(height, pixels.dim(3)));
    for (std::size_t c = 0; c < channels; ++c) {
      for (std::size_t y = 0; y < edge; ++y) {
        const std::size_t row = (i / count * channels + c) * height + y + (along_rows ? start : 0);
        std::copy_n(pixels.row(row) + (along_rows ? 0 : start), edge,
                    memory.view().row((i * channels + c) * edge + y));
      }
    }
  }
  return memory;
}

}  // namespace

std::size_t VisionTransformer::num_windows(std::size_t height, std::size_t width) const {
  const std::size_t edge = config_.image.height;
  const bool cuts = dense_ != nullptr && dense_->has_masks() && dense_->config()->cuts_windows;
  if (!cuts || edge != config_.image.width || std::min(height, width) != edge) return 1;
  return window_count(std::max(height, width), edge);
}

void VisionTransformer::forward_maps(TensorView<const float> pixels, const Request& request, int threads,
                                     ForwardMemory& memory, Outputs& outputs) const {
  VIT_CHECK(dense_, kWhere, "maps (depth, normals, classes) requested from a model without a dense head",
            kWithoutHeads);
  check_request(request, config_, head_config().get());
  VIT_CHECK(pixels.rank() == 4, kWhere, "pixels must have shape (B, 3, H, W), got ",
            pixels.shape().to_string());
  ForwardMemory::Dense& dense = memory.dense;
  const std::size_t windows = num_windows(pixels.dim(2), pixels.dim(3));
  if (windows > 1) {
    VIT_CHECK(is_of_head(request), kWhere, "pixels of ", pixels.dim(2), " x ", pixels.dim(3),
              " are computed as ", windows, " windows, so that nothing but maps can be asked for");
    pixels = cut(pixels, windows, config_.image.height, dense.pixels);
  }
  if (dense_->config()->pads_pixels) pixels = padded(pixels, config_.patch.size, dense.pixels);
  dense.request = request;
  for (const std::size_t tap : dense_->taps()) dense.request.add({Output::block, tap});
  dense.shapes.clear();
  const GridSize grid = grid_for(pixels.dim(2), pixels.dim(3));
  for (std::size_t o = 0; o < dense_->num_outputs(); ++o)
    dense.shapes.push_back({dense_->meaning(o), dense_->output_shape(o, grid)});
  const HeadSizes head{.config = head_config(), .maps = dense.shapes, .num_windows = windows};
  forward_tokens(pixels, dense.request, head, threads, memory, outputs);
  with_team(threads, [&] { forward_dense(pixels.dim(0), request, threads, memory, outputs); });
}

void VisionTransformer::forward_dense(std::size_t num_images, const Request& request, int threads,
                                      ForwardMemory& memory, Outputs& outputs) const {
  ForwardMemory::Dense& dense = memory.dense;
  const StageTimer timer(memory.times(), Stage::dense);
  const OutputWriter writer(outputs);
  dense.unwanted.resize(dense_->num_outputs());
  if (!dense.maps) dense.maps = dense_->make_memory();
  memory.lend_to_dense();
  for (std::size_t image = 0; image < num_images; ++image) {
    dense.tokens.clear();
    dense.outputs.clear();
    for (const std::size_t tap : dense_->taps())
      dense.tokens.push_back(std::as_const(outputs)[{Output::block, tap}][image]);
    for (std::size_t o = 0; o < dense_->num_outputs(); ++o) {
      if (request.has(dense_->meaning(o))) {
        dense.outputs.push_back(writer.find(dense_->meaning(o))[image]);
      } else if (dense_->needs_branch_of(o, request)) {
        Tensor<float>& unwanted = dense.unwanted[o];
        const Shape& shape = dense.shapes[o].shape;
        if (unwanted.empty() || !(unwanted.shape() == shape)) unwanted = Tensor<float>(shape);
        dense.outputs.push_back(unwanted.view());
      } else {
        dense.outputs.emplace_back();
      }
    }
    dense_->forward(dense.tokens, outputs.grid(), dense.outputs, threads, *dense.maps);
  }
}

}  // namespace vit::internal
