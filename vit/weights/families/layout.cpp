#include "vit/weights/families/layout.h"

#include <utility>

namespace vit::internal {

std::string Source::name(std::size_t block) const {
  std::string out(row.source);
  if (out.ends_with('*')) out.replace(out.size() - 1, 1, bias ? "bias" : "weight");
  if (const std::size_t at = out.find("{}"); at != std::string::npos)
    out.replace(at, 2, std::to_string(row.step * block + row.first));
  return out;
}

std::optional<PartRows> rows_of_part(Form form, Part part, const FormSizes& sizes) {
  if (form == Form::prefix_rows) {
    if (part == Part::class_token) return PartRows{0, 1, sizes.prefix_tokens};
    return PartRows{1, sizes.prefix_tokens - 1, sizes.prefix_tokens};
  }
  if (form == Form::first_dropped) {
    const std::size_t patches = sizes.grid.rows * sizes.grid.columns;
    return PartRows{1, patches, 1 + patches};
  }
  if (form != Form::mlp_and_qkv) return std::nullopt;
  const std::size_t all = sizes.hidden + sizes.qkv_rows;
  if (part == Part::fc1_weight || part == Part::fc1_bias) return PartRows{0, sizes.hidden, all};
  return PartRows{sizes.hidden, sizes.qkv_rows, all};
}

std::size_t rows_of_share(const Row& row, std::size_t rows, const FormSizes& sizes) {
  if (row.part == Part::position_table && row.into.of == 2 && sizes.prefix_rows != 0)
    return row.into.index == 0 ? sizes.prefix_rows : rows - sizes.prefix_rows;
  const bool is_qkv = row.part == Part::qkv_weight || row.part == Part::qkv_bias;
  if (!is_qkv || row.into.of != 3 || sizes.query_rows == 0) return rows / row.into.of;
  return row.into.index == 0 ? sizes.query_rows : (rows - sizes.query_rows) / 2;
}

std::vector<std::size_t> Source::stored_shape(const Shape& shape, const FormSizes& sizes_of) const {
  const std::size_t patch = sizes_of.patch_size, cell = sizes_of.cell;
  const GridSize table = sizes_of.grid;
  if (row.form == Form::convolution && shape.rank() == 2)
    return {shape[0], shape[1] / (patch * patch), patch, patch};
  if (row.form == Form::frames && shape.rank() == 2)
    return {shape[0], shape[1] / (patch * patch), sizes_of.frames, patch, patch};
  if (row.form == Form::one_frame && shape.rank() == 2)
    return {shape[0], shape[1] / (patch * patch), 1, patch, patch};
  if (row.form == Form::frames_apart)
    return {shape[0], shape[1] / (patch * patch * sizes_of.frames), sizes_of.frames, patch, patch};
  if (row.form == Form::cell_kernel && shape.rank() == 2)
    return {shape[0], shape[1] / cell / cell, cell, cell};
  if (row.form == Form::joined_inputs && shape.rank() == 2)
    return {shape[0], sizes_of.query_rows + sizes_of.hidden};
  if (row.form == Form::pointwise && shape.rank() == 2) return {shape[0], shape[1], 1, 1};
  if (row.form == Form::window_kernel && shape.rank() == 2) return {shape[0], shape[1] / 9, 3, 3};
  if (row.form == Form::flax_patch) return {patch, patch, shape[1] / (patch * patch), shape[0]};
  if ((row.form == Form::transposed || row.form == Form::flax) && shape.rank() == 2)
    return {shape[1], shape[0] / row.into.of * row.from.of};
  if (const auto range = rows_of_part(row.form, row.part, sizes_of)) {
    if (bias) return {range->all};
    return {range->all, shape.last()};
  }
  if (row.form == Form::grid) return {table.rows, table.columns, shape.last()};
  if (row.form == Form::joined_heads) return {shape[0], shape[1], shape[2] * shape[3]};
  if (row.form == Form::after_first) return {shape[shape.rank() - 2] + 1, shape.last()};
  if (row.form == Form::first_added) return {shape[0] + 1, shape[1]};
  if (row.form == Form::inputs_added && shape.rank() == 2) return {shape[0], 2 * shape[1]};
  if (row.part == Part::position_table && row.into.of == 2 && row.into.index == 0 &&
      sizes_of.prefix_rows == 1)
    return {shape.last()};
  if (shape.rank() == 0) return {};
  std::vector<std::size_t> sizes;
  for (std::size_t i = 0; i < shape.rank(); ++i) sizes.push_back(shape[i]);
  sizes[0] = rows_of_share(row, sizes[0], sizes_of) * row.from.of;
  return sizes;
}

Layout::Layout(std::initializer_list<std::span<const Row>> tables) {
  for (const std::span<const Row> table : tables) add(table);
}

void Layout::add(std::span<const Row> table) {
  std::array<std::vector<Source>, 2 * kNumParts> own;
  for (const Row& row : table) {
    const std::size_t part = index_of(row.part, row.joint_head);
    const bool both = row.source.ends_with('*');
    own[part].push_back({.row = row, .bias = !both && is_bias(row.part)});
    if (!both) continue;
    Source& bias = own[part + 1].emplace_back(Source{.row = row, .bias = true});
    if (!applies(row.form, next(row.part))) bias.row.form = Form::as_stored;
  }
  for (std::size_t part = 0; part < own.size(); ++part) {
    if (!own[part].empty()) sources_[part] = std::move(own[part]);
  }
}

void Layout::set_zeros(Part part, std::size_t index) {
  Row& row = sources_[static_cast<std::size_t>(part)].at(index).row;
  row.source = "";
  row.constant = 0.0f;
}

void Layout::set_form(Part part, Form form) {
  for (Source& source : sources_[static_cast<std::size_t>(part)]) source.row.form = form;
}

}  // namespace vit::internal
