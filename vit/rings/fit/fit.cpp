// Fitting heads, and the cross-validation that all methods share.
#include "vit/fit.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "vit/analysis/neighbors.h"
#include "vit/base/check.h"
#include "vit/rings/fit/folds.h"
#include "vit/rings/fit/held_out.h"
#include "vit/rings/fit/logistic.h"
#include "vit/rings/fit/memory.h"
#include "vit/rings/fit/standardize.h"

namespace vit {
namespace {

using internal::Division;
using internal::LinearFunctions;
using internal::Predictions;
using internal::Standardization;
using internal::TrainingSet;

constexpr Where kWhere{"fit", ErrorKind::argument};
constexpr internal::MinimizeOptions kOptimum{.tolerance = 1e-9, .max_iterations = 10000};

TrainingSet checked(TensorView<const float> features, std::span<const std::uint32_t> classes,
                    FitMethod method) {
  VIT_CHECK(features.rank() == 2 && features.dim(0) == classes.size(), kWhere, "features of shape ",
            features.shape().to_string(), " for the classes of ", classes.size(), " images");
  VIT_CHECK(!classes.empty() && features.dim(1) > 0, kWhere, "no features");
  const std::size_t num_classes = *std::ranges::max_element(classes) + std::size_t{1};
  VIT_CHECK(num_classes >= 2, kWhere, "all images are of one class; two are required");
  VIT_CHECK(num_classes <= classes.size(), kWhere, num_classes, " classes, but ", classes.size(), " images");
  const std::vector<std::size_t> counts = internal::count_classes(classes, num_classes);
  const auto empty = std::ranges::find(counts, std::size_t{0});
  VIT_CHECK(empty == counts.end(), kWhere, "class ", empty - counts.begin(), " has no image");
  for (std::size_t r = 0; r < features.num_rows(); ++r) {
    const std::span row(features.row(r), features.num_columns());
    VIT_CHECK(std::ranges::all_of(row, [](float x) { return std::isfinite(x); }), kWhere,
              "the features of image ", r, " are not finite");
  }
  internal::check_fit_memory(method, classes.size(), features.dim(1), num_classes, 0);
  return {.features = features, .classes = classes, .num_classes = num_classes};
}

ClassifierHead head_of(const TrainingSet& set, FitMethod method) {
  ClassifierHead head;
  head.method = method;
  head.num_images = set.size();
  for (std::size_t k = 0; k < set.num_classes; ++k) head.labels.push_back(std::to_string(k));
  return head;
}

Tensor<float> to_floats(std::span<const double> numbers) {
  Tensor<float> out(Shape{numbers.size()});
  std::ranges::transform(numbers, out.data(), [](double number) { return static_cast<float>(number); });
  return out;
}

Standardization standard_of(TensorView<const float> features, const FitOptions& options) {
  return options.standardize ? internal::standardization_of(features)
                             : internal::no_standardization(features.num_columns());
}

void set_functions(ClassifierHead& head, const LinearFunctions& functions, const Standardization& standard) {
  head.mean = to_floats(standard.mean);
  head.scale = to_floats(standard.scale);
  head.coefficients = Tensor<float>(Shape{functions.size(), functions.num_features});
  head.intercepts = Tensor<float>(Shape{functions.size()});
  for (std::size_t k = 0; k < functions.size(); ++k) {
    const Tensor<float> numbers = to_floats(functions[k]);
    std::copy_n(numbers.data(), functions.num_features, head.coefficients.view().row(k));
    head.intercepts.data()[k] = numbers.data()[functions.num_features];
  }
}

// ------------------------------------------------------------------------------------- cross-validation

/// Folds that these classes allow; 0 = none.
std::size_t possible_folds(const TrainingSet& set, const FitOptions& options) {
  const std::vector<std::size_t> counts = internal::count_classes(set.classes, set.num_classes);
  const std::size_t folds = std::min(options.num_folds, *std::ranges::max_element(counts));
  return folds < 2 ? 0 : folds;
}

/// Fraction of the test rows whose class is predicted.
double accuracy(const TrainingSet& set, const Division& division,
                std::span<const std::uint32_t> predictions) {
  std::size_t correct = 0;
  for (std::size_t i = 0; i < predictions.size(); ++i)
    correct += predictions[i] == set.classes[division.tested[i]];
  return static_cast<double>(correct) / static_cast<double>(predictions.size());
}

/// Mean accuracy over the folds of each of several variants of a method: score(division) gives one number for
/// each.
using ScoreDivision = std::function<std::vector<double>(const Division&)>;
std::vector<double> cross_validate(const TrainingSet& set, std::size_t num_folds,
                                   const ScoreDivision& score) {
  const std::vector<std::size_t> folds = internal::stratified_folds(set.classes, set.num_classes, num_folds);
  std::vector<double> sums;
  for (std::size_t fold = 0; fold < num_folds; ++fold) {
    const std::vector<double> scores = score(internal::divide(set, folds, fold));
    sums.resize(scores.size());
    std::ranges::transform(sums, scores, sums.begin(), std::plus());
  }
  for (double& sum : sums) sum /= static_cast<double>(num_folds);
  return sums;
}

// ----------------------------------------------------------------------------------------------- methods

std::vector<std::size_t> all_rows(const TrainingSet& set) {
  std::vector<std::size_t> rows(set.size());
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  return rows;
}

}  // namespace

ClassifierHead fit_linear(TensorView<const float> features, std::span<const std::uint32_t> classes,
                          const FitOptions& options) {
  VIT_CHECK(!options.strength || (*options.strength > 0 && std::isfinite(*options.strength)), kWhere,
            "the strength must be above 0, got ", *options.strength);
  const TrainingSet set = checked(features, classes, FitMethod::logistic);
  const Standardization standard = standard_of(features, options);
  ClassifierHead head = head_of(set, FitMethod::logistic);
  head.num_folds = possible_folds(set, options);
  head.strength = options.strength.value_or(1.0);
  if (head.num_folds > 0) {
    const std::vector<double> strengths = internal::strengths_of(options);
    const std::vector<double> scores = cross_validate(set, head.num_folds, [&](const Division& division) {
      std::vector<double> accuracies;
      for (const Predictions& predicted :
           internal::predict_by_strength(set, division, standard, strengths, options))
        accuracies.push_back(accuracy(set, division, predicted));
      return accuracies;
    });
    const auto best = std::ranges::max_element(scores);  // ties: the first
    head.strength = strengths[static_cast<std::size_t>(best - scores.begin())];
    head.cross_validated_top1 = *best;
  }
  const std::vector<std::size_t> rows = all_rows(set);
  internal::LogisticRegression regression({features, classes, rows}, standard, set.num_classes,
                                          options.threads,
                                          {.has_intercept = options.intercept, .balanced = options.balanced});
  internal::MinimizeOptions optimum = kOptimum;
  optimum.max_gradient = options.max_gradient;
  VIT_CHECK(regression.fit(*head.strength, optimum), kWhere, "not converged after ", kOptimum.max_iterations,
            " iterations with strength ", *head.strength, "; a smaller strength converges faster");
  set_functions(head, regression.functions(), standard);
  return head;
}

ClassifierHead fit_knn(TensorView<const float> features, std::span<const std::uint32_t> classes,
                       const FitOptions& options) {
  VIT_CHECK(options.neighbors > 0, kWhere, "no neighbors to vote");
  const TrainingSet set = checked(features, classes, FitMethod::knn);
  ClassifierHead head = head_of(set, FitMethod::knn);
  head.num_folds = possible_folds(set, options);
  head.neighbors = options.neighbors;
  head.classes.assign(classes.begin(), classes.end());
  head.vectors = Tensor<float>(features.shape());
  for (std::size_t r = 0; r < set.size(); ++r) {
    std::copy_n(features.row(r), features.num_columns(), head.vectors.view().row(r));
    normalize_vector({head.vectors.view().row(r), features.num_columns()});
  }
  if (head.num_folds == 0) return head;
  head.cross_validated_top1 = cross_validate(set, head.num_folds, [&](const Division& division) {
                                const Predictions votes = internal::predict_by_votes(
                                    {head.vectors, classes, set.num_classes}, division, options);
                                return std::vector<double>{accuracy(set, division, votes)};
                              }).front();
  return head;
}

ClassifierHead fit_centroid(TensorView<const float> features, std::span<const std::uint32_t> classes,
                            const FitOptions& options) {
  const TrainingSet set = checked(features, classes, FitMethod::centroid);
  const Standardization standard = standard_of(features, options);
  ClassifierHead head = head_of(set, FitMethod::centroid);
  head.num_folds = possible_folds(set, options);
  if (head.num_folds > 0) {
    head.cross_validated_top1 =
        cross_validate(set, head.num_folds, [&](const Division& division) {
          return std::vector<double>{accuracy(
              set, division, internal::predict_by_centroids(set, division, standard, options.threads))};
        }).front();
  }
  const std::vector<std::size_t> rows = all_rows(set);
  set_functions(head, internal::centroids({features, classes, rows}, set.num_classes, standard), standard);
  return head;
}

}  // namespace vit
