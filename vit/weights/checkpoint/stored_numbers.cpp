#include "vit/weights/checkpoint/stored_numbers.h"

#include <algorithm>
#include <span>
#include <vector>

#include "vit/base/check.h"
#include "vit/position/tables.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"load_checkpoint", ErrorKind::format};

/// The tensor without its first dimension, which is 1.
TensorEntry without_front(TensorEntry entry) {
  entry.shape.erase(entry.shape.begin());
  if (!entry.strides.empty()) entry.strides.erase(entry.strides.begin());
  return entry;
}

/// The rows of the entry that the row takes.
TensorEntry taken(const StoredRows& piece, const FormSizes& sizes) {
  const Share from = piece.row.from;
  if (const auto range = rows_of_part(piece.row.form, piece.row.part, sizes)) {
    TensorEntry rows = *piece.entry;
    while (rows.shape.size() > 1 && rows.shape.front() == 1 && range->all != 1) rows = without_front(rows);
    return rows_of(rows, range->first, range->count);
  }
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

/// Each row: (P P, K) -> (K, P P)
void reorder_pixels(std::span<const float> in, std::size_t columns, std::size_t num_pixels, float* out) {
  for (std::size_t row = 0; row < in.size(); row += columns)
    transpose(in.subspan(row, columns), columns / num_pixels, num_pixels, out + row);
}

/// (H, 3, d) rows -> (3, H, d)
void sort_heads(std::span<const float> in, std::size_t columns, std::size_t head_width, float* out) {
  const std::size_t rows = in.size() / columns, heads = rows / 3 / head_width, block = head_width * columns;
  for (std::size_t of_three = 0; of_three < 3; ++of_three) {
    for (std::size_t head = 0; head < heads; ++head)
      out = std::copy_n(in.data() + (head * 3 + of_three) * block, block, out);
  }
}

/// The stored row of a head, d = 4 F channels wide, that becomes row `channel` (position/README.md):
///   pairs_by_axis   neighbors, x0 y0 x1 y1 .. -> x0 x1 .. y0 y1 ..
///   halves_by_axis  halves of the head, each in halves: blocks A A B B -> A B A B
///   halves_in_turn  in each half x0 y0 x1 y1 .. -> x0 x1 .. y0 y1 ..
///   halves_of_axes  d of any even width: halves of 3 floor(d / 6) pairs, then other channels -> halves of d
std::size_t stored_channel(Form form, std::size_t channel, std::size_t head_width) {
  const std::size_t quarter = head_width / 4;
  if (form == Form::pairs_by_axis) {
    const std::size_t pair = channel / 2, of_axis = pair % quarter, axis = pair / quarter;
    return 2 * (2 * of_axis + axis) + channel % 2;
  }
  if (form == Form::halves_in_turn) {
    const std::size_t of_half = channel % (2 * quarter), axis = of_half / quarter;
    return channel - of_half + 2 * (of_half % quarter) + axis;
  }
  if (form == Form::halves_of_axes) {
    const std::size_t rotated = head_width / 3 / 2 * 3, half = head_width / 2;
    const std::size_t pair = channel % half, second = channel / half;
    if (pair < rotated) return second * rotated + pair;
    return 2 * rotated + second * (half - rotated) + pair - rotated;
  }
  const std::size_t block = channel / quarter, from = block == 1 ? 2 : block == 2 ? 1 : block;
  return from * quarter + channel % quarter;
}

void permute_heads(Form form, std::span<const float> in, std::size_t columns, std::size_t head_width,
                   float* out) {
  const std::size_t rows = in.size() / columns;
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t first = row / head_width * head_width;
    const std::size_t from = first + stored_channel(form, row % head_width, head_width);
    out = std::copy_n(in.data() + from * columns, columns, out);
  }
}

/// (C, K, frames, P, P) -> (C, frames, K, P, P)
void sort_frames(std::span<const float> in, std::size_t columns, const FormSizes& sizes, float* out) {
  const std::size_t pixels = sizes.patch_size * sizes.patch_size;
  const std::size_t channels = columns / (sizes.frames * pixels);
  for (std::size_t row = 0; row < in.size(); row += columns) {
    for (std::size_t frame = 0; frame < sizes.frames; ++frame) {
      for (std::size_t channel = 0; channel < channels; ++channel)
        out = std::copy_n(in.data() + row + (channel * sizes.frames + frame) * pixels, pixels, out);
    }
  }
}

/// Brings numbers of a form that only moves them to the order of the part, which has `columns` to a row.
void reorder(Form form, std::span<const float> in, std::size_t columns, const FormSizes& sizes, float* out) {
  switch (form) {
    case Form::transposed:
    case Form::flax: return transpose(in, in.size() / columns, columns, out);
    case Form::pixels: return reorder_pixels(in, columns, sizes.patch_size * sizes.patch_size, out);
    case Form::frames_apart: return sort_frames(in, columns, sizes, out);
    case Form::flax_patch: {  // (P P K, C) -> (C, P P K) -> (C, K P P)
      std::vector<float> rows(in.size());
      transpose(in, in.size() / columns, columns, rows.data());
      return reorder_pixels(rows, columns, sizes.patch_size * sizes.patch_size, out);
    }
    case Form::cells:
    case Form::window_kernel:
    case Form::cell_kernel: {  // each row: (C, m m) -> (m m, C)
      const std::size_t of_cell = form == Form::window_kernel ? 9 : sizes.cell * sizes.cell;
      for (std::size_t row = 0; row < in.size(); row += columns)
        transpose(in.subspan(row, columns), of_cell, columns / of_cell, out + row);
      return;
    }
    case Form::patches_second: {
      const std::size_t patches = sizes.grid.rows * sizes.grid.columns * columns;
      const std::size_t others = (sizes.prefix_rows - 1) * columns, table = columns + patches + others;
      for (std::size_t at = 0; at < in.size(); at += table) {
        out = std::copy_n(in.data() + at, columns, out);
        out = std::copy_n(in.data() + at + columns + patches, others, out);
        out = std::copy_n(in.data() + at + columns, patches, out);
      }
      return;
    }
    case Form::last_first:
      std::ranges::copy(in.first(in.size() - columns), std::ranges::copy(in.last(columns), out).out);
      return;
    case Form::pairs_by_axis:
    case Form::halves_in_turn:
    case Form::halves_of_axes:
    case Form::halves_by_axis: return permute_heads(form, in, columns, sizes.head_width, out);
    default: return sort_heads(in, columns, sizes.head_width, out);
  }
}

/// (C, 3, frames, P, P) -> (C, 3 P P): an image is that many equal frames.
void add_frames(std::span<const float> in, const FormSizes& sizes, std::span<float> out) {
  const std::size_t pixels = sizes.patch_size * sizes.patch_size;
  for (std::size_t plane = 0; plane < out.size() / pixels; ++plane) {
    const float* const frames = in.data() + plane * sizes.frames * pixels;
    for (std::size_t i = 0; i < pixels; ++i) {
      double sum = 0.0;
      for (std::size_t frame = 0; frame < sizes.frames; ++frame)
        sum += static_cast<double>(frames[frame * pixels + i]);
      out[plane * pixels + i] = static_cast<float>(sum);
    }
  }
}

/// (1 + N, C) -> (N, C): the first row is added to the others.
void add_first(std::span<const float> in, std::size_t columns, std::span<float> out) {
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = in[columns + i] + in[i % columns];
}

/// (N, 2 C) -> (N, C): the sum of both halves of a row.
void add_inputs(std::span<const float> in, std::size_t columns, std::span<float> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    const float* const row = in.data() + i / columns * 2 * columns + i % columns;
    out[i] = static_cast<float>(static_cast<double>(row[0]) + static_cast<double>(row[columns]));
  }
}

/// Whether the numbers are sums of those in the file, or without some of them.
bool sums_numbers(Form form) {
  return form == Form::after_first || form == Form::frames || form == Form::first_added ||
         form == Form::inputs_added || form == Form::one_added || form == Form::joined_inputs;
}

bool moves_numbers(Form form) {
  switch (form) {
    case Form::transposed:
    case Form::flax:
    case Form::flax_patch:
    case Form::pixels:
    case Form::frames_apart:
    case Form::head_rows:
    case Form::pairs_by_axis:
    case Form::halves_by_axis:
    case Form::halves_in_turn:
    case Form::halves_of_axes:
    case Form::last_first:
    case Form::patches_second:
    case Form::cells:
    case Form::window_kernel:
    case Form::cell_kernel: return true;
    default: return false;
  }
}

bool swaps_dimensions(Form form) {
  return form == Form::transposed || form == Form::flax || form == Form::flax_patch;
}

/// The numbers of one piece whose form moves them: `count`, `columns` to a row.
void load_moved(const StoredRows& piece, std::size_t count, std::size_t columns, const FormSizes& sizes,
                float* target) {
  const Share from = piece.row.from;
  const bool all = swaps_dimensions(piece.row.form) && from.of != 1;  // its rows are columns of the file
  Tensor<float> stored(Shape{all ? count * from.of : count});
  convert(all ? *piece.entry : taken(piece, sizes), stored.flat());
  if (!all) return reorder(piece.row.form, stored.flat(), columns, sizes, target);
  std::vector<float> moved(stored.flat().size());
  reorder(piece.row.form, stored.flat(), columns, sizes, moved.data());
  std::copy_n(moved.data() + from.index * count, count, target);
}

/// Where the patches of a model without prefix rows, or of one with them, are.
void compute_sincos(const Row& row, const Shape& shape, const FormSizes& sizes, float* out) {
  const std::size_t width = shape.last();
  std::fill_n(out, sizes.prefix_rows * width, 0.0f);
  const Tensor<float> table =
      row.form == Form::sincos_in_order
          ? position::sinusoidal_1d<float>(shape[0] - sizes.prefix_rows, width, row.constant)
          : position::sinusoidal_2d_quarters<float>(sizes.grid, width, row.constant);
  std::ranges::copy(table.flat(), out + sizes.prefix_rows * width);
}

bool is_plain(const StoredRows& piece) {
  return piece.entry != nullptr && piece.entry->updates.empty() && piece.mask == nullptr &&
         !sums_numbers(piece.row.form) && piece.row.form != Form::prefix_rows &&
         piece.row.form != Form::first_dropped && piece.row.form != Form::mlp_and_qkv &&
         !moves_numbers(piece.row.form);
}

}  // namespace

const TensorEntry* stored_alone(const std::vector<StoredRows>& pieces) {
  const StoredRows& front = pieces.front();
  return pieces.size() == 1 && is_plain(front) && front.row.from.of == 1 ? front.entry : nullptr;
}

Tensor<float> load_numbers(const std::vector<StoredRows>& pieces, const Shape& shape,
                           const FormSizes& sizes) {
  Tensor<float> out(shape);
  const std::size_t rows = shape.rank() == 0 ? 1 : shape[0];  // one of a number without dimensions
  const std::size_t of_row = shape.num_elements() / std::max<std::size_t>(rows, 1);
  float* target = out.data();
  for (const StoredRows& piece : pieces) {
    const std::size_t count = rows_of_share(piece.row, rows, sizes) * of_row;
    if (piece.row.form == Form::sincos || piece.row.form == Form::sincos_in_order) {
      compute_sincos(piece.row, shape, sizes, target);
    } else if (piece.entry == nullptr) {
      std::fill_n(target, count, piece.row.constant);
    } else if (piece.row.form == Form::after_first) {
      Tensor<float> stored(Shape{count + shape.last()});
      convert(*piece.entry, stored.flat());
      std::copy_n(stored.data() + shape.last(), count, target);
    } else if (piece.row.form == Form::first_added) {
      Tensor<float> stored(Shape{count + shape.last()});
      convert(*piece.entry, stored.flat());
      add_first(stored.flat(), shape.last(), {target, count});
    } else if (piece.row.form == Form::inputs_added) {
      Tensor<float> stored(Shape{2 * count});
      convert(*piece.entry, stored.flat());
      add_inputs(stored.flat(), shape.last(), {target, count});
    } else if (piece.row.form == Form::joined_inputs && shape.rank() == 2) {
      const std::size_t width = sizes.query_rows + sizes.hidden;
      const std::size_t first = piece.row.part == Part::fc2_weight ? sizes.query_rows : 0;
      Tensor<float> stored(Shape{shape[0], width});
      convert(*piece.entry, stored.flat());
      for (std::size_t row = 0; row < shape[0]; ++row)
        std::copy_n(stored.view().row(row) + first, shape.last(), target + row * shape.last());
    } else if (piece.row.form == Form::frames) {
      Tensor<float> stored(Shape{count * sizes.frames});
      convert(*piece.entry, stored.flat());
      add_frames(stored.flat(), sizes, {target, count});
    } else if (moves_numbers(piece.row.form)) {
      const bool bias = shape.rank() == 1 && piece.row.form != Form::pixels;
      load_moved(piece, count, bias ? 1 : shape.last(), sizes, target);
    } else {
      convert(taken(piece, sizes), std::span(target, count));
      for (std::size_t i = 0; piece.row.form == Form::one_added && i < count; ++i) target[i] += 1.0f;
    }
    if (piece.mask != nullptr) apply_mask(*piece.mask, {target, count});
    target += count;
  }
  return out;
}

}  // namespace vit::internal
