#include "vit/layers/attention.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "vit/base/parallel.h"

namespace vit {
namespace {

// Whole tiles of queries for any vector width.
constexpr std::size_t kTokensPerTask = 32;

/// The columns of one of q, k, v inside fused rows (rows, 3C).
TensorView<const float> view_third(const TensorView<float>& qkv, std::size_t third, std::size_t channels) {
  return {qkv.data() + third * channels, {qkv.num_rows(), channels}, qkv.row_stride()};
}

const kernels::AttentionKernels& kernels_of(const kernels::KernelTable& kernels, Dtype dtype) {
  switch (dtype) {
    case Dtype::bf16: return kernels.bf16_attention;
    case Dtype::i8: return kernels.int8_attention;
    default: return kernels.attention;
  }
}

/// attend() with its sizes worked out.
class AttentionPass {
 public:
  AttentionPass(const AttentionRows& rows, const AttentionInput& input, std::size_t num_heads,
                TensorView<float> out, Workspace& workspace, const kernels::KernelTable& kernels, Dtype dtype)
      : rows_(rows),
        input_(input),
        num_heads_(num_heads),
        out_(out),
        workspace_(workspace),
        kernels_(kernels),
        attention_(kernels_of(kernels, dtype)) {
    const std::size_t channels = out.num_columns();
    num_queries_ = input.num_queries == 0 ? input.num_tokens : input.num_queries;
    VIT_CHECK(num_heads > 0 && channels % num_heads == 0, "attend", channels, " channels cannot be cut into ",
              num_heads, " heads");
    head_dim_ = channels / num_heads;
    VIT_CHECK(input.num_images > 0 && input.num_tokens > 0, "attend", "no images or no tokens");
    const std::size_t key_rows = checked_mul(input.num_images, input.num_tokens, "attend");
    VIT_CHECK(rows.keys.num_rows() == key_rows && rows.values.num_rows() == key_rows &&
                  rows.keys.num_columns() == channels && rows.values.num_columns() == channels,
              "attend", "keys ", rows.keys.shape().to_string(), " and values ",
              rows.values.shape().to_string(), " for ", input.num_images, " images of ", input.num_tokens,
              " tokens and ", channels, " channels");
    VIT_CHECK(num_queries_ <= rows.query_rows_per_image && rows.queries.num_columns() == channels &&
                  rows.queries.num_rows() == input.num_images * rows.query_rows_per_image,
              "attend", "queries ", rows.queries.shape().to_string(), " for ", num_queries_, " of ",
              rows.query_rows_per_image, " rows per image");
    VIT_CHECK(out.num_rows() == input.num_images * num_queries_, "attend", "output ", out.shape().to_string(),
              " for ", input.num_images, " images of ", num_queries_, " queries");
    check_rope();
    packed_floats_ = round_up(kernels.attention_packed_floats(input.num_tokens, head_dim_), 16);
    images_per_pass_ = std::min(workspace.images_per_pass(), input.num_images);
  }

  void run(int threads) {
    check_workspace(threads);
    for (std::size_t image = 0; image < input_.num_images; image += images_per_pass_) {
      const std::size_t num_images = std::min(images_per_pass_, input_.num_images - image);
      pack(image, num_images, threads);
      ask(image, num_images, threads);
      for (const AttentionTap& tap : input_.taps) {
        if (tap.image >= image && tap.image < image + num_images) fill(tap, image);
      }
    }
  }

 private:
  void check_rope() const {
    if (input_.rope.cos == nullptr) return;
    VIT_CHECK(2 * input_.rope.pairs == head_dim_, "attend", "factors for ", input_.rope.pairs,
              " pairs of channels, heads are ", head_dim_, " wide");
    VIT_CHECK(input_.rope.head_stride == 0 || input_.rope.num_heads == num_heads_, "attend", "factors of ",
              input_.rope.num_heads, " heads for ", num_heads_, " heads");
    VIT_CHECK(input_.num_prefix + input_.rope.num_patches == input_.num_tokens, "attend", "factors for ",
              input_.rope.num_patches, " patches and ", input_.num_prefix, " prefix tokens, images have ",
              input_.num_tokens, " tokens");
  }

  void check_workspace(int threads) const {
    const std::size_t packed =
        checked_mul(checked_mul(images_per_pass_, num_heads_, "attend"), packed_floats_, "attend");
    VIT_CHECK(
        packed <= workspace_.packed_heads.num_elements() &&
            static_cast<std::size_t>(resolve_threads(threads)) <= workspace_.thread_scratch.num_rows() &&
            kernels_.attention_scratch_floats(head_dim_) <= workspace_.thread_scratch.num_columns(),
        "attend", "the workspace was reserved for fewer tokens, heads or threads");
    for (const AttentionTap& tap : input_.taps) {
      VIT_CHECK(tap.image < input_.num_images && tap.head < num_heads_, "attend", "no head ", tap.head,
                " of image ", tap.image, " among ", num_heads_, " heads of ", input_.num_images, " images");
      VIT_CHECK(tap.probabilities.shape() == Shape({num_queries_, input_.num_tokens}), "attend",
                "probabilities have (", num_queries_, ", ", input_.num_tokens, ") numbers, got room for ",
                tap.probabilities.shape().to_string());
    }
  }

  kernels::Rotation rotation_of(std::size_t head) const {
    const position::RopeFactors& rope = input_.rope;
    if (rope.cos == nullptr) return {};
    return {.cos = rope.cos + head * rope.head_stride,
            .sin = rope.sin + head * rope.head_stride,
            .num_prefix = input_.num_prefix,
            .pairing = rope.pairing};
  }

  float* packed_of(std::size_t image_in_pass, std::size_t head) const {
    return workspace_.packed_heads.data() + (image_in_pass * num_heads_ + head) * packed_floats_;
  }

  /// Calls run(image of the pass, head, first token, last token, thread) as tasks. Those of the same tokens
  /// follow each other: threads meet rows again that they computed.
  template <typename Run>
  void for_each_part(std::size_t num_images, std::size_t num_tokens, int threads, Run&& run) const {
    const std::size_t parts = ceil_div(num_tokens, kTokensPerTask);
    parallel_for(num_images * parts * num_heads_, threads, [&](std::size_t task, int thread) {
      const std::size_t first = task / num_heads_ % parts * kTokensPerTask;
      run(task / (num_heads_ * parts), task % num_heads_, first, std::min(first + kTokensPerTask, num_tokens),
          static_cast<std::size_t>(thread));
    });
  }

  void pack(std::size_t first_image, std::size_t num_images, int threads) const {
    for_each_part(
        num_images, input_.num_tokens, threads,
        [&](std::size_t image, std::size_t head, std::size_t first, std::size_t last, std::size_t thread) {
          const std::size_t row = (first_image + image) * input_.num_tokens;
          attention_.pack({.keys = rows_.keys.row(row) + head * head_dim_,
                           .key_stride = rows_.keys.row_stride(),
                           .values = rows_.values.row(row) + head * head_dim_,
                           .value_stride = rows_.values.row_stride(),
                           .num_tokens = input_.num_tokens,
                           .first_token = first,
                           .last_token = last,
                           .head_dim = head_dim_,
                           .rotation = rotation_of(head),
                           .packed = packed_of(image, head),
                           .scratch = workspace_.thread_scratch.row(thread)});
        });
  }

  /// Arguments for the queries [first, first + count) of a head, without out.
  kernels::AttentionArgs query_args(std::size_t image, std::size_t image_in_pass, std::size_t head,
                                    std::size_t first, std::size_t count, std::size_t thread) const {
    return {.queries = rows_.queries.row(image * rows_.query_rows_per_image + first) + head * head_dim_,
            .query_stride = rows_.queries.row_stride(),
            .first_query = first,
            .num_queries = count,
            .scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim_))),
            .rotation = rotation_of(head),
            .packed = packed_of(image_in_pass, head),
            .num_tokens = input_.num_tokens,
            .head_dim = head_dim_,
            .scratch = workspace_.thread_scratch.row(thread)};
  }

  void ask(std::size_t first_image, std::size_t num_images, int threads) const {
    for_each_part(
        num_images, num_queries_, threads,
        [&](std::size_t image, std::size_t head, std::size_t first, std::size_t last, std::size_t thread) {
          kernels::AttentionArgs args =
              query_args(first_image + image, image, head, first, last - first, thread);
          args.out = out_.row((first_image + image) * num_queries_ + first) + head * head_dim_;
          args.out_stride = out_.row_stride();
          attention_.attend(args);
        });
  }

  void fill(const AttentionTap& tap, std::size_t first_image) const {
    kernels::AttentionArgs args =
        query_args(tap.image, tap.image - first_image, tap.head, 0, num_queries_, 0);
    args.out = tap.probabilities.data();
    args.out_stride = tap.probabilities.row_stride();
    attention_.probabilities(args);
  }

  const AttentionRows& rows_;
  const AttentionInput& input_;
  std::size_t num_heads_;
  TensorView<float> out_;
  Workspace& workspace_;
  const kernels::KernelTable& kernels_;
  const kernels::AttentionKernels& attention_;
  std::size_t num_queries_ = 0;
  std::size_t head_dim_ = 0;
  std::size_t packed_floats_ = 0;
  std::size_t images_per_pass_ = 0;
};

}  // namespace

void attend(const AttentionRows& rows, const AttentionInput& input, std::size_t num_heads,
            TensorView<float> out, Workspace& workspace, int threads, const kernels::KernelTable& kernels,
            Dtype dtype) {
  AttentionPass(rows, input, num_heads, out, workspace, kernels, dtype).run(threads);
}

Attention::Attention(Linear qkv, std::optional<LayerNorm> norm, Linear proj, std::size_t num_heads,
                     const kernels::KernelTable& kernels, Dtype dtype)
    : qkv_(std::move(qkv)),
      norm_(std::move(norm)),
      proj_(std::move(proj)),
      num_heads_(num_heads),
      kernels_(&kernels),
      dtype_(dtype) {
  VIT_CHECK(proj_.in_features() == embed_dim() && qkv_.in_features() == embed_dim() &&
                qkv_.out_features() == 3 * embed_dim(),
            "Attention", "qkv ", qkv_.describe(), " and proj ", proj_.describe(), " do not fit together");
  VIT_CHECK(num_heads > 0 && embed_dim() % num_heads == 0, "Attention", embed_dim(),
            " channels cannot be cut into ", num_heads, " heads");
  VIT_CHECK(!norm_ || norm_->num_features() == embed_dim(), "Attention", "inner norm over ",
            norm_ ? norm_->num_features() : 0, " of ", embed_dim(), " channels");
}

PreparedRows Attention::prepare(const LayerNorm& norm, TensorView<const float> in, TensorView<float> normed,
                                const Workspace& workspace, int threads) const {
  return qkv_.prepare_normed(norm, in, normed, threads, workspace.quantised);
}

void Attention::multiply_qkv(const PreparedRows& normed, const AttentionInput& input, std::size_t num_queries,
                             TensorView<float> qkv, const Workspace& workspace, int threads) const {
  const std::size_t channels = embed_dim();
  if (num_queries == input.num_tokens) return qkv_.multiply(normed, qkv, threads);
  qkv_.multiply_range(normed, qkv, {channels, 3 * channels}, threads);
  for (std::size_t query = 0; query < num_queries; ++query) {  // of all images together
    const TensorView<const float> rows(normed.rows.row(query), Shape{input.num_images, channels},
                                       input.num_tokens * normed.rows.row_stride());
    const TensorView<float> queries(qkv.row(query), Shape{input.num_images, 3 * channels},
                                    input.num_tokens * qkv.row_stride());
    qkv_.multiply_range(qkv_.prepare(rows, threads, workspace.quantised), queries, {0, channels}, threads);
  }
}

void Attention::forward(const PreparedRows& normed, const AttentionInput& input, std::span<const float> scale,
                        TensorView<float> out, Workspace& workspace, int threads) const {
  const std::size_t channels = embed_dim();
  const std::size_t num_queries = input.num_queries == 0 ? input.num_tokens : input.num_queries;
  const TensorView<float> qkv = Workspace::view_rows(workspace.qkv, normed.rows.num_rows(), 3 * channels);
  const TensorView<float> heads = Workspace::view_rows(
      workspace.heads, checked_mul(input.num_images, num_queries, "Attention"), channels);
  {
    const StageTimer timer(workspace.stages, Stage::qkv);
    multiply_qkv(normed, input, num_queries, qkv, workspace, threads);
  }
  {
    const StageTimer timer(workspace.stages, Stage::attention);
    attend({.queries = view_third(qkv, 0, channels),
            .query_rows_per_image = input.num_tokens,
            .keys = view_third(qkv, 1, channels),
            .values = view_third(qkv, 2, channels)},
           input, num_heads_, heads, workspace, threads, *kernels_, dtype_);
  }
  const StageTimer timer(workspace.stages, Stage::proj);
  proj_.add_to(out, scale, norm_, heads, threads, workspace.quantised);
}

std::size_t Attention::weight_bytes() const {
  return qkv_.weight_bytes() + proj_.weight_bytes() + (norm_ ? norm_->weight_bytes() : 0);
}

}  // namespace vit
