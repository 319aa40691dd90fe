// Clips: which frames of a video they are made of, and their pixels.
#include <algorithm>
#include <cmath>

#include "vit/base/check.h"
#include "vit/base/checked.h"
#include "vit/image/preprocess.h"

namespace vit {
namespace {

constexpr Where kWhere{"clip", ErrorKind::argument};

}  // namespace

std::vector<std::size_t> sample_frames(const PreprocessConfig& config, std::size_t num_frames) {
  validate(config);
  std::size_t count = std::max<std::size_t>(config.clip_frames, 1);
  if (config.sampling == FrameSampling::even_float32 && count > 1) {
    const auto patch = static_cast<double>(config.frames_of_patch);
    count = static_cast<std::size_t>(std::nearbyint(static_cast<double>(count) / patch) * patch);
  }
  VIT_CHECK(count <= num_frames, kWhere, "the video has ", num_frames, " frames, and ", count,
            " are asked for; take fewer");
  const double steps = static_cast<double>(num_frames) / static_cast<double>(count);
  const double gaps = static_cast<double>(std::max<std::size_t>(count, 2) - 1);
  std::vector<std::size_t> indices(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto at = static_cast<double>(i);
    switch (config.sampling) {
      case FrameSampling::even: indices[i] = checked_mul(i, num_frames, kWhere) / count; break;
      case FrameSampling::even_float32:
        indices[i] = static_cast<std::size_t>(static_cast<float>(at * steps));
        break;
      case FrameSampling::end_to_end:
        indices[i] =
            static_cast<std::size_t>(std::nearbyint(at * (static_cast<double>(num_frames - 1) / gaps)));
        break;
    }
    indices[i] = std::min(indices[i], num_frames - 1);
  }
  return indices;
}

Tensor<float> Preprocessor::run_clip(std::span<const ImageView> frames, int threads) const {
  VIT_CHECK(!frames.empty(), kWhere, "a clip has one frame at least");
  VIT_CHECK(config_.resize != ResizeRule::tiles, kWhere.with(ErrorKind::unsupported), config_.source,
            ": frames of clips are not cut into tiles");
  const ImageSize size = output_size(frames.front().size());
  const std::size_t planes = num_channels();
  const std::size_t filled = round_up(frames.size(), std::max<std::size_t>(config_.frames_of_patch, 1));
  Tensor<float> out(Shape{checked_mul(filled, planes, kWhere), size.height, size.width});
  PreprocessMemory memory;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const ImageSize found = output_size(frames[i].size());
    VIT_CHECK(found == size, kWhere.with(ErrorKind::mismatch), "frame ", i, " becomes ", found.width, " x ",
              found.height, " pixels and frame 0 ", size.width, " x ", size.height);
    run(frames[i], out.view().part(i * planes, planes), memory, threads);
  }
  const TensorView<float> last = out.view().part((frames.size() - 1) * planes, planes);
  for (std::size_t i = frames.size(); i < filled; ++i)
    std::ranges::copy(last.flat(), out.view().part(i * planes, planes).data());
  return out;
}

}  // namespace vit
