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
  for (std::size_t row = 0; row < out.num_rows(); ++row) {
    const std::size_t image = row / input.num_queries;
    const std::size_t token = input.first_query(image) + row % input.num_queries;
    std::copy_n(x.row(input.first_row(image) + token), out.num_columns(), out.row(row));
  }
  attention_.forward({norm1_, x}, input, {scale1_.flat(), out}, pass);
  mlp_.forward({norm2_, out}, {scale2_.flat(), out}, pass);
}

}  // namespace vit::internal
