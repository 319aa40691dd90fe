#include "vit/weights/checkpoint/loader.h"

#include "vit/base/check.h"
#include "vit/io/in_quotes.h"
#include "vit/weights/checkpoint/checkpoint_folder.h"
#include "vit/weights/checkpoint/fingerprint.h"
#include "vit/weights/checkpoint/own_checkpoint.h"
#include "vit/weights/checkpoint/tower_architectures.h"
#include "vit/weights/families/timm_args.h"

namespace vit::internal {

LoadedTower<ModelConfig> load_checkpoint(const std::filesystem::path& path, const ModelOptions& options) {
  return CheckpointFolder(path, options).load<ModelConfig>();
}

namespace {

/// The configuration of a published architecture, with the caller's overrides.
ModelConfig named_config(const std::string& architecture, const ModelOptions& options) {
  if (is_tower_architecture(architecture)) {
    for (const auto& [key, value] : options.overrides)
      fail(Where("random_checkpoint", ErrorKind::argument), override_name(key), " is no argument of ",
           in_quotes(architecture));
    return tower_architecture(architecture);
  }
  const Architecture& found = find_architecture(architecture);
  TimmArgs args = found.args;
  for (const auto& [key, value] : options.overrides) apply_timm_override(args, key, value);
  return to_config(args, found);
}

}  // namespace

LoadedTower<ModelConfig> random_checkpoint(const std::string& architecture, const ModelOptions& options,
                                           unsigned seed) {
  LoadedTower<ModelConfig> checkpoint;
  checkpoint.config = named_config(architecture, options);
  checkpoint.config.position.rope_scaling = options.rope_scaling;
  validate(checkpoint.config);
  checkpoint.report.path = architecture;
  checkpoint.report.fingerprint = fingerprint_of_random(architecture, checkpoint.config, seed);
  fill_randomly(checkpoint, seed);
  return checkpoint;
}

}  // namespace vit::internal
