// GemmTasks: divides a product into tasks for threads. Runs nothing itself.
//
// Blocks of rows times blocks of whole panels. An example with two threads, four blocks of rows and three of
// columns; the numbers are those of the tasks:
//
//               columns
//   part 0  | 0 | 2 | 4 |   thread 0 starts here: all row blocks of a part finish one group of columns
//           | 1 | 3 | 5 |   before the next, so that the weight is read from memory once
//   part 1  | 6 | 8 |10 |   thread 1 starts here
//           | 7 | 9 |11 |
//
// There are as many parts as threads, if there are enough rows; parallel_for starts each thread on its own
// part. Of few rows there are fewer blocks than threads, as many as let these end together. A single block
// per thread is divided by rows, so that none has a tile more than the others; several are divided into whole
// tiles, which are faster.
#pragma once

#include <cstddef>

namespace vit::internal {

/// Outputs [begin, end) of a product.
struct OutputRange {
  std::size_t begin = 0;
  std::size_t end = 0;
};

struct GemmShape {
  std::size_t rows = 0;           // at least one
  OutputRange outputs{};          // not empty; begin is a multiple of panel_columns
  std::size_t panel_columns = 1;  // of the kernels
  std::size_t tile_rows = 1;      // of the kernels
  std::size_t threads = 1;
  std::size_t products = 1;  // that a task computes, one after the other: of as many weights
};

struct GemmTask {
  std::size_t row = 0;
  std::size_t rows = 0;
  std::size_t column_begin = 0;
  std::size_t column_end = 0;
};

class GemmTasks {
 public:
  explicit GemmTasks(const GemmShape& shape);

  std::size_t size() const noexcept { return row_blocks_ * column_blocks_; }
  GemmTask operator[](std::size_t task) const;

 private:
  std::size_t first_block(std::size_t part) const { return part * row_blocks_ / parts_; }
  std::size_t first_row(std::size_t block) const;

  std::size_t rows_;
  OutputRange outputs_;
  std::size_t row_unit_ = 1;  // blocks of rows are multiples of it
  std::size_t row_blocks_, column_blocks_, parts_, columns_per_task_;
};

}  // namespace vit::internal
