// Keypoints of people or animals whose boxes are known (ViTPose).
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "vit/base/error.h"
#include "vit/base/tensor.h"
#include "vit/image/image.h"
#include "vit/image/preprocess.h"
#include "vit/model.h"
#include "vit/outputs.h"
#include "vit/session.h"

namespace vit {

/// A point of a body.
struct Keypoint {
  float x = 0;      // pixels of the image
  float y = 0;      // pixels of the image
  float score = 0;  // the largest value of its heat map
};

/// Keypoints in a box of an image, in the order of the model's labels.
struct Pose {
  Box box;  // in which the keypoints were looked for
  /// In the order of the labels; NaN with score 0 for a box outside of the image.
  std::vector<Keypoint> keypoints;
};

/// Keypoints from the outputs of a crop (Output::heatmaps) that Preprocessor::run_box() made of an image, in
/// pixels of the image: the largest value of each heat map, refined by a Newton step on the logarithm of the
/// smoothed map (DARK). Throws Error for an empty box, and if they were not requested.
VIT_API std::vector<Keypoint> keypoints_of(const ImageOutputs& outputs, const Box& box);
/// Keypoints in pixels of the crop.
VIT_API std::vector<Keypoint> keypoints_of(const ImageOutputs& outputs);

/// Keypoints in images, by a model whose head has heat maps.
/// ```
/// const std::vector<vit::Box> people{{.x0 = 10, .y0 = 5, .x1 = 60, .y1 = 90}};
/// const std::vector<vit::Pose> poses = vit::PoseEstimator("vitpose").estimate("photo.jpg", people);
/// ```
class VIT_API PoseEstimator : public ImageTask {
 public:
  /// Loads the model. Throws Error as Model::load does, and for a model whose head has no heat maps.
  explicit PoseEstimator(const std::filesystem::path& path, const ModelOptions& options = {});
  /// Throws Error for a model whose head has no heat maps.
  explicit PoseEstimator(std::shared_ptr<const Model> model);

  /// Names of the keypoints; none if the model has none.
  std::span<const std::string> labels() const noexcept { return model()->dense_config()->labels; }

  /// A pose for each box of an image, run by a session over the same model; without boxes one of the whole
  /// image. A box that has no pixel of the image, as detectors that pad images find some, has keypoints NaN
  /// with score 0, and the others theirs. Preprocessed pixels are a crop without boxes. Throws Error as
  /// Session::run does, and for a box that is empty or not finite.
  std::vector<Pose> estimate(Session& session, const ImageSource& image,
                             std::span<const Box> boxes = {}) const;
  /// Poses in one image, run on all cores.
  std::vector<Pose> estimate(const ImageSource& image, std::span<const Box> boxes = {}) const;
};

}  // namespace vit
