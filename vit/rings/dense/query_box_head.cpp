#include "vit/rings/dense/query_box_head.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "vit/base/check.h"
#include "vit/base/parallel.h"
#include "vit/base/rounded.h"
#include "vit/layers/attention_pass.h"
#include "vit/position/sine_code.h"

namespace vit::internal {
namespace {

constexpr Where kQueryWhere{"QueryBoxHead", ErrorKind::mismatch};

struct ProposedBox {
  float x = 0.0f, y = 0.0f, width = 0.0f, height = 0.0f;
};

/// The first box of a pixel of a map: its middle, with edges of 0.05 that double with each
/// map; nothing at the border of the image.
std::optional<ProposedBox> first_box(std::size_t pixel, MapSize size, std::size_t level) {
  const auto inside = [](float part) { return part > 0.01f && part < 0.99f; };
  const float x = (static_cast<float>(pixel % size.width) + 0.5f) / static_cast<float>(size.width);
  const float y = (static_cast<float>(pixel / size.width) + 0.5f) / static_cast<float>(size.height);
  const float edge = 0.05f * static_cast<float>(1u << level);
  if (!inside(x) || !inside(y) || !inside(edge)) return std::nullopt;
  return ProposedBox{x, y, edge, edge};
}

/// Four numbers move a box by parts of its edges, and scale these.
void move_box(const float* moves, const ProposedBox& from, float* box) {
  box[0] = moves[0] * from.width + from.x;
  box[1] = moves[1] * from.height + from.y;
  box[2] = rounded_exp(moves[2]) * from.width;
  box[3] = rounded_exp(moves[3]) * from.height;
}

ProposedBox box_at(const float* box) {
  return {box[0], box[1], box[2], box[3]};
}

void add_to(TensorView<const float> a, TensorView<const float> b, TensorView<float> out) {
  std::transform(a.data(), a.data() + a.num_elements(), b.data(), out.data(), std::plus<float>());
}

/// Softmax in place of `count` numbers.
void normalize_weights(float* weights, std::size_t count) {
  const double largest = *std::max_element(weights, weights + count);
  double sum = 0.0;
  for (std::size_t i = 0; i < count; ++i) sum += std::exp(weights[i] - largest);
  for (std::size_t i = 0; i < count; ++i)
    weights[i] = static_cast<float>(std::exp(weights[i] - largest) / sum);
}

/// Adds weight times the pixels of `values` (H W, D) around (x, y) to `out`, `count` channels from the first;
/// pixels outside of the map are 0.
void add_sample(TensorView<const float> values, MapSize size, float x, float y, float weight,
                std::size_t first, std::size_t count, float* out) {
  const auto width = static_cast<float>(size.width), height = static_cast<float>(size.height);
  if (!(x > -1.0f && x < width && y > -1.0f && y < height)) return;
  const float left = std::floor(x), top = std::floor(y);
  for (const float dy : {0.0f, 1.0f}) {
    const float row = top + dy, of_row = dy == 0.0f ? top + 1.0f - y : y - top;
    if (row < 0.0f || row >= height) continue;
    for (const float dx : {0.0f, 1.0f}) {
      const float column = left + dx, of_column = dx == 0.0f ? left + 1.0f - x : x - left;
      if (column < 0.0f || column >= width) continue;
      const auto pixel = static_cast<std::size_t>(row) * size.width + static_cast<std::size_t>(column);
      const float* const from = values.row(pixel) + first;
      const float factor = weight * of_row * of_column;
      for (std::size_t c = 0; c < count; ++c) out[c] += factor * from[c];
    }
  }
}

/// Linear layers with ReLU between them, x (Q, I) -> out.
template <std::size_t kLayers>
void run_perceptron(const std::array<Linear, kLayers>& layers, TensorView<const float> x,
                    TensorView<float> out, const QueryBoxMaps& maps, const Pass& pass) {
  const std::array<TensorView<float>, 2> between{maps.hidden, maps.next};
  for (std::size_t i = 0; i + 1 < kLayers; ++i) {
    layers[i].forward(x, between[i % 2], pass, {.activation = Activation::relu});
    x = between[i % 2];
  }
  layers[kLayers - 1].forward(x, out, pass);
}

}  // namespace

QueryBoxHead::QueryBoxHead(const QueryBoxConfig& config, QueryBoxLayers layers, std::size_t num_prefix,
                           const kernels::KernelTable& kernels)
    : config_(config), layers_(std::move(layers)), num_prefix_(num_prefix), kernels_(&kernels) {}

Shape QueryBoxHead::output_shape(std::size_t output, GridSize) const {
  return {1, config_.queries, output == 0 ? 4 : layers_.classes.out_features()};
}

std::size_t QueryBoxHead::num_pixels(GridSize grid) const {
  std::size_t sum = 0;
  for (const SampledMap& map : layers_.maps) sum += map.size(grid).height * map.size(grid).width;
  return sum;
}

void QueryBoxHead::lay_out(TensorView<const float> tokens, GridSize grid, int threads,
                           DenseMemory& memory) const {
  const std::size_t queries = config_.queries, width = config_.width, pixels = num_pixels(grid);
  QueryBoxMaps& maps = memory.query_boxes;
  SampledMapFloats floats;
  std::size_t scratch = 1;
  for (const SampledMap& map : layers_.maps) {
    floats.cover(map.floats(grid));
    scratch = std::max(scratch, map.scratch_floats());
  }
  memory.lay_out([&](Arena::Taker& arena) {
    const auto rows = [&](std::size_t count, std::size_t columns) {
      return arena.take<float>({count, columns});
    };
    for (TensorView<float>& tap : maps.tokens) tap = rows(tokens.dim(0), tokens.num_columns());
    maps.maps = {.patches = rows(1, floats.patches),
                 .resized = rows(1, floats.resized),
                 .joined = rows(1, floats.joined),
                 .stacked = rows(1, floats.stacked),
                 .inner = rows(1, floats.inner),
                 .scratch = rows(static_cast<std::size_t>(resolve_threads(threads)), scratch)};
    for (TensorView<float>* const of_pixels : {&maps.pixels, &maps.proposed, &maps.objects, &maps.values})
      *of_pixels = rows(pixels, width);
    maps.scores = rows(pixels, layers_.classes.out_features());
    maps.best = rows(1, pixels);
    maps.order = arena.take<std::uint32_t>({pixels});
    maps.boxes = rows(queries, 4);
    maps.codes = rows(queries, 2 * width);
    for (TensorView<float>* const of_queries : {&maps.queries, &maps.positions, &maps.coded, &maps.q, &maps.k,
                                                &maps.v, &maps.read, &maps.hidden, &maps.next})
      *of_queries = rows(queries, width);
    maps.mlp = rows(queries, config_.mlp_dim);
    maps.offsets = rows(queries, 2 * num_samples());
    maps.weights = rows(queries, num_samples());
  });
  maps.attention.reserve({.num_images = 1,
                          .num_tokens = queries,
                          .embed_dim = width,
                          .attention_dim = width,
                          .num_heads = config_.heads,
                          .hidden_dim = width,
                          .threads = threads},
                         *kernels_->float32);
}

void QueryBoxHead::make_maps(std::span<const TensorView<const float>> taps, GridSize grid,
                             const QueryBoxMaps& maps, int threads) const {
  const std::size_t patches = grid.rows * grid.columns;
  std::array<TensorView<float>, kMaxTaps> of_patches{};
  for (std::size_t k = 0; k < taps.size(); ++k) {
    const TensorView<float>& tokens = maps.tokens[k];
    if (layers_.norm) {
      layers_.norm->forward(taps[k], tokens, threads);
    } else {
      std::ranges::copy(taps[k].flat(), tokens.data());
    }
    of_patches[k] = tokens.part(num_prefix_, patches);
  }
  std::size_t first = 0;
  for (const SampledMap& map : layers_.maps) {
    const std::size_t count = map.size(grid).height * map.size(grid).width;
    map.forward({of_patches.data(), taps.size()}, grid, maps.pixels.part(first, count), threads, maps.maps);
    first += count;
  }
}

/// The boxes of the Q best pixels, as the queries start with them.
void QueryBoxHead::propose(GridSize grid, const QueryBoxMaps& maps, const Pass& pass) const {
  const std::size_t pixels = maps.pixels.num_rows(), classes = maps.scores.num_columns();
  const auto box_of = [&](std::size_t pixel) -> std::optional<ProposedBox> {
    for (std::size_t level = 0; level < layers_.maps.size(); ++level) {
      const MapSize size = layers_.maps[level].size(grid);
      if (pixel < size.height * size.width) return first_box(pixel, size, level);
      pixel -= size.height * size.width;
    }
    return std::nullopt;
  };
  for (std::size_t i = 0; i < pixels; ++i) {
    float* const to = maps.proposed.row(i);
    if (box_of(i)) {
      std::copy_n(maps.pixels.row(i), config_.width, to);
    } else {
      std::fill_n(to, config_.width, 0.0f);
    }
  }
  layers_.propose.forward(maps.proposed, maps.objects, pass);
  layers_.propose_norm.forward(maps.objects, maps.objects, pass.threads);
  layers_.propose_classes.forward(maps.objects, maps.scores, pass);
  float* const best = maps.best.data();
  for (std::size_t i = 0; i < pixels; ++i) {
    const float* const row = maps.scores.row(i);
    best[i] = box_of(i) ? *std::max_element(row, row + classes) : -std::numeric_limits<float>::infinity();
  }
  std::uint32_t* const order = maps.order.data();
  std::iota(order, order + pixels, 0u);
  std::partial_sort(order, order + config_.queries, order + pixels, [&](std::uint32_t a, std::uint32_t b) {
    return best[a] > best[b] || (best[a] == best[b] && a < b);
  });
  for (std::size_t q = 0; q < config_.queries; ++q)
    std::copy_n(maps.objects.row(order[q]), config_.width, maps.coded.row(q));
  run_perceptron(layers_.propose_boxes, maps.coded, maps.boxes, maps, pass);
  for (std::size_t q = 0; q < config_.queries; ++q) {
    float* const box = maps.boxes.row(q);
    float moved[4];
    move_box(box, box_of(order[q]).value_or(ProposedBox{}), moved);
    move_box(layers_.references.view().row(q), box_at(moved), box);
  }
}

/// maps.read (Q, D) = what each head of each query reads of maps.values.
void QueryBoxHead::sample(GridSize grid, const QueryBoxMaps& maps, int threads) const {
  const std::size_t heads = config_.sampling_heads, points = config_.points;
  const std::size_t of_head = config_.levels.size() * points, channels = config_.width / heads;
  parallel_for(config_.queries, threads, [&](std::size_t q, int) {
    const float* const box = maps.boxes.row(q);
    float* const out = maps.read.row(q);
    std::fill_n(out, config_.width, 0.0f);
    for (std::size_t head = 0; head < heads; ++head) {
      float* const weights = maps.weights.row(q) + head * of_head;
      normalize_weights(weights, of_head);
      const float* offset = maps.offsets.row(q) + 2 * head * of_head;
      std::size_t first = 0;
      for (std::size_t level = 0; level < config_.levels.size(); ++level) {
        const MapSize size = layers_.maps[level].size(grid);
        const TensorView<const float> values = maps.values.part(first, size.height * size.width);
        first += size.height * size.width;
        for (std::size_t point = 0; point < points; ++point, offset += 2) {
          const float x = box[0] + offset[0] / static_cast<float>(points) * box[2] * 0.5f;
          const float y = box[1] + offset[1] / static_cast<float>(points) * box[3] * 0.5f;
          add_sample(values, size, x * static_cast<float>(size.width) - 0.5f,
                     y * static_cast<float>(size.height) - 0.5f, weights[level * points + point],
                     head * channels, channels, out + head * channels);
        }
      }
    }
  });
}

void QueryBoxHead::run_layer(const QueryBoxLayer& layer, GridSize grid, const QueryBoxMaps& maps,
                             const Pass& pass) const {
  const TensorView<float> x = maps.queries;
  add_to(x, maps.positions, maps.coded);
  layer.q.forward(maps.coded, maps.q, pass);
  layer.k.forward(maps.coded, maps.k, pass);
  layer.v.forward(x, maps.v, pass);
  const Sequences all(1, config_.queries);
  attend({.queries = maps.q, .query_tokens = all, .keys = maps.k, .values = maps.v}, {.sequences = all},
         config_.heads, maps.read, kernels_->float32->attention, pass);
  layer.o.forward(maps.read, x, pass, {.residual = x});
  layer.norm1.forward(x, x, pass.threads);

  add_to(x, maps.positions, maps.coded);
  layer.offsets.forward(maps.coded, maps.offsets, pass);
  layer.weights.forward(maps.coded, maps.weights, pass);
  layer.values.forward(maps.pixels, maps.values, pass);
  sample(grid, maps, pass.threads);
  layer.sampled.forward(maps.read, x, pass, {.residual = x});
  layer.norm2.forward(x, x, pass.threads);

  layer.fc1.forward(x, maps.mlp, pass);
  parallel_for(config_.queries, pass.threads, [&](std::size_t q, int) {
    float* const row = maps.mlp.row(q);
    for (std::size_t c = 0; c < config_.mlp_dim; ++c) row[c] = activated(row[c], config_.mlp_activation);
  });
  layer.fc2.forward(maps.mlp, x, pass, {.residual = x});
  layer.norm3.forward(x, x, pass.threads);
}

void QueryBoxHead::forward(std::span<const TensorView<const float>> taps, GridSize grid,
                           std::span<const TensorView<float>> outputs, int threads,
                           DenseMemory& memory) const {
  const std::size_t queries = config_.queries, patches = grid.rows * grid.columns;
  VIT_CHECK(!taps.empty() && outputs.size() == 2 && taps.front().dim(0) == num_prefix_ + patches, kQueryWhere,
            taps.size(), " taps and ", outputs.size(), " results");
  VIT_CHECK(num_pixels(grid) >= queries, kQueryWhere.with(ErrorKind::argument), "an image of ", grid.rows,
            " x ", grid.columns, " patches has maps of ", num_pixels(grid), " pixels, fewer than the ",
            queries, " boxes of the model; give a larger --size");
  QueryBoxMaps& maps = memory.query_boxes;
  maps.tokens.resize(taps.size());
  lay_out(taps.front(), grid, threads, memory);
  const Pass pass{.activations = maps.attention, .threads = threads};
  make_maps(taps, grid, maps, threads);
  propose(grid, maps, pass);
  constexpr std::size_t kOrder[] = {1, 0, 2, 3};  // y before x
  const std::size_t half = config_.width / 2;
  parallel_for(queries, threads, [&](std::size_t q, int) {
    for (std::size_t k = 0; k < 4; ++k)
      sine_code_of_value(static_cast<double>(maps.boxes.row(q)[kOrder[k]]),
                         {maps.codes.row(q) + k * half, half});
  });
  run_perceptron(layers_.position, maps.codes, maps.positions, maps, pass);
  std::ranges::copy(layers_.queries.flat(), maps.queries.data());
  for (const QueryBoxLayer& layer : layers_.layers) run_layer(layer, grid, maps, pass);
  layers_.output_norm.forward(maps.queries, maps.queries, threads);
  layers_.classes.forward(maps.queries, outputs[1][0], pass);
  run_perceptron(layers_.boxes, maps.queries, outputs[0][0], maps, pass);
  for (std::size_t q = 0; q < queries; ++q) {
    float* const box = outputs[0][0].row(q);
    const float moves[] = {box[0], box[1], box[2], box[3]};
    move_box(moves, box_at(maps.boxes.row(q)), box);
  }
}

}  // namespace vit::internal
