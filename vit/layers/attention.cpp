#include "vit/layers/attention.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "vit/base/check.h"
#include "vit/base/parallel.h"

namespace vit::internal {
namespace {

constexpr Where kAttend{"attend", ErrorKind::mismatch};
constexpr Where kWhere{"Attention", ErrorKind::mismatch};

// Whole tiles of queries for any vector width.
constexpr std::size_t kTokensPerTask = 32;
// Keys and values of which a core finds most in the last-level cache, on a machine that it shares.
constexpr std::size_t kCachedBytes = std::size_t{8} << 20;

/// The columns of one of q, k, v inside fused rows (rows, 3C).
TensorView<const float> view_third(const TensorView<float>& qkv, std::size_t third, std::size_t channels) {
  return {qkv.data() + third * channels, {qkv.num_rows(), channels}, qkv.row_stride()};
}

/// attend() with its sizes worked out.
class AttentionPass {
 public:
  AttentionPass(const AttentionRows& rows, const AttentionInput& input, std::size_t num_heads,
                TensorView<float> out, const kernels::AttentionKernels& kernels, const Pass& pass)
      : rows_(rows), input_(input), num_heads_(num_heads), out_(out), kernels_(kernels), pass_(pass) {
    const std::size_t channels = out.num_columns();
    VIT_CHECK(num_heads > 0 && channels % num_heads == 0, kAttend, channels, " channels cannot be cut into ",
              num_heads, " heads");
    head_dim_ = channels / num_heads;
    VIT_CHECK(input.num_images > 0 && input.num_tokens > 0, kAttend, "no images or no tokens");
    check_starts();
    const std::size_t key_rows = input.num_rows();
    VIT_CHECK(rows.keys.num_rows() == key_rows && rows.values.num_rows() == key_rows &&
                  rows.keys.num_columns() == channels && rows.values.num_columns() == channels,
              kAttend, "keys ", rows.keys.shape().to_string(), " and values ",
              rows.values.shape().to_string(), " for ", input.num_images, " images of ", input.num_tokens,
              " tokens and ", channels, " channels");
    const std::size_t query_rows =
        input.starts.empty() ? input.num_images * rows.query_rows_per_image : key_rows;
    VIT_CHECK(input.num_queries > 0 && input.num_queries <= rows.query_rows_per_image &&
                  rows.queries.num_columns() == channels && rows.queries.num_rows() == query_rows,
              kAttend, "queries ", rows.queries.shape().to_string(), " for ", input_.num_queries, " of ",
              rows.query_rows_per_image, " rows per image");
    VIT_CHECK(out.num_rows() == input.num_query_rows(), kAttend, "output ", out.shape().to_string(), " for ",
              input.num_images, " images of ", input_.num_queries, " queries");
    check_rope();
    packed_floats_ = round_up(kernels.packed_floats(input.num_tokens, head_dim_), 16);
    packed_images_ = std::min(pass.activations.packed_images(), input.num_images);
  }

  void run() {
    check_activations();
    for (std::size_t image = 0; image < input_.num_images; image += packed_images_) {
      const std::size_t num_images = std::min(packed_images_, input_.num_images - image);
      pack(image, num_images);
      run_queries(image, num_images);
      for (const AttentionTap& tap : input_.taps) {
        if (tap.image >= image && tap.image < image + num_images) write_probabilities(tap, image);
      }
    }
  }

  /// sums (B, H, T) = probabilities of each head, the rows weighted by weights (B, T) and summed.
  void sum_probabilities(TensorView<const double> weights, TensorView<double> sums) {
    check_activations();
    const std::size_t tokens = input_.num_tokens;
    // a tile of rows for each thread
    Tensor<float> tiles(
        Shape{static_cast<std::size_t>(resolve_threads(pass_.threads)), kTokensPerTask * tokens});
    for (std::size_t first = 0; first < input_.num_images; first += packed_images_) {
      const std::size_t count = std::min(packed_images_, input_.num_images - first);
      pack(first, count);
      parallel_for(count * num_heads_, pass_.threads, [&](std::size_t task, int thread) {
        const std::size_t image = first + task / num_heads_, head = task % num_heads_;
        float* const tile = tiles.view().row(static_cast<std::size_t>(thread));
        sum_head(image, task / num_heads_, head, weights.row(image), tile,
                 sums.row(image * num_heads_ + head), static_cast<std::size_t>(thread));
      });
    }
  }

 private:
  void sum_head(std::size_t image, std::size_t image_in_pass, std::size_t head, const double* weights,
                float* tile, double* sums, std::size_t thread) const {
    const std::size_t tokens = input_.num_tokens;
    std::fill_n(sums, tokens, 0.0);
    for (std::size_t first = 0; first < tokens; first += kTokensPerTask) {
      const std::size_t count = std::min(kTokensPerTask, tokens - first);
      if (std::all_of(weights + first, weights + first + count, [](double w) { return w == 0; })) continue;
      kernels::AttentionArgs args = query_args(image, image_in_pass, head, first, count, thread);
      args.out = tile;
      args.out_stride = tokens;
      kernels_.probabilities(args);
      for (std::size_t query = 0; query < count; ++query) {
        const double weight = weights[first + query];
        for (std::size_t key = 0; key < tokens; ++key)
          sums[key] += weight * static_cast<double>(tile[query * tokens + key]);
      }
    }
  }

  void check_starts() const {
    const std::span<const std::size_t> starts = input_.starts;
    if (starts.empty()) return;
    VIT_CHECK(starts.size() == input_.num_images + 1 && starts[0] == 0 &&
                  (input_.num_queries == 1 || input_.all_are_queries()),
              kAttend, starts.size(), " starts and ", input_.num_queries, " queries for ", input_.num_images,
              " texts");
    for (std::size_t i = 0; i < input_.num_images; ++i) {
      VIT_CHECK(starts[i] < starts[i + 1] && input_.tokens_of(i) <= input_.num_tokens, kAttend, "text ", i,
                " begins at row ", starts[i], " and ends at ", starts[i + 1], ", the longest has ",
                input_.num_tokens, " tokens");
    }
  }

  void check_rope() const {
    if (input_.rope.cos == nullptr) return;
    VIT_CHECK(2 * input_.rope.pairs == head_dim_, kAttend, "factors for ", input_.rope.pairs,
              " pairs of channels, heads are ", head_dim_, " wide");
    VIT_CHECK(input_.rope.head_stride == 0 || input_.rope.num_heads == num_heads_, kAttend, "factors of ",
              input_.rope.num_heads, " heads for ", num_heads_, " heads");
    VIT_CHECK(input_.num_prefix + input_.rope.num_patches == input_.num_tokens, kAttend, "factors for ",
              input_.rope.num_patches, " patches and ", input_.num_prefix, " prefix tokens, images have ",
              input_.num_tokens, " tokens");
  }

  void check_activations() const {
    const Activations& memory = pass_.activations;
    const std::size_t packed =
        checked_mul(checked_mul(packed_images_, num_heads_, kAttend), packed_floats_, kAttend);
    VIT_CHECK(
        packed <= memory.packed_heads.num_elements() &&
            static_cast<std::size_t>(resolve_threads(pass_.threads)) <= memory.thread_scratch.num_rows() &&
            kernels_.scratch_floats(head_dim_) <= memory.thread_scratch.num_columns(),
        kAttend, "the activations were reserved for fewer tokens, heads or threads");
    VIT_CHECK(input_.taps.empty() || input_.starts.empty(), kAttend, "probabilities of texts");
    for (const AttentionTap& tap : input_.taps) {
      VIT_CHECK(tap.image < input_.num_images && tap.head < num_heads_, kAttend, "no head ", tap.head,
                " of image ", tap.image, " among ", num_heads_, " heads of ", input_.num_images, " images");
      VIT_CHECK(tap.probabilities.rank() == 2 && tap.probabilities.num_columns() == input_.num_tokens &&
                    tap.first_query + tap.probabilities.num_rows() <= input_.num_queries,
                kAttend, "probabilities have (", input_.num_queries, ", ", input_.num_tokens,
                ") numbers, got room for ", tap.probabilities.shape().to_string(), " from query ",
                tap.first_query, " on");
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
    return pass_.activations.packed_heads.data() + (image_in_pass * num_heads_ + head) * packed_floats_;
  }

  /// Calls run(image of the pass, head, first token, last token, thread) as tasks of part_size tokens, where
  /// images have count_of(image) of them, at most `most`. Those of the same tokens follow each other: threads
  /// meet rows again that they computed. Of long sequences those of the same head do: its keys and values may
  /// still be in a cache, those of all heads are not.
  template <typename Count, typename Run>
  void for_each_part(std::size_t num_images, std::size_t most, std::size_t part_size, Count&& count_of,
                     Run&& run) const {
    const bool by_head = num_heads_ * packed_bytes() > kCachedBytes;
    const std::size_t parts = ceil_div(most, part_size);
    parallel_for(num_images * parts * num_heads_, pass_.threads, [&](std::size_t task, int thread) {
      const std::size_t image = task / (num_heads_ * parts), count = count_of(image);
      const std::size_t in_image = task % (num_heads_ * parts);
      const std::size_t first = (by_head ? in_image % parts : in_image / num_heads_) * part_size;
      if (first >= count) return;
      run(image, by_head ? in_image / parts : in_image % num_heads_, first,
          std::min(first + part_size, count), static_cast<std::size_t>(thread));
    });
  }

  /// Bytes of the keys and values of a head.
  std::size_t packed_bytes() const { return packed_floats_ * sizeof(float); }

  /// Queries of a task, which share keys and values: more of them where those come from memory, but tasks
  /// enough for the threads to end together.
  std::size_t queries_per_task(std::size_t num_images) const {
    constexpr std::size_t kTasksPerThread = 16, kQueriesFromCache = 128;
    const std::size_t most = packed_bytes() > kCachedBytes ? kernels::kQueriesAtOnce : kQueriesFromCache;
    const std::size_t tasks = kTasksPerThread * static_cast<std::size_t>(resolve_threads(pass_.threads));
    const std::size_t share = num_images * num_heads_ * input_.num_queries / tasks;
    return std::clamp(share / kTokensPerTask * kTokensPerTask, kTokensPerTask, most);
  }

  void pack(std::size_t first_image, std::size_t num_images) const {
    for_each_part(
        num_images, input_.num_tokens, kTokensPerTask,
        [&](std::size_t image) { return input_.tokens_of(first_image + image); },
        [&](std::size_t image, std::size_t head, std::size_t first, std::size_t last, std::size_t thread) {
          const std::size_t row = input_.first_row(first_image + image);
          kernels_.pack({.keys = rows_.keys.row(row) + head * head_dim_,
                         .key_stride = rows_.keys.row_stride(),
                         .values = rows_.values.row(row) + head * head_dim_,
                         .value_stride = rows_.values.row_stride(),
                         .num_tokens = input_.tokens_of(first_image + image),
                         .first_token = first,
                         .last_token = last,
                         .head_dim = head_dim_,
                         .rotation = rotation_of(head),
                         .packed = packed_of(image, head),
                         .scratch = pass_.activations.thread_scratch.row(thread)});
        });
  }

  /// Arguments for `count` queries of a head from the `first` on, without out.
  kernels::AttentionArgs query_args(std::size_t image, std::size_t image_in_pass, std::size_t head,
                                    std::size_t first, std::size_t count, std::size_t thread) const {
    const std::size_t token = input_.first_query(image) + first;
    const std::size_t row =
        (input_.starts.empty() ? image * rows_.query_rows_per_image : input_.starts[image]) + token;
    return {.queries = rows_.queries.row(row) + head * head_dim_,
            .query_stride = rows_.queries.row_stride(),
            .first_query = token,
            .num_queries = count,
            .scale = static_cast<float>(input_.logit_factor / std::sqrt(static_cast<double>(head_dim_))),
            .rotation = rotation_of(head),
            .packed = packed_of(image_in_pass, head),
            .num_tokens = input_.tokens_of(image),
            .head_dim = head_dim_,
            .causal = input_.causal,
            .scratch = pass_.activations.thread_scratch.row(thread)};
  }

  void run_queries(std::size_t first_image, std::size_t num_images) const {
    for_each_part(
        num_images, input_.num_queries, queries_per_task(num_images),
        [&](std::size_t image) { return input_.queries_of(first_image + image); },
        [&](std::size_t image, std::size_t head, std::size_t first, std::size_t last, std::size_t thread) {
          kernels::AttentionArgs args =
              query_args(first_image + image, image, head, first, last - first, thread);
          args.out = out_.row(input_.first_query_row(first_image + image) + first) + head * head_dim_;
          args.out_stride = out_.row_stride();
          kernels_.attend(args);
        });
  }

  void write_probabilities(const AttentionTap& tap, std::size_t first_image) const {
    kernels::AttentionArgs args = query_args(tap.image, tap.image - first_image, tap.head, tap.first_query,
                                             tap.probabilities.num_rows(), 0);
    args.out = tap.probabilities.data();
    args.out_stride = tap.probabilities.row_stride();
    kernels_.probabilities(args);
  }

  const AttentionRows& rows_;
  const AttentionInput& input_;
  std::size_t num_heads_;
  TensorView<float> out_;
  const kernels::AttentionKernels& kernels_;
  const Pass& pass_;
  std::size_t head_dim_ = 0;
  std::size_t packed_floats_ = 0;
  std::size_t packed_images_ = 0;
};

}  // namespace

void attend(const AttentionRows& rows, const AttentionInput& input, std::size_t num_heads,
            TensorView<float> out, const kernels::AttentionKernels& kernels, const Pass& pass) {
  AttentionPass(rows, input, num_heads, out, kernels, pass).run();
}

Attention::Attention(Linear qkv, std::optional<LayerNorm> norm, Linear proj, std::size_t num_heads,
                     const kernels::AttentionKernels& kernels)
    : qkv_(std::move(qkv)),
      norm_(std::move(norm)),
      proj_(std::move(proj)),
      num_heads_(num_heads),
      kernels_(&kernels) {
  VIT_CHECK(qkv_.in_features() == embed_dim() && qkv_.out_features() == 3 * attention_dim(), kWhere, "qkv ",
            qkv_.describe(), " and proj ", proj_.describe(), " do not fit together");
  VIT_CHECK(num_heads > 0 && attention_dim() % num_heads == 0, kWhere, attention_dim(),
            " channels cannot be cut into ", num_heads, " heads");
  VIT_CHECK(!norm_ || norm_->num_features() == attention_dim(), kWhere, "inner norm over ",
            norm_ ? norm_->num_features() : 0, " of ", attention_dim(), " channels");
}

void Attention::multiply_qkv(const LinearInput& normed, const AttentionInput& input, TensorView<float> qkv,
                             const Pass& pass) const {
  // Last rows of texts lie apart without order; their queries are a small part of the last block.
  if (input.all_are_queries() || !input.starts.empty()) return qkv_.multiply(normed, qkv, pass);
  const std::size_t width = attention_dim();
  qkv_.multiply_range(normed, qkv, {width, 3 * width}, pass);
  for (std::size_t query = 0; query < input.num_queries; ++query) {  // of all images together
    const TensorView<const float> rows(normed.rows.row(query), Shape{input.num_images, embed_dim()},
                                       input.num_tokens * normed.rows.row_stride());
    const TensorView<float> queries(qkv.row(query), Shape{input.num_images, 3 * width},
                                    input.num_tokens * qkv.row_stride());
    // Converted anew: the rows of one query lie apart in `normed`, whose converted rows are no longer needed.
    qkv_.multiply_range(qkv_.convert(rows, pass), queries, {0, width}, pass);
  }
}

AttentionRows Attention::compute_qkv(const NormedRows& x, const AttentionInput& input,
                                     const Pass& pass) const {
  Activations& a = pass.activations;
  const std::size_t num_rows = x.rows.num_rows(), width = attention_dim();
  const TensorView<float> qkv = Activations::view_rows(a.qkv, num_rows, 3 * width);
  const LinearInput normed = [&] {
    const StageTimer timer(pass.times, Stage::norms);
    return qkv_.convert(x, Activations::view_rows(a.normed, num_rows, embed_dim()), pass);
  }();
  const StageTimer timer(pass.times, Stage::qkv);
  multiply_qkv(normed, input, qkv, pass);
  return {.queries = view_third(qkv, 0, width),
          .query_rows_per_image = input.num_tokens,
          .keys = view_third(qkv, 1, width),
          .values = view_third(qkv, 2, width)};
}

void Attention::sum_probabilities(const NormedRows& x, const AttentionInput& input,
                                  TensorView<const double> weights, TensorView<double> sums,
                                  const Pass& pass) const {
  const AttentionRows rows = compute_qkv(x, input, pass);
  const TensorView<float> heads =
      Activations::view_rows(pass.activations.heads, x.rows.num_rows(), attention_dim());
  Tensor<double> of_heads(Shape{input.num_images, num_heads_, input.num_tokens});
  AttentionPass(rows, input, num_heads_, heads, *kernels_, pass).sum_probabilities(weights, of_heads.view());
  for (std::size_t image = 0; image < input.num_images; ++image) {
    for (std::size_t key = 0; key < input.num_tokens; ++key) {
      double sum = 0;
      for (std::size_t head = 0; head < num_heads_; ++head) sum += of_heads.view()[image].row(head)[key];
      sums.row(image)[key] = sum / static_cast<double>(num_heads_);
    }
  }
}

void Attention::forward(const NormedRows& x, const AttentionInput& input, const Residual& out,
                        const Pass& pass) const {
  const AttentionRows rows = compute_qkv(x, input, pass);
  const TensorView<float> heads =
      Activations::view_rows(pass.activations.heads, input.num_query_rows(), attention_dim());
  {
    const StageTimer timer(pass.times, Stage::attention);
    attend(rows, input, num_heads_, heads, *kernels_, pass);
  }
  const StageTimer timer(pass.times, Stage::proj);
  proj_.add(norm_, heads, out, pass);
}

}  // namespace vit::internal
