// Multinomial logistic regression with an L2 penalty, in double: the objective of scikit-learn's
// LogisticRegression, minimized. Letters: n rows, C features, K classes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "vit/analysis/neighbors.h"
#include "vit/base/tensor.h"
#include "vit/rings/fit/lbfgs.h"
#include "vit/rings/fit/standardize.h"

namespace vit::internal {

/// What functions are fitted.
struct LogisticForm {
  bool has_intercept = true;  // otherwise b = 0
  bool balanced = false;      // the loss of a row is weighted by n / (K rows of its class)
};

/// K linear functions of standardized features.
struct LinearFunctions {
  std::size_t num_features = 0;  // C
  /// (K, C + 1), the intercept after the coefficients.
  std::vector<double> numbers;

  std::size_t size() const { return numbers.size() / (num_features + 1); }
  std::span<const double> operator[](std::size_t k) const {
    return std::span(numbers).subspan(k * (num_features + 1), num_features + 1);
  }
};

/// Fits classes 0 .. num_classes - 1, each of which has a row, with penalties of several strengths, each from
/// the solution before it.
///
/// Minimizes  sum_i -log softmax(W x_i + b)[y_i] + |W|^2 / (2 strength)  over W (K, C) and b (K). For two
/// classes scikit-learn has one vector w and |w|^2, which is the same with w = W[1] - W[0] and twice the
/// penalty on W.
///
/// Fewer rows than features are first rotated into the n dimensions that hold them, where the same minimum is
/// found with less work.
///
/// Memory: 8 (30 (C + 1) K + 2 C^2) bytes, and 128 MiB for the rows being processed. The result has the same
/// bits for any number of threads.
class LogisticRegression {
 public:
  LogisticRegression(const LabeledRows& data, const Standardization& standardization, std::size_t num_classes,
                     int threads, const LogisticForm& form = {});

  /// Moves the functions to the minimum of the objective over n and strength, or towards it: false if
  /// options.max_iterations are not enough. Throws Error for features that are too large.
  bool fit(double strength, const MinimizeOptions& options);
  const LinearFunctions& functions() const noexcept { return functions_; }

 private:
  void rotate_rows();
  void load_rows(std::size_t first, std::size_t count, double* out) const;
  std::vector<double> rotated_functions() const;
  void take_rotated(std::span<const double> rotated);
  double evaluate(double penalty, std::span<const double> at, std::span<double> gradient);
  void add_covariance();

  LabeledRows data_;
  const Standardization& standardization_;
  std::size_t num_classes_;
  int threads_;
  LogisticForm form_;
  std::vector<double> class_weights_;  // (K) of their rows, with a mean of 1 over the rows
  LinearFunctions functions_;
  // D: the dimensions in which the minimum is found, min(C, n)
  std::size_t dim_ = 0;
  std::vector<double> basis_;       // (D, C) of n < C: orthonormal rows; else empty
  std::vector<double> rotated_;     // (n, D) the standardized rows in it
  std::vector<double> covariance_;  // (D, D), lower triangle, of the rows
  double spread_ = 0.0;             // mean of p (1 - p) over rows and classes, at the last point
  std::vector<double> rows_at_work_, residuals_, losses_, spreads_;
};

/// The function with the largest value for each of the rows, ties: the first.
std::vector<std::uint32_t> classify_rows(const LinearFunctions& functions,
                                         const Standardization& standardization,
                                         TensorView<const float> features, std::span<const std::size_t> rows,
                                         int threads);

}  // namespace vit::internal
