#include "apps/vit/common/model_facts.h"

#include <filesystem>
#include <utility>

#include "vit/base/error.h"
#include "vit/session.h"
#include "vit/weights/checkpoint/folder_files.h"
#include "vit/weights/checkpoint/open_clip_preprocess.h"
#include "vit/weights/checkpoint/preprocess_config.h"
#include "vit/weights/families/timm_args.h"
#include "vit/weights/files/json.h"

namespace vit::app {
namespace {

namespace fs = std::filesystem;

/// The architecture that an option or timm's configuration names, with the arguments that options and
/// configuration files state; where no name is known, those of the patch size alone.
Architecture stated_architecture(const fs::path& path, const LoadOptions& options) {
  Architecture stated;
  if (const std::optional<fs::path> open_clip = find_open_clip_config(path)) {
    stated.args.patch_size =
        read_open_clip_patch_size(load_json(*open_clip).at("model_cfg").at("vision_cfg"));
  } else {
    const fs::path file = (fs::is_directory(path) ? path : path.parent_path()) / "config.json";
    const std::optional<Json> config = fs::exists(file) ? std::optional(load_json(file)) : std::nullopt;
    const std::string timm_name = config ? config->find_string("architecture").value_or("") : "";
    if (!options.architecture.empty() || !timm_name.empty()) {
      stated = find_architecture(options.architecture.empty() ? timm_name : options.architecture);
      if (!timm_name.empty()) apply_timm_config(stated.args, *config);
    } else {
      VIT_CHECK(config, "preprocess", file.string(), ": not there, and --size native needs the patch size");
      if (!options.overrides.empty()) {
        throw OverrideError("preprocess",
                            text("--set ", options.overrides.begin()->first,
                                 " is an argument of timm's models, and ", file.string(), " names none"));
      }
      const Json values = config->find("vision_config").value_or(*config);
      stated.args.patch_size = values.at("patch_size").as_size({.min = 1});
    }
  }
  for (const auto& [key, value] : options.overrides) apply_timm_override(stated.args, key, value);
  return stated;
}

/// The preprocessing that options and configuration files state, without weights.
std::optional<PreprocessConfig> stated_preprocess(const fs::path& path, const ModelOptions& options,
                                                  const InputSize& size) {
  const bool is_named = !options.architecture.empty() && !find_open_clip_config(path);
  std::optional<PreprocessConfig> rules;
  if (!is_named) {
    rules = find_preprocess_config(path, options.preprocess_options());
    if (!rules) return std::nullopt;
  }
  const bool is_native = size.kind == InputSize::Kind::native;
  Architecture stated;
  if (is_named || is_native || !options.overrides.empty())
    stated = stated_architecture(path, options.load_options());
  if (is_named) rules = architecture_preprocess(to_config(stated.args, stated), options.preprocess_options());
  return with_input_size(*rules, size, stated.args.patch_size);
}

}  // namespace

ModelFacts load_model_facts(const CommonOptions& options) {
  const ModelOptions& model_options = options.model_options;
  const bool is_named = options.is_architecture_alone();
  Checkpoint checkpoint = is_named
                              ? random_checkpoint(model_options.architecture, model_options.load_options())
                              : load_checkpoint(model_path(options), model_options.load_options());
  std::optional<PreprocessConfig> rules =
      is_named ? architecture_preprocess(checkpoint.config, model_options.preprocess_options())
               : checkpoint_preprocess(model_path(options), checkpoint.config, model_options.load_options(),
                                       model_options.preprocess_options());
  if (rules) rules = with_input_size(*rules, options.session.input_size, checkpoint.config.patch_size);
  return {
      .config = checkpoint.config, .preprocess = std::move(rules), .report = std::move(checkpoint.report)};
}

std::optional<Preprocessor> find_preprocessor(const CommonOptions& options) {
  // Where there are weights, they tell what an option changes about the model.
  const bool is_named = options.is_architecture_alone();
  const LoadOptions& load = options.model_options.load_options();
  const bool is_changed = !load.architecture.empty() || !load.overrides.empty();
  const bool takes_weights = is_named || (is_changed && !weight_files(model_path(options)).empty());
  const std::optional<PreprocessConfig> rules =
      takes_weights
          ? load_model_facts(options).preprocess
          : stated_preprocess(model_path(options), options.model_options, options.session.input_size);
  if (!rules) return std::nullopt;
  return Preprocessor(*rules);
}

}  // namespace vit::app
