#include "vit/encoder/block.h"

#include <algorithm>
#include <utility>

namespace vit::internal {

Block::Block(LayerNorm norm1, Attention attention, Tensor<float> scale1, LayerNorm norm2, Mlp mlp,
             Tensor<float> scale2)
    : norm1_(std::move(norm1)),
      attention_(std::move(attention)),
      scale1_(std::move(scale1)),
      norm2_(std::move(norm2)),
      mlp_(std::move(mlp)),
      scale2_(std::move(scale2)) {}

void Block::forward(TensorView<float> x, const AttentionInput& input, const Pass& pass) const {
  attention_.forward({norm1_, x}, input, {scale1_.flat(), x}, pass);  // x += scale1 * attention(norm1(x))
  mlp_.forward({norm2_, x}, {scale2_.flat(), x}, pass);               // x += scale2 * mlp(norm2(x))
}

void Block::forward_queries(TensorView<const float> x, const AttentionInput& input, TensorView<float> out,
                            const Pass& pass) const {
  for (std::size_t i = 0; i < input.queries.size(); ++i) {
    for (std::size_t query = 0; query < input.queries.length(i); ++query) {
      std::copy_n(x.row(input.sequences.first_row(i) + input.first_query(i) + query), out.num_columns(),
                  out.row(input.queries.first_row(i) + query));
    }
  }
  attention_.forward({norm1_, x}, input, {scale1_.flat(), out}, pass);
  mlp_.forward({norm2_, out}, {scale2_.flat(), out}, pass);
}

}  // namespace vit::internal
