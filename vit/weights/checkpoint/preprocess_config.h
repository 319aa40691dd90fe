// How a checkpoint wants its images preprocessed, from the files that its library writes: timm's config.json,
// Hugging Face's preprocessor_config.json or processor_config.json, OpenCLIP's open_clip_config.json. Which
// of them counts is for checkpoint_folder.h, applying the rules for image/preprocess.h.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vit/config/load_options.h"
#include "vit/image/preprocess.h"
#include "vit/io/json.h"

namespace vit::internal {

/// Whether config.json is one of timm's.
bool is_timm_config(const Json& config);
/// timm's config.json. These three throw Error naming file and key for values out of range, and for keys that
/// ask for something that is not implemented.
PreprocessConfig read_timm_preprocess(const Json& config, const ModelOptions& options);
/// `file` is the object that describes a Hugging Face image processor, `model_type` that of config.json (""
/// where unknown), which names the class if the object does not.
PreprocessConfig read_hf_preprocess(const Json& file, const std::string& model_type,
                                    const ModelOptions& options);
/// params.json of Mistral's own files, which says sizes only: the rules of the processor that transformers
/// has for these models.
PreprocessConfig read_mistral_preprocess(const Json& params, const ModelOptions& options);
/// The whole of open_clip_config.json.
PreprocessConfig read_open_clip_preprocess(const Json& config, const ModelOptions& options);

enum class TimmCropMode { center, squash, border };

/// What timm's evaluation pipeline is made of, with timm's defaults.
struct TimmPreprocess {
  std::size_t height = 224;
  std::size_t width = 224;
  double crop_pct = 0.875;
  TimmCropMode crop_mode = TimmCropMode::center;
  ResizeFilter filter = ResizeFilter::bicubic;
  std::vector<double> mean{0.485, 0.456, 0.406};
  std::vector<double> std{0.229, 0.224, 0.225};
};

/// What the caller chooses whatever the files say: the square, the order of the channels, mean and standard
/// deviation.
void apply_choices(PreprocessConfig& config, const ModelOptions& options);

/// Makes rules of the channels of a model: one number is that of all channels, three that are equal are that
/// of one. Rules that do not fit are none, which the note returned says, "" if they do. Throws Error
/// (argument) if the caller chose them.
std::string fit_channels(std::optional<PreprocessConfig>& config, std::size_t num_channels,
                         const ModelOptions& options);
/// Whether a Hugging Face image processor of this class chooses the size of each image by its tokens.
bool has_token_sizes(std::string_view processor);
/// The sizes of such a class, from its file: hf_token_sizes.cpp.
void read_token_sizes(const Json& file, std::string_view processor, PreprocessConfig& config);

/// Replaces resize and crop by those of NaFlex: the aspect ratio is kept.
void set_max_patches(PreprocessConfig& config, std::size_t max_patches, std::size_t patch_size);

/// timm's rules for these values; `source` is for messages.
PreprocessConfig build_timm_preprocess(const TimmPreprocess& timm, const ModelOptions& options,
                                       const std::string& source);

/// The pass order of a Pillow version such as "9.4", "12.1" or "13"; throws Error for anything else.
PillowRelease parse_pillow_release(std::string_view version);

}  // namespace vit::internal
