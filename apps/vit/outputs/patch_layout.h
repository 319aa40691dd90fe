// Positions of a model's patches on a source image, and running a model image by image with requests that
// depend on it.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "apps/vit/inputs/inputs.h"
#include "vit/session.h"

namespace vit::app {

/// A point of a source image in pixels from the upper left corner; the center of pixel 0 is at 0.5.
struct SourcePoint {
  double x = 0;
  double y = 0;
};

struct PatchLayout {
  ImageSize source;  // of the image
  GridSize grid;     // patches per column and row
  std::size_t patch_size = 1;
  SourceMap map;  // from pixels of the model's input to those of the image

  std::size_t num_patches() const { return grid.rows * grid.columns; }
  /// The raster index of the patch that contains the center of pixel (x, y) of the image. Throws Error if the
  /// pixel is outside the image or the part of it that the model sees.
  std::size_t patch_at(std::size_t x, std::size_t y) const;
  /// The center of a patch.
  SourcePoint center(std::size_t patch) const;
  /// The corner of the first patch, and the extent of all patches.
  SourcePoint origin() const { return {map.left, map.top}; }
  double width() const { return static_cast<double>(grid.columns * patch_size) * map.x_step; }
  double height() const { return static_cast<double>(grid.rows * patch_size) * map.y_step; }
};

/// An image processed by the model.
struct SeenImage {
  Image source;  // RGB; preprocessed pixels are scaled to the range from black to white
  PatchLayout layout;
};

/// The image of an input; preprocessed pixels are scaled to the range from black to white. Throws Error if it
/// cannot be read.
Image image_of_input(const Input& input, const Preprocessor& preprocessor);

class PatchRun {
 public:
  explicit PatchRun(std::shared_ptr<const Model> model, SessionOptions options)
      : session_(std::move(model), options) {}

  const Model& model() const { return session_.model(); }
  const Preprocessor& preprocessor() const { return session_.preprocessor(); }
  /// Runs one input. Throws Error for one that cannot be read or run.
  SeenImage run(const Input& input, const std::function<Request(const PatchLayout&)>& request,
                Outputs& outputs);
  /// Preprocesses one input without a forward pass: for drawing images whose values are known.
  SeenImage preprocess_only(const Input& input) const;

 private:
  Session session_;
};

}  // namespace vit::app
