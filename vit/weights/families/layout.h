// Where the tensors of a model lie in a file, as data: tables of rows, one for each layout that someone
// publishes. Reading the tensors is for checkpoint/tensor_matcher.h.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vit/base/tensor.h"
#include "vit/position/config.h"
#include "vit/weights/tensor_id.h"

namespace vit::internal {

/// How the stored numbers lie.
enum class Form : std::uint8_t {
  as_stored,        // in the shape of the part; further dimensions of 1 in front do not count
  convolution,      // (C, K, P, P) for (C, K P P)
  frames,           // (C, K, frames, P, P) for (C, K P P): the kernels of equal frames are added
  one_frame,        // (C, K, 1, P, P) for (C, K P P)
  frames_apart,     // the same for (C, frames K P P)
  pixels,           // (C, P P 3) or (P P 3): the channels of a pixel side by side
  transposed,       // (in, out)
  flax,             // (in, out), where either may be two dimensions, heads and their width; a bias alike
  flax_patch,       // (P, P, K, C) for (C, K P P)
  grid,             // (rows, columns, C) for (N, C) of a position table
  joined_heads,     // (2, depth, H d / 2) for (2, depth, H, d / 2)
  head_rows,        // rows ordered by head, then q, k, v
  pairs_by_axis,    // rows of each head: pairs of both axes in turn, for those of one axis, then of the other
  halves_by_axis,   // rows of each head: halves of one axis each, themselves in halves, for A B A B of
                    // quarters
  halves_of_axes,   // rows of each head: halves of as many pairs as three axes share equally, then the rest
  halves_in_turn,   // rows of each head: two halves, in each of which channels of both axes alternate
  last_first,       // the last row, then those in front of it
  cells,            // (N, C m m) for (N, m m C): cells of m x m tokens, channel by channel
  cell_kernel,      // (N, C, m, m) for the same
  window_kernel,    // (N, C, 3, 3) for (N, 9 C)
  pointwise,        // (N, C, 1, 1) for (N, C)
  prefix_rows,      // (prefix, C): the class token, then registers
  mlp_and_qkv,      // (F + A + 2 G, C): the rows of fc1, then those of q, k and v
  joined_inputs,    // (C, A + F): the inputs of proj, then those of fc2
  patches_second,   // of position tables, one or several: class row, patches, rows of the other prefix tokens
  after_first,      // (1 + L, C) for L rows: the first is of no token
  first_added,      // (1 + N, C) for (N, C): row 0 is added to all others
  first_dropped,    // (1 + N, C) for (N, C): row 0 is not used
  inputs_added,     // (N, 2 C) for (N, C): both halves read the same input
  one_added,        // of a gamma: 1 + what is stored (Gemma)
  sincos,           // not stored: rows of sines and cosines, position/tables.h
  sincos_in_order,  // the same of one axis: the patches of all steps are numbered
};

/// Whether a form says something of a part: of a bias that shares a row with its weight most do not.
constexpr bool applies(Form form, Part part) {
  switch (form) {
    case Form::convolution:
    case Form::flax_patch: return part == Part::patch_weight;
    case Form::pixels:
      return part == Part::patch_weight || part == Part::patch_norm_gamma || part == Part::patch_norm_beta;
    case Form::frames:
    case Form::one_frame:
    case Form::frames_apart:
    case Form::cell_kernel:
    case Form::window_kernel:
    case Form::pointwise:
    case Form::joined_inputs:
    case Form::cells:
    case Form::inputs_added:
    case Form::transposed: return !is_vector(part);
    case Form::head_rows: return part == Part::qkv_weight || part == Part::qkv_bias;
    default: return true;
  }
}

/// Under the prefix of the image tower, or outside of the tower.
enum class Place : std::uint8_t { tower, outside };

/// Part `index` of `of` equal parts of the rows.
struct Share {
  std::uint8_t index = 0, of = 1;
};

/// Where one part, or a share of its rows, lies.
struct Row {
  Part part{};
  /// The name in the file: {} is the number of the block, * at the end for "weight" and, in the part
  /// that follows, for "bias". Nothing: `constant` everywhere.
  std::string_view source{};
  Form form = Form::as_stored;
  Share into{};  // the rows of the part that are filled
  Share from{};  // the rows of the source that are taken
  Place place = Place::tower;
  std::string_view mask{};  // multiplied element by element, every value must be 0 or 1
  float constant = 0.0f;    // sincos: the base of the frequencies
  /// The number in the name is step * block + first
  std::uint8_t step = 1, first = 0;
  bool joint_head = false;  // TensorId::joint_head
};

/// A share of the part's rows; nothing for a source: zeros.
constexpr Row joined(Part part, Share into, std::string_view source, Share from = {}) {
  return {.part = part, .source = source, .into = into, .from = from};
}
/// The part is a share of the source's rows.
constexpr Row cut(Part part, std::string_view source, Share from) {
  return {.part = part, .source = source, .from = from};
}
constexpr Row masked(Part part, std::string_view source, std::string_view mask) {
  return {.part = part, .source = source, .mask = mask};
}
constexpr Row at(Place place, Row row) {
  row.place = place;
  return row;
}
/// The first half of each head is rotated by one axis, the second by the other, each in halves of its own.
constexpr Row halved_by_axis(Row row) {
  row.form = Form::halves_by_axis;
  return row;
}

/// Rows of the joint head, outside of the tower.
constexpr Row of_joint_head(Row row) {
  row.joint_head = true;
  return at(Place::outside, row);
}

/// A tensor that may be left unused, and why. * at one end matches anything.
struct Ignored {
  std::string_view name;
  std::string_view reason;
  Place place = Place::tower;
};

/// Whether the pattern of an Ignored fits.
constexpr bool fits(std::string_view pattern, std::string_view name) {
  if (pattern.ends_with('*')) return name.starts_with(pattern.substr(0, pattern.size() - 1));
  if (pattern.starts_with('*')) return name.ends_with(pattern.substr(1));
  return name == pattern;
}

/// Whether a table can be meant: every name has its {} exactly if the part is numbered, and the
/// shares of every part fill it, in order. For static_assert next to each table.
constexpr bool is_sound(std::span<const Row> table) {
  for (const Row& row : table) {
    const bool numbered = row.source.find("{}") != std::string_view::npos;
    if (!row.source.empty() && numbered != is_numbered(row.part)) return false;
    std::size_t index = 0;
    for (const Row& other : table) {
      const bool both = other.source.ends_with('*') && next(other.part) == row.part;
      if (other.part != row.part && !both) continue;
      if (both || other.into.of != row.into.of || other.into.index != index++) return false;
    }
    if (index != row.into.of) return false;
  }
  return true;
}

/// Two tables as one.
template <std::size_t kFirst, std::size_t kSecond>
constexpr std::array<Row, kFirst + kSecond> joined(const Row (&first)[kFirst], const Row (&second)[kSecond]) {
  std::array<Row, kFirst + kSecond> out{};
  std::copy_n(first, kFirst, out.begin());
  std::copy_n(second, kSecond, out.begin() + kFirst);
  return out;
}

/// Whether the table says where the tensors lie that every model has.
constexpr bool is_complete(std::span<const Row> table) {
  for (const Part part : {Part::patch_weight, Part::norm1_gamma, Part::norm1_beta, Part::qkv_weight,
                          Part::proj_weight, Part::norm2_gamma, Part::norm2_beta, Part::fc2_weight}) {
    if (std::none_of(table.begin(), table.end(), [&](const Row& row) {
          return row.part == part || (row.source.ends_with('*') && next(row.part) == part);
        })) {
      return false;
    }
  }
  return is_sound(table);
}

/// What the forms need to know besides the shape.
struct FormSizes {
  std::size_t prefix_tokens = 0;
  std::size_t hidden = 0;      // F
  std::size_t qkv_rows = 0;    // A + 2 G
  std::size_t query_rows = 0;  // A; 0 = a third of q, k and v
  std::size_t head_width = 0;
  std::size_t patch_size = 1;
  std::size_t frames = 1;       // of a patch
  std::size_t cell = 1;         // m, of a merger
  GridSize grid{};              // of a position table
  std::size_t prefix_rows = 0;  // zeros in front of it
};

/// Rows [first, first + count) of `all` that a tensor has.
struct PartRows {
  std::size_t first = 0, count = 0, all = 0;
};
/// Which rows the part is of a tensor that holds parts of several kinds one after the other; nothing for
/// other forms.
std::optional<PartRows> rows_of_part(Form form, Part part, const FormSizes& sizes);

/// How many of the `rows` of a part its share fills: equal shares, but for q, k and v as heads share keys,
/// and for the rows of prefix tokens and of patches of a position table.
std::size_t rows_of_share(const Row& row, std::size_t rows, const FormSizes& sizes);

/// A row as it applies to one part: a weight, or the bias of the same row.
struct Source {
  Row row{};
  bool bias = false;

  bool is_stored() const noexcept { return !row.source.empty(); }
  /// The name in the file; "" of a constant.
  std::string name(std::size_t block) const;
  /// The shape that it must have in the file for a part of this shape.
  std::vector<std::size_t> stored_shape(const Shape& shape, const FormSizes& sizes) const;
};

/// Where each part of one checkpoint lies, by one or more tables. Of a part that is in several the last
/// counts.
class Layout {
 public:
  Layout(std::initializer_list<std::span<const Row>> tables);
  void add(std::span<const Row> table);
  /// The file does not have share `index` of the part: zeros.
  void set_zeros(Part part, std::size_t index);
  void set_form(Part part, Form form);
  /// In the order in which they fill the part; none if the layout has no such part.
  std::span<const Source> sources(Part part, bool joint_head = false) const {
    return sources_[index_of(part, joint_head)];
  }

 private:
  static std::size_t index_of(Part part, bool joint_head) {
    return static_cast<std::size_t>(part) + (joint_head ? kNumParts : 0);
  }

  std::array<std::vector<Source>, 2 * kNumParts> sources_;
};

}  // namespace vit::internal
