// Depth and classes of every pixel of an image, by models with a dense head. Letters: H, W = height and width
// of the image.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "vit/base/error.h"
#include "vit/base/tensor.h"
#include "vit/dense_config.h"
#include "vit/image/image.h"
#include "vit/model.h"
#include "vit/outputs.h"
#include "vit/session.h"

namespace vit {

/// Depth of an image.
struct DepthMap {
  Tensor<float> depth;                  // (H, W)
  DepthUnit unit = DepthUnit::inverse;  // of the depths
  float lowest = 0.0f;                  // of all pixels
  float highest = 0.0f;                 // of all pixels
};

/// Where an image of this size lies in the pixels that `preprocessor` makes of it: for ImageOutputs::of(), if
/// the pixels that a session ran were preprocessed before. Throws Error as Preprocessor::output_size() does.
VIT_API ImageFrame frame_of(const Preprocessor& preprocessor, ImageSize image);

/// Depth from the outputs of an image, at its size: Output::depth, and Output::sky for a head with
/// DenseConfig::sky_is_farthest. Throws Error if they were not requested.
VIT_API DepthMap depth_of(const ImageOutputs& outputs, int threads = 1);

/// Normals from the outputs of an image (Output::normals): of unit length at the resolution of the head, then
/// resized to the image, (3, H, W).
VIT_API Tensor<float> normals_of(const ImageOutputs& outputs, int threads = 1);

/// Depth of images.
/// ```
/// const vit::DepthMap map = vit::DepthEstimator("depth-anything").estimate("photo.jpg");
/// ```
class VIT_API DepthEstimator : public ImageTask {
 public:
  /// Loads the model. Throws Error as Model::load does, and for a model whose head has no depth.
  explicit DepthEstimator(const std::filesystem::path& path, const ModelOptions& options = {});
  /// Throws Error for a model whose head has no depth.
  explicit DepthEstimator(std::shared_ptr<const Model> model);

  DepthUnit unit() const noexcept;  // of its depths
  /// Depth of an image, run by a session over the same model. Throws Error as Session::run does.
  DepthMap estimate(Session& session, const ImageSource& image) const;
  /// Depth of one image, run on all cores; for many images, use a Session, which keeps its memory.
  DepthMap estimate(const ImageSource& image) const;
};

// ------------------------------------------------------------------------------------------------ segments

/// What a region of an image is.
struct Segment {
  std::int32_t id = 0;           // in the map: the class of a semantic map
  std::size_t index = 0;         // class
  std::string label;             // name, or the number where there is none
  std::optional<float> score{};  // nothing for classes of a semantic map
  std::size_t area = 0;          // pixels
};

/// A segment for every pixel.
struct SegmentMap {
  Tensor<std::int32_t> map;       // (H, W): ids, -1 = none
  std::vector<Segment> segments;  // of the ids
};

/// What segments are.
enum class SegmentTask {
  semantic,  // a class of each pixel
  instance,  // things, each with its class; they may hide each other, and pixels belong to none
  panoptic,  // things and stuff; each pixel belongs to one segment or none
};

/// How masks of queries become segments: the arguments of transformers' post-processing.
struct SegmentOptions {
  SegmentTask task = SegmentTask::semantic;  // what segments are
  double threshold = 0.8;                    // of a segment's score
  double mask_threshold = 0.5;               // of a pixel's probability (panoptic)
  double overlap = 0.8;                      // share of a mask that must be left to its segment (panoptic)
  std::vector<std::size_t> stuff{};          // classes whose segments are one (panoptic)
  std::vector<std::string> labels{};         // names of classes instead of the model's
};

/// Segments from the outputs of an image, at its size: Output::classes, or Output::masks and mask_classes.
/// Ids of instances and panoptic segments count from 0. Throws Error if they were not requested, for a task
/// that the head does not allow, and for options out of range. Source: transformers, models/eomt,
/// image_processing_eomt.py.
VIT_API SegmentMap segments_of(const ImageOutputs& outputs, const SegmentOptions& options = {},
                               int threads = 1);

/// Segments of images.
/// ```
/// const vit::SegmentMap map = vit::Segmenter("eomt").segment("photo.jpg");
/// ```
class VIT_API Segmenter : public ImageTask {
 public:
  /// Loads the model, for its default task. Throws Error as Model::load does, and for a model whose head has
  /// neither classes nor masks.
  explicit Segmenter(const std::filesystem::path& path, const ModelOptions& options = {});
  /// For its default task.
  explicit Segmenter(std::shared_ptr<const Model> model);
  /// Throws Error for a model whose head has neither classes nor masks.
  Segmenter(std::shared_ptr<const Model> model, SegmentOptions options);

  /// The task of a model's files: semantic if its head has classes of pixels, or its images are computed as
  /// windows; else panoptic.
  static SegmentTask default_task(const Model& model);

  const SegmentOptions& options() const noexcept { return options_; }  // how masks become segments
  /// Segments of an image, run by a session over the same model. Throws Error as Session::run and
  /// segments_of do.
  SegmentMap segment(Session& session, const ImageSource& image) const;
  /// Segments of one image, run on all cores.
  SegmentMap segment(const ImageSource& image) const;

 private:
  SegmentOptions options_;
};

}  // namespace vit
