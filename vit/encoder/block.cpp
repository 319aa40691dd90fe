#include "vit/encoder/block.h"

#include <algorithm>
#include <utility>

namespace vit::internal {

namespace {

Residual residual_of(const BranchEnd& end, TensorView<float> add_to) {
  return {.scale = end.scale.flat(), .add_to = add_to, .norm = end.norm ? &*end.norm : nullptr};
}

/// The sum of tokens and branch in place.
void end_branch(const BranchEnd& end, TensorView<float> x, const Pass& pass) {
  if (end.sum_norm) end.sum_norm->forward(x, x, pass.threads);
}

void copy_rows(TensorView<const float> from, TensorView<float> to) {
  for (std::size_t row = 0; row < from.num_rows(); ++row)
    std::copy_n(from.row(row), from.num_columns(), to.row(row));
}

}  // namespace

Block::Block(std::optional<LayerNorm> norm1, Attention attention, BranchEnd end1,
             std::optional<LayerNorm> norm2, Mlp mlp, BranchEnd end2)
    : norm1_(std::move(norm1)),
      attention_(std::move(attention)),
      end1_(std::move(end1)),
      norm2_(std::move(norm2)),
      mlp_(std::move(mlp)),
      end2_(std::move(end2)) {}

void Block::forward(TensorView<float> x, const AttentionInput& input, const Pass& pass) const {
  if (is_parallel()) {
    const TensorView<float> before =
        Activations::view_rows(pass.activations.block_input, x.num_rows(), x.num_columns());
    copy_rows(x, before);
    return forward_parallel(before, input, x, pass);
  }
  attention_.forward({norm_of(norm1_), x}, input, residual_of(end1_, x),
                     pass);  // x += end1(attention(norm1(x)))
  end_branch(end1_, x, pass);
  mlp_.forward({norm_of(norm2_), x}, residual_of(end2_, x), pass);  // x += end2(mlp(norm2(x)))
  end_branch(end2_, x, pass);
}

void Block::forward_parallel(TensorView<const float> x, const AttentionInput& input, TensorView<float> out,
                             const Pass& pass) const {
  mlp_.forward({norm_of(norm1_), out}, residual_of(end2_, out), pass);  // out = x + end2(mlp(norm1(x)))
  attention_.forward({norm_of(norm1_), x}, input, residual_of(end1_, out),
                     pass);  // out += end1(attention(norm1(x)))
}

void Block::forward_queries(TensorView<const float> x, const AttentionInput& input, TensorView<float> out,
                            const Pass& pass) const {
  for (std::size_t i = 0; i < input.queries.size(); ++i) {
    for (std::size_t query = 0; query < input.queries.length(i); ++query) {
      std::copy_n(x.row(input.sequences.first_row(i) + input.first_query(i) + query), out.num_columns(),
                  out.row(input.queries.first_row(i) + query));
    }
  }
  if (is_parallel()) return forward_parallel(x, input, out, pass);
  attention_.forward({norm_of(norm1_), x}, input, residual_of(end1_, out), pass);
  end_branch(end1_, out, pass);
  mlp_.forward({norm_of(norm2_), out}, residual_of(end2_, out), pass);
  end_branch(end2_, out, pass);
}

}  // namespace vit::internal
