// ModelOptions: the caller's settings beyond those in the files of a checkpoint. One description for loading,
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
  /// A file that describes the model and its tensors (weights/layouts.md), for custom
  /// checkpoints. "" = one of the known families.
  std::filesystem::path layout{};
  /// Selects one of several models in a file by the prefix of its names ("teacher.backbone."). "" = the
  /// averaged weights, else the teacher, else the only one.
  std::string prefix{};
  /// A folder with a LoRA adapter of PEFT, which is merged into the weights while loading; "" = none.
  std::filesystem::path adapter{};
  /// Rotary positions on grids other than the trained one: position/rope.h has the rules. Nothing =
  /// as the checkpoint's library does. Throws Error (argument) for a model without rotary positions.
  std::optional<RopeScaling> rope_scaling{};
  ResamplerChoice resampler = ResamplerChoice::automatic;  // whose resizing is reproduced
  PillowRelease pillow = PillowRelease::from_13_0;         // reproduced by Resampler::pillow
  ExifChoice exif = ExifChoice::automatic;                 // treatment of the EXIF orientation
  /// R, G, B of PreprocessConfig::pad_to_square; nothing = as the checkpoint says.
  std::optional<std::array<unsigned char, 3>> square_pad_color{};
  std::optional<ChannelOrder> channels{};   // nothing = as the checkpoint says
  std::optional<AreaLimits> area_limits{};  // of vision-language models; nothing = as the checkpoint says
  /// > 0: preprocessing is that of frames of clips of so many, by the rules of the checkpoint's video
  /// processor. Throws Error for a model that takes no clips.
  std::size_t clip_frames = 0;
  std::size_t max_pixels = kMaxImagePixels;  // of an image file; larger ones are an Error
  std::string kernels{};                     // of available_kernels(), or NAME:portable; "" = the best
  Precision precision = Precision::float32;  // of blocks, attention pooling, parts of dense heads
  DenseOptions dense{};                      // of a head that outputs maps
  /// For PreprocessConfig: one number per channel, or one for all; empty = as the checkpoint says.
  std::vector<double> mean{};
  std::vector<double> std{};  // as mean
};

}  // namespace vit
