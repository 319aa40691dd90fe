// What a checkpoint is asked for.
#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "vit/image/preprocess.h"
#include "vit/position/config.h"

namespace vit {
struct ModelOptions;
}

namespace vit::internal {

/// What the files of a checkpoint do not tell, or tell otherwise than wanted.
struct LoadOptions {
  std::string architecture{};  // timm's or the publisher's name; needed by bare files, overrides a config's
  /// By timm's model_args names: {"num_heads", "6"}, {"img_size", "256x256"}
  std::map<std::string, std::string> overrides{};
  /// A file that says what the model is and where its tensors lie (weights/layouts.md): for checkpoints of
  /// somebody's own. "" = one of the families that are known.
  std::filesystem::path layout{};
  /// Rotary positions on grids other than the trained one; nothing = as the checkpoint's library does.
  std::optional<RopeScaling> rope_scaling{};
};

/// Choices about preprocessing that no checkpoint makes.
struct PreprocessLoadOptions {
  ResamplerChoice resampler = ResamplerChoice::automatic;
  PillowRelease pillow = PillowRelease::from_13_0;
  ExifChoice exif = ExifChoice::automatic;
  /// R, G, B of PreprocessConfig::pad_to_square; nothing = as the checkpoint says.
  std::optional<std::array<unsigned char, 3>> square_color{};
  std::optional<ChannelOrder> channels{};    // nothing = as the checkpoint says
  std::size_t max_pixels = kMaxImagePixels;  // of an image file; larger ones are an Error
};

/// What ModelOptions ask of the files; vit/model.cpp.
LoadOptions load_options(const ModelOptions& options);
PreprocessLoadOptions preprocess_options(const ModelOptions& options);

}  // namespace vit::internal
