#include "vit/analysis/row_sketch.h"

#include <Eigen/Core>
#include <Eigen/QR>
#include <algorithm>
#include <cmath>

#include "vit/base/check.h"
#include "vit/base/checked.h"

namespace vit::internal {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Columns = Eigen::Map<const Matrix>;

constexpr std::size_t kSampleRows = 1024;  // of a set, for the directions
constexpr int kIterations = 2;             // of the subspace; directions need not be exact
constexpr std::size_t kRowsAtOnce = 64;    // that are converted to double together

Eigen::Index index(std::size_t i) {
  return static_cast<Eigen::Index>(i);
}

Eigen::Map<const Eigen::VectorXf> map(TensorView<const float> rows, std::size_t i) {
  return {rows.row(i), index(rows.num_columns())};
}

/// Columns of length 1 at right angles that span the same, or more where they depend on each other.
Matrix orthonormal(const Matrix& columns) {
  const Eigen::HouseholderQR<Matrix> qr(columns);
  return qr.householderQ() * Matrix::Identity(columns.rows(), columns.cols());
}

}  // namespace

RowSketch::RowSketch(TensorView<const float> rows) : directions_(Shape{kWidth - 1, rows.num_columns()}) {
  const std::size_t columns = rows.num_columns(), count = rows.num_rows();
  VIT_CHECK(columns > kWidth && count > 0, "RowSketch", "rows of ", columns, " features cannot be shortened");
  const std::size_t step = ceil_div(count, kSampleRows);
  Matrix sample(index(ceil_div(count, step)), index(columns));
  for (std::size_t i = 0; i * step < count; ++i)
    sample.row(index(i)) = map(rows, i * step).cast<double>().transpose();
  // Subspace iteration from unit vectors that are spread over the features.
  Matrix basis = Matrix::Zero(index(columns), index(kWidth - 1));
  for (std::size_t i = 0; i + 1 < kWidth; ++i) basis(index(i * columns / kWidth), index(i)) = 1;
  for (int i = 0; i < kIterations; ++i) {
    const Matrix seen = sample * basis;
    basis = orthonormal(sample.transpose() * seen);
  }
  Eigen::Map<Matrix>(directions_.data(), index(kWidth - 1), index(columns)) = basis.transpose();
}

void RowSketch::apply(TensorView<const float> rows, TensorView<float> out) const {
  const std::size_t columns = directions_.dim(1), count = rows.num_rows();
  const Columns directions(directions_.data(), index(kWidth - 1), index(columns));
  Matrix block, coordinates;
  for (std::size_t first = 0; first < count; first += kRowsAtOnce) {
    const std::size_t size = std::min(kRowsAtOnce, count - first);
    block.resize(index(size), index(columns));
    for (std::size_t i = 0; i < size; ++i)
      block.row(index(i)) = map(rows, first + i).cast<double>().transpose();
    coordinates.noalias() = block * directions.transpose();
    for (std::size_t i = 0; i < size; ++i) {
      const auto of_row = coordinates.row(index(i));
      const double length = block.row(index(i)).squaredNorm();
      const double rest = std::max(0.0, length - of_row.squaredNorm());
      float* const to = out.row(first + i);
      for (std::size_t c = 0; c + 1 < kWidth; ++c) to[c] = static_cast<float>(of_row[index(c)]);
      to[kWidth - 1] =
          static_cast<float>(std::sqrt(rest + static_cast<double>(columns + kWidth) * 0x1p-52 * length));
    }
  }
}

double RowSketch::slack(std::size_t columns, double length) {
  return 1.01 * 0x1p-24 * static_cast<double>(columns + 320) * length * length;
}

}  // namespace vit::internal
