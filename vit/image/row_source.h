// An image file as rows that arrive from the top, for callers that need each row once, not the whole image in
// memory. decode.cpp selects the decoder; resample_rows.h resizes the rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "vit/image/image.h"

namespace vit::internal {

/// Columns [begin, end) of an image.
struct ColumnRange {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t count() const { return end - begin; }
  bool operator==(const ColumnRange&) const = default;
};

/// Rows of R, G, B, as stored: equal to those of decode_bytes() without orientation, which fails for the same
/// files with the same message. Calls come in the order start, then read and skip for at most all rows, then
/// finish. All except size() and orientation() throw Error if the file is damaged; then the source
/// is unusable.
class RowSource {
 public:
  RowSource() = default;
  virtual ~RowSource() = default;
  RowSource(const RowSource&) = delete;
  RowSource& operator=(const RowSource&) = delete;

  virtual ImageSize size() const = 0;
  /// EXIF value 1..8 by which the image of these rows is rotated if the orientation is to be applied.
  virtual int orientation() const = 0;
  /// Prepares for the first row; only the columns `wanted` will be used. Returns the columns that rows
  /// contain: `wanted` and those decoded along with them.
  virtual ColumnRange start(ColumnRange wanted) = 0;
  /// Writes the next `count` rows to `rows`, (count, columns that start() returned, 3), without gaps.
  virtual void read(std::uint8_t* rows, std::size_t count) = 0;
  /// Skips the next `count` rows.
  virtual void skip(std::size_t count) = 0;
  /// Checks the rest of the file as decode_bytes() does.
  virtual void finish() = 0;
};

/// The rows of an image file, ignoring the orientation option; null if its decoder delivers none.
/// `bytes` must outlive the source. Throws Error as decode_bytes() does, for defects in its first
/// bytes.
std::unique_ptr<RowSource> open_rows(std::span<const std::byte> bytes, const DecodeOptions& options,
                                     const std::string& name);

}  // namespace vit::internal
