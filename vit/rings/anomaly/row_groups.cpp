#include "vit/rings/anomaly/row_groups.h"

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

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr std::size_t kSampleRows = 1024;  // of a set, for the directions
constexpr int kIterations = 2;             // of the subspace; directions need not be exact
constexpr std::size_t kRowsAtOnce = 64;    // that are converted to double together

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
    sample.row(index(i)) = map_row(rows, i * step).cast<double>().transpose();
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
  const Eigen::Map<const Matrix> directions(directions_.data(), index(kWidth - 1), index(columns));
  Matrix block, coordinates;
  for (std::size_t first = 0; first < count; first += kRowsAtOnce) {
    const std::size_t size = std::min(kRowsAtOnce, count - first);
    block.resize(index(size), index(columns));
    for (std::size_t i = 0; i < size; ++i)
      block.row(index(i)) = map_row(rows, first + i).cast<double>().transpose();
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

namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::VectorXd;

constexpr std::size_t kRowsPerTask = 1024;
constexpr std::size_t kSplitRows = 128;  // of a part, for the direction of a split
constexpr int kSplitIterations = 4;

/// The direction in which a sample of rows varies most, from their mean.
Vector widest(TensorView<const float> rows, std::span<const std::uint32_t> part) {
  const std::size_t step = ceil_div(part.size(), kSplitRows);
  Matrix sample(index(ceil_div(part.size(), step)), index(rows.num_columns()));
  for (std::size_t i = 0; i * step < part.size(); ++i)
    sample.row(index(i)) = map_row(rows, part[i * step]).cast<double>().transpose();
  sample.rowwise() -= sample.colwise().mean().eval();
  Eigen::Index farthest = 0;
  sample.rowwise().squaredNorm().maxCoeff(&farthest);
  Vector direction = sample.row(farthest).transpose();
  for (int i = 0; i < kSplitIterations; ++i) {
    direction = (sample.transpose() * (sample * direction)).eval();
    const double length = direction.norm();
    if (length > 0) direction /= length;
  }
  return direction;
}

/// Puts the rows that lie lower in the widest direction first, `first` of them.
void split(TensorView<const float> rows, std::span<std::uint32_t> part, std::size_t first) {
  struct Keyed {
    double key;
    std::uint32_t row;
  };
  const Vector direction = widest(rows, part);
  std::vector<Keyed> keyed(part.size());
  for (std::size_t i = 0; i < part.size(); ++i) {
    const double key = map_row(rows, part[i]).cast<double>().dot(direction);
    keyed[i] = {std::isfinite(key) ? key : 0.0, part[i]};
  }
  std::ranges::nth_element(
      keyed, keyed.begin() + static_cast<std::ptrdiff_t>(first),
      [](const Keyed& a, const Keyed& b) { return a.key != b.key ? a.key < b.key : a.row < b.row; });
  // as they were within the halves, so that nothing depends on how elements were selected
  const auto middle = keyed.begin() + static_cast<std::ptrdiff_t>(first);
  std::sort(keyed.begin(), middle, [](const Keyed& a, const Keyed& b) { return a.row < b.row; });
  std::sort(middle, keyed.end(), [](const Keyed& a, const Keyed& b) { return a.row < b.row; });
  for (std::size_t i = 0; i < part.size(); ++i) part[i] = keyed[i].row;
}

/// The mean of sketches [first, first + count) in `center`, and how far they are from it.
RowGroups::Ball ball_of(TensorView<const float> sketches, std::size_t first, std::size_t count,
                        float* center) {
  Vector mean = Vector::Zero(index(RowSketch::kWidth));
  for (std::size_t i = first; i < first + count; ++i) mean += map_row(sketches, i).cast<double>();
  Eigen::Map<Eigen::VectorXf> rounded(center, mean.size());
  rounded = (mean / static_cast<double>(count)).cast<float>();
  RowGroups::Ball ball{.center_square = rounded.cast<double>().squaredNorm()};
  double square = 0;
  for (std::size_t i = first; i < first + count; ++i) {
    const double d = (map_row(sketches, i).cast<double>() - rounded.cast<double>()).squaredNorm();
    square = d > square || std::isnan(d) ? d : square;
  }
  ball.radius = std::sqrt(square);
  return ball;
}

}  // namespace

RowGroups::RowGroups(TensorView<const float> rows, const kernels::LinearKernels& kernels) : sketch_(rows) {
  const std::size_t count = rows.num_rows();
  Tensor<float> sketches(Shape{count, RowSketch::kWidth});
  parallel_for_parts(count, kRowsPerTask, 0, [&](std::size_t first, std::size_t size) {
    sketch_.apply(rows.part(first, size), sketches.view().part(first, size));
  });
  order_ = group_rows(sketches, kGroup);
  Tensor<float> sorted(sketches.shape());
  centers_ = Tensor<float>(Shape{ceil_div(count, kGroup), RowSketch::kWidth});
  balls_.resize(centers_.dim(0));
  std::vector<double> squares(centers_.dim(0));  // the largest of each group
  parallel_for_parts(count, kGroup, 0, [&](std::size_t first, std::size_t size) {
    const std::size_t g = first / kGroup;
    for (std::size_t i = first; i < first + size; ++i) {
      std::copy_n(sketches.view().row(order_[i]), RowSketch::kWidth, sorted.view().row(i));
      squares[g] = std::max(squares[g], map_row(sorted, i).cast<double>().squaredNorm());
    }
    balls_[g] = ball_of(sorted, first, size, centers_.view().row(g));
  });
  largest_square_ = std::ranges::max(squares);
  sketches_ = PackedRows(sorted, {}, kernels);
}

std::vector<std::uint32_t> group_rows(TensorView<const float> rows, std::size_t size) {
  std::vector<std::uint32_t> order(rows.num_rows());
  std::iota(order.begin(), order.end(), std::uint32_t{0});
  std::vector<std::span<std::uint32_t>> parts{order};
  while (!parts.empty()) {
    std::erase_if(parts, [&](std::span<std::uint32_t> part) { return part.size() <= size; });
    std::vector<std::span<std::uint32_t>> halves(2 * parts.size());
    parallel_for(parts.size(), 0, [&](std::size_t i, int) {
      const std::size_t first = round_up(parts[i].size() / 2, size);
      split(rows, parts[i], first);
      halves[2 * i] = parts[i].first(first);
      halves[2 * i + 1] = parts[i].subspan(first);
    });
    parts = std::move(halves);
  }
  return order;
}

}  // namespace vit::internal
