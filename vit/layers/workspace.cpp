#include "vit/layers/workspace.h"

#include <algorithm>

#include "vit/base/parallel.h"

namespace vit {
namespace {

/// Packed floats of all heads of one image, and scratch floats of one thread, where C is cut into `num_heads`
/// heads.
struct HeadFloats {
  std::size_t packed = 0;
  std::size_t scratch = 0;
};

HeadFloats head_floats(const WorkspaceShape& shape, std::size_t num_heads,
                       const kernels::KernelTable& kernels) {
  if (num_heads == 0) return {};
  const std::size_t head_dim = shape.embed_dim / num_heads;
  const std::size_t packed = round_up(kernels.attention_packed_floats(shape.num_tokens, head_dim), 16);
  return {checked_mul(packed, num_heads, "Workspace"),
          round_up(kernels.attention_scratch_floats(head_dim), 16)};
}

/// Floats from one row to the next. Rows a whole number of pages apart would compete for the same few lines
/// of the caches where products read them side by side: those get one line more.
std::size_t row_stride(std::size_t columns) {
  constexpr std::size_t kLineFloats = 16, kPageFloats = 1024;
  return columns % kPageFloats == 0 ? columns + kLineFloats : columns;
}

TensorView<float> rows_at(float* data, std::size_t rows, std::size_t columns) {
  return {data, {rows, columns}, row_stride(columns)};
}

/// Bytes of values and number of scales that the widest input takes in bfloat16 or int8.
struct QuantisedBytes {
  std::size_t values = 0;
  std::size_t scales = 0;
};

QuantisedBytes quantised_bytes(const WorkspaceShape& shape, std::size_t rows,
                               const kernels::KernelTable& kernels) {
  const auto rounded_bytes = [&kernels](std::size_t columns) {
    return kernels.bf16->round_rows ? kernels::bf16_row_lanes(columns) * sizeof(float) : 0;
  };
  const std::size_t widest = std::max(shape.embed_dim, shape.hidden_dim);
  if (shape.dtype == Dtype::bf16) return {.values = checked_mul(rows, rounded_bytes(widest), "Workspace")};
  if (shape.dtype != Dtype::i8) return {};
  const std::size_t patch_bytes = rounded_bytes(shape.patch_dim);  // those are in bfloat16
  return {checked_mul(rows, std::max(kernels.int8->row_bytes(widest), patch_bytes), "Workspace"),
          checked_mul(rows, kernels::int8_groups(widest), "Workspace")};
}

}  // namespace

void Workspace::reserve(const WorkspaceShape& shape, const kernels::KernelTable& kernels) {
  if (shape == shape_ && kernels_ == &kernels) return;
  VIT_CHECK(shape.num_images > 0 && shape.num_tokens > 0 && shape.embed_dim > 0 && shape.num_heads > 0,
            "Workspace", "a shape with no images, tokens, channels or heads");
  const auto threads = static_cast<std::size_t>(resolve_threads(shape.threads));
  const std::size_t rows = checked_mul(shape.num_images, shape.num_tokens, "Workspace");
  const std::size_t channels = shape.embed_dim;
  checked_mul(checked_mul(rows, checked_add(shape.hidden_dim, 8 * channels, "Workspace"), "Workspace"), 64,
              "Workspace");

  // Enough heads at a time to feed the threads, few enough for their keys and values to stay in cache.
  images_per_pass_ = std::clamp<std::size_t>(ceil_div(4 * threads, shape.num_heads), 1, shape.num_images);
  const HeadFloats block = head_floats(shape, shape.num_heads, kernels);
  const HeadFloats pool = head_floats(shape, shape.pool_heads, kernels);
  const std::size_t packed = checked_mul(std::max(block.packed, pool.packed), images_per_pass_, "Workspace");
  const std::size_t scratch = std::max(block.scratch, pool.scratch);

  const std::size_t own = checked_mul(rows, row_stride(channels), "Workspace");
  const std::size_t qkv_floats = checked_mul(rows, row_stride(3 * channels), "Workspace");
  const std::size_t shared = std::max(checked_add(qkv_floats, own, "Workspace"),
                                      checked_mul(rows, row_stride(shape.hidden_dim), "Workspace"));
  std::size_t bytes = Arena::bytes_for<float>(own);
  for (const std::size_t floats : {shared, packed, checked_mul(threads, scratch, "Workspace")}) {
    bytes = checked_add(bytes, Arena::bytes_for<float>(floats), "Workspace");
  }
  const QuantisedBytes whole = quantised_bytes(shape, rows, kernels);
  bytes = checked_add(bytes, Arena::bytes_for<std::byte>(whole.values), "Workspace");
  bytes = checked_add(bytes, Arena::bytes_for<kernels::InputScale>(whole.scales), "Workspace");
  kernels_ = nullptr;  // an allocation that fails leaves no shape behind
  arena_.reserve(bytes);
  normed = rows_at(arena_.take<float>({own}).data(), rows, channels);
  float* const block_memory = arena_.take<float>({shared}).data();
  qkv = rows_at(block_memory, rows, 3 * channels);
  heads = rows_at(block_memory + qkv_floats, rows, channels);
  hidden = rows_at(block_memory, rows, shape.hidden_dim);
  packed_heads = arena_.take<float>({images_per_pass_, packed / images_per_pass_});
  thread_scratch = arena_.take<float>({threads, scratch});
  quantised = {arena_.take<std::byte>({whole.values}), arena_.take<kernels::InputScale>({whole.scales})};
  shape_ = shape;
  kernels_ = &kernels;
}

TensorView<float> Workspace::view_rows(const TensorView<float>& member, std::size_t rows,
                                       std::size_t columns) {
  VIT_CHECK(checked_mul(rows, row_stride(columns), "Workspace") <= member.num_rows() * member.row_stride(),
            "Workspace", "asked for ", rows, " x ", columns, " of ", member.shape().to_string(),
            "; reserve() was called with another shape");
  return rows_at(member.data(), rows, columns);
}

}  // namespace vit
