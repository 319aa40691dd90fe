#include "vit/rings/fit/logistic.h"

#include <Eigen/Cholesky>
#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "vit/analysis/eigen_rows.h"
#include "vit/base/check.h"
#include "vit/base/checked.h"
#include "vit/base/parallel.h"

namespace vit::internal {
namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Rows = Eigen::Map<RowMajor>;
using Columns = Eigen::Map<Eigen::MatrixXd>;
using ConstColumns = Eigen::Map<const Eigen::MatrixXd>;

constexpr Where kWhere{"fit", ErrorKind::argument};
constexpr std::size_t kBlock = 128;                            // rows of a task
constexpr std::size_t kMaxAtWork = std::size_t{1} << 23;       // numbers: 64 MiB
constexpr std::size_t kTileFeatures = 64, kTileColumns = 256;  // per task that multiplies rows

/// Rows in memory at a time: as many as fit with `width` numbers each, in whole blocks.
std::size_t rows_at_a_time(std::size_t width) {
  return std::max(kMaxAtWork / width / kBlock, std::size_t{1}) * kBlock;
}

/// Standardized rows (count, C + 1), a 1 at the end of each.
void load_standardized(const LabeledRows& data, const Standardization& standardization, std::size_t first,
                       std::size_t count, double* out) {
  const std::size_t columns = data.features.num_columns();
  for (std::size_t i = 0; i < count; ++i, out += columns + 1) {
    standardization.apply(data.features.row(data.rows[first + i]), out);
    out[columns] = 1.0;
  }
}

/// Calls function(first row, number of rows, first column, number of columns) for the tiles of a matrix.
template <typename Function>
void for_each_tile(std::size_t rows, std::size_t columns, int threads, const Function& function) {
  const std::size_t across = ceil_div(columns, kTileColumns);
  parallel_for(ceil_div(rows, kTileFeatures) * across, threads, [&](std::size_t task, int) {
    const std::size_t row = task / across * kTileFeatures, column = task % across * kTileColumns;
    function(index(row), index(std::min(kTileFeatures, rows - row)), index(column),
             index(std::min(kTileColumns, columns - column)));
  });
}

struct RowLoss {
  double loss = 0.0;
  double spread = 0.0;  // sum of p (1 - p)
};

/// Converts the K values of a row to probabilities minus the indicator of its class, over `count`.
RowLoss residual_of_row(double* values, std::size_t num_classes, std::uint32_t truth, double count) {
  const double largest = *std::max_element(values, values + num_classes);
  const double of_truth = values[truth];
  double sum = 0.0, squares = 0.0;
  for (std::size_t k = 0; k < num_classes; ++k) sum += values[k] = std::exp(values[k] - largest);
  for (std::size_t k = 0; k < num_classes; ++k) {
    const double probability = values[k] / sum;
    squares += probability * probability;
    values[k] = (probability - (k == truth ? 1.0 : 0.0)) / count;
  }
  return {.loss = std::log(sum) + largest - of_truth, .spread = 1.0 - squares};
}

}  // namespace

LogisticRegression::LogisticRegression(const LabeledRows& data, const Standardization& standardization,
                                       std::size_t num_classes, int threads, const LogisticForm& form)
    : data_(data),
      standardization_(standardization),
      num_classes_(num_classes),
      threads_(threads),
      form_(form),
      class_weights_(num_classes, 1.0) {
  if (form.balanced) {
    std::vector<double> counts(num_classes);
    for (const std::size_t row : data.rows) ++counts[data.classes[row]];
    for (std::size_t k = 0; k < num_classes; ++k)
      class_weights_[k] =
          static_cast<double>(data.rows.size()) / (static_cast<double>(num_classes) * counts[k]);
  }
  const std::size_t columns = data.features.num_columns();
  functions_.num_features = columns;
  functions_.numbers.resize(checked_mul(num_classes, columns + 1, kWhere));
  dim_ = columns;
  if (data.rows.size() < columns) rotate_rows();
  add_covariance();
}

/// The rows X (n, C) as R^T Q^T, X^T = Q R: the coefficients of a minimum are in the space of Q, since the
/// penalty of what is orthogonal to all rows only adds to the objective.
void LogisticRegression::rotate_rows() {
  const std::size_t columns = data_.features.num_columns(), count = data_.rows.size();
  dim_ = count;
  Eigen::MatrixXd rows(index(columns), index(count));  // X^T
  std::vector<double> row(columns + 1);
  for (std::size_t i = 0; i < count; ++i) {
    load_standardized(data_, standardization_, i, 1, row.data());
    std::copy_n(row.data(), columns, rows.col(index(i)).data());
  }
  const Eigen::HouseholderQR<Eigen::Ref<Eigen::MatrixXd>> factors(rows);
  rotated_.assign(checked_mul(count, count, kWhere), 0.0);
  for (std::size_t i = 0; i < count; ++i)
    std::copy_n(rows.col(index(i)).data(), i + 1, rotated_.data() + i * count);  // column i of R
  basis_.resize(checked_mul(count, columns, kWhere));
  Columns basis(basis_.data(), index(columns), index(count));
  basis = factors.householderQ() * Eigen::MatrixXd::Identity(index(columns), index(count));
}

/// Rows (count, D + 1), a 1 at the end of each.
void LogisticRegression::load_rows(std::size_t first, std::size_t count, double* out) const {
  if (basis_.empty()) return load_standardized(data_, standardization_, first, count, out);
  for (std::size_t i = 0; i < count; ++i, out += dim_ + 1) {
    std::copy_n(rotated_.data() + (first + i) * dim_, dim_, out);
    out[dim_] = 1.0;
  }
}

/// The functions in D dimensions (K, D + 1).
std::vector<double> LogisticRegression::rotated_functions() const {
  if (basis_.empty()) return functions_.numbers;
  const Eigen::Index columns = index(functions_.num_features), dim = index(dim_);
  std::vector<double> out(num_classes_ * (dim_ + 1));
  const ConstColumns from(functions_.numbers.data(), columns + 1, index(num_classes_)),
      basis(basis_.data(), columns, dim);
  Columns to(out.data(), dim + 1, index(num_classes_));
  to.topRows(dim).noalias() = basis.transpose() * from.topRows(columns);
  to.row(dim) = from.row(columns);
  return out;
}

void LogisticRegression::take_rotated(std::span<const double> rotated) {
  if (basis_.empty()) {
    std::ranges::copy(rotated, functions_.numbers.begin());
    return;
  }
  const Eigen::Index columns = index(functions_.num_features), dim = index(dim_);
  const ConstColumns from(rotated.data(), dim + 1, index(num_classes_)), basis(basis_.data(), columns, dim);
  Columns to(functions_.numbers.data(), columns + 1, index(num_classes_));
  to.topRows(columns).noalias() = basis * from.topRows(dim);
  to.row(columns) = from.row(dim);
}

void LogisticRegression::add_covariance() {
  const std::size_t columns = dim_, count = data_.rows.size();
  const std::size_t chunk = rows_at_a_time(std::max(columns + 1, num_classes_));
  rows_at_work_.resize(std::min(chunk, count) * (columns + 1));
  residuals_.resize(std::min(chunk, count) * num_classes_);
  losses_.resize(ceil_div(std::min(chunk, count), kBlock));
  spreads_.resize(losses_.size());
  covariance_.assign(checked_mul(columns, columns, kWhere), 0.0);
  Columns covariance(covariance_.data(), index(columns), index(columns));
  for (std::size_t first = 0; first < count; first += chunk) {
    const std::size_t size = std::min(chunk, count - first);
    parallel_for_parts(size, kBlock, threads_, [&](std::size_t begin, std::size_t part) {
      load_rows(first + begin, part, rows_at_work_.data() + begin * (columns + 1));
    });
    const Rows rows(rows_at_work_.data(), index(size), index(columns + 1));
    for_each_tile(columns, columns, threads_, [&](auto row, auto height, auto column, auto width) {
      if (column >= row + height) return;  // above the diagonal
      covariance.block(row, column, height, width).noalias() += rows.middleCols(row, height).transpose() *
                                                                rows.middleCols(column, width) /
                                                                static_cast<double>(count);
    });
  }
}

double LogisticRegression::evaluate(double penalty, std::span<const double> at, std::span<double> gradient) {
  const std::size_t columns = dim_, count = data_.rows.size();
  const std::size_t chunk = rows_at_a_time(std::max(columns + 1, num_classes_));
  const ConstColumns functions(at.data(), index(columns + 1), index(num_classes_));
  Columns slope(gradient.data(), index(columns + 1), index(num_classes_));
  slope = penalty * functions;
  slope.row(index(columns)).setZero();  // intercepts are not penalized
  double loss = 0.0, spread = 0.0;
  for (std::size_t first = 0; first < count; first += chunk) {
    const std::size_t size = std::min(chunk, count - first);
    Rows rows(rows_at_work_.data(), index(size), index(columns + 1));
    Rows residuals(residuals_.data(), index(size), index(num_classes_));
    parallel_for_parts(size, kBlock, threads_, [&](std::size_t begin, std::size_t part) {
      load_rows(first + begin, part, rows.row(index(begin)).data());
      residuals.middleRows(index(begin), index(part)).noalias() =
          rows.middleRows(index(begin), index(part)) * functions;
      RowLoss sum;
      for (std::size_t i = begin; i < begin + part; ++i) {
        const std::uint32_t truth = data_.classes[data_.rows[first + i]];
        const double weight = class_weights_[truth];
        const RowLoss row = residual_of_row(residuals.row(index(i)).data(), num_classes_, truth,
                                            static_cast<double>(count) / weight);
        sum.loss += weight * row.loss;
        sum.spread += weight * row.spread;
      }
      losses_[begin / kBlock] = sum.loss;
      spreads_[begin / kBlock] = sum.spread;
    });
    const auto blocks = static_cast<std::ptrdiff_t>(ceil_div(size, kBlock));
    loss = std::accumulate(losses_.begin(), losses_.begin() + blocks, loss);
    spread = std::accumulate(spreads_.begin(), spreads_.begin() + blocks, spread);
    for_each_tile(columns + 1, num_classes_, threads_, [&](auto row, auto height, auto column, auto width) {
      slope.block(row, column, height, width).noalias() +=
          rows.middleCols(row, height).transpose() * residuals.middleCols(column, width);
    });
  }
  if (!form_.has_intercept) slope.row(index(columns)).setZero();  // which stays 0
  spread_ = spread / static_cast<double>(count * num_classes_);
  return loss / static_cast<double>(count) + 0.5 * penalty * functions.topRows(index(columns)).squaredNorm();
}

bool LogisticRegression::fit(double strength, const MinimizeOptions& options) {
  const std::size_t columns = dim_;
  const double count = static_cast<double>(data_.rows.size());
  const double penalty = (num_classes_ == 2 ? 2.0 : 1.0) / (strength * count);
  const auto objective = [&](std::span<const double> x, std::span<double> slope) {
    return evaluate(penalty, x, slope);
  };
  std::vector<double> functions = rotated_functions(), gradient(functions.size());
  objective(functions, gradient);
  // The Hessian is about spread * covariance + penalty for each class, were p (1 - p) the same for all rows.
  const double spread = std::max(spread_, 1e-6);
  Eigen::MatrixXd hessian = spread * ConstColumns(covariance_.data(), index(columns), index(columns));
  hessian.diagonal().array() += penalty;
  const Eigen::LLT<Eigen::Ref<Eigen::MatrixXd>> factors(hessian);
  VIT_CHECK(factors.info() == Eigen::Success, kWhere, "the features are too large");
  const auto precondition = [&](std::span<double> vector) {
    Columns classes(vector.data(), index(columns + 1), index(num_classes_));
    parallel_for_parts(num_classes_, 32, threads_, [&](std::size_t first, std::size_t size) {
      Eigen::MatrixXd part = classes.block(0, index(first), index(columns), index(size));
      factors.solveInPlace(part);
      classes.block(0, index(first), index(columns), index(size)) = part;
      classes.block(index(columns), index(first), 1, index(size)) /= spread;
    });
  };
  MinimizeResult result;
  with_team(threads_, [&] { result = minimize(objective, precondition, functions, options); });
  take_rotated(functions);
  return result.converged;
}

std::vector<std::uint32_t> classify_rows(const LinearFunctions& functions,
                                         const Standardization& standardization,
                                         TensorView<const float> features, std::span<const std::size_t> rows,
                                         int threads) {
  const std::size_t columns = features.num_columns();
  const ConstColumns matrix(functions.numbers.data(), index(columns + 1), index(functions.size()));
  std::vector<std::uint32_t> best(rows.size());
  parallel_for_parts(rows.size(), kBlock, threads, [&](std::size_t first, std::size_t size) {
    RowMajor block(index(size), index(columns + 1));
    load_standardized({features, {}, rows}, standardization, first, size, block.data());
    const RowMajor values = block * matrix;
    for (std::size_t i = 0; i < size; ++i) {
      Eigen::Index largest = 0;
      values.row(index(i)).maxCoeff(&largest);
      best[first + i] = static_cast<std::uint32_t>(largest);
    }
  });
  return best;
}

}  // namespace vit::internal
