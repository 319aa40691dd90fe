#include "apps/vit/common/model_facts.h"

#include <filesystem>
#include <utility>

#include "vit/base/error.h"
#include "vit/pipeline.h"
#include "vit/weights/folder_files.h"
#include "vit/weights/json.h"
#include "vit/weights/preprocess_config.h"
#include "vit/weights/timm_args.h"

namespace vit::app {
namespace {

namespace fs = std::filesystem;

/// The patch size that the configuration file alone tells.
std::size_t stated_patch_size(const fs::path& path) {
  const fs::path file = (fs::is_directory(path) ? path : path.parent_path()) / "config.json";
  VIT_CHECK(fs::exists(file), "preprocess", file.string(),
            ": not there, and --size native needs the patch size");
  const Json root = load_json(file);
  for (const char* section : {"model_args", "vision_config"}) {
    const std::optional<Json> values = root.find(section);
    const std::optional<std::size_t> size =
        values ? values->find_size("patch_size", {.min = 1}) : std::nullopt;
    if (size) return *size;
  }
  if (const std::optional<std::size_t> size = root.find_size("patch_size", {.min = 1})) return *size;
  return find_architecture(root.at("architecture").as_string()).args.patch_size;
}

}  // namespace

ModelFacts load_model_facts(const CommonOptions& options) {
  const ModelOptions model_options = to_model_options(options);
  const bool is_named = options.model.empty() && !options.architecture.empty();
  Checkpoint checkpoint = is_named ? random_checkpoint(options.architecture, model_options.load)
                                   : load_checkpoint(model_path(options), model_options.load);
  std::optional<PreprocessConfig> rules =
      is_named ? architecture_preprocess(checkpoint.config, model_options.preprocess)
               : checkpoint_preprocess(model_path(options), checkpoint.config, model_options.load,
                                       model_options.preprocess);
  if (rules) rules = with_input_size(*rules, parse_size(options.size), checkpoint.config.patch_size);
  return {
      .config = checkpoint.config, .preprocess = std::move(rules), .report = std::move(checkpoint.report)};
}

std::optional<Preprocessor> find_preprocessor(const CommonOptions& options) {
  // What an option changes about the model is known only with its weights, and so is the patch size of an
  // OpenCLIP model; configuration files alone answer the rest.
  const InputSize size = parse_size(options.size);
  const bool is_native = size.kind == InputSize::Kind::native;
  const fs::path path = model_path(options);
  std::optional<PreprocessConfig> rules;
  if (!options.architecture.empty() || !options.set.empty() || (is_native && find_open_clip_config(path))) {
    rules = load_model_facts(options).preprocess;
  } else {
    rules = find_preprocess_config(path, to_model_options(options).preprocess);
    if (rules) rules = with_input_size(*rules, size, is_native ? stated_patch_size(path) : 1);
  }
  if (!rules) return std::nullopt;
  return Preprocessor(*rules);
}

}  // namespace vit::app
