#include "vit/analysis/features.h"

#include <Eigen/Core>
#include <Eigen/Eigenvalues>
#include <algorithm>

#include "vit/base/check.h"
#include "vit/base/moved.h"

namespace vit {
namespace {

constexpr Where kWhere{"PCA", ErrorKind::argument};
using Rows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Eigen::Map<const Rows, Eigen::Unaligned, Eigen::OuterStride<>> map_rows(TensorView<const float> rows) {
  return {rows.data(), static_cast<Eigen::Index>(rows.num_rows()),
          static_cast<Eigen::Index>(rows.num_columns()),
          Eigen::OuterStride<>(static_cast<Eigen::Index>(rows.row_stride()))};
}

}  // namespace

struct PcaAccumulator::Moments {
  Eigen::Index count = 0;
  Eigen::RowVectorXd mean;  // (C)
  Eigen::MatrixXd scatter;  // (C, C), sum of (row - mean)^T (row - mean); lower triangle
};

PcaAccumulator::PcaAccumulator() : moments_(std::make_unique<Moments>()) {}
PcaAccumulator::~PcaAccumulator() = default;
PcaAccumulator::PcaAccumulator(PcaAccumulator&&) noexcept = default;
PcaAccumulator& PcaAccumulator::operator=(PcaAccumulator&&) noexcept = default;

std::size_t PcaAccumulator::num_rows() const noexcept {
  return moments_ ? static_cast<std::size_t>(moments_->count) : 0;
}

void PcaAccumulator::add(TensorView<const float> rows) {
  Moments& m = internal::parts_of(moments_, kWhere);
  VIT_CHECK(!rows.empty() && rows.num_columns() > 0, kWhere, "no rows or no features");
  const auto width = static_cast<Eigen::Index>(rows.num_columns());
  if (m.count == 0) {
    m.mean = Eigen::RowVectorXd::Zero(width);
    m.scatter = Eigen::MatrixXd::Zero(width, width);
  }
  VIT_CHECK(m.mean.cols() == width, kWhere, "rows of ", width, " features, those before have ",
            m.mean.cols());
  Eigen::MatrixXd part = map_rows(rows).cast<double>();
  VIT_CHECK(part.allFinite(), kWhere, "rows that are not finite (NaN or infinity)");
  const Eigen::RowVectorXd part_mean = part.colwise().mean();
  part.rowwise() -= part_mean;
  m.scatter.selfadjointView<Eigen::Lower>().rankUpdate(part.transpose());
  // Chan, Golub and LeVeque (1983): moments of two sets merge without the cancellation of raw sums of
  // squares.
  const double before = static_cast<double>(m.count), added = static_cast<double>(part.rows());
  const Eigen::RowVectorXd step = part_mean - m.mean;
  m.scatter.selfadjointView<Eigen::Lower>().rankUpdate(step.transpose(), before * added / (before + added));
  m.mean += step * (added / (before + added));
  m.count += part.rows();
}

PrincipalComponents PcaAccumulator::fit(std::size_t num_components) const {
  const Moments& m = internal::parts_of(moments_, kWhere);
  const auto most = static_cast<std::size_t>(std::min(m.count, m.mean.cols()));
  VIT_CHECK(num_components > 0 && num_components <= most, kWhere, num_components, " components requested of ",
            m.count, " rows with ", m.mean.cols(), " features");
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(m.scatter);  // ascending; reads the lower half
  VIT_CHECK(solver.info() == Eigen::Success, kWhere, "no eigenvalues found; are all features finite?");
  const auto width = static_cast<std::size_t>(m.mean.cols());
  PrincipalComponents out{.mean = Tensor<float>(Shape{width}),
                          .components = Tensor<float>(Shape{num_components, width}),
                          .variances = {}};
  for (std::size_t c = 0; c < width; ++c)
    out.mean.data()[c] = static_cast<float>(m.mean(static_cast<Eigen::Index>(c)));
  for (std::size_t k = 0; k < num_components; ++k) {
    const Eigen::Index column = m.mean.cols() - 1 - static_cast<Eigen::Index>(k);
    Eigen::VectorXd component = solver.eigenvectors().col(column);
    Eigen::Index largest = 0;
    component.cwiseAbs().maxCoeff(&largest);
    if (component(largest) < 0) component = -component;
    for (std::size_t c = 0; c < width; ++c)
      out.components.view().row(k)[c] = static_cast<float>(component(static_cast<Eigen::Index>(c)));
    out.variances.push_back(solver.eigenvalues()(column) / std::max(1.0, static_cast<double>(m.count) - 1.0));
  }
  return out;
}

Tensor<float> PrincipalComponents::transform(TensorView<const float> rows) const {
  VIT_CHECK(!rows.empty() && rows.num_columns() == mean.num_elements(), kWhere, "rows ",
            rows.shape().to_string(), " for components of ", mean.num_elements(), " features");
  const Eigen::RowVectorXd center = map_rows(mean.view()).cast<double>();
  const Eigen::MatrixXd axes = map_rows(components.view()).cast<double>();
  Tensor<float> out(Shape{rows.num_rows(), components.dim(0)});
  Eigen::MatrixXd centered = map_rows(rows).cast<double>();
  centered.rowwise() -= center;
  Eigen::Map<Rows>(out.data(), centered.rows(), axes.rows()) = (centered * axes.transpose()).cast<float>();
  return out;
}

}  // namespace vit
