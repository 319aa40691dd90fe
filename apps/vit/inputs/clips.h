// Clips: frames of a video, or the images of a folder in the order of their names.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "apps/vit/inputs/inputs.h"
#include "vit/image/preprocess.h"

namespace vit::app {

/// One clip. Its frames are chosen by the rules of the preprocessor (PreprocessConfig::sampling).
class Clip {
 public:
  /// Throws Error for what is neither a folder with images nor a file.
  explicit Clip(const std::filesystem::path& path);

  /// (frames K, H, W): those of config().clip_frames frames. Throws Error if there are fewer, or one
  /// cannot be read.
  Tensor<float> load(const Preprocessor& preprocessor) const;
  bool is_video() const noexcept { return !is_folder_; }
  /// The files that hold it: a video, or images.
  std::span<const std::string> files() const noexcept { return files_; }

 private:
  std::vector<Image> frames_of_video(const Preprocessor& preprocessor) const;
  std::vector<Image> frames_of_folder(const Preprocessor& preprocessor) const;

  bool is_folder_ = false;
  std::vector<std::string> files_;
};

/// Each argument as one clip; a .npy as the clips whose pixels it holds. What is none is a failure of the
/// list.
InputList list_clips(std::span<const std::string> arguments);

}  // namespace vit::app
