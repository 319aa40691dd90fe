// Passes that end in the maps of a dense head: its taps are blocks like those that a caller asks for.
#include <algorithm>
#include <utility>

#include "vit/base/check.h"
#include "vit/base/parallel.h"
#include "vit/towers/vision_transformer.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"VisionTransformer", ErrorKind::argument};

/// Pixels (B, 3, H, W) with zeros around them, up to whole patches; themselves where they are such.
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

}  // namespace

void VisionTransformer::forward(TensorView<const float> pixels, const Request& request, int threads,
                                ForwardMemory& memory, Outputs& outputs) const {
  if (!request.has_maps()) {
    outputs.maps() = {};
    return forward_tokens(pixels, request, threads, memory, outputs);
  }
  VIT_CHECK(dense_, kWhere, "maps (depth, normals, classes) asked of a model without a dense head");
  VIT_CHECK(pixels.rank() == 4, kWhere, "pixels must have shape (B, 3, H, W), got ",
            pixels.shape().to_string());
  ForwardMemory::Dense& dense = memory.dense;
  if (dense_->config().pads_pixels) pixels = padded(pixels, config_.patch_size, dense.pixels);
  dense.request = request;
  dense.request.set_maps(false);
  for (const std::size_t tap : dense_->taps()) dense.request.add({Output::block, tap});
  forward_tokens(pixels, dense.request, threads, memory, outputs);
  with_team(threads, [&] { forward_dense(pixels.dim(0), threads, memory, outputs); });
}

void VisionTransformer::forward_dense(std::size_t num_images, int threads, ForwardMemory& memory,
                                      Outputs& outputs) const {
  ForwardMemory::Dense& dense = memory.dense;
  const StageTimer timer(memory.times(), Stage::dense);
  DenseMaps& maps = outputs.maps();
  maps.tensors.resize(dense_->num_outputs());
  maps.meanings.clear();
  for (const DenseBranch& branch : dense_->config().branches) {
    for (const MapOutput& output : branch.outputs) maps.meanings.push_back(output.meaning);
  }
  for (std::size_t o = 0; o < maps.tensors.size(); ++o) {
    const Shape one = dense_->output_shape(o, outputs.grid());
    const Shape all{num_images, one[0], one[1], one[2]};
    Tensor<float>& map = maps.tensors[o];
    if (map.empty() || !(map.shape() == all)) map = Tensor<float>(all);
  }
  for (std::size_t image = 0; image < num_images; ++image) {
    dense.tokens.clear();
    dense.outputs.clear();
    for (const std::size_t tap : dense_->taps())
      dense.tokens.push_back(std::as_const(outputs)[{Output::block, tap}][image]);
    for (Tensor<float>& map : maps.tensors) dense.outputs.push_back(map.view()[image]);
    dense_->forward(dense.tokens, outputs.grid(), dense.outputs, threads, dense.maps);
  }
}

}  // namespace vit::internal
