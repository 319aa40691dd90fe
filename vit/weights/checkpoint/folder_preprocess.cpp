// Which file of a checkpoint's folder defines its preprocessing.
#include <algorithm>
#include <string>
#include <utility>

#include "vit/base/check.h"
#include "vit/weights/checkpoint/checkpoint_folder.h"
#include "vit/weights/checkpoint/layout_file.h"
#include "vit/weights/checkpoint/preprocess_config.h"
#include "vit/weights/checkpoint/preprocess_values.h"
#include "vit/weights/families/openai_clip.h"

namespace vit::internal {
namespace {

namespace fs = std::filesystem;

std::size_t read_max_patches(const ModelOptions& options) {
  const std::string key(kMaxPatchesOverride);
  try {
    return parse_json(options.overrides.at(key), override_name(key)).as_size(kPatchesRange);
  } catch (const Error& error) {
    throw Error(error.where(), error.message());
  }
}

}  // namespace

std::optional<PreprocessConfig> CheckpointFolder::preprocess_config() const {
  std::optional<PreprocessConfig> config = stored_preprocess_config();
  if (!config) return config;
  apply_choices(*config, options_);
  if (options_.overrides.contains(std::string(kMaxPatchesOverride)))
    set_max_patches(*config, read_max_patches(options_), model_config().patch.size);
  return config;
}

std::optional<PreprocessConfig> CheckpointFolder::stored_preprocess_config() const {
  if (layout_ && layout_->find("preprocess"))
    return read_layout_preprocess(*layout_, model_config(), options_);
  const bool is_chosen = !options_.architecture.empty() || !options_.dense.head.empty() ||
                         options_.dense.resize_rule != ResizeRuleChoice::automatic;
  if (!layout_ && !is_chosen && (json("preprocessor_config.json") || json("processor_config.json")))
    return own_preprocess_config();  // without reading the weights
  if (!layout_ && is_dense()) return dense_preprocess_config();
  if (options_.architecture.empty() || uses_open_clip_config()) return own_preprocess_config();
  return architecture_preprocess(model_config(), options_);
}

bool CheckpointFolder::is_dense() const {
  if (!options_.dense.head.empty()) return true;
  const SourceFiles files = source_files(config_of(static_cast<const ModelConfig*>(nullptr)));
  return std::ranges::any_of(families(),
                             [&](const Family* family) { return family->is_dense && family->match(files); });
}

std::optional<PreprocessConfig> CheckpointFolder::dense_preprocess_config() const {
  // that of the backbone is for features
  const bool has_file =
      options_.dense.head.empty() && (json("preprocessor_config.json") || json("processor_config.json"));
  std::optional<PreprocessConfig> own;
  if (has_file) own = own_preprocess_config();
  if (own && options_.dense.resize_rule == ResizeRuleChoice::automatic) return own;
  const std::optional<DenseReading>& dense = parsed<ModelConfig>()->dense;
  if (!dense || !dense->preprocess) return own;
  PreprocessConfig config = *dense->preprocess;
  if (own && own->resize != ResizeRule::none) {
    config.resize_height = own->resize_height;
    config.resize_width = own->resize_width;
  }
  if (options_.exif != ExifChoice::automatic) config.apply_orientation = options_.exif == ExifChoice::apply;
  return config;
}

std::optional<PreprocessConfig> CheckpointFolder::own_preprocess_config() const {
  if (uses_open_clip_config()) return read_open_clip_preprocess(*json("open_clip_config.json"), options_);
  std::string model_type;
  if (const auto& config = json("config.json")) {
    if (is_timm_config(*config)) return read_timm_preprocess(*config, options_);
    model_type = config->find_string("model_type").value_or("");
  }
  // of a whole processor; takes precedence over the older file, as in transformers
  const bool of_clips = options_.clip_frames > 0;
  if (const auto& processor = json("processor_config.json")) {
    if (const auto nested = processor->find(of_clips ? "video_processor" : "image_processor"))
      return read_hf_preprocess(*nested, model_type, options_);
  }
  const auto& videos = json("video_preprocessor_config.json");
  const auto& images = json("preprocessor_config.json");
  const auto& preprocessor = (of_clips && videos) || !images ? videos : images;
  if (!preprocessor) {
    if (const auto& config = own_config(); config && config->find("vision_encoder"))
      return read_mistral_preprocess(*config, options_);
    // OpenAI's own files are recognized by their tensors
    if (files_.weights.size() != 1 || !is_openai_state(*tensors())) return std::nullopt;
    return architecture_preprocess(model_config(), options_);
  }
  return read_hf_preprocess(*preprocessor, model_type, options_);
}

PreprocessConfig load_preprocess_config(const fs::path& path, const ModelOptions& options) {
  std::optional<PreprocessConfig> config = CheckpointFolder(path, options).preprocess_config();
  if (!config) fail_without_preprocess_config(path);
  return *std::move(config);
}

void fail_without_preprocess_config(const fs::path& path) {
  fail(Where("load_preprocess_config", ErrorKind::io), path.string(),
       ": no file defines the preprocessing (config.json of timm, preprocessor_config.json or "
       "processor_config.json of Hugging Face, open_clip_config.json of OpenCLIP)");
}

}  // namespace vit::internal
