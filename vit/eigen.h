// Eigen views of the library's tensors, and vice versa. Header only; using the library does not
// require Eigen.
#pragma once

#include <Eigen/Core>
#include <cstddef>
#include <type_traits>

#include "vit/base/error.h"
#include "vit/base/tensor.h"

namespace vit {

/// Row-major matrix type for the values of a tensor.
template <typename T>
using EigenMatrix = Eigen::Matrix<std::remove_const_t<T>, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
/// View of a tensor as such a matrix, with its row stride.
template <typename T>
using EigenMap = Eigen::Map<std::conditional_t<std::is_const_v<T>, const EigenMatrix<T>, EigenMatrix<T>>,
                            Eigen::Unaligned, Eigen::OuterStride<>>;

/// The tensor as a matrix (rows, columns): all leading dimensions flattened, the last one as columns. (h, w,
/// C) becomes (h w, C), a vector (C) becomes (1, C). Shares the memory; the row stride is kept. Throws Error
/// for an empty view.
template <typename T>
EigenMap<T> view_as_eigen(TensorView<T> view) {
  if (view.empty()) throw Error("view_as_eigen", "the tensor is empty; was it requested?");
  return EigenMap<T>(view.data(), static_cast<Eigen::Index>(view.num_rows()),
                     static_cast<Eigen::Index>(view.num_columns()),
                     Eigen::OuterStride<>(static_cast<Eigen::Index>(view.row_stride())));
}
/// An Eigen map of a tensor that owns its memory.
template <typename T>
EigenMap<T> view_as_eigen(Tensor<T>& tensor) {
  return view_as_eigen(tensor.view());
}
/// A read-only Eigen map of a tensor that owns its memory.
template <typename T>
EigenMap<const T> view_as_eigen(const Tensor<T>& tensor) {
  return view_as_eigen(tensor.view());
}
template <typename T>
EigenMap<const T> view_as_eigen(const Tensor<T>&& tensor) =
    delete;  // it would point into a tensor that has been destroyed

/// A row-major Eigen matrix, or rows of one, as a tensor view (rows, columns). Shares the memory; the matrix
/// must outlive the view.
template <typename Derived>
auto view_as_tensor(Eigen::PlainObjectBase<Derived>& matrix) {
  static_assert(Derived::IsRowMajor, "tensors are row-major: use Eigen::RowMajor or vit::EigenMatrix");
  using T = typename Derived::Scalar;
  return TensorView<T>(
      matrix.data(), Shape{static_cast<std::size_t>(matrix.rows()), static_cast<std::size_t>(matrix.cols())},
      static_cast<std::size_t>(matrix.outerStride()));
}
/// A read-only view of a row-major Eigen matrix, which must outlive it.
template <typename Derived>
auto view_as_tensor(const Eigen::PlainObjectBase<Derived>& matrix) {
  static_assert(Derived::IsRowMajor, "tensors are row-major: use Eigen::RowMajor or vit::EigenMatrix");
  using T = typename Derived::Scalar;
  return TensorView<const T>(
      matrix.data(), Shape{static_cast<std::size_t>(matrix.rows()), static_cast<std::size_t>(matrix.cols())},
      static_cast<std::size_t>(matrix.outerStride()));
}

}  // namespace vit
