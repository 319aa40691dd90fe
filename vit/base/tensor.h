// TensorView<T> points at numbers owned elsewhere; Tensor<T> owns them, 64-byte aligned.
// Both are row-major with at most four dimensions; a view may leave a gap between rows of the last dimension.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "vit/base/checked.h"
#include "vit/base/error.h"
#include "vit/base/memory.h"

namespace vit {

/// Up to four sizes, outermost first. A scalar has rank 0 and one element.
class Shape {
 public:
  static constexpr std::size_t kMaxRank = 4;

  Shape() = default;
  Shape(std::initializer_list<std::size_t> sizes) : Shape(std::span(sizes.begin(), sizes.size())) {}
  explicit Shape(std::span<const std::size_t> sizes) : rank_(sizes.size()) {
    VIT_CHECK(rank_ <= kMaxRank, "Shape", "at most ", kMaxRank, " dimensions, got ", rank_);
    for (std::size_t i = 0; i < rank_; ++i) sizes_[i] = sizes[i];
  }

  std::size_t rank() const noexcept { return rank_; }
  std::size_t operator[](std::size_t i) const noexcept { return sizes_[i]; }
  std::size_t last() const noexcept { return rank_ == 0 ? 1 : sizes_[rank_ - 1]; }
  /// Product of all sizes; throws Error on overflow.
  std::size_t num_elements() const {
    std::size_t count = 1;
    for (std::size_t i = 0; i < rank_; ++i) count = checked_mul(count, sizes_[i], "Shape");
    return count;
  }
  /// Product of all sizes but the last.
  std::size_t num_rows() const {
    std::size_t count = 1;
    for (std::size_t i = 0; i + 1 < rank_; ++i) count = checked_mul(count, sizes_[i], "Shape");
    return count;
  }
  bool operator==(const Shape& other) const noexcept {
    if (rank_ != other.rank_) return false;
    for (std::size_t i = 0; i < rank_; ++i) {
      if (sizes_[i] != other.sizes_[i]) return false;
    }
    return true;
  }
  /// "(2, 197, 768)".
  std::string to_string() const {
    std::string out = "(";
    for (std::size_t i = 0; i < rank_; ++i) out += (i ? ", " : "") + std::to_string(sizes_[i]);
    return out + ")";
  }

 private:
  std::array<std::size_t, kMaxRank> sizes_{};
  std::size_t rank_ = 0;
};

/// Pointer, shape and row stride; copying it copies no numbers. Row r (all leading dimensions flattened,
/// row-major) starts at data() + r * row_stride().
template <typename T>
class TensorView {
 public:
  TensorView() = default;
  TensorView(T* data, Shape shape) : data_(data), shape_(shape), row_stride_(shape.last()) {}
  TensorView(T* data, Shape shape, std::size_t row_stride)
      : data_(data), shape_(shape), row_stride_(row_stride) {
    VIT_DCHECK(row_stride >= shape.last(), "TensorView", "row stride ", row_stride, " below row length ",
               shape.last());
  }
  /// TensorView<T> converts to TensorView<const T>.
  template <typename U>
  requires(std::is_same_v<const U, T> && !std::is_same_v<U, T>) TensorView(const TensorView<U>& other)
      : data_(other.data()), shape_(other.shape()), row_stride_(other.row_stride()) {}

  T* data() const noexcept { return data_; }
  const Shape& shape() const noexcept { return shape_; }
  std::size_t rank() const noexcept { return shape_.rank(); }
  std::size_t dim(std::size_t i) const noexcept { return shape_[i]; }
  std::size_t num_rows() const { return shape_.num_rows(); }
  std::size_t num_columns() const noexcept { return shape_.last(); }
  std::size_t num_elements() const { return shape_.num_elements(); }
  std::size_t row_stride() const noexcept { return row_stride_; }
  bool is_contiguous() const noexcept { return row_stride_ == shape_.last(); }
  bool empty() const noexcept { return data_ == nullptr; }
  T* row(std::size_t r) const noexcept { return data_ + r * row_stride_; }

  /// All numbers as one span; the view must be contiguous.
  std::span<T> flat() const {
    VIT_CHECK(is_contiguous(), "TensorView", "rows of ", num_columns(), " lie ", row_stride_,
              " apart: not contiguous");
    return {data_, num_elements()};
  }
  /// Sub-views [first, first + count) along the first dimension, which stays; an empty view has empty parts.
  TensorView part(std::size_t first, std::size_t count) const {
    if (empty()) return {};
    std::array<std::size_t, Shape::kMaxRank> sizes{count};
    for (std::size_t i = 1; i < rank(); ++i) sizes[i] = shape_[i];
    const Shape shape(std::span<const std::size_t>(sizes.data(), rank()));
    return TensorView((*this)[first].data(), shape, row_stride_);
  }
  /// Sub-view `index` along the first dimension.
  TensorView operator[](std::size_t index) const {
    std::array<std::size_t, Shape::kMaxRank> rest{};
    for (std::size_t i = 1; i < rank(); ++i) rest[i - 1] = shape_[i];
    const Shape inner(std::span<const std::size_t>(rest.data(), rank() - 1));
    return TensorView(data_ + index * inner.num_rows() * row_stride_, inner, row_stride_);
  }

 private:
  T* data_ = nullptr;
  Shape shape_;
  std::size_t row_stride_ = 0;
};

/// Owns memory (memory.h) for a contiguous tensor of a trivial type. Moves, does not copy; elements start at
/// zero.
template <typename T>
class Tensor {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Tensor() = default;
  explicit Tensor(Shape shape) : shape_(shape) {
    const std::size_t bytes = checked_mul(shape.num_elements(), sizeof(T), "Tensor");
    if (bytes != 0) data_ = Memory(static_cast<T*>(allocate_zeroed(bytes)), Release{bytes});
  }

  TensorView<T> view() noexcept { return {data_.get(), shape_}; }
  TensorView<const T> view() const noexcept { return {data_.get(), shape_}; }
  operator TensorView<T>() noexcept { return view(); }
  operator TensorView<const T>() const noexcept { return view(); }

  T* data() noexcept { return data_.get(); }
  const T* data() const noexcept { return data_.get(); }
  const Shape& shape() const noexcept { return shape_; }
  std::size_t dim(std::size_t i) const noexcept { return shape_[i]; }
  std::size_t num_elements() const { return shape_.num_elements(); }
  bool empty() const noexcept { return data_ == nullptr; }
  std::span<T> flat() { return {data_.get(), data_ ? num_elements() : 0}; }
  std::span<const T> flat() const { return {data_.get(), data_ ? num_elements() : 0}; }

 private:
  struct Release {
    std::size_t bytes = 0;
    void operator()(T* data) const noexcept { release_zeroed(static_cast<void*>(data), bytes); }
  };
  using Memory = std::unique_ptr<T, Release>;
  Memory data_;
  Shape shape_;
};

}  // namespace vit
