// Labels of one's own: texts as classes of a model that was trained on images and texts. The vectors of the
// classes are computed once, can be kept in a file, and are all that classifying needs.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "vit/base/error.h"
#include "vit/base/tensor.h"
#include "vit/config.h"
#include "vit/image/image.h"
#include "vit/outputs.h"
#include "vit/session.h"
#include "vit/text_encoder.h"

namespace vit {

/// Named vectors of classes.
struct ClassVectors {
  std::vector<std::string> names;  // (n)
  Tensor<float> vectors;           // (n, E), each of length 1
};

/// The template that transformers' zero-shot pipeline puts labels into.
inline constexpr const char* kDefaultTemplate = "This is a photo of {}.";

/// `text` with the label in the place of each {}. Throws Error if it has none.
VIT_API std::string fill_template(const std::string& text, const std::string& label);

/// One vector a class: the mean of the normalized vectors of the class in all templates, normalized again, as
/// open_clip's build_zero_shot_classifier has it; of one template the normalized vector itself. No templates
/// stand for kDefaultTemplate. Throws Error for an empty list of classes, a class that is there twice or has
/// no name, and a template without {}.
VIT_API ClassVectors encode_classes(TextEncoder& encoder, std::vector<std::string> classes,
                                    std::span<const std::string> templates = {});

/// A safetensors file with the tensor "text" (n, E) and the names in its metadata. Written
/// atomically. Throws Error (io) if it cannot be written.
VIT_API void save_class_vectors(const ClassVectors& classes, const std::filesystem::path& file);
/// The reverse; vectors are normalized while they are read. Throws Error naming the file if it is no such
/// file, or if a vector is not finite.
VIT_API ClassVectors load_class_vectors(const std::filesystem::path& file);

/// What a Session must be asked for to compare images with texts: projected vectors, or pooled ones where the
/// tower has no projection (SigLIP).
VIT_API Request embedding_request(const ModelConfig& config);
/// The vector of an image (E) among what embedding_request() asked for.
VIT_API std::span<const float> embedding_of(const ImageOutputs& outputs, const ModelConfig& config);

/// Compares images with classes. Never changes; threads may share it.
///   const auto both = vit::ImageAndText::load("siglip2");
///   vit::TextEncoder encoder(both.text);
///   vit::Session session(both.image);
///   vit::ZeroShotClassifier(encoder, {"a cat", "a dog"}).classify(session, image);
class VIT_API ZeroShotClassifier {
 public:
  /// Throws Error if the vectors are not (n, E) with a name each, or if there are none.
  ZeroShotClassifier(ClassVectors classes, TextScore score);
  /// encode_classes() and the score of the encoder's tower. Throws Error if that tower was published without
  /// an image tower, and so without a score.
  ZeroShotClassifier(TextEncoder& encoder, std::vector<std::string> classes,
                     std::span<const std::string> templates = {});

  std::size_t size() const noexcept { return classes_.names.size(); }  // n: classes
  std::size_t embedding_dim() const noexcept {
    return classes_.vectors.shape().last();
  }                                                                  // E: numbers of a vector
  const ClassVectors& classes() const noexcept { return classes_; }  // in their order
  const TextScore& score() const noexcept { return score_; }         // from cosines to logits

  /// Scaled cosines with the vector of an image (E), which need not be normalized -> logits (n). Throws Error
  /// if the vector has another length.
  void compare(std::span<const float> image, std::span<float> logits) const;
  /// Logits (n) to probabilities (n): softmax over all or sigmoid of each. `probabilities` may be `logits`.
  void probabilities(std::span<const float> logits, std::span<float> probabilities) const;
  /// The `top` most probable classes for the vector of an image, best first; equal ones in their order.
  std::vector<Prediction> classify(std::span<const float> image, std::size_t top = 5) const;
  /// The same for an image, by a session over the image tower of the same checkpoint.
  std::vector<Prediction> classify(Session& session, const ImageView& image, std::size_t top = 5) const;

 private:
  ClassVectors classes_;
  TextScore score_;
};

}  // namespace vit
