// Custom classes on features of a frozen model: logistic regression, nearest neighbors or nearest
// centroid, and the resulting head, with which vit::Classifier classifies images.
// Letters: n images, C features each, K classes.
//
// ```
// vit::Session session(vit::Model::load("model"));
// vit::Outputs outputs;
// vit::Tensor<float> features(vit::Shape{2, session.model().config().pooled_dim()});
// for (std::size_t i = 0; i < 2; ++i) {
//   session.run(i == 0 ? "photo.jpg" : "other.jpg", vit::Output::pooled, outputs);
//   for (std::size_t c = 0; c < features.dim(1); ++c) features.view().row(i)[c] = outputs[0].pooled()[c];
// }
// const std::vector<std::uint32_t> classes{0, 1};
// vit::ClassifierHead head = vit::fit_centroid(features, classes, {.num_folds = 0});
// head.labels = {"cat", "dog"};
// head.attach(session.model(), vit::Output::pooled);
// vit::save_head("pets.safetensors", head);
// const auto pets = vit::Classifier::of_head(session.shared_model(), vit::load_head("pets.safetensors"));
// pets.classify(session, "photo.jpg");
// ```
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "vit/base/tensor.h"
#include "vit/classifier_head.h"

namespace vit {

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
  /// For fit_linear and fit_centroid: whether features are standardized; otherwise they are taken as they
  /// are.
  bool standardize = true;
  /// For fit_linear: scikit-learn's fit_intercept; without, the functions pass through the origin.
  bool intercept = true;
  /// For fit_linear: scikit-learn's class_weight="balanced", every class counts as much as any other.
  bool balanced = false;
  /// For fit_linear: stops once no element of the gradient of the mean loss is larger, as scikit-learn's tol
  /// (1e-4); 0 = at the minimum.
  double max_gradient = 0.0;
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

}  // namespace vit
