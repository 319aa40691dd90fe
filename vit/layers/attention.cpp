#include "vit/layers/attention.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "vit/base/check.h"
#include "vit/base/parallel.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"Attention", ErrorKind::argument};

/// `count` columns of fused rows from the `first` on: q, k or v.
TensorView<const float> view_columns(const TensorView<float>& qkv, std::size_t first, std::size_t count) {
  return {qkv.data() + first, {qkv.num_rows(), count}, qkv.row_stride()};
}

}  // namespace

Attention::Attention(Linear qkv, HeadNorms head_norms, std::optional<LayerNorm> norm, Linear proj,
                     std::size_t num_heads, const kernels::AttentionKernels& kernels)
    : qkv_(std::move(qkv)),
      head_norms_(std::move(head_norms)),
      norm_(std::move(norm)),
      proj_(std::move(proj)),
      num_heads_(num_heads),
      kernels_(&kernels) {
  VIT_CHECK(num_heads > 0 && attention_dim() % num_heads == 0, kWhere, attention_dim(),
            " channels cannot be divided into ", num_heads, " heads");
  const std::size_t head_dim = attention_dim() / num_heads;
  VIT_CHECK(qkv_.in_features() == embed_dim() && qkv_.out_features() >= attention_dim() + 2 * head_dim &&
                (qkv_.out_features() - attention_dim()) % (2 * head_dim) == 0 &&
                num_heads % (key_dim() / head_dim) == 0,
            kWhere, "qkv ", qkv_.describe(), " and proj ", proj_.describe(), " do not match");
  VIT_CHECK(!norm_ || norm_->num_features() == attention_dim(), kWhere, "inner norm over ",
            norm_ ? norm_->num_features() : 0, " of ", attention_dim(), " channels");
  padding_ = Tensor<float>(Shape{qkv_.out_features()});
  std::fill_n(padding_.data(), padding_.num_elements(), 0.0f);
  std::ranges::copy(qkv_.bias(), padding_.data());
  Activations none;
  normalize_heads(TensorView<float>(padding_.data(), Shape{1, padding_.num_elements()}),
                  {.activations = none, .threads = 1});
}

AttentionInput Attention::completed(const AttentionInput& input) const {
  AttentionInput out = input;
  out.padding.key = padding_.data() + attention_dim();
  out.padding.value = out.padding.key + key_dim();
  return out;
}

void Attention::multiply_qkv(const LinearInput& normed, const AttentionInput& input, TensorView<float> qkv,
                             const Pass& pass) const {
  const Sequences& sequences = input.sequences;
  // Irregularly spaced rows of queries are computed with the others: a small part of the last
  // block.
  const bool in_order = sequences.have_one_length() && input.queries.have_one_length();
  if (input.all_are_queries() || !in_order) return qkv_.multiply(normed, qkv, pass);
  const std::size_t width = attention_dim(), all = qkv_.out_features();
  qkv_.multiply_range(normed, qkv, {width, all}, pass);
  for (std::size_t query = 0; query < input.queries.longest(); ++query) {  // of all sequences together
    const std::size_t token = input.first_query(0) + query;
    const TensorView<const float> rows(normed.rows.row(token), Shape{sequences.size(), embed_dim()},
                                       sequences.longest() * normed.rows.row_stride());
    const TensorView<float> queries(qkv.row(token), Shape{sequences.size(), all},
                                    sequences.longest() * qkv.row_stride());
    // Converted again: the rows of one query are not contiguous in `normed`, whose converted rows are unused.
    qkv_.multiply_range(qkv_.convert(rows, pass), queries, {0, width}, pass);
  }
}

/// The columns of qkv (rows, A + 2G) head by head, in place; rows that are not queries have arbitrary numbers
/// there, which are not read.
void Attention::normalize_heads(TensorView<float> qkv, const Pass& pass) const {
  const std::optional<LayerNorm>* const norms[] = {&head_norms_.queries, &head_norms_.keys,
                                                   &head_norms_.values};
  const std::size_t firsts[] = {0, attention_dim(), attention_dim() + key_dim()};
  const std::size_t widths[] = {attention_dim(), key_dim(), key_dim()};
  parallel_for_parts(qkv.num_rows(), kTaskRows, pass.threads, [&](std::size_t first, std::size_t count) {
    for (std::size_t row = first; row < first + count; ++row) {
      for (std::size_t part = 0; part < 3; ++part) {
        if (!*norms[part]) continue;
        const std::size_t head_dim = (*norms[part])->num_features(), num_heads = widths[part] / head_dim;
        const TensorView<float> heads(qkv.row(row) + firsts[part], Shape{num_heads, head_dim});
        (*norms[part])->forward_rows(heads, heads, 0, num_heads);
      }
    }
  });
}

AttentionRows Attention::compute_qkv(const NormedRows& x, const AttentionInput& input,
                                     const Pass& pass) const {
  Activations& a = pass.activations;
  const std::size_t num_rows = x.rows.num_rows(), width = attention_dim();
  const TensorView<float> qkv = Activations::view_rows(a.qkv, num_rows, qkv_.out_features());
  const TensorView<float> rows = Activations::view_rows(a.normed, num_rows, embed_dim());
  std::size_t first = 0;  // column of a part
  for (const Linear& part : clipped_) {
    const StageTimer timer(pass.times, Stage::qkv);
    const TensorView<float> out(qkv.data() + first, {num_rows, part.out_features()}, qkv.row_stride());
    part.multiply(part.convert(x, rows, pass), out, pass);
    first += part.out_features();
  }
  if (clipped_.empty()) {
    const LinearInput normed = [&] {
      const StageTimer timer(pass.times, Stage::norms);
      return qkv_.convert(x, rows, pass);
    }();
    const StageTimer timer(pass.times, Stage::qkv);
    multiply_qkv(normed, input, qkv, pass);
  }
  if (head_norms_.queries || head_norms_.keys || head_norms_.values) normalize_heads(qkv, pass);
  return {.queries = view_columns(qkv, 0, width),
          .query_tokens = input.sequences,
          .keys = view_columns(qkv, width, key_dim()),
          .values = view_columns(qkv, width + key_dim(), key_dim())};
}

void Attention::set_differential(Differential differential) {
  const std::size_t head_dim = attention_dim() / num_heads_;
  VIT_CHECK(head_dim % 2 == 0 && key_dim() == attention_dim() && differential.norm.num_features() == head_dim,
            kWhere, "differential attention with heads of ", head_dim, " channels");
  differential_ = std::move(differential);
}

/// Two heads of queries share one of keys and values: | q1 0 | and | 0 q2 | read | k1 k2 |, so that each
/// product is that of one half.
void Attention::attend_twice(const AttentionRows& rows, const AttentionInput& input, TensorView<float> heads,
                             const Pass& pass) const {
  const std::size_t width = attention_dim(), head_dim = width / num_heads_, half = head_dim / 2;
  const std::size_t num_rows = rows.queries.num_rows();
  const TensorView<float> queries = Activations::view_rows(pass.activations.query_pairs, num_rows, 2 * width);
  const TensorView<float> pairs =
      Activations::view_rows(pass.activations.head_pairs, heads.num_rows(), 2 * width);
  parallel_for_parts(num_rows, kTaskRows, pass.threads, [&](std::size_t first, std::size_t count) {
    for (std::size_t row = first; row < first + count; ++row) {
      std::fill_n(queries.row(row), 2 * width, 0.0f);
      for (std::size_t i = 0; i < 2 * num_heads_; ++i)
        std::copy_n(rows.queries.row(row) + i * half, half, queries.row(row) + i * head_dim + i % 2 * half);
    }
  });
  AttentionRows twice = rows;
  twice.queries = queries;
  AttentionInput both = input;
  both.logit_factor *= std::sqrt(2.0);  // heads are half as wide
  attend(twice, both, 2 * num_heads_, pairs, *kernels_, pass);
  parallel_for_parts(heads.num_rows(), kTaskRows, pass.threads, [&](std::size_t first, std::size_t count) {
    for (std::size_t row = first; row < first + count; ++row) {
      float* const out = heads.row(row);
      for (std::size_t head = 0; head < num_heads_; ++head) {
        const float* const a = pairs.row(row) + 2 * head * head_dim;
        for (std::size_t c = 0; c < head_dim; ++c)
          out[head * head_dim + c] = a[c] - differential_->lambda * a[head_dim + c];
      }
      const TensorView<float> of_row(out, Shape{num_heads_, head_dim});
      differential_->norm.forward_rows(of_row, of_row, 0, num_heads_);
      for (std::size_t c = 0; c < width; ++c) out[c] *= differential_->factor;
    }
  });
}

void Attention::sum_probabilities(const NormedRows& x, const AttentionInput& input,
                                  std::span<const double> weights, std::span<double> sums,
                                  const Pass& pass) const {
  const AttentionRows rows = compute_qkv(x, input, pass);
  Tensor<double> of_heads(Shape{num_heads_, sums.size()});
  internal::sum_probabilities(rows, completed(input), weights, of_heads.view(), *kernels_, pass);
  for (std::size_t key = 0; key < sums.size(); ++key) {
    double sum = 0;
    for (std::size_t head = 0; head < num_heads_; ++head) sum += of_heads.view().row(head)[key];
    sums[key] = sum / static_cast<double>(num_heads_);
  }
}

void Attention::forward(const NormedRows& x, const AttentionInput& input, const Residual& out,
                        const Pass& pass) const {
  const AttentionRows rows = compute_qkv(x, input, pass);
  const TensorView<float> heads =
      Activations::view_rows(pass.activations.heads, input.queries.rows(), attention_dim());
  {
    const StageTimer timer(pass.times, Stage::attention);
    if (differential_) {
      attend_twice(rows, input, heads, pass);
    } else {
      attend(rows, completed(input), num_heads_, heads, *kernels_, pass);
    }
  }
  const StageTimer timer(pass.times, Stage::proj);
  proj_.add(norm_, heads, out, pass);
}

}  // namespace vit::internal
