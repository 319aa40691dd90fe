// Texts as classes of a model trained on images and texts: their vectors, which are computed once
// and can be stored in a file. classifier.h classifies images with them.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "vit/base/error.h"
#include "vit/base/tensor.h"
#include "vit/session.h"
#include "vit/text_config.h"
#include "vit/text_encoder.h"

namespace vit {

/// Named vectors of classes.
struct VIT_API ClassVectors {
  std::vector<std::string> names;  // (n)
  Tensor<float> vectors;           // (n, E), each of length 1

  /// Compares the vector of an image (E), which need not be normalized, with the classes:
  /// scale * cosine + bias -> logits (n). Throws Error if a vector has another length.
  void compare(std::span<const float> image, const TextScore& score, std::span<float> logits) const;
};

/// The default template of transformers' zero-shot pipeline.
inline constexpr const char* kDefaultTemplate = "This is a photo of {}.";

/// `text` with each {} replaced by the label. Throws Error if it has none.
VIT_API std::string fill_template(const std::string& text, const std::string& label);

/// The mean (E) of vectors (n, E) that are divided by their lengths; it is not normalized itself, and not
/// finite if a vector is zero. Throws Error if sizes differ, or there are no vectors.
VIT_API void mean_direction(TensorView<const float> vectors, std::span<float> mean);

/// One vector per class: the mean of the normalized vectors of the class in all templates, normalized again,
/// as in open_clip's build_zero_shot_classifier; for one template the normalized vector itself. No templates
/// means kDefaultTemplate. Throws Error for an empty list of classes, a duplicate class or one without
/// a name, and a template without {}. Progress counts classes; a cancelled run returns the completed
/// ones.
VIT_API ClassVectors encode_classes(TextEncoder& encoder, std::vector<std::string> classes,
                                    std::span<const std::string> templates = {},
                                    const StreamOptions& options = {});

/// A safetensors file with the tensor "text" (n, E) and the names in its metadata. Written
/// atomically. Throws Error (io) if it cannot be written.
VIT_API void save_class_vectors(const ClassVectors& classes, const std::filesystem::path& file);
/// The inverse; vectors are normalized while they are read. Throws Error naming the file if it is not such a
/// file, or if a vector is not finite.
VIT_API ClassVectors load_class_vectors(const std::filesystem::path& file);

}  // namespace vit
