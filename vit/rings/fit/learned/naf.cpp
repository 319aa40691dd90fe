// NAF (Chambon et al. 2025): two encoders of the image, of 1x1 and 3x3 kernels, whose joined and rotated
// channels are queries, and their means over patches keys. A pixel attends to 9 x 9 patches; each head has
// its own channels of the features.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "vit/base/check.h"
#include "vit/rings/fit/learned/upsampler.h"

namespace vit::internal {
namespace {

constexpr Where kNaf{"NAF", ErrorKind::mismatch};
constexpr std::size_t kHeads = 4, kWindow = 9, kLayers = 2;  // of the release; its file does not say so

struct Naf final : PixelUpsampler::Network {
  void check(MapSize image, const PatchMap& patches) const override {
    const MapSize grid = patches.grid;
    VIT_CHECK(grid.height >= kWindow && grid.width >= kWindow, kNaf, "attends to ", kWindow, " x ", kWindow,
              " patches, and this image has ", grid.height, " x ", grid.width,
              "; a larger --size gives more");
    VIT_CHECK(image.height >= grid.height && image.width >= grid.width, kNaf, "an image of ", image.height,
              " x ", image.width, " pixels has fewer of them than patches (", grid.height, " x ", grid.width,
              "); a smaller --size gives fewer");
    VIT_CHECK(patches.features.num_columns() % kHeads == 0, kNaf, "divides the features into ", kHeads,
              " parts; there are ", patches.features.num_columns());
  }
  Tensor<float> keys(Tensor<float> means, const PatchMap&, int) const override { return means; }
  /// Every dilation-th pixel of the patches enlarged to the image, four on each side or as the edges allow.
  std::vector<AxisWindow> windows(std::size_t num_pixels, std::size_t num_patches) const override {
    const std::size_t step = num_pixels / num_patches;
    // As PyTorch's nearest-exact, whose scale is a float.
    const float scale = static_cast<float>(num_patches) / static_cast<float>(num_pixels);
    std::vector<AxisWindow> out;
    for (std::size_t i = 0; i < num_pixels; ++i) {
      const std::size_t own = i % step, count = (num_pixels - own + step - 1) / step;
      const std::size_t middle = i / step, half = kWindow / 2;
      const std::size_t first = std::min(middle - std::min(middle, half), count - kWindow);
      std::vector<std::uint32_t> patches;
      for (std::size_t j = first; j < first + kWindow; ++j) {
        const float place = (static_cast<float>(own + j * step) + 0.5f) * scale;
        patches.push_back(
            static_cast<std::uint32_t>(std::min(static_cast<std::size_t>(place), num_patches - 1)));
      }
      add_pixel(std::move(patches), out);
    }
    return out;
  }
};

TiledNetwork encoder(UpsamplerTensors& tensors, const std::string& name, std::size_t width,
                     std::size_t edge) {
  std::vector<NetworkStage> stages;
  stages.push_back(convolution_stage(tensors, name + ".0", width, 3, edge, true));
  for (std::size_t block = 1; block <= kLayers; ++block) {
    for (const char* const number : {"1", "2"}) {
      const std::string of = name + "." + std::to_string(block) + ".";
      stages.push_back(convolution_stage(tensors, of + "conv" + number, width, width, edge, true));
      add_group_norm(tensors, of + "norm" + number, stages.back());
    }
  }
  return TiledNetwork(std::move(stages));
}

}  // namespace

std::unique_ptr<PixelUpsampler::Network> load_naf(UpsamplerTensors& tensors) {
  auto out = std::make_unique<Naf>();
  const std::size_t width = tensors.dim("image_encoder.sem_encoder.0.weight", 0);
  const std::size_t quarter = tensors.dim("image_encoder.rope.periods", 0), dim = 4 * quarter;
  if (width % 8 != 0 || 2 * width % dim != 0 || 2 * width % kHeads != 0)
    tensors.fail_format("encoders of " + std::to_string(width) + " channels, and " + std::to_string(quarter) +
                        " periods, do not make whole heads");
  out->queries.push_back(encoder(tensors, "image_encoder.encoder", width, 1));
  out->queries.push_back(encoder(tensors, "image_encoder.sem_encoder", width, 3));
  const Tensor<float> periods = tensors.take("image_encoder.rope.periods", {quarter});
  out->rotation.is_centered = true;
  for (std::size_t c = 0; c < dim; ++c) {
    const double frequency = 2 * std::numbers::pi / static_cast<double>(periods.data()[c % quarter]);
    if (!std::isfinite(frequency)) tensors.fail_format("a period of 0");
    const bool is_of_rows = c / quarter % 2 == 0;
    out->rotation.row_frequencies.push_back(is_of_rows ? frequency : 0.0);
    out->rotation.column_frequencies.push_back(is_of_rows ? 0.0 : frequency);
  }
  out->num_heads = kHeads;
  out->own_channels = true;
  return out;
}

}  // namespace vit::internal
