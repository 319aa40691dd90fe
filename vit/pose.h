// Keypoints of people or animals whose boxes are known (ViTPose), in the shape of Classifier. Letters: K
// keypoints, h x w = size of a heat map.
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
  std::vector<Keypoint>
      keypoints;  // in the order of the labels; NaN with score 0 for a box outside of the image
};

/// The box of a whole image.
VIT_API Box whole_box(ImageSize image);

/// Heat maps (K, h, w) of a box -> its keypoints, by the largest value of each, refined by a Newton step on
/// the logarithm of the smoothed map (DARK). `crop`: the size of the pixels that the model saw. Throws Error
/// for an empty box.
VIT_API std::vector<Keypoint> keypoints_of(TensorView<const float> heatmaps, const Box& box, ImageSize crop);
/// The same in pixels of preprocessed pixels of that size.
VIT_API std::vector<Keypoint> keypoints_of(TensorView<const float> heatmaps, ImageSize pixels);

/// A pose for each box of an image, run by a session; without boxes one of the whole image. A box that has no
/// pixel of the image, as detectors that pad images find some, has keypoints NaN with score 0, and the others
/// theirs. `outputs`: memory that later calls use again. Throws Error as Session::run does, and for a box
/// that is empty or not finite.
VIT_API std::vector<Pose> estimate_poses(Session& session, const ImageView& image, std::span<const Box> boxes,
                                         BatchOutputs& outputs);

/// Keypoints in images, by a model whose head gives heat maps. Serves one thread at a time.
///   vit::PoseEstimator estimator("vitpose-base-simple");
///   for (const vit::Pose& pose : estimator.estimate("street.jpg", boxes)) ...
class VIT_API PoseEstimator {
 public:
  /// Loads the model. Throws Error as Model::load does, and for a model whose head gives no heat maps.
  explicit PoseEstimator(const std::filesystem::path& path, SessionOptions options = {},
                         const ModelOptions& model_options = {});
  /// Throws Error for a model whose head gives no heat maps.
  explicit PoseEstimator(std::shared_ptr<const Model> model, SessionOptions options = {});

  const Model& model() const noexcept { return session_.model(); }  // what it runs
  /// Names of the keypoints; none where the model has none.
  std::span<const std::string> labels() const noexcept { return model().dense_config()->labels; }

  /// A pose for each box of an image file; without boxes one of the whole image. A box outside of the image
  /// has keypoints NaN with score 0. Throws Error as Session::run does, and for a box that is empty or not
  /// finite.
  std::vector<Pose> estimate(const std::filesystem::path& file, std::span<const Box> boxes = {});
  /// An image file in memory.
  std::vector<Pose> estimate(std::span<const std::byte> file, std::span<const Box> boxes = {});
  /// An image.
  std::vector<Pose> estimate(const ImageView& image, std::span<const Box> boxes = {});

 private:
  Session session_;
  BatchOutputs outputs_;
};

}  // namespace vit
