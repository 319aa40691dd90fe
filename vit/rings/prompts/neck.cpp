#include "vit/rings/prompts/neck.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace vit::internal {

Neck::Neck(NeckLevel finest, NeckLevel finer, NeckLevel coarse, const kernels::Arithmetic& arithmetic)
    : levels_{std::move(finest), std::move(finer), std::move(coarse)}, arithmetic_(&arithmetic) {}

void Neck::run_level(const NeckLevel& level, TensorView<const float> tokens, std::size_t grid,
                     Tensor<float>& out, PromptMemory& memory) const {
  const std::size_t dim = level.smooth.in_channels();
  // only read
  const TensorView<float> rows(const_cast<float*>(tokens.data()), tokens.shape(), tokens.row_stride());
  FeatureMap map = FeatureMap::of_tokens(rows, {grid, grid});
  if (level.first) {
    const MapSize size = level.first->out_size(map.size());
    const std::size_t channels = level.first->out_channels();
    const FeatureMap next =
        FeatureMap::of_tokens(memory.convolved.rows(size.height * size.width, channels), size);
    level.first->forward(map, next, memory.threads, memory.scratch(level.first->scratch_floats()),
                         Activation::gelu);
    map = next;
  }
  const MapSize size = level.grow ? level.grow->out_size(map.size()) : map.size();
  const FeatureMap projected = memory.enlarged.map(size, dim);
  if (level.grow) {
    level.grow->forward(map, projected, memory.threads, memory.scratch(level.grow->scratch_floats()));
  } else {
    memory.reserve(tokens.num_rows(), {.dim = dim, .inner = dim, .heads = 1, .hidden = tokens.num_columns()},
                   *arithmetic_);
    for (std::size_t y = 0; y < grid; ++y) {
      level.project->forward(tokens.part(y * grid, grid),
                             {projected.row(static_cast<std::ptrdiff_t>(y)), Shape{grid, dim}},
                             memory.pass());
    }
  }
  const Shape shape{size.height * size.width, level.smooth.out_channels()};
  if (out.empty() || !(out.shape() == shape)) out = Tensor<float>(shape);
  level.smooth.forward(projected, FeatureMap::of_tokens(out, size), memory.threads,
                       memory.scratch(level.smooth.scratch_floats()));
}

void Neck::forward(TensorView<const float> tokens, std::size_t grid, const NeckMaps& maps,
                   PromptMemory& memory) const {
  run_level(levels_[0], tokens, grid, maps.finest, memory);
  run_level(levels_[1], tokens, grid, maps.finer, memory);
  run_level(levels_[2], tokens, grid, maps.tokens, memory);
}

ComposedKernel compose_3x3(const Tensor<float>& weight, const Tensor<float>& bias,
                           const Tensor<float>& projection, const Tensor<float>& projection_bias) {
  const std::size_t middle = weight.dim(0), of_one = weight.num_elements() / middle, out = projection.dim(0);
  ComposedKernel composed{Tensor<float>(Shape{out, weight.dim(1), 3, 3}), Tensor<float>(Shape{out})};
  parallel_for(out, /*threads=*/0, [&](std::size_t o, int) {
    std::vector<double> sums(of_one);
    double shift = projection_bias.data()[o];
    for (std::size_t m = 0; m < middle; ++m) {
      const double factor = projection.data()[o * middle + m];
      shift += factor * bias.data()[m];
      for (std::size_t i = 0; i < of_one; ++i) sums[i] += factor * weight.data()[m * of_one + i];
    }
    std::ranges::transform(sums, composed.weight.data() + o * of_one,
                           [](double sum) { return static_cast<float>(sum); });
    composed.bias.data()[o] = static_cast<float>(shift);
  });
  return composed;
}

ComposedKernel compose(const Tensor<float>& weight, const Tensor<float>& bias,
                       const Tensor<float>& projection, const Tensor<float>& projection_bias) {
  const std::size_t in = weight.dim(0), middle = weight.dim(1), out = projection.dim(0), places = 4;
  std::vector<double> columns(middle * out);  // of the projection, transposed
  for (std::size_t d = 0; d < out; ++d) {
    for (std::size_t m = 0; m < middle; ++m) columns[m * out + d] = projection.data()[d * middle + m];
  }
  ComposedKernel composed{Tensor<float>(Shape{in, out, 2, 2}), Tensor<float>(Shape{out})};
  parallel_for(in, /*threads=*/0, [&](std::size_t i, int) {
    std::vector<double> sums(out);
    for (std::size_t place = 0; place < places; ++place) {
      std::fill(sums.begin(), sums.end(), 0.0);
      for (std::size_t m = 0; m < middle; ++m) {
        const double factor = weight.data()[(i * middle + m) * places + place];
        for (std::size_t d = 0; d < out; ++d) sums[d] += factor * columns[m * out + d];
      }
      for (std::size_t d = 0; d < out; ++d)
        composed.weight.data()[(i * out + d) * places + place] = static_cast<float>(sums[d]);
    }
  });
  for (std::size_t d = 0; d < out; ++d) {
    double sum = projection_bias.data()[d];
    for (std::size_t m = 0; m < middle; ++m) sum += bias.data()[m] * columns[m * out + d];
    composed.bias.data()[d] = static_cast<float>(sum);
  }
  return composed;
}

}  // namespace vit::internal
