#include "vit/encoder/block.h"

#include <algorithm>
#include <utility>

namespace vit {

Block::Block(LayerNorm norm1, Attention attention, Tensor<float> scale1, LayerNorm norm2,
             std::variant<Mlp, GatedMlp> mlp, Tensor<float> scale2)
    : norm1_(std::move(norm1)),
      attention_(std::move(attention)),
      scale1_(std::move(scale1)),
      norm2_(std::move(norm2)),
      mlp_(std::move(mlp)),
      scale2_(std::move(scale2)) {}

template <typename Branch>
PreparedRows Block::prepare(const Branch& branch, const LayerNorm& norm, TensorView<const float> x,
                            Workspace& workspace, int threads) {
  const StageTimer timer(workspace.stages, Stage::norms);
  const TensorView<float> normed = Workspace::view_rows(workspace.normed, x.num_rows(), x.num_columns());
  return branch.prepare(norm, x, normed, workspace, threads);
}

void Block::forward(TensorView<float> x, const AttentionInput& input, Workspace& workspace,
                    int threads) const {
  const PreparedRows normed = prepare(attention_, norm1_, x, workspace, threads);
  attention_.forward(normed, input, scale1_.flat(), x, workspace,
                     threads);         // x += scale1 * attention(norm1(x))
  forward_mlp(x, workspace, threads);  // x += scale2 * mlp(norm2(x))
}

void Block::forward_leading(TensorView<const float> x, const AttentionInput& input, TensorView<float> out,
                            Workspace& workspace, int threads) const {
  const PreparedRows normed = prepare(attention_, norm1_, x, workspace, threads);
  for (std::size_t row = 0; row < out.num_rows(); ++row) {
    const std::size_t image = row / input.num_queries;
    const float* const source = x.row(image * input.num_tokens + row % input.num_queries);
    std::copy_n(source, out.num_columns(), out.row(row));
  }
  attention_.forward(normed, input, scale1_.flat(), out, workspace, threads);
  forward_mlp(out, workspace, threads);
}

void Block::forward_mlp(TensorView<float> x, Workspace& workspace, int threads) const {
  std::visit(
      [&](const auto& mlp) {
        const PreparedRows normed = prepare(mlp, norm2_, x, workspace, threads);
        const StageTimer timer(workspace.stages, Stage::mlp);
        mlp.forward(normed, scale2_.flat(), x, workspace, threads);
      },
      mlp_);
}

}  // namespace vit
