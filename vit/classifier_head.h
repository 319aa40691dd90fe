// A classifier on the features of a frozen model: saved, loaded and applied. vit/fit.h fits one.
// Letters: n images, C features each, K classes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vit/base/error.h"
#include "vit/base/tensor.h"
#include "vit/model.h"
#include "vit/outputs.h"

namespace vit {

/// How labels are predicted from features.
enum class FitMethod {
  logistic,  // multinomial logistic regression
  knn,       // nearest neighbors by cosine
  centroid,  // nearest centroid
};

/// "logistic", "knn" or "centroid".
VIT_API const char* to_string(FitMethod method);

/// A classifier on features, which is fitted, saved, loaded and applied.
struct VIT_API ClassifierHead {
  FitMethod method = FitMethod::logistic;  // determines which of the tensors below are set
  std::vector<std::string> labels;         // (K) names of the classes

  std::string features;     // the input vector, by the name of its Output: "pooled", "cls", ...
  std::string model;        // name of the model, for messages
  std::string fingerprint;  // LoadReport::fingerprint of the model; "" = any
  std::string record;       // how it was made, for programs: any text, kept in the file; "" = none

  // logistic and centroid: values = coefficients ((x - mean) / scale) + intercepts
  Tensor<float> mean;          // (C), as mean_ of scikit-learn's StandardScaler
  Tensor<float> scale;         // (C), as its scale_
  Tensor<float> coefficients;  // (K, C), as coef_ of LogisticRegression; two classes: -coef_ / 2, coef_ / 2
  Tensor<float> intercepts;    // (K)
  // knn
  Tensor<float> vectors;               // (n, C) the images' vectors of length 1
  std::vector<std::uint32_t> classes;  // (n), below K
  std::size_t neighbors = 20;          // that vote

  // how it was fitted
  std::size_t num_images = 0;                    // n: images that it was fitted on
  std::size_t num_folds = 0;                     // of the cross-validation; 0 = there was none
  std::optional<double> strength{};              // of logistic
  std::optional<double> cross_validated_top1{};  // mean accuracy of the folds, with the strength chosen

  std::size_t num_features() const;  // C
  /// A value for each class (K), from features (C) as output by the model; softmax gives probabilities.
  ///   logistic  the logits
  ///   centroid  -d^2 / 2 up to a constant, d the distance of the standardized features to the centroid
  ///   knn       log of the sum of exp(cosine / 0.07) over the neighbors of the class, as DINO weights them;
  ///             kNoVotes for a class without any
  /// Throws Error if the sizes do not match.
  void apply(std::span<const float> x, std::span<float> values) const;
  /// Throws Error (argument) unless the tensors of the method have the sizes of each other and of the labels.
  void validate() const;
  static constexpr float kNoVotes = -1000.0f;  // value of a class without neighbors

  /// Records the model and the vector that the head belongs to.
  void attach(const Model& from, Output vector);
  /// The output of `from` that the head needs. Throws Error naming both models if it belongs to another one.
  Output output(const Model& from) const;
};

/// Writes the head to a safetensors file: tensors `mean`, `scale`, `coefficients`, `intercepts`, or `vectors`
/// and `classes`; everything else in the metadata. Written atomically.
VIT_API void save_head(const std::filesystem::path& path, const ClassifierHead& head);
/// Throws Error naming the file and its defect.
VIT_API ClassifierHead load_head(const std::filesystem::path& path);

}  // namespace vit
