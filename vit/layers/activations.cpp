#include "vit/layers/activations.h"

#include <algorithm>

#include "vit/base/check.h"
#include "vit/base/parallel.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"Activations", ErrorKind::argument};

/// Floats from one row to the next. Rows whose distance is a multiple of the page size would compete for the
/// same few cache lines when products read several of them: those get one extra line.
std::size_t row_stride(std::size_t columns) {
  constexpr std::size_t kLineFloats = 16, kPageFloats = 1024;
  return columns % kPageFloats == 0 ? columns + kLineFloats : columns;
}

TensorView<float> take_rows(Arena::Taker& arena, std::size_t rows, std::size_t columns) {
  return arena.take<float>({rows, columns}, row_stride(columns));
}

/// Tokens of a pass.
std::size_t rows_of(const ActivationShape& shape) {
  return shape.num_rows != 0 ? shape.num_rows : checked_mul(shape.num_images, shape.num_tokens, kWhere);
}

/// Packed floats of all heads of one image, and scratch floats of one thread, where `width` is divided into
/// `num_heads` heads.
struct HeadFloats {
  std::size_t packed = 0;
  std::size_t scratch = 0;
};

HeadFloats head_floats(std::size_t width, std::size_t num_heads, std::size_t num_tokens,
                       const kernels::AttentionKernels& attention) {
  if (num_heads == 0) return {};
  const std::size_t head_dim = width / num_heads;
  const std::size_t packed = round_up(attention.packed_floats(num_tokens, head_dim), 16);
  return {checked_mul(packed, num_heads, kWhere), round_up(attention.scratch_floats(head_dim), 16)};
}

}  // namespace

void Activations::lay_out(Arena::Taker& arena, const ActivationShape& s,
                          const kernels::Arithmetic& arithmetic) {
  const std::size_t rows = rows_of(s);
  const std::size_t qkv_dim = std::max(3 * s.attention_dim, s.num_pool_heads != 0 ? 2 * s.embed_dim : 0);
  HeadFloats block =
      head_floats(s.attention_dim, s.num_heads, std::max(s.num_tokens, s.window_keys), arithmetic.attention);
  block.scratch += kernels::axis_terms(s.bias_axes, 0);
  const HeadFloats pool = head_floats(s.embed_dim, s.num_pool_heads, s.num_tokens, arithmetic.attention);
  const std::size_t widest = std::max({s.embed_dim, s.attention_dim, s.hidden_dim});
  const std::size_t row_bytes =
      std::max(arithmetic.linear->row_bytes(widest), arithmetic.fine->row_bytes(s.patch_dim));

  patches = arena.take<float>({s.num_images, s.num_patches, s.patch_dim});
  tokens = s.num_rows == 0 ? arena.take<float>({s.num_images, s.num_tokens, s.embed_dim})
                           : arena.take<float>({1, s.num_rows, s.embed_dim});
  leading = arena.take<float>({s.num_images, s.num_leading, s.embed_dim});
  pooled = arena.take<float>({s.num_images, s.pooled_dim != 0 ? s.pooled_dim : s.embed_dim});
  head_row = arena.take<float>({s.num_images, 2 * s.embed_dim});
  normed = take_rows(arena, rows, s.embed_dim);
  block_input = take_rows(arena, s.is_parallel ? rows : 0, s.embed_dim);
  arena.share(
      [&] {
        arena.share(
            [&] {
              qkv = take_rows(arena, rows, qkv_dim);
              heads = take_rows(arena, rows, s.attention_dim);
              for (TensorView<float>* pairs : {&query_pairs, &head_pairs})
                *pairs = take_rows(arena, s.is_differential ? rows : 0, 2 * s.attention_dim);
            },
            [&] {
              hidden = take_rows(arena, rows, s.hidden_dim);
              if (s.clips) gates = take_rows(arena, rows, s.hidden_dim);
            });
      },
      [&] {
        for (TensorView<float>* step : {&cells, &cell_steps})
          *step = take_rows(arena, s.num_cells, s.cell_dim);
        for (TensorView<float>* side : {&map, &next_map}) *side = take_rows(arena, s.map_rows, s.map_dim);
        merged = arena.take<float>({s.merged_dim != 0 ? s.map_rows : 0, s.merged_dim});
        if (s.clips) cell_gates = take_rows(arena, s.num_cells, s.cell_dim);
      });
  packed_heads = arena.take<float>({packed_images_, std::max(block.packed, pool.packed)});
  thread_scratch =
      arena.take<float>({static_cast<std::size_t>(s.threads), std::max(block.scratch, pool.scratch)});
  if (s.window_keys != 0) {
    padded_heads = arena.take<float>(
        {static_cast<std::size_t>(s.threads), 2 * kAttentionTaskTokens * (s.attention_dim / s.num_heads)});
  }
  const std::size_t cell_bytes = checked_mul(s.num_cells, arithmetic.linear->row_bytes(s.cell_dim), kWhere);
  const std::size_t cell_rows = row_bytes != 0 ? ceil_div(cell_bytes, row_bytes) : 0;
  converted = arena.take<std::byte>({std::max(rows, cell_rows), row_bytes});
}

void Activations::reserve(ActivationShape shape, const kernels::Arithmetic& arithmetic) {
  shape.threads = resolve_threads(shape.threads);  // 0 may be another number next time
  if (shape == shape_ && arithmetic_ == &arithmetic) return;
  VIT_CHECK(shape.num_images > 0 && shape.num_tokens > 0 && shape.embed_dim > 0 && shape.num_heads > 0 &&
                shape.attention_dim > 0,
            kWhere, "a shape with no images, tokens, channels or heads");
  // All sizes below are at most a few times these.
  const std::size_t widths =
      checked_add(checked_add(shape.hidden_dim, checked_mul(shape.attention_dim, 8, kWhere), kWhere),
                  checked_mul(shape.embed_dim, 8, kWhere), kWhere);
  const std::size_t rows = rows_of(shape);
  checked_mul(checked_mul(rows, widths, kWhere), 64, kWhere);

  // Enough heads at a time to feed the threads, few enough for their keys and values to stay in cache.
  const auto threads = static_cast<std::size_t>(shape.threads);
  packed_images_ = std::clamp<std::size_t>(ceil_div(4 * threads, shape.num_heads), 1, shape.num_images);
  arithmetic_ = nullptr;  // a failed allocation leaves no shape
  arena_.lay_out([&](Arena::Taker& arena) { lay_out(arena, shape, arithmetic); });
  shape_ = shape;
  arithmetic_ = &arithmetic;
}

Arena& Activations::lend() noexcept {
  arithmetic_ = nullptr;
  return arena_;
}

TensorView<float> Activations::view_rows(const TensorView<float>& member, std::size_t rows,
                                         std::size_t columns) {
  VIT_CHECK(checked_mul(rows, row_stride(columns), kWhere) <= member.num_rows() * member.row_stride(), kWhere,
            "asked for ", rows, " x ", columns, " of ", member.shape().to_string(),
            "; reserve() was called with another shape");
  return {member.data(), {rows, columns}, row_stride(columns)};
}

}  // namespace vit::internal
