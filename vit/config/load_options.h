// ModelOptions: what a caller wants of a checkpoint beyond what its files say. One description for loading,
// preprocessing and arithmetic; the C interface, Python and the program have a field for each of these.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "vit/base/choices.h"
#include "vit/dense_config.h"
#include "vit/image/preprocess.h"
#include "vit/position/config.h"

namespace vit {

/// How a checkpoint is loaded, its images are preprocessed and its blocks computed.
struct ModelOptions {
  /// timm's or the publisher's name; needed by bare weight files, overrides a config's.
  std::string architecture{};
  /// By timm's model_args names: {"num_heads", "6"}, {"img_size", "256x256"}.
  std::map<std::string, std::string> overrides{};
  /// A file that says what the model is and where its tensors lie (weights/layouts.md): for checkpoints of
  /// somebody's own. "" = one of the families that are known.
  std::filesystem::path layout{};
  /// Which of several models in one file: what stands in front of its names ("teacher.backbone."). "" = the
  /// averaged weights, else the teacher, else the only one.
  std::string prefix{};
  /// A folder with a LoRA adapter of PEFT, which is joined to the weights while loading; "" = none.
  std::filesystem::path adapter{};
  /// Rotary positions on grids other than the trained one: position/rope.h has the rules. Nothing =
  /// as the checkpoint's library does. Throws Error (argument) for a model without rotary positions.
  std::optional<RopeScaling> rope_scaling{};
  ResamplerChoice resampler = ResamplerChoice::automatic;  // whose arithmetic resizes images
  PillowRelease pillow = PillowRelease::from_13_0;         // whose bytes Resampler::pillow makes
  ExifChoice exif = ExifChoice::automatic;                 // what becomes of the EXIF orientation
  /// R, G, B of PreprocessConfig::pad_to_square; nothing = as the checkpoint says.
  std::optional<std::array<unsigned char, 3>> square_pad_color{};
  std::optional<ChannelOrder> channels{};    // nothing = as the checkpoint says
  std::optional<AreaLimits> area_limits{};   // of vision-language models; nothing = as the checkpoint says
  std::size_t max_pixels = kMaxImagePixels;  // of an image file; larger ones are an Error
  std::string kernels{};  // a name from available_kernels(); "" = the best that this machine runs
  Precision precision = Precision::float32;  // of blocks and attention pooling
  DenseOptions dense{};                      // of a head that gives maps
  /// Of PreprocessConfig: one number for each channel, or one for all; empty = as the checkpoint says.
  std::vector<double> mean{}, std{};
};

}  // namespace vit
