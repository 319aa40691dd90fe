// Reads how a checkpoint wants its pictures prepared, from the files that its library writes: timm's
// config.json, Hugging Face's preprocessor_config.json or processor_config.json, OpenCLIP's
// open_clip_config.json. Applying the rules is image/preprocess.h.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "vit/checkpoint.h"
#include "vit/config.h"

namespace vit::internal {

/// The rules of a checkpoint folder, or of the folder in which a weight file lies. Throws Error naming file
/// and key for values out of range, for keys that ask for something that is not implemented, and where no
/// file tells the rules.
PreprocessConfig load_preprocess_config(const std::filesystem::path& path,
                                        const PreprocessLoadOptions& options = {});
/// The same, but nothing where no file tells the rules: prepared pixels need none.
std::optional<PreprocessConfig> find_preprocess_config(const std::filesystem::path& path,
                                                       const PreprocessLoadOptions& options = {});
/// Throws the Error of load_preprocess_config for a checkpoint of which no file tells the rules.
[[noreturn]] void fail_without_preprocess_config(const std::filesystem::path& path);

enum class TimmCropMode { center, squash, border };

/// What timm's evaluation pipeline is made of, with timm's defaults.
struct TimmPreprocess {
  std::size_t height = 224;
  std::size_t width = 224;
  double crop_pct = 0.875;
  TimmCropMode crop_mode = TimmCropMode::center;
  ResizeFilter filter = ResizeFilter::bicubic;
  std::array<double, 3> mean{0.485, 0.456, 0.406};
  std::array<double, 3> std{0.229, 0.224, 0.225};
};

/// timm's rules for these values; `source` is for messages.
PreprocessConfig build_timm_preprocess(const TimmPreprocess& timm, const PreprocessLoadOptions& options,
                                       const std::string& source);

/// The pass order of a Pillow version such as "9.4", "12.1" or "13"; throws Error for anything else.
PillowRelease parse_pillow_release(std::string_view version);

}  // namespace vit::internal
