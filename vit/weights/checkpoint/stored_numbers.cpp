#include "vit/weights/checkpoint/stored_numbers.h"

#include <algorithm>
#include <span>

#include "vit/base/check.h"
#include "vit/position/tables.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"load_checkpoint", ErrorKind::format};

/// The rows of the entry that the row takes.
TensorEntry taken(const StoredRows& piece) {
  const Share from = piece.row.from;
  if (from.of == 1) return *piece.entry;
  const std::size_t rows = piece.entry->shape.front() / from.of;
  return rows_of(*piece.entry, from.index * rows, rows);
}

void apply_mask(const TensorEntry& mask, std::span<float> numbers) {
  const Tensor<float> factors = to_float(mask);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const float factor = factors.data()[i];
    VIT_CHECK(factor == 0.0f || factor == 1.0f, kWhere, mask.describe(),
              ": a mask holds zeros and ones, found ", factor, " at ", i);
    numbers[i] = factor == 0.0f ? 0.0f : numbers[i];
  }
}

/// (columns, rows) -> (rows, columns)
void transpose(std::span<const float> in, std::size_t rows, std::size_t columns, float* out) {
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < columns; ++column) *out++ = in[column * rows + row];
  }
}

/// Brings numbers of a form that only moves them to the order of the part, which has `columns` to a row.
void reorder(Form form, std::span<const float> in, std::size_t columns, const FormSizes& sizes, float* out) {
  if (form == Form::transposed) return transpose(in, in.size() / columns, columns, out);
  if (form == Form::pixels) {  // each row: (P P, K) -> (K, P P)
    const std::size_t num_pixels = sizes.patch_size * sizes.patch_size;
    for (std::size_t row = 0; row < in.size(); row += columns)
      transpose(in.subspan(row, columns), columns / num_pixels, num_pixels, out + row);
    return;
  }
  // (H, 3, d) rows -> (3, H, d)
  const std::size_t rows = in.size() / columns, heads = rows / 3 / sizes.head_width,
                    block = sizes.head_width * columns;
  for (std::size_t of_three = 0; of_three < 3; ++of_three) {
    for (std::size_t head = 0; head < heads; ++head)
      out = std::copy_n(in.data() + (head * 3 + of_three) * block, block, out);
  }
}

bool moves_numbers(Form form) {
  return form == Form::transposed || form == Form::pixels || form == Form::head_rows;
}

/// Where the patches of a model without prefix rows, or of one with them, are.
void compute_sincos(const Row& row, const Shape& shape, const FormSizes& sizes, float* out) {
  const std::size_t width = shape.last();
  std::fill_n(out, sizes.prefix_rows * width, 0.0f);
  const Tensor<float> table = position::sinusoidal_2d_quarters<float>(sizes.grid, width, row.constant);
  std::ranges::copy(table.flat(), out + sizes.prefix_rows * width);
}

bool is_plain(const StoredRows& piece) {
  return piece.entry != nullptr && piece.mask == nullptr && !moves_numbers(piece.row.form);
}

}  // namespace

const TensorEntry* stored_alone(const std::vector<StoredRows>& pieces) {
  const StoredRows& front = pieces.front();
  return pieces.size() == 1 && is_plain(front) && front.row.from.of == 1 ? front.entry : nullptr;
}

Tensor<float> load_numbers(const std::vector<StoredRows>& pieces, const Shape& shape,
                           const FormSizes& sizes) {
  Tensor<float> out(shape);
  float* target = out.data();
  for (const StoredRows& piece : pieces) {
    const std::size_t count = shape.num_elements() / piece.row.into.of;
    if (piece.row.form == Form::sincos) {
      compute_sincos(piece.row, shape, sizes, target);
    } else if (piece.entry == nullptr) {
      std::fill_n(target, count, piece.row.constant);
    } else if (moves_numbers(piece.row.form)) {
      Tensor<float> stored(Shape{count});
      convert(taken(piece), stored.flat());
      const bool bias = shape.rank() == 1 && piece.row.form == Form::head_rows;
      reorder(piece.row.form, stored.flat(), bias ? 1 : shape.last(), sizes, target);
    } else {
      convert(taken(piece), std::span(target, count));
    }
    if (piece.mask != nullptr) apply_mask(*piece.mask, {target, count});
    target += count;
  }
  return out;
}

}  // namespace vit::internal
