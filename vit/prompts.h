// What prompts name or show, cut out of images: noun phrases, boxes as examples, and one object by points and
// a box, with SAM 3. Letters: H, W = height and width of the image, n instances or masks, Q queries of the
// model, (h, w) = a mask as the model gives it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vit/base/error.h"
#include "vit/base/tensor.h"
#include "vit/image/preprocess.h"
#include "vit/model.h"
#include "vit/session.h"
#include "vit/text_encoder.h"

namespace vit {

/// An example: something that is meant, or that is not.
struct PromptBox {
  Box box;               // in pixels of the image
  bool positive = true;  // false: nothing like it
};

/// What is looked for in an image: every instance of a phrase, or of what boxes show, or of both.
struct Prompt {
  std::string text{};              // a noun phrase; "" = only the boxes
  std::vector<PromptBox> boxes{};  // of the image that is asked
};

/// Whose program is reproduced where two differ.
enum class PromptRule {
  library,     // transformers: a phrase by itself has no vector of shown things; masks grow as probabilities
  repository,  // the publisher's: a phrase has the class token of no boxes in addition; masks grow as logits
};

/// How queries become instances: the arguments of transformers' post-processing.
struct PromptOptions {
  double threshold = 0.3;                 // an instance has a score above it
  double mask_threshold = 0.5;            // a pixel of a mask has a probability above it
  PromptRule rule = PromptRule::library;  // whose program is reproduced
  std::size_t max_instances = 0;          // the best so many; 0 = all
  std::size_t max_mask_bytes = 0;         // of all masks, a byte a pixel; more are an error; 0 = any
};

/// Instances of one prompt in falling score.
struct PromptInstances {
  std::vector<std::size_t> queries;  // of the model, whose order is that of transformers' results
  std::vector<float> scores;         // 0 to 1
  std::vector<Box> boxes;            // in pixels of the image; may reach beyond its edges
  Tensor<std::uint8_t> masks;        // (n, H, W), 1 = part of the instance; empty if not asked for
};

/// What the model gives for a prompt, before any threshold.
struct PromptLogits {
  Tensor<float> classes;   // (Q): of scores; a score is sigmoid(class) * sigmoid(presence)
  float presence = 0;      // whether the image has anything that is meant
  Tensor<float> boxes;     // (Q, 4): x0, y0, x1, y1 in shares of the image's edges
  Tensor<float> masks;     // (Q, h, w)
  Tensor<float> semantic;  // (h, w): of every pixel
};

/// A point in pixels of the image.
struct ObjectPoint {
  double x = 0;          // from the left
  double y = 0;          // from the top
  bool positive = true;  // false: not part of the object
};

/// One object: points, a box, a mask, or several of these.
struct ObjectPrompt {
  std::vector<ObjectPoint> points{};  // on the object, or outside of it
  std::optional<Box> box{};           // around the object, in pixels of the image
  /// Logits as in ObjectMasks, of (h, w) or resized to it as the library does; must live during the call.
  TensorView<const float> mask{};
};

/// How masks of an object are chosen.
struct ObjectOptions {
  bool multimask = true;                  // the masks of an ambiguous prompt: part, whole, ...; false: one
  PromptRule rule = PromptRule::library;  // repository: with the embedding of no memory
};

/// Masks of one object, in the order of the model.
struct ObjectMasks {
  std::vector<float> scores;   // (n): estimated quality, 0 to 1
  float object_logit = 0;      // whether there is an object
  Tensor<float> logits;        // (n, h, w)
  Tensor<std::uint8_t> masks;  // (n, H, W): 1 where the logit, at the size of the image, is above 0
};

/// What prompts of an image are for: phrases and examples, objects, or both.
enum class PromptUse {
  phrases,  // noun phrases and examples
  objects,  // points, boxes and masks of one object
  both,     // either
};

namespace internal {
struct PromptParts;
struct KeptMaps;
}  // namespace internal

/// A checkpoint ready to run: image tower, text tower and detector. Immutable; share it between threads.
class VIT_API PromptModel {
 public:
  /// Loads a folder as downloaded. Throws Error naming the file and its defect, and (unsupported) for a
  /// checkpoint without a detector of prompts.
  static std::shared_ptr<const PromptModel> load(const std::filesystem::path& path,
                                                 const ModelOptions& options = {},
                                                 const TextOptions& text_options = {});
  /// The published model, "sam3", with seeded random weights, for tests and timings. It has no vocabulary:
  /// each word of a phrase is one token. Throws Error (argument) for another name.
  static std::shared_ptr<const PromptModel> random(const std::string& architecture,
                                                   const ModelOptions& options = {});
  /// Whether a checkpoint has parts for prompts, by its configuration and the names of its tensors. Throws
  /// Error for one that cannot be read.
  static bool is_at(const std::filesystem::path& path, const ModelOptions& options = {});
  ~PromptModel();
  PromptModel(const PromptModel&) = delete;
  PromptModel& operator=(const PromptModel&) = delete;

  const std::shared_ptr<const Model>& image() const noexcept;  // the image tower
  const LoadReport& report() const noexcept;                   // files and tensors of the detector
  bool takes(PromptUse use) const noexcept;                    // whether it has the parts for these prompts
  /// What a Session is to compute for PromptSegmenter::encode(outputs).
  Request request() const;
  std::size_t num_parameters() const noexcept;  // of all parts; the token table, which stays in its file, too
  std::size_t num_queries() const noexcept;     // Q
  std::size_t mask_size() const noexcept;       // h = w

 private:
  friend struct internal::PromptParts;
  VIT_HIDDEN explicit PromptModel(std::unique_ptr<const internal::PromptParts> parts);
  std::unique_ptr<const internal::PromptParts> parts_;
};

/// An image that was looked at: what any number of prompts ask. Immutable; share it between threads.
class VIT_API PromptFeatures {
 public:
  ~PromptFeatures();
  PromptFeatures(const PromptFeatures&) = delete;
  PromptFeatures& operator=(const PromptFeatures&) = delete;

  ImageSize image() const noexcept;  // its size
  /// Of memory, at the published size: 117 MB for phrases, 21 MB for objects.
  std::size_t bytes() const noexcept;

 private:
  friend class PromptSegmenter;
  VIT_HIDDEN explicit PromptFeatures(std::unique_ptr<internal::KeptMaps> maps);
  std::unique_ptr<const internal::KeptMaps> maps_;
};

/// Settings of a PromptSegmenter.
struct PromptSegmenterOptions {
  int threads = 0;  // 0 = all cores; results do not depend on it
};

/// Working memory and settings of one thread of the caller; must not be shared. Several may use one
/// PromptModel. Vectors of phrases are kept.
/// ```
/// vit::PromptSegmenter segmenter(vit::PromptModel::load("sam3"));
/// const auto photo = segmenter.encode("photo.jpg");
/// segmenter.segment(*photo, {.text = "yellow bus"}).masks;  // (n, H, W)
/// segmenter.segment(*photo, {.text = "person"});            // costs a small part of the first
/// ```
class VIT_API PromptSegmenter {
 public:
  /// Throws Error (argument) for a null model and threads out of range.
  explicit PromptSegmenter(std::shared_ptr<const PromptModel> model, PromptSegmenterOptions options = {});
  ~PromptSegmenter();
  PromptSegmenter(PromptSegmenter&&) noexcept;
  PromptSegmenter& operator=(PromptSegmenter&&) noexcept;

  const PromptModel& model() const;  // lives as long as the segmenter

  /// Looks at an image. Throws Error as Session::run does, and (unsupported) if the model has no part for
  /// `use`.
  std::shared_ptr<const PromptFeatures> encode(const ImageSource& image, PromptUse use = PromptUse::phrases);
  /// The same from the outputs of an image for PromptModel::request().
  std::shared_ptr<const PromptFeatures> encode(const ImageOutputs& outputs,
                                               PromptUse use = PromptUse::phrases);

  /// Instances with masks. Throws Error (argument) for a prompt without text and boxes, boxes that are empty
  /// or not finite, thresholds beyond 0 to 1, and a text that is not UTF-8 or longer than the model's
  /// context; (unsupported) for more masks than PromptOptions::max_mask_bytes; (mismatch), as all of these
  /// do, for an image that was encoded with another PromptModel.
  PromptInstances segment(const PromptFeatures& image, const Prompt& prompt,
                          const PromptOptions& options = {});
  /// Instances without masks, on which no work is done.
  PromptInstances detect(const PromptFeatures& image, const Prompt& prompt,
                         const PromptOptions& options = {});
  /// The probability (H, W) that a pixel is part of what is meant, all instances together.
  Tensor<float> pixel_probabilities(const PromptFeatures& image, const Prompt& prompt,
                                    const PromptOptions& options = {});
  /// Masks of one object, of an image that was encoded for objects. Throws Error (argument) for a prompt
  /// without point, box and mask, points outside of the image, and numbers that are not finite.
  ObjectMasks segment_object(const PromptFeatures& image, const ObjectPrompt& prompt,
                             const ObjectOptions& options = {});
  /// What the model gives, of all queries.
  PromptLogits logits(const PromptFeatures& image, const Prompt& prompt, const PromptOptions& options = {});

 private:
  struct State;
  State& state() const;
  std::unique_ptr<State> state_;
};

}  // namespace vit
