// Predictions for rows that a fold of a cross-validation holds out, by each method; what is made of them is
// the caller's. Letters: n rows, C features, K classes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "vit/analysis/neighbors.h"
#include "vit/base/tensor.h"
#include "vit/fit.h"
#include "vit/rings/fit/logistic.h"
#include "vit/rings/fit/standardize.h"

namespace vit::internal {

/// Features and classes after all checks.
struct TrainingSet {
  TensorView<const float> features;        // (n, C)
  std::span<const std::uint32_t> classes;  // (n)
  std::size_t num_classes = 0;

  std::size_t size() const { return classes.size(); }
};

std::vector<std::size_t> count_classes(std::span<const std::uint32_t> classes, std::size_t num_classes);

/// One division into training rows, with their classes numbered without gaps, and test rows.
struct Division {
  std::vector<std::size_t> learned, tested;  // rows
  std::vector<std::uint32_t> renumbered;     // (n) classes by their index in `present`
  std::vector<std::uint32_t> present;        // classes in the training rows

  LabeledRows rows_of(const TrainingSet& set) const { return {set.features, renumbered, learned}; }
};

/// The division that holds out the rows of `fold`; `folds` (n).
Division divide(const TrainingSet& set, std::span<const std::size_t> folds, std::size_t fold);

/// The class predicted for each test row of a division.
using Predictions = std::vector<std::uint32_t>;

/// With each of the strengths, in ascending order; of `options` the form of the functions and the threads
/// count.
std::vector<Predictions> predict_by_strength(const TrainingSet& set, const Division& division,
                                             const Standardization& standard,
                                             std::span<const double> strengths, const FitOptions& options);
Predictions predict_by_centroids(const TrainingSet& set, const Division& division,
                                 const Standardization& standard, int threads);
/// Rows of length 1.
Predictions predict_by_votes(const TrainingSet& set, const Division& division, const FitOptions& options);

/// The strengths among which the cross-validation chooses.
std::vector<double> strengths_of(const FitOptions& options);
/// Centers of the classes, as functions whose largest is that of the nearest one.
LinearFunctions centroids(const LabeledRows& rows, std::size_t num_classes, const Standardization& standard);

}  // namespace vit::internal
