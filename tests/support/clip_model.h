// A tower of random weights that takes clips, with processors of images and of videos.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/shared_data.h"

namespace vit::test {

/// A copy of a golden tower in a folder that does not exist yet.
inline std::string write_clip_model(const std::filesystem::path& folder) {
  std::filesystem::copy(data_path("golden/towers/qwen3-vl"), folder);
  const std::string sizes =
      R"("patch_size": 4, "merge_size": 2, "temporal_patch_size": 2, "min_pixels": 64, "max_pixels": 4096})";
  std::ofstream(folder / "preprocessor_config.json")
      << R"({"image_processor_type": "Qwen2VLImageProcessor", )" << sizes;
  std::ofstream(folder / "video_preprocessor_config.json")
      << R"({"video_processor_type": "Qwen2VLVideoProcessor", )" << sizes;
  return folder.string();
}

}  // namespace vit::test
