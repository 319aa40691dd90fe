// What a checkpoint is asked for, and what was found in it: the options of loading and its report. Reading
// one is Model::load in model.h.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "vit/config.h"

namespace vit {

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

/// Whose arithmetic resizes images.
enum class ResamplerChoice {
  automatic,    // what the checkpoint's own library does: timm and OpenCLIP Pillow, Hugging Face torchvision
  pillow,       // timm's rules, or those of Hugging Face's pil backend
  torchvision,  // the 8-bit kernel of torch
};

/// What becomes of the orientation that an EXIF tag tells.
enum class ExifChoice {
  automatic,  // timm and OpenCLIP ignore the orientation, Hugging Face applies it
  apply,
  ignore,
};

/// Choices about preprocessing that no checkpoint makes.
struct PreprocessLoadOptions {
  ResamplerChoice resampler = ResamplerChoice::automatic;
  PillowRelease pillow = PillowRelease::from_13_0;
  ExifChoice exif = ExifChoice::automatic;
  /// R, G, B of PreprocessConfig::pad_to_square; nothing = as the checkpoint says.
  std::optional<std::array<unsigned char, 3>> square_color{};
  std::optional<ChannelOrder> channels{};  // nothing = as the checkpoint says
};

/// One tensor of the file and what became of it.
struct TensorUse {
  std::string name;  // in the file
  std::vector<std::size_t> shape;
  std::string dtype;
  std::string feeds;            // the tensors of the model that it feeds; "" if it is ignored
  std::string ignored_because;  // why nothing needs it; "" if it is used
};

/// What loading found.
struct LoadReport {
  std::filesystem::path path;
  std::vector<std::filesystem::path> files;  // weight files read
  std::string stored_dtype;                  // of most numbers
  /// 16 hexadecimal digits that tell models apart: the same for one model wherever its files lie and in
  /// whatever precision it computes. Made of a sample of the weights; no proof against forgery.
  std::string fingerprint;
  std::size_t num_parameters = 0;  // elements of the tensors used
  std::vector<TensorUse> tensors;  // in file order
  std::vector<std::string> notes;  // which library's rules apply where they differ, values assumed, ...
};

}  // namespace vit
