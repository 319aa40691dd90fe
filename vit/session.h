// From images to results: a Session per thread over a Model that all share, and two convenience classes,
// Classifier and FeatureExtractor. Letters: B images, h, w patches per column and row, T = prefix + h w
// tokens, C = embed_dim.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "vit/base/tensor.h"
#include "vit/config.h"
#include "vit/image/image.h"
#include "vit/image/preprocess.h"
#include "vit/model.h"
#include "vit/vision_transformer.h"

namespace vit {

/// What one image gave; empty where not requested. `grid` says how the patch tokens lie.
struct ImageOutputs {
  Tensor<float> logits;                  // (classes)
  Tensor<float> pooled;                  // (C)
  Tensor<float> projected;               // (E)
  Tensor<float> tokens;                  // (T, C) after the final norm
  Tensor<float> embedded;                // (T, C) entering block 0
  std::vector<Tensor<float>> blocks;     // (T, C) each
  std::vector<Tensor<float>> attention;  // (heads, T, T) each
  GridSize grid;
  std::size_t num_prefix_tokens = 0;
  bool has_class_token = false;  // the first of them; models with registers alone have none

  /// Patch tokens after the final norm as a feature map (h, w, C), a view into `tokens`.
  TensorView<const float> patches() const;
  /// Class token after the final norm (C), a view into `tokens`. Throws Error for a model that has none.
  std::span<const float> class_token() const;
};

struct SessionOptions {
  int threads = 0;        // 0 = all cores
  std::size_t batch = 0;  // images per forward pass; 0 = chosen from their size. Results do not depend on it.
  InputSize input_size{};  // what preprocessing makes: model (default), native, or a given size
};

/// Working memory and settings of one thread of the caller; not to be shared. Several sessions may use one
/// Model.
class Session {
 public:
  explicit Session(std::shared_ptr<const Model> model, SessionOptions options = {});
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  const Model& model() const noexcept { return *model_; }
  /// Throws Error where no file of the checkpoint tells how pictures are prepared.
  const Preprocessor& preprocessor() const;
  /// Normalised planes (3, H, W) of one picture.
  Tensor<float> preprocess(const ImageView& image) const;

  /// Runs pictures of any sizes; results in the order of the pictures. Pictures of one size share forward
  /// passes.
  std::vector<ImageOutputs> run(std::span<const ImageView> images, const Request& request);
  /// Runs normalised planes (3, H, W) of any sizes; results in their order.
  std::vector<ImageOutputs> run_pixels(std::span<const TensorView<const float>> pixels,
                                       const Request& request);
  /// One forward pass over (B, 3, H, W); allocates nothing once `outputs` and the session have seen the
  /// shape.
  void forward(TensorView<const float> pixels, const Request& request, Outputs& outputs);
  /// Forward passes add their time per stage to `times`, which must outlive them; null = measure nothing.
  void measure_stages(StageTimes* times) noexcept;
  /// Bytes of working memory held.
  std::size_t workspace_bytes() const noexcept;

 private:
  struct State;
  std::shared_ptr<const Model> model_;
  std::unique_ptr<State> state_;
};

struct Prediction {
  std::size_t index;  // class
  std::string label;
  float probability;  // softmax over all classes
  float logit;
};

/// The `top` most probable classes of a row of logits (classes), best first; equal logits in index order.
std::vector<Prediction> top_predictions(std::span<const float> logits, std::size_t top, const Model& model);

/// Labels for pictures: Classifier("model/").classify(image).
class Classifier {
 public:
  explicit Classifier(std::shared_ptr<const Model> model, SessionOptions options = {});
  explicit Classifier(const std::filesystem::path& path, SessionOptions options = {},
                      const ModelOptions& model_options = {});
  std::vector<Prediction> classify(const ImageView& image, std::size_t top = 5);
  std::vector<std::vector<Prediction>> classify(std::span<const ImageView> images, std::size_t top = 5);
  Session& session() noexcept { return session_; }

 private:
  Session session_;
};

/// Embeddings for pictures: the pooled vector and the map of patch features.
class FeatureExtractor {
 public:
  explicit FeatureExtractor(std::shared_ptr<const Model> model, SessionOptions options = {});
  explicit FeatureExtractor(const std::filesystem::path& path, SessionOptions options = {},
                            const ModelOptions& model_options = {});
  /// `pooled` (where the model has it), `tokens`, and through it patches() (h, w, C).
  ImageOutputs extract(const ImageView& image);
  Session& session() noexcept { return session_; }

 private:
  Session session_;
};

}  // namespace vit
