// Published networks that make features of pixels from those of patches, guided by the image: NAF, AnyUp and
// JAFAR. They are trained once on frozen models, and are not part of a model's checkpoint.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>

#include "vit/base/error.h"
#include "vit/base/tensor.h"
#include "vit/image/image.h"

namespace vit {

/// The weights of such a network, for features of any model. Features of pixels are means of those of
/// patches, weighted by attention of the pixel to the patches. Threads may share it.
class VIT_API PixelUpsampler {
 public:
  struct Network;  // of the library

  /// A file as published (.pth), or the same tensors as .safetensors; which network it is follows from the
  /// names. Throws Error naming the file, the tensor and what was expected.
  static std::shared_ptr<const PixelUpsampler> load(const std::filesystem::path& path);
  /// For the library: use load().
  explicit PixelUpsampler(std::unique_ptr<const Network> network);
  ~PixelUpsampler();

  const std::string& name() const noexcept;            // "NAF", "AnyUp" or "JAFAR"
  const std::string& fingerprint() const noexcept;     // of the weights: 16 hexadecimal digits
  const std::filesystem::path& path() const noexcept;  // of the file, absolute
  /// For the library.
  const Network& network() const noexcept { return *network_; }

  /// Features of pixels (H, W, C) of features of patches (h, w, C) that cover the image evenly. Memory beyond
  /// the result: the keys of the patches, and tiles of the image. `threads`: 0 = all. Throws Error if shapes
  /// contradict each other, or the network cannot be used for them.
  Tensor<float> upsample(ImageView image, TensorView<const float> features, int threads = 0) const;

 private:
  std::unique_ptr<const Network> network_;
};

}  // namespace vit
