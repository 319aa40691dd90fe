// The preprocessing of a model known only by its architecture's name.
#include "vit/base/check.h"
#include "vit/weights/architectures/architecture.h"
#include "vit/weights/architectures/pixel_statistics.h"
#include "vit/weights/checkpoint/loader.h"
#include "vit/weights/checkpoint/preprocess_config.h"
#include "vit/weights/checkpoint/tower_architectures.h"

namespace vit::internal {

PreprocessConfig architecture_preprocess(const ModelConfig& config, const ModelOptions& options) {
  if (is_tower_architecture(config.architecture))
    return tower_architecture_preprocess(config.architecture, options);
  const Architecture* row = &find_architecture(config.architecture);
  // a publisher's file may have been loaded by timm's name for it
  if (const Architecture* const own = find_published(config.library, row->name)) row = own;
  ModelOptions chosen = options;
  if (row->resampler == Resampler::torchvision_uint8 && chosen.resampler == ResamplerChoice::automatic) {
    chosen.resampler = ResamplerChoice::torchvision;
  }
  return build_timm_preprocess({.height = row->evaluated_at != 0 ? row->evaluated_at : config.image.height,
                                .width = row->evaluated_at != 0 ? row->evaluated_at : config.image.width,
                                .crop_pct = row->crop_pct,
                                .crop_mode = row->squash ? TimmCropMode::squash : TimmCropMode::center,
                                .filter = row->filter,
                                .mean = to_vector(row->mean),
                                .std = to_vector(row->std)},
                               chosen, text(row->library, " ", row->name));
}

}  // namespace vit::internal
