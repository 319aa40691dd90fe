// Custom classes on features of a frozen model: logistic regression, nearest neighbors or nearest
// centroid, and the resulting head, with which vit::Classifier classifies images.
// Letters: n images, C features each, K classes.
//
//   vit::ClassifierHead head = vit::fit_linear(features, classes);
//   head.labels = {"cat", "dog"};
//   head.attach(*model, vit::Output::pooled);
//   vit::save_head("pets.safetensors", head);
//   vit::Classifier::of_head(model, vit::load_head("pets.safetensors")).classify("photo.jpg");
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

/// Settings of fit_linear and fit_knn.
struct FitOptions {
  /// For fit_linear: C of scikit-learn's LogisticRegression, the inverse of the penalty; nothing = of ten
  /// values from 1e-4 to 1e4, equally spaced in their logarithm, the smallest with the best accuracy in
  /// cross-validation, as chosen by scikit-learn's LogisticRegressionCV(scoring="accuracy").
  std::optional<double> strength{};
  /// For fit_knn: neighbors that vote.
  std::size_t neighbors = 20;
  /// For cross-validation: folds of scikit-learn's StratifiedKFold without shuffling. If even the
  /// largest class has fewer images, as many as it has. A class that a fold holds out whole is not predicted
  /// there. 0 = no cross-validation.
  std::size_t num_folds = 5;
  int threads = 0;  // 0 = all cores; results do not depend on it
};

/// A classifier on features, which is fitted, saved, loaded and applied.
struct VIT_API ClassifierHead {
  FitMethod method = FitMethod::logistic;  // determines which of the tensors below are set
  std::vector<std::string> labels;         // (K) names of the classes

  std::string features;     // the input vector, by the name of its Output: "pooled", "cls", ...
  std::string model;        // name of the model, for messages
  std::string fingerprint;  // LoadReport::fingerprint of the model; "" = any

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
  static constexpr float kNoVotes = -1000.0f;  // value of a class without neighbors

  /// Records the model and the vector that the head belongs to.
  void attach(const Model& from, Output vector);
  /// The output of `from` that the head needs. Throws Error naming both models if it belongs to another one.
  Output output(const Model& from) const;
};

/// Multinomial logistic regression on standardized features, with an L2 penalty: the minimum of
/// scikit-learn's
///   strength * sum_i -log softmax(W x_i + b)[y_i] + |W|^2 / 2
/// (for two classes: of its binary loss, which has one vector), found in double by L-BFGS. `features` (n, C);
/// `classes` (n) of 0 .. K - 1, each of which needs an image, and K >= 2. Memory beyond the features: 8 (30
/// (C + 1) K + 2 C^2) bytes and 128 MiB, or 8 K bytes for each of 128 images if that is more. Throws Error
/// for mismatched sizes and for features that are not finite, and before it starts if the system has not
/// enough memory.
VIT_API ClassifierHead fit_linear(TensorView<const float> features, std::span<const std::uint32_t> classes,
                                  const FitOptions& options = {});

/// Nearest neighbors by cosine, each voting with exp(cosine / 0.07), as DINO evaluates features; for ties
/// the earlier image. Memory: the size of the features again.
VIT_API ClassifierHead fit_knn(TensorView<const float> features, std::span<const std::uint32_t> classes,
                               const FitOptions& options = {});

/// Nearest centroid of standardized features, as scikit-learn's NearestCentroid. Memory: 12 K C bytes.
VIT_API ClassifierHead fit_centroid(TensorView<const float> features, std::span<const std::uint32_t> classes,
                                    const FitOptions& options = {});

/// Writes the head to a safetensors file: tensors `mean`, `scale`, `coefficients`, `intercepts`, or `vectors`
/// and `classes`; everything else in the metadata. Written atomically.
VIT_API void save_head(const std::filesystem::path& path, const ClassifierHead& head);
/// Throws Error naming the file and its defect.
VIT_API ClassifierHead load_head(const std::filesystem::path& path);

}  // namespace vit
