// Sequences: the rows of a pass that attend to each other. An image, a text, or a window of either is one
// sequence of contiguous rows. So windows need no mask, and attention costs the sum over the sequences.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "vit/base/check.h"
#include "vit/base/checked.h"

namespace vit::internal {

class Sequences {
 public:
  /// `count` sequences of `length` rows each. Throws Error if their rows overflow.
  Sequences(std::size_t count, std::size_t length)
      : size_(count), longest_(length), rows_(checked_mul(count, length, "Sequences")) {}
  /// Sequence i is the rows from starts[i] to before starts[i + 1], where the first starts at row 0: (size +
  /// 1) increasing numbers, which must outlive this object. Throws Error for others.
  explicit Sequences(std::span<const std::size_t> starts) : starts_(starts) {
    VIT_CHECK(!starts.empty(), "Sequences", "no start row of the first sequence");
    size_ = starts.size() - 1;
    rows_ = starts.back() - starts.front();
    for (std::size_t i = 0; i < size_; ++i) {
      VIT_CHECK(starts[i] < starts[i + 1], "Sequences", "sequence ", i, " starts at row ", starts[i],
                " and ends at row ", starts[i + 1]);
      longest_ = std::max(longest_, length(i));
    }
  }

  std::size_t size() const noexcept { return size_; }
  std::size_t rows() const noexcept { return rows_; }        // of all sequences
  std::size_t longest() const noexcept { return longest_; }  // rows
  /// Whether the lengths are known to be the same: given as one.
  bool have_one_length() const noexcept { return starts_.empty(); }
  std::size_t first_row(std::size_t i) const noexcept {
    return starts_.empty() ? i * longest_ : starts_[i] - starts_[0];
  }
  std::size_t length(std::size_t i) const noexcept {
    return starts_.empty() ? longest_ : starts_[i + 1] - starts_[i];
  }

 private:
  std::span<const std::size_t> starts_{};
  std::size_t size_ = 0;
  std::size_t longest_ = 0;
  std::size_t rows_ = 0;
};

}  // namespace vit::internal
