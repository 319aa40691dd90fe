// Depth and classes of every pixel of an image, in the shape of Classifier: one object for models with a
// dense head. Letters: H, W = height and width of the image.
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

/// planes (C, h, w) of a head -> (C, H, W), without antialias.
VIT_API Tensor<float> resize_planes(TensorView<const float> planes, ImageSize size, ImageResize rule,
                                    int threads = 1);

/// Depth of an image.
struct DepthMap {
  Tensor<float> depth;                  // (H, W)
  DepthUnit unit = DepthUnit::inverse;  // of the depths
  float lowest = 0.0f;                  // of all pixels
  float highest = 0.0f;                 // of all pixels
};

/// The depth that one image's outputs hold (Request::set_maps), at the size of the image.
VIT_API DepthMap depth_of(const ImageOutputs& outputs, const DenseConfig& config, ImageSize size,
                          int threads = 1);

/// The normals that one image's outputs hold (Request::set_maps): of unit length at the resolution of the
/// head, then brought to the size of the image, (3, H, W).
VIT_API Tensor<float> normals_of(const ImageOutputs& outputs, const DenseConfig& config, ImageSize size,
                                 int threads = 1);

/// Depth of images, by a model whose head gives it. Serves one thread at a time.
class VIT_API DepthEstimator {
 public:
  /// Loads the model. Throws Error as Model::load does, and for a model whose head gives no depth.
  explicit DepthEstimator(const std::filesystem::path& path, SessionOptions options = {},
                          const ModelOptions& model_options = {});
  /// Throws Error for a model whose head gives no depth.
  explicit DepthEstimator(std::shared_ptr<const Model> model, SessionOptions options = {});

  const Model& model() const noexcept { return session_.model(); }  // what it runs
  DepthUnit unit() const noexcept;                                  // of its depths

  /// An image file. Throws Error as Session::run does.
  DepthMap estimate(const std::filesystem::path& file);
  /// An image file in memory.
  DepthMap estimate(std::span<const std::byte> file);
  /// An image.
  DepthMap estimate(const ImageView& image);

 private:
  Session session_;
  Request request_;
  Outputs outputs_;
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
  std::vector<Segment> segments;  // what the numbers of the map mean
};

/// The class with the largest score (C, h, w) at each pixel of an image, the lower one of equals.
VIT_API Tensor<std::int32_t> classes_of(TensorView<const float> scores, ImageSize size, ImageResize rule,
                                        int threads = 1);
/// The classes that one image's outputs hold (Request::set_maps), at the size of the image. `labels` replace
/// those of the model where they are given.
VIT_API SegmentMap semantic_segments(const ImageOutputs& outputs, const DenseConfig& config, ImageSize size,
                                     int threads = 1, std::span<const std::string> labels = {});

/// A map of classes with the segment of each class that it has, by index.
VIT_API SegmentMap with_areas(Tensor<std::int32_t> classes, std::size_t num_classes,
                              std::span<const std::string> labels);

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
};

/// Where an image lies in what the model computed.
struct MaskFrame {
  ImageSize pixels;   // that it computed
  ImageSize content;  // upper left of these: the image

  /// Of an image of this size. Throws Error as Preprocessor::output_size() does.
  VIT_API static MaskFrame of(const Preprocessor& preprocessor, ImageSize image);
};

/// What the model's files are made for: semantic where its head gives classes of pixels, or its images are
/// computed as windows; panoptic else.
VIT_API SegmentTask default_task(const Model& model);

/// The segments that one image's outputs hold (Request::set_maps), at the size of the image. Ids of instances
/// and panoptic segments count from 0. Throws Error for a task that the head does not allow, and for options
/// out of range. Source: transformers, models/eomt, image_processing_eomt.py.
VIT_API SegmentMap segments_of(const ImageOutputs& outputs, const DenseConfig& config, const MaskFrame& frame,
                               ImageSize image, const SegmentOptions& options, int threads = 1,
                               std::span<const std::string> labels = {});

/// Segments of images, by a model whose head gives classes or masks. Serves one thread at a time.
class VIT_API Segmenter {
 public:
  /// Loads the model, for default_task(). Throws Error as Model::load does, and for a model whose head gives
  /// neither classes nor masks.
  explicit Segmenter(const std::filesystem::path& path, SessionOptions options = {},
                     const ModelOptions& model_options = {});
  /// Throws Error for a model whose head gives neither classes nor masks.
  explicit Segmenter(std::shared_ptr<const Model> model, SessionOptions options = {});

  const Model& model() const noexcept { return session_.model(); }  // what it runs
  /// How masks become segments.
  const SegmentOptions& segment_options() const noexcept { return segments_; }
  /// Of the next images.
  void set_segment_options(SegmentOptions options) { segments_ = std::move(options); }

  /// An image file. Throws Error as Session::run does.
  SegmentMap segment(const std::filesystem::path& file);
  /// An image file in memory.
  SegmentMap segment(std::span<const std::byte> file);
  /// An image.
  SegmentMap segment(const ImageView& image);

 private:
  Session session_;
  SegmentOptions segments_;
  Request request_;
  Outputs outputs_;
};

}  // namespace vit
