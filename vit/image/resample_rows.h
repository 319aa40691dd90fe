// Resizes of images whose rows arrive one after another: identical to resample.h byte for byte; only
// the rows that the next output needs are in memory. Single-threaded.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "vit/base/checked.h"
#include "vit/image/resample.h"
#include "vit/image/resize_memory.h"
#include "vit/image/row_source.h"

namespace vit::internal {

/// The latest rows of an image that grows downwards, without gaps, `row_size` elements each.
template <typename T>
class SlidingRows {
 public:
  /// `num_kept`: most earlier rows needed; `num_new`: most rows that arrive at once.
  SlidingRows(Buffer<T>& memory, std::size_t row_size, std::size_t num_kept, std::size_t num_new)
      : row_size_(row_size), num_rows_(2 * num_kept + num_new) {
    data_ = memory.take(checked_mul(num_rows_, row_size, "resize"));
  }
  std::size_t row_size() const { return row_size_; }
  std::size_t end() const { return end_; }
  const T* row(std::size_t y) const { return data_ + (y - first_) * row_size_; }
  /// Memory for the rows [end(), end() + count). Rows before `keep` are discarded.
  T* append(std::size_t count, std::size_t keep) {
    if (end_ - first_ + count > num_rows_) {
      keep = std::clamp(keep, first_, end_);
      std::copy(row(keep), row(end_), data_);
      first_ = keep;
    }
    T* const to = data_ + (end_ - first_) * row_size_;
    end_ += count;
    return to;
  }

 private:
  T* data_ = nullptr;
  std::size_t row_size_ = 0;
  std::size_t num_rows_ = 0;
  std::size_t first_ = 0;  // row at data_
  std::size_t end_ = 0;
};

/// Rows of the source that are decoded together: a row of blocks of most JPEGs.
constexpr std::size_t kStripRows = 16;

/// resize() of an image of rows that are stored with an EXIF orientation: `in`, `target` and `window` are
/// upright. Integer sums do not depend on the order of their terms, so weights of mirrored axes suffice,
/// and only the result is rotated.
class RowResize {
 public:
  /// Throws Error if resize() does, and for filter nearest of an image that is not upright.
  RowResize(ImageSize in, ImageSize target, const ResizeWindow& window, const ResampleOptions& options,
            int orientation, ResizeMemory& memory);
  /// Takes all of `rows`, which was not started, and writes the window to `out`, 3 bytes a pixel, as stored:
  /// for rotate_upright(). The memory must be unchanged since the constructor. Throws Error if the file
  /// of the rows is damaged.
  void run(RowSource& rows, std::uint8_t* out) const;

 private:
  enum class Passes { none, nearest, columns, rows, columns_first, rows_first };

  void copy(RowSource& rows, std::uint8_t* out) const;
  void take_nearest(RowSource& rows, std::uint8_t* out) const;
  void resize_columns(RowSource& rows, std::uint8_t* out) const;
  void resize_rows(RowSource& rows, std::uint8_t* out) const;
  void columns_pass(const std::uint8_t* in, std::size_t in_stride, std::size_t num_rows,
                    std::uint8_t* out) const;
  void rows_pass(const SlidingRows<std::uint8_t>& in, std::size_t row_bytes, std::size_t output,
                 std::size_t first_byte, std::uint8_t* out) const;

  ResampleOptions options_;
  ResizeMemory& memory_;
  std::size_t out_width_ = 0;  // as stored
  Passes passes_ = Passes::none;
  const FixedAxis* column_axis_ = nullptr;
  const FixedAxis* row_axis_ = nullptr;
  const NearestAxis* nearest_columns_ = nullptr;
  const NearestAxis* nearest_rows_ = nullptr;
  ColumnRange wanted_;           // columns of the source
  std::size_t first_row_ = 0;    // of the source that is needed
  std::size_t num_rows_ = 0;     // from there on that are needed
  std::size_t most_inputs_ = 0;  // that an output of the row axis has
};

/// resize_to_float() of an image of rows.
class FloatRowResize {
 public:
  /// Throws Error if resize_to_float() does.
  FloatRowResize(ImageSize in, float factor, ImageSize target, const ResizeWindow& window,
                 ResizeFilter filter, ResizeMemory& memory);
  /// Takes all of `rows`, which was not started, and writes (3, window height, window width) to `out`. The
  /// memory must be unchanged since the constructor. Throws Error if the file of the rows is damaged.
  void run(RowSource& rows, TensorView<float> out) const;

 private:
  void take_nearest(RowSource& rows, TensorView<float> out) const;
  void resize_weighted(RowSource& rows, TensorView<float> out) const;

  ResizeMemory& memory_;
  ResizeWindow window_;
  float levels_[256] = {};
  const FloatAxis* column_axis_ = nullptr;  // null: the columns do not change
  const FloatAxis* row_axis_ = nullptr;     // null: the rows do not change
  const NearestAxis* nearest_columns_ = nullptr;
  const NearestAxis* nearest_rows_ = nullptr;
  ColumnRange wanted_;           // columns of the source
  std::size_t first_row_ = 0;    // of the source that is needed
  std::size_t num_rows_ = 0;     // from there on that are needed
  std::size_t most_inputs_ = 1;  // that an output of the row axis has
};

}  // namespace vit::internal
