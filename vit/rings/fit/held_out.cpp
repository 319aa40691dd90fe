#include "vit/rings/fit/held_out.h"

#include <cmath>
#include <numeric>

namespace vit::internal {
namespace {

// Only predictions matter: a hundredth of the gradient at which scikit-learn's LogisticRegression stops.
constexpr MinimizeOptions kFoldOptimum{.tolerance = 1e-7, .max_gradient = 1e-6};
constexpr std::size_t kNumStrengths = 10;

/// Indices in `present` as classes.
Predictions as_classes(Predictions predictions, const Division& division) {
  for (std::uint32_t& index : predictions) index = division.present[index];
  return predictions;
}

}  // namespace

std::vector<std::size_t> count_classes(std::span<const std::uint32_t> classes, std::size_t num_classes) {
  std::vector<std::size_t> counts(num_classes);
  for (const std::uint32_t c : classes) ++counts[c];
  return counts;
}

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

std::vector<Predictions> predict_by_strength(const TrainingSet& set, const Division& division,
                                             const Standardization& standard,
                                             std::span<const double> strengths, const FitOptions& options) {
  std::vector<Predictions> out;
  if (division.present.size() == 1)  // nothing to learn: one answer
    return std::vector<Predictions>(strengths.size(),
                                    Predictions(division.tested.size(), division.present.front()));
  LogisticRegression regression(division.rows_of(set), standard, division.present.size(), options.threads,
                                {.has_intercept = options.intercept, .balanced = options.balanced});
  for (const double strength : strengths) {
    // A strength that has not converged is judged by its result after the last iteration, as scikit-learn
    // does with a warning.
    regression.fit(strength, kFoldOptimum);
    out.push_back(as_classes(
        classify_rows(regression.functions(), standard, set.features, division.tested, options.threads),
        division));
  }
  return out;
}

Predictions predict_by_centroids(const TrainingSet& set, const Division& division,
                                 const Standardization& standard, int threads) {
  const LinearFunctions functions = centroids(division.rows_of(set), division.present.size(), standard);
  return as_classes(classify_rows(functions, standard, set.features, division.tested, threads), division);
}

Predictions predict_by_votes(const TrainingSet& set, const Division& division, const FitOptions& options) {
  return as_classes(vote_of_neighbors(division.rows_of(set), division.tested, division.present.size(),
                                      options.neighbors, options.threads),
                    division);
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

}  // namespace vit::internal
