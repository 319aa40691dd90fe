#include "vit/rings/prompts/click_decoder.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "vit/base/check.h"
#include "vit/base/rounded.h"

namespace vit::internal {
namespace {

constexpr Where kClickWhere{"ClickDecoder", ErrorKind::argument};

/// rows (h w, C) of a map in raster order as cells of 2x2, ordered by channel, then row: (h w / 4, 4 C).
void gather_cells(TensorView<const float> rows, MapSize size, TensorView<float> cells, int threads) {
  const std::size_t channels = rows.num_columns();
  parallel_for(size.height / 2, threads, [&](std::size_t y, int) {
    for (std::size_t x = 0; x < size.width / 2; ++x) {
      float* const to = cells.row(y * (size.width / 2) + x);
      for (std::size_t place = 0; place < 4; ++place) {
        const float* const from = rows.row((2 * y + place / 2) * size.width + 2 * x + place % 2);
        for (std::size_t c = 0; c < channels; ++c) to[4 * c + place] = from[c];
      }
    }
  });
}

/// norm, then GELU, of rows in place.
void normalize_and_activate(const LayerNorm& norm, TensorView<float> rows, int threads) {
  parallel_for_parts(rows.num_rows(), /*part_size=*/256, threads, [&](std::size_t first, std::size_t count) {
    norm.forward_rows(rows, rows, first, count);
    float* const begin = rows.row(first);
    std::transform(begin, begin + count * rows.num_columns(), begin, rounded_gelu);
  });
}

}  // namespace

ClickDecoder::ClickDecoder(ClickConfig config, std::size_t grid, std::size_t image_size, ClickLayers layers,
                           const kernels::Arithmetic& arithmetic, const kernels::LinearKernels& float32)
    : config_(config),
      grid_(grid),
      image_size_(image_size),
      layers_(std::move(layers)),
      arithmetic_(&arithmetic),
      float32_(&float32) {
  code_ = Tensor<float>(Shape{grid * grid, 2 * layers_.fourier.dim(1)});
  const auto center = [&](std::size_t i) {
    return (static_cast<double>(i) + 0.5) / static_cast<double>(grid);
  };
  for (std::size_t cell = 0; cell < grid * grid; ++cell)
    code_of(center(cell % grid), center(cell / grid), code_.view().row(cell));
}

/// Sines, then cosines, of random projections of a place, 0 to 1 in both directions.
void ClickDecoder::code_of(double x, double y, float* out) const {
  const std::size_t half = layers_.fourier.dim(1);
  const float *const of_x = layers_.fourier.view().row(0), *const of_y = layers_.fourier.view().row(1);
  for (std::size_t i = 0; i < half; ++i) {
    const double angle =
        2.0 * std::numbers::pi *
        ((2.0 * x - 1.0) * static_cast<double>(of_x[i]) + (2.0 * y - 1.0) * static_cast<double>(of_y[i]));
    out[i] = static_cast<float>(std::sin(angle));
    out[half + i] = static_cast<float>(std::cos(angle));
  }
}

void ClickDecoder::encode(TensorView<const float> tokens, ClickMaps& maps, PromptMemory& memory) const {
  with_team(memory.threads, [&] {
    layers_.neck.forward(tokens, grid_, {maps.finest, maps.finer, maps.tokens}, memory);
  });
}

TensorView<float> ClickDecoder::tokens_of(const ClickInput& input, PromptMemory& memory) const {
  const std::size_t dim = code_.dim(1), num_first = layers_.first_tokens.dim(0);
  const std::size_t corners = input.box ? 2 : 0;
  const bool has_prompt = !input.points.empty() || input.box;
  const std::size_t count = num_first + input.points.size() + corners + (has_prompt ? 1 : 0);
  const TensorView<float> tokens = memory.tokens.rows(count, dim);
  std::ranges::copy(layers_.first_tokens.flat(), tokens.data());
  float* row = tokens.row(num_first);
  const auto edge = static_cast<double>(image_size_);
  const auto add = [&](double x, double y, std::size_t label) {
    code_of((x + 0.5) / edge, (y + 0.5) / edge, row);
    const float* const meaning = layers_.points.view().row(label);
    for (std::size_t c = 0; c < dim; ++c) row[c] += meaning[c];
    row += dim;
  };
  for (const ClickPoint& point : input.points) add(point.x, point.y, point.positive ? 1 : 0);
  if (input.box) {
    const auto [x0, y0, x1, y1] = *input.box;
    add(x0, y0, 2);
    add(x1, y1, 3);
  }
  if (has_prompt) std::ranges::copy(layers_.no_point.flat(), row);
  memory.keep("sparse", 0, tokens.part(num_first, count - num_first));
  return tokens;
}

/// map (T, D) += what the mask (h, w) says of each cell.
void ClickDecoder::add_mask(TensorView<const float> mask, TensorView<float> map, PromptMemory& memory) const {
  const MaskPromptLayers& layers = layers_.mask;
  const std::size_t edge = 4 * grid_;
  VIT_CHECK(mask.dim(0) == edge && mask.dim(1) == edge, kClickWhere, "a mask of ", mask.shape().to_string(),
            " logits as a prompt, expected (", edge, ", ", edge, "), as the model gives them");
  const Pass pass = memory.pass();
  const TensorView<const float> pixels(mask.data(), Shape{edge * edge, 1});
  const TensorView<float> cells = memory.small.rows(4 * grid_ * grid_, 4);
  gather_cells(pixels, {edge, edge}, cells, memory.threads);
  const TensorView<float> first = memory.products.rows(cells.num_rows(), layers.conv1.out_features());
  layers.conv1.forward(cells, first, pass);
  normalize_and_activate(layers.norm1, first, memory.threads);
  const TensorView<float> second_cells = memory.weights.rows(grid_ * grid_, 4 * first.num_columns());
  gather_cells(first, {2 * grid_, 2 * grid_}, second_cells, memory.threads);
  const TensorView<float> second = memory.positions.rows(grid_ * grid_, layers.conv2.out_features());
  layers.conv2.forward(second_cells, second, pass);
  normalize_and_activate(layers.norm2, second, memory.threads);
  layers.conv3.forward(second, map, pass, {.residual = map});
}

void ClickDecoder::run_layer(const TwoWayLayer& layer, bool is_first, TensorView<float> tokens,
                             TensorView<const float> code, TensorView<float> map,
                             PromptMemory& memory) const {
  const TensorView<float> coded = memory.coded.rows(tokens.num_rows(), tokens.num_columns());
  const TensorView<float> keys = memory.key_rows.rows(map.num_rows(), map.num_columns());
  const TensorView<float> copy = memory.normed.rows(tokens.num_rows(), tokens.num_columns());
  const auto copy_tokens = [&] { std::copy_n(tokens.data(), tokens.num_elements(), copy.data()); };
  if (is_first) {
    copy_tokens();
    layer.self.replace({copy, copy, copy}, tokens, memory);
  } else {
    add_rows(tokens, code, coded, memory.threads);
    layer.self.forward({coded, coded, tokens}, tokens, memory);
  }
  layer.norm1.forward(tokens, tokens, memory.threads);
  add_rows(tokens, code, coded, memory.threads);
  add_rows(map, code_, keys, memory.threads);
  layer.token_to_image.forward({coded, keys, map}, tokens, memory);
  layer.norm2.forward(tokens, tokens, memory.threads);
  copy_tokens();
  layer.mlp.forward(copy, tokens, memory, *arithmetic_);
  layer.norm3.forward(tokens, tokens, memory.threads);
  add_rows(tokens, code, coded, memory.threads);
  layer.image_to_token.forward({keys, coded, tokens}, map, memory);
  layer.norm4.forward(map, map, memory.threads);
}

/// map (T, D) -> (h, w, D / 8), with the finer maps of the image.
FeatureMap ClickDecoder::enlarge(TensorView<const float> map, const ClickMaps& maps,
                                 PromptMemory& memory) const {
  const TensorView<float> rows(const_cast<float*>(map.data()), map.shape(), map.row_stride());  // only read
  const MapSize twice{2 * grid_, 2 * grid_}, whole{4 * grid_, 4 * grid_};
  const TensorView<float> first =
      memory.enlarged.rows(twice.height * twice.width, layers_.up1.out_channels());
  layers_.up1.forward(FeatureMap::of_tokens(rows, {grid_, grid_}), FeatureMap::of_tokens(first, twice),
                      memory.threads, memory.scratch(layers_.up1.scratch_floats()));
  add_rows(first, maps.finer, first, memory.threads);
  normalize_and_activate(layers_.up_norm, first, memory.threads);
  const TensorView<float> second =
      memory.convolved.rows(whole.height * whole.width, layers_.up2.out_channels());
  layers_.up2.forward(FeatureMap::of_tokens(first, twice), FeatureMap::of_tokens(second, whole),
                      memory.threads, memory.scratch(layers_.up2.scratch_floats()));
  add_rows(second, maps.finest, second, memory.threads);
  parallel_for(whole.height, memory.threads, [&](std::size_t y, int) {
    float* const row = second.row(y * whole.width);
    std::transform(row, row + whole.width * second.num_columns(), row, rounded_gelu);
  });
  return FeatureMap::of_tokens(second, whole);
}

void ClickDecoder::decode(const ClickMaps& maps, const ClickInput& input, ClickOutput& out,
                          PromptMemory& memory) const {
  VIT_CHECK(!input.points.empty() || input.box || !input.mask.empty(), kClickWhere,
            "an object needs a point, a box or a mask");
  with_team(memory.threads, [&] {
    const std::size_t dim = code_.dim(1), num_masks = config_.num_masks + 1, edge = 4 * grid_;
    const TensorView<float> tokens = tokens_of(input, memory);
    const TensorView<float> code = memory.references.rows(tokens.num_rows(), dim);
    std::copy_n(tokens.data(), tokens.num_elements(), code.data());
    const TensorView<float> map = memory.encoded.rows(grid_ * grid_, dim);
    const float *const no_memory = layers_.no_memory.data(), *const no_mask = layers_.no_mask.data();
    for (std::size_t cell = 0; cell < map.num_rows(); ++cell) {
      const float* const from = maps.tokens.view().row(cell);
      for (std::size_t c = 0; c < dim; ++c)
        map.row(cell)[c] =
            from[c] + (input.adds_no_memory ? no_memory[c] : 0.0f) + (input.mask.empty() ? no_mask[c] : 0.0f);
    }
    if (!input.mask.empty()) add_mask(input.mask, map, memory);
    for (std::size_t i = 0; i < layers_.layers.size(); ++i)
      run_layer(layers_.layers[i], i == 0, tokens, code, map, memory);
    const TensorView<float> coded = memory.coded.rows(tokens.num_rows(), dim);
    const TensorView<float> keys = memory.key_rows.rows(map.num_rows(), dim);
    add_rows(tokens, code, coded, memory.threads);
    add_rows(map, code_, keys, memory.threads);
    layers_.final_attention.forward({coded, keys, map}, tokens, memory);
    layers_.final_norm.forward(tokens, tokens, memory.threads);
    memory.keep("tokens", 0, tokens);

    const FeatureMap pixels = enlarge(map, maps, memory);
    const TensorView<float> weights = memory.weights.rows(num_masks, pixels.channels() + 1);
    for (std::size_t i = 0; i < num_masks; ++i) {
      layers_.hyper[i].forward(tokens.part(2 + i, 1), {weights.row(i), Shape{1, pixels.channels()}}, memory);
      weights.row(i)[pixels.channels()] = 0.0f;
    }
    out.masks = Tensor<float>(Shape{num_masks, edge, edge});
    multiply_pixels(pixels, weights, out.masks, *float32_, memory);
    memory.keep("upscaled", 0, {pixels.row(0), Shape{edge * edge, pixels.channels()}});
    out.ious.resize(num_masks);
    layers_.iou.forward(tokens.part(1, 1), {out.ious.data(), Shape{1, num_masks}}, memory);
    for (float& iou : out.ious) iou = rounded_sigmoid(iou);
    layers_.object.forward(tokens.part(0, 1), {&out.object, Shape{1, 1}}, memory);
  });
}

std::size_t ClickDecoder::choose(const ClickOutput& out) const {
  if (!config_.prefers_stable) return 0;
  const auto margin = static_cast<float>(config_.stable_margin);
  const std::span<const float> first(out.masks.data(), out.masks.num_elements() / out.ious.size());
  const auto above = [&](float limit) {
    return static_cast<double>(std::ranges::count_if(first, [&](float logit) { return logit > limit; }));
  };
  const double wide = above(-margin), share = wide > 0.0 ? above(margin) / wide : 1.0;
  if (share >= config_.stable_share) return 0;
  return static_cast<std::size_t>(std::max_element(out.ious.begin() + 1, out.ious.end()) - out.ious.begin());
}

}  // namespace vit::internal
