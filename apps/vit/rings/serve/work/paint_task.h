// Images to paint on: their features for classes of pixels, which stay in memory.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "apps/vit/options/options.h"
#include "apps/vit/rings/serve/work/kept_values.h"
#include "apps/vit/rings/serve/work/output_task.h"
#include "vit/pixel_features.h"

namespace vit {
struct ModelConfig;
struct PreprocessConfig;
}  // namespace vit

namespace vit::app {

/// The features of an image of the size that the page shows.
struct PaintedImage : KeptValue {
  /// The model, for the heads that are learned.
  struct MadeBy {
    std::string name, fingerprint, record;
  };
  PaintedImage(PixelFeatures bilinear, PixelFeatures guided, MadeBy by, std::size_t of_model)
      : between_patches(std::move(bilinear)),
        along_edges(std::move(guided)),
        made_by(std::move(by)),
        model(of_model) {}

  std::size_t bytes() const override;
  const PixelFeatures& features(bool is_guided) const { return is_guided ? along_edges : between_patches; }

  PixelFeatures between_patches, along_edges;
  MadeBy made_by;
  std::size_t model = 0;
};

/// Makes a PaintedImage of the one image of a request, whose file becomes a thumbnail, and answers with its
/// key, its size and the thumbnail to paint on. What is given must outlive it.
std::shared_ptr<OutputTask> paint_task(std::size_t model, const CommonOptions& common,
                                       const PreprocessConfig& rules, const ModelConfig& config,
                                       KeptValues& kept);

}  // namespace vit::app
