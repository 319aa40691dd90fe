// One aligned block of memory laid out as views. A list of views is visited twice: once to count their bytes,
// once to take them; a list that needs no more than an earlier one allocates nothing.
#pragma once

#include <algorithm>
#include <cstddef>

#include "vit/base/checked.h"
#include "vit/base/tensor.h"

namespace vit::internal {

class Arena {
 public:
  /// Assigns memory from the start of the block; without a block, empty views, and counts.
  class Taker {
   public:
    /// A view of the given shape, 64-byte aligned, contents unspecified, its rows `row_stride` elements
    /// apart. Throws Error if its size overflows.
    template <typename T>
    TensorView<T> take(Shape shape, std::size_t row_stride) {
      const std::size_t elements = checked_mul(shape.num_rows(), row_stride, "Arena");
      return {reinterpret_cast<T*>(take_bytes(checked_mul(elements, sizeof(T), "Arena"))), shape, row_stride};
    }
    /// A contiguous view of the given shape, 64-byte aligned, contents unspecified.
    template <typename T>
    TensorView<T> take(Shape shape) {
      return take<T>(shape, shape.last());
    }

    /// Calls `first` and `second`, which take views that are never alive together: both use the same memory.
    template <class First, class Second>
    void share(First&& first, Second&& second) {
      const std::size_t begin = used_;
      first();
      const std::size_t end = used_;
      used_ = begin;
      second();
      used_ = std::max(used_, end);
    }

   private:
    friend class Arena;
    explicit Taker(std::byte* block) : block_(block) {}
    std::byte* take_bytes(std::size_t bytes);

    std::byte* block_;
    std::size_t used_ = 0;
  };

  /// Calls list(Taker&) to count, makes room, and calls it again to take. Allocates only if the block
  /// grows, which invalidates earlier views. Throws Error if sizes overflow, and then leaves no views.
  template <class List>
  void lay_out(const List& list) {
    Taker count(nullptr);
    list(count);
    reserve(count.used_);
    Taker take(block_.data());
    list(take);
  }

  std::size_t capacity_bytes() const noexcept { return block_.empty() ? 0 : block_.num_elements(); }

 private:
  void reserve(std::size_t bytes);

  Tensor<std::byte> block_;
};

}  // namespace vit::internal
