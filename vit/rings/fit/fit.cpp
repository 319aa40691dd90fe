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
#include "vit/rings/fit/logistic.h"
#include "vit/rings/fit/memory.h"
#include "vit/rings/fit/standardize.h"

namespace vit {
namespace {

using internal::LabeledRows;
using internal::LinearFunctions;
using internal::Standardization;

constexpr Where kWhere{"fit", ErrorKind::argument};
// For the optimum; for the folds, where only predictions matter, a hundredth of the gradient at which
// scikit-learn's LogisticRegression stops.
constexpr internal::MinimizeOptions kOptimum{.tolerance = 1e-9, .max_iterations = 10000};
constexpr internal::MinimizeOptions kFoldOptimum{.tolerance = 1e-7, .max_gradient = 1e-6};
constexpr std::size_t kNumStrengths = 10;

/// Features and classes after all checks.
struct TrainingSet {
  TensorView<const float> features;        // (n, C)
  std::span<const std::uint32_t> classes;  // (n)
  std::size_t num_classes = 0;

  std::size_t size() const { return classes.size(); }
};

std::vector<std::size_t> count_classes(std::span<const std::uint32_t> classes, std::size_t num_classes) {
  std::vector<std::size_t> counts(num_classes);
  for (const std::uint32_t c : classes) ++counts[c];
  return counts;
}

TrainingSet checked(TensorView<const float> features, std::span<const std::uint32_t> classes,
                    FitMethod method) {
  VIT_CHECK(features.rank() == 2 && features.dim(0) == classes.size(), kWhere, "features of shape ",
            features.shape().to_string(), " for the classes of ", classes.size(), " images");
  VIT_CHECK(!classes.empty() && features.dim(1) > 0, kWhere, "no features");
  const std::size_t num_classes = *std::ranges::max_element(classes) + std::size_t{1};
  VIT_CHECK(num_classes >= 2, kWhere, "all images are of one class; two are required");
  VIT_CHECK(num_classes <= classes.size(), kWhere, num_classes, " classes, but ", classes.size(), " images");
  const std::vector<std::size_t> counts = count_classes(classes, num_classes);
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
  const std::vector<std::size_t> counts = count_classes(set.classes, set.num_classes);
  const std::size_t folds = std::min(options.num_folds, *std::ranges::max_element(counts));
  return folds < 2 ? 0 : folds;
}

/// One division into training rows, with their classes numbered without gaps, and test rows.
struct Division {
  std::vector<std::size_t> learned, tested;  // rows
  std::vector<std::uint32_t> renumbered;     // (n) classes by their index in `present`
  std::vector<std::uint32_t> present;        // classes in the training rows

  LabeledRows rows_of(const TrainingSet& set) const { return {set.features, renumbered, learned}; }
};

Division divide(const TrainingSet& set, std::span<const std::size_t> folds, std::size_t fold) {
  Division out;
  std::vector<std::uint32_t> number(set.num_classes);
  for (std::size_t i = 0; i < set.size(); ++i) {
    (folds[i] == fold ? out.tested : out.learned).push_back(i);
    if (folds[i] != fold) number[set.classes[i]] = 1;
  }
  for (std::uint32_t c = 0; c < set.num_classes; ++c) {
    if (number[c] == 0) continue;
    number[c] = static_cast<std::uint32_t>(out.present.size());
    out.present.push_back(c);
  }
  for (const std::uint32_t c : set.classes) out.renumbered.push_back(number[c]);
  return out;
}

/// Fraction of the test rows whose predicted index in `present` is that of their class.
double accuracy(const TrainingSet& set, const Division& division,
                std::span<const std::uint32_t> predictions) {
  std::size_t correct = 0;
  for (std::size_t i = 0; i < predictions.size(); ++i)
    correct += division.present[predictions[i]] == set.classes[division.tested[i]];
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
    const std::vector<double> scores = score(divide(set, folds, fold));
    sums.resize(scores.size());
    std::ranges::transform(sums, scores, sums.begin(), std::plus());
  }
  for (double& sum : sums) sum /= static_cast<double>(num_folds);
  return sums;
}

// ----------------------------------------------------------------------------------------------- methods

/// Accuracy on the test rows with each strength, in ascending order.
std::vector<double> score_strengths(const TrainingSet& set, const Division& division,
                                    const Standardization& standard, std::span<const double> strengths,
                                    int threads) {
  std::vector<double> scores;
  if (division.present.size() == 1) {  // nothing to learn: one answer
    const std::vector<std::uint32_t> predictions(division.tested.size(), 0);
    return std::vector<double>(strengths.size(), accuracy(set, division, predictions));
  }
  internal::LogisticRegression regression(division.rows_of(set), standard, division.present.size(), threads);
  for (const double strength : strengths) {
    // Only predictions matter: a strength that has not converged is judged by its result after the last
    // iteration, as scikit-learn does with a warning.
    regression.fit(strength, kFoldOptimum);
    scores.push_back(accuracy(
        set, division,
        internal::classify_rows(regression.functions(), standard, set.features, division.tested, threads)));
  }
  return scores;
}

std::vector<double> strengths_of(const FitOptions& options) {
  if (options.strength) return {*options.strength};
  std::vector<double> out;
  for (std::size_t i = 0; i < kNumStrengths; ++i)
    out.push_back(std::pow(10.0, -4.0 + 8.0 * static_cast<double>(i) / (kNumStrengths - 1)));
  return out;
}

LinearFunctions centroids(const LabeledRows& rows, std::size_t num_classes, const Standardization& standard) {
  const std::size_t columns = rows.features.num_columns();
  LinearFunctions out{.num_features = columns, .numbers = std::vector<double>(num_classes * (columns + 1))};
  std::vector<double> counts(num_classes), row(columns);
  for (const std::size_t r : rows.rows) {
    double* const sum = out.numbers.data() + rows.classes[r] * (columns + 1);
    standard.apply(rows.features.row(r), row.data());
    for (std::size_t c = 0; c < columns; ++c) sum[c] += row[c];
    ++counts[rows.classes[r]];
  }
  for (std::size_t k = 0; k < num_classes; ++k) {
    double* const center = out.numbers.data() + k * (columns + 1);
    for (std::size_t c = 0; c < columns; ++c) center[c] /= counts[k];
    // |x - center|^2 = |x|^2 - 2 (x center + intercept)
    center[columns] = -0.5 * std::inner_product(center, center + columns, center, 0.0);
  }
  return out;
}

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
  const Standardization standard = internal::standardization_of(features);
  ClassifierHead head = head_of(set, FitMethod::logistic);
  head.num_folds = possible_folds(set, options);
  head.strength = options.strength.value_or(1.0);
  if (head.num_folds > 0) {
    const std::vector<double> strengths = strengths_of(options);
    const std::vector<double> scores = cross_validate(set, head.num_folds, [&](const Division& division) {
      return score_strengths(set, division, standard, strengths, options.threads);
    });
    const auto best = std::ranges::max_element(scores);  // ties: the first
    head.strength = strengths[static_cast<std::size_t>(best - scores.begin())];
    head.cross_validated_top1 = *best;
  }
  const std::vector<std::size_t> rows = all_rows(set);
  internal::LogisticRegression regression({features, classes, rows}, standard, set.num_classes,
                                          options.threads);
  VIT_CHECK(regression.fit(*head.strength, kOptimum), kWhere, "not converged after ", kOptimum.max_iterations,
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
                                const std::vector<std::uint32_t> votes = internal::vote_of_neighbors(
                                    {head.vectors, division.renumbered, division.learned}, division.tested,
                                    division.present.size(), options.neighbors, options.threads);
                                return std::vector<double>{accuracy(set, division, votes)};
                              }).front();
  return head;
}

ClassifierHead fit_centroid(TensorView<const float> features, std::span<const std::uint32_t> classes,
                            const FitOptions& options) {
  const TrainingSet set = checked(features, classes, FitMethod::centroid);
  const Standardization standard = internal::standardization_of(features);
  ClassifierHead head = head_of(set, FitMethod::centroid);
  head.num_folds = possible_folds(set, options);
  if (head.num_folds > 0) {
    head.cross_validated_top1 =
        cross_validate(set, head.num_folds, [&](const Division& division) {
          const LinearFunctions functions =
              centroids(division.rows_of(set), division.present.size(), standard);
          return std::vector<double>{accuracy(
              set, division,
              internal::classify_rows(functions, standard, features, division.tested, options.threads))};
        }).front();
  }
  const std::vector<std::size_t> rows = all_rows(set);
  set_functions(head, centroids({features, classes, rows}, set.num_classes, standard), standard);
  return head;
}

}  // namespace vit
