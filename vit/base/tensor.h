// TensorView<T> points to elements owned elsewhere; Tensor<T> owns them, 64-byte aligned.
// Both are row-major with at most four dimensions; a view may leave a gap between rows of the last dimension.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "vit/base/error.h"

namespace vit {

/// Up to four sizes, outermost first. A scalar has rank 0 and one element.
class VIT_API Shape {
 public:
  static constexpr std::size_t kMaxRank = 4;  // largest number of dimensions

  Shape() = default;
  /// Shape{2, 197, 768}. Throws Error for more than kMaxRank sizes.
  Shape(std::initializer_list<std::size_t> sizes) : Shape(std::span(sizes.begin(), sizes.size())) {}
  /// A shape of sizes in memory. Throws Error for more than kMaxRank.
  explicit Shape(std::span<const std::size_t> sizes) : rank_(sizes.size()) {
    if (rank_ > kMaxRank) throw Error("Shape", "at most 4 dimensions, got " + std::to_string(rank_));
    for (std::size_t i = 0; i < rank_; ++i) sizes_[i] = sizes[i];
  }

  std::size_t rank() const noexcept { return rank_; }                         // number of dimensions
  std::size_t operator[](std::size_t i) const noexcept { return sizes_[i]; }  // i < rank()
  std::size_t last() const noexcept {
    return rank_ == 0 ? 1 : sizes_[rank_ - 1];
  }  // innermost size; 1 for a scalar
  /// Product of all sizes; throws Error on overflow.
  std::size_t num_elements() const { return product_of(rank_); }
  /// Product of all sizes except the last.
  std::size_t num_rows() const { return product_of(rank_ == 0 ? 0 : rank_ - 1); }
  /// Equal ranks and sizes.
  bool operator==(const Shape& other) const noexcept {
    if (rank_ != other.rank_) return false;
    for (std::size_t i = 0; i < rank_; ++i) {
      if (sizes_[i] != other.sizes_[i]) return false;
    }
    return true;
  }
  /// "(2, 197, 768)".
  std::string to_string() const;

 private:
  std::size_t product_of(std::size_t num_sizes) const;  // of the first ones

  std::array<std::size_t, kMaxRank> sizes_{};
  std::size_t rank_ = 0;
};

/// Pointer, shape and row stride; copying it copies no elements. Row r (all leading dimensions flattened,
/// row-major) starts at data() + r * row_stride().
template <typename T>
class TensorView {
 public:
  TensorView() = default;
  /// Rows without gaps.
  TensorView(T* data, Shape shape) : data_(data), shape_(shape), row_stride_(shape.last()) {}
  /// `row_stride`: elements from the start of one row to the next.
  TensorView(T* data, Shape shape, std::size_t row_stride)
      : data_(data), shape_(shape), row_stride_(row_stride) {}
  /// TensorView<T> converts to TensorView<const T>.
  template <typename U>
  requires(std::is_same_v<const U, T> && !std::is_same_v<U, T>) TensorView(const TensorView<U>& other)
      : data_(other.data()), shape_(other.shape()), row_stride_(other.row_stride()) {}

  T* data() const noexcept { return data_; }                           // first element; null if there is none
  const Shape& shape() const noexcept { return shape_; }               // sizes of all dimensions
  std::size_t rank() const noexcept { return shape_.rank(); }          // number of dimensions
  std::size_t dim(std::size_t i) const noexcept { return shape_[i]; }  // i < rank()
  std::size_t num_rows() const { return shape_.num_rows(); }           // all leading dimensions flattened
  std::size_t num_columns() const noexcept { return shape_.last(); }   // last dimension
  std::size_t num_elements() const { return shape_.num_elements(); }   // product of all sizes
  std::size_t row_stride() const noexcept { return row_stride_; }      // in elements
  bool is_contiguous() const noexcept { return row_stride_ == shape_.last(); }  // rows have no gaps
  bool empty() const noexcept { return data_ == nullptr; }                      // no elements
  /// The shape, and that there is no data or that rows have gaps, for messages: "(1, 7, 16) without data".
  std::string describe() const {
    const std::string sizes = shape_.to_string();
    if (empty()) return sizes + " without data";
    return is_contiguous() ? sizes : sizes + " with rows " + std::to_string(row_stride_) + " apart";
  }
  T* row(std::size_t r) const noexcept { return data_ + r * row_stride_; }  // r < num_rows()

  /// All elements as one span, which is empty for a view without data. Throws Error for rows with gaps.
  std::span<T> flat() const {
    if (empty()) return {};
    if (!is_contiguous()) fail_contiguous();
    return {data_, num_elements()};
  }
  /// Sub-view [first, first + count) along the first dimension, which is kept; an empty view has empty parts.
  /// Throws Error for a part that reaches beyond it.
  TensorView part(std::size_t first, std::size_t count) const {
    if (empty()) return {};
    if (rank() == 0 || first > dim(0) || count > dim(0) - first) fail_part(first, count);
    std::array<std::size_t, Shape::kMaxRank> sizes{count};
    for (std::size_t i = 1; i < rank(); ++i) sizes[i] = shape_[i];
    const Shape shape(std::span<const std::size_t>(sizes.data(), rank()));
    return TensorView(data_ + first * inner().num_rows() * row_stride_, shape, row_stride_);
  }
  /// Sub-view `index` along the first dimension. Throws Error if there is none.
  TensorView operator[](std::size_t index) const {
    if (rank() == 0 || index >= dim(0)) fail_part(index, 1);
    const Shape shape = inner();
    return TensorView(data_ + index * shape.num_rows() * row_stride_, shape, row_stride_);
  }

 private:
  /// All dimensions but the first, of which there is one at least.
  Shape inner() const {
    std::array<std::size_t, Shape::kMaxRank> rest{};
    for (std::size_t i = 1; i < rank(); ++i) rest[i - 1] = shape_[i];
    return Shape(std::span<const std::size_t>(rest.data(), rank() - 1));
  }
  [[noreturn]] void fail_part(std::size_t first, std::size_t count) const {
    throw Error("TensorView", std::to_string(count) + " from " + std::to_string(first) +
                                  " on along the first dimension of " + shape_.to_string());
  }
  [[noreturn]] void fail_contiguous() const {
    throw Error("TensorView", "rows of " + std::to_string(num_columns()) + " lie " +
                                  std::to_string(row_stride_) + " apart: not contiguous");
  }

  T* data_ = nullptr;
  Shape shape_;
  std::size_t row_stride_ = 0;
};

/// The memory of a Tensor: zero bytes at a multiple of 64. Moves, does not copy.
class VIT_API TensorMemory {
 public:
  TensorMemory() = default;
  /// Empty for a shape without elements. Throws Error on overflow, std::bad_alloc if memory is short.
  TensorMemory(const Shape& shape, std::size_t element_bytes);
  TensorMemory(TensorMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  TensorMemory& operator=(TensorMemory&& other) noexcept {
    TensorMemory taken(std::move(other));
    std::swap(data_, taken.data_);
    std::swap(bytes_, taken.bytes_);
    return *this;
  }
  ~TensorMemory() { release(); }

  void* data() const noexcept { return data_; }  // null for no elements

 private:
  void release() noexcept;

  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Owns memory for a contiguous tensor of a trivial type. Moves, does not copy; elements start at
/// zero.
template <typename T>
class Tensor {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Tensor() = default;
  /// All zeros. Throws Error if the size overflows, std::bad_alloc if memory is short.
  explicit Tensor(Shape shape) : memory_(shape, sizeof(T)), shape_(shape) {}
  /// `other` becomes a default tensor.
  Tensor(Tensor&& other) noexcept
      : memory_(std::move(other.memory_)), shape_(std::exchange(other.shape_, {})) {}
  Tensor& operator=(Tensor&& other) noexcept {
    memory_ = std::move(other.memory_);
    shape_ = std::exchange(other.shape_, {});
    return *this;
  }

  /// All of it, valid while the tensor lives.
  TensorView<T> view() noexcept VIT_LIFETIME_BOUND { return {data(), shape_}; }
  /// The same, read only.
  TensorView<const T> view() const noexcept VIT_LIFETIME_BOUND { return {data(), shape_}; }
  operator TensorView<T>() noexcept { return view(); }              // view()
  operator TensorView<const T>() const noexcept { return view(); }  // view()

  T* data() noexcept { return static_cast<T*>(memory_.data()); }  // first element; null if there is none
  /// First element; null if there is none.
  const T* data() const noexcept { return static_cast<const T*>(memory_.data()); }
  const Shape& shape() const noexcept { return shape_; }               // sizes of all dimensions
  std::size_t dim(std::size_t i) const noexcept { return shape_[i]; }  // i < rank of the shape
  /// Product of all sizes; 0 of a default tensor, although its shape is that of a single number.
  std::size_t num_elements() const { return empty() ? 0 : shape_.num_elements(); }
  bool empty() const noexcept { return memory_.data() == nullptr; }  // owns nothing
  /// All elements in order, valid while the tensor lives: a range-for over those of a temporary reads freed
  /// memory.
  std::span<T> flat() VIT_LIFETIME_BOUND { return {data(), num_elements()}; }
  /// The same, read only.
  std::span<const T> flat() const VIT_LIFETIME_BOUND { return {data(), num_elements()}; }

 private:
  TensorMemory memory_;
  Shape shape_;
};

}  // namespace vit
