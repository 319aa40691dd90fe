// One aligned block of memory handed out as views. A forward pass takes the same views in the same order each
// time, so after the first pass of a grid and batch nothing is allocated.
#pragma once

#include <cstddef>

#include "vit/base/tensor.h"

namespace vit {

class Arena {
 public:
  /// Bytes that `count` elements of T occupy in an arena (rounded up to the alignment of 64).
  template <typename T>
  static std::size_t bytes_for(std::size_t count) {
    return round_up(checked_mul(count, sizeof(T), "Arena"), 64);
  }

  /// Makes room for `bytes` in total; forgets all views. Allocates only where the block grows.
  void reserve(std::size_t bytes);
  /// Forgets all views; keeps the block.
  void reset() noexcept { used_ = 0; }
  /// A contiguous view of the given shape, 64-byte aligned, contents unspecified. Throws Error where the
  /// reserved bytes do not suffice.
  template <typename T>
  TensorView<T> take(Shape shape) {
    return {reinterpret_cast<T*>(take_bytes(bytes_for<T>(shape.num_elements()))), shape};
  }

  std::size_t capacity_bytes() const noexcept { return block_.empty() ? 0 : block_.num_elements(); }

 private:
  std::byte* take_bytes(std::size_t bytes);

  Tensor<std::byte> block_;
  std::size_t used_ = 0;
};

}  // namespace vit
