#include "vit/rings/prompts/query_decoder.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "vit/base/rounded.h"
#include "vit/position/sine_code.h"

namespace vit::internal {
namespace {

/// The inverse of the sigmoid, kept finite.
double logit_of(double t) {
  constexpr double kLeast = 1e-3;
  return std::log(std::max(t, kLeast) / std::max(1.0 - t, kLeast));
}

/// A distance in shares of the image, compressed.
double compressed(double t) {
  return std::copysign(std::log2(std::abs(8.0 * t) + 1.0) / 3.0, t);
}

float clamped(float x, float most) {
  return std::clamp(x, -most, most);
}

}  // namespace

void Perceptron::forward(TensorView<const float> x, TensorView<float> out, PromptMemory& memory) const {
  const Pass pass = memory.pass();
  RowBuffer* const buffers[] = {&memory.hidden, &memory.vectors};
  for (std::size_t i = 0; i + 1 < layers_.size(); ++i) {
    const TensorView<float> next = buffers[i % 2]->rows(x.num_rows(), layers_[i].out_features());
    layers_[i].forward(x, next, pass, {.activation = Activation::relu});
    x = next;
  }
  layers_.back().forward(x, out, pass);
}

QueryDecoder::QueryDecoder(DecoderLayers layers, const kernels::Arithmetic& arithmetic)
    : layers_(std::move(layers)), arithmetic_(&arithmetic) {}

/// (N, D): zeros for the presence token, then the codes of boxes (Q, 4) after the perceptron.
TensorView<const float> QueryDecoder::positions_of(TensorView<const float> boxes,
                                                   PromptMemory& memory) const {
  const std::size_t queries = boxes.num_rows(), dim = layers_.queries.dim(1), half = dim / 2;
  const TensorView<float> codes = memory.small.rows(queries, 4 * half);
  constexpr std::size_t kOrder[] = {1, 0, 2, 3};  // y before x
  parallel_for(queries, memory.threads, [&](std::size_t q, int) {
    for (std::size_t k = 0; k < 4; ++k) {
      sine_code_of_value(static_cast<double>(boxes.row(q)[kOrder[k]]), {codes.row(q) + k * half, half});
    }
  });
  const TensorView<float> out = memory.positions.rows(queries + 1, dim);
  std::fill_n(out.data(), dim, 0.0f);
  layers_.position.forward(codes, out.part(1, queries), memory);
  return out;
}

/// Both parts of the bias for boxes (Q, 4): of the compressed distances of each cell to two edges.
GridBias QueryDecoder::bias_of(TensorView<const float> boxes, std::size_t grid, PromptMemory& memory) const {
  const std::size_t queries = boxes.num_rows();
  const auto of_axis = [&](std::size_t axis, const Perceptron& perceptron, RowBuffer& buffer) {
    const TensorView<float> distances = memory.small.rows(queries * grid, 2);
    for (std::size_t q = 0; q < queries; ++q) {
      const double centre = boxes.row(q)[axis], half = 0.5 * static_cast<double>(boxes.row(q)[axis + 2]);
      for (std::size_t i = 0; i < grid; ++i) {
        const double cell = static_cast<double>(i) / static_cast<double>(grid);
        float* const to = distances.row(q * grid + i);
        to[0] = static_cast<float>(compressed(cell - (centre - half)));
        to[1] = static_cast<float>(compressed(cell - (centre + half)));
      }
    }
    const std::size_t heads = layers_.layers.front().image.num_heads();
    const TensorView<float> out = buffer.rows(queries * grid, heads);
    perceptron.forward(distances, out, memory);
    return TensorView<const float>(out.data(), Shape{queries, grid, heads});
  };
  return {.of_rows = of_axis(1, layers_.bias_y, memory.bias_y),
          .of_columns = of_axis(0, layers_.bias_x, memory.bias_x),
          .skipped = 1};
}

void QueryDecoder::run_layer(const DecoderLayer& layer, TensorView<float> tokens,
                             TensorView<const float> positions, TensorView<const float> prompt,
                             const AttentionSources& image, const GridBias& bias,
                             PromptMemory& memory) const {
  const TensorView<float> coded = memory.coded.rows(tokens.num_rows(), tokens.num_columns());
  add_rows(tokens, positions, coded, memory.threads);
  layer.self.forward({coded, coded, tokens}, tokens, memory);
  layer.self_norm.forward(tokens, tokens, memory.threads);
  add_rows(tokens, positions, coded, memory.threads);
  layer.text.forward({coded, prompt, prompt}, tokens, memory);
  layer.text_norm.forward(tokens, tokens, memory.threads);
  add_rows(tokens, positions, coded, memory.threads);
  layer.image.forward({coded, image.keys, image.values}, tokens, memory, &bias);
  layer.image_norm.forward(tokens, tokens, memory.threads);
  const TensorView<float> normed = memory.normed.rows(tokens.num_rows(), tokens.num_columns());
  std::copy_n(tokens.data(), tokens.num_elements(), normed.data());
  layer.mlp.forward(normed, tokens, memory, *arithmetic_);
  layer.mlp_norm.forward(tokens, tokens, memory.threads);
}

void QueryDecoder::forward(TensorView<const float> encoded, TensorView<const float> code,
                           TensorView<const float> prompt, std::size_t grid, DecodedQueries& out,
                           PromptMemory& memory) const {
  const std::size_t queries = num_queries(), dim = layers_.queries.dim(1);
  const TensorView<float> tokens = memory.tokens.rows(queries + 1, dim);
  std::ranges::copy(layers_.presence_token.flat(), tokens.data());
  std::ranges::copy(layers_.queries.flat(), tokens.row(1));
  const TensorView<float> boxes = memory.references.rows(queries, 4);
  std::ranges::transform(layers_.points.flat(), boxes.data(), rounded_sigmoid);
  const TensorView<float> keys = memory.key_rows.rows(encoded.num_rows(), dim);
  add_rows(encoded, code, keys, memory.threads);
  if (out.states.empty()) {
    out.states = Tensor<float>(Shape{queries, dim});
    out.boxes = Tensor<float>(Shape{queries, 4});
  }
  const TensorView<float> moves = memory.boxes.rows(queries, 4), lone = memory.states.rows(1, dim);
  for (std::size_t i = 0; i < layers_.layers.size(); ++i) {
    memory.keep("reference", i, boxes);
    const GridBias bias = bias_of(boxes, grid, memory);
    if (i == 0) {
      memory.keep("bias_y", i, bias.of_rows);
      memory.keep("bias_x", i, bias.of_columns);
    }
    run_layer(layers_.layers[i], tokens, positions_of(boxes, memory), prompt, {{}, keys, encoded}, bias,
              memory);
    layers_.output_norm.forward(tokens.part(1, queries), out.states, memory.threads);
    memory.keep("decoder", i, out.states);
    layers_.boxes.forward(out.states, moves, memory);
    for (std::size_t k = 0; k < boxes.num_elements(); ++k) {
      const double moved = static_cast<double>(moves.data()[k]) + logit_of(boxes.data()[k]);
      boxes.data()[k] = static_cast<float>(sigmoid(moved));
    }
    const bool is_last = i + 1 == layers_.layers.size();
    if (!is_last && !memory.watch) continue;
    layers_.presence_norm.forward(tokens.part(0, 1), lone, memory.threads);
    float logit = 0;
    layers_.presence.forward(lone, {&logit, Shape{1, 1}}, memory);
    out.presence = clamped(logit, 10.0f);
    memory.keep("presence", i, {&out.presence, Shape{1}});
  }
  for (std::size_t q = 0; q < queries; ++q) {
    const float* const box = boxes.row(q);
    float* const to = out.boxes.view().row(q);
    for (std::size_t axis = 0; axis < 2; ++axis) {
      to[axis] = box[axis] - 0.5f * box[axis + 2];
      to[axis + 2] = box[axis] + 0.5f * box[axis + 2];
    }
  }
}

void ScoringLayers::forward(TensorView<const float> states, TensorView<const float> prompt,
                            std::span<float> logits, PromptMemory& memory) const {
  const std::size_t dim = prompt.num_columns(), count = prompt.num_rows();
  const TensorView<float> rows = memory.small.rows(count, dim);
  mlp.forward(prompt, rows, memory);
  add_rows(rows, prompt, rows, memory.threads);
  norm.forward(rows, rows, memory.threads);
  const TensorView<float> mean = memory.boxes.rows(2, dim);
  for (std::size_t c = 0; c < dim; ++c) {
    double sum = 0.0;
    for (std::size_t i = 0; i < count; ++i) sum += static_cast<double>(rows.row(i)[c]);
    mean.row(0)[c] = static_cast<float>(sum / static_cast<double>(count));
  }
  const Pass pass = memory.pass();
  of_prompt.forward(mean.part(0, 1), mean.part(1, 1), pass);
  const TensorView<float> queries = memory.positions.rows(states.num_rows(), dim);
  of_query.forward(states, queries, pass);
  for (std::size_t q = 0; q < queries.num_rows(); ++q) {
    double sum = 0.0;
    for (std::size_t c = 0; c < dim; ++c)
      sum += static_cast<double>(queries.row(q)[c]) * static_cast<double>(mean.row(1)[c]);
    logits[q] = clamped(static_cast<float>(sum / std::sqrt(static_cast<double>(dim))), 12.0f);
  }
}

}  // namespace vit::internal
