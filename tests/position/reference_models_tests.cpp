// Factors and learned tables of the reference models of fixtures/models, through the Position that a model
// would build.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>
#include <string>
#include <vector>

#include "tests/support/fixture_tensors.h"
#include "tests/support/numbers.h"
#include "tests/support/shared_data.h"
#include "vit/position/position.h"

namespace vit::position {
using namespace internal;

namespace {

const std::vector<std::string> kInputs{"native", "wide", "large", "ragged"};

constexpr const char* kModels = "fixtures/models";  // of the shared folder

test::FixtureTensors model_tensors(const std::string& model, const std::string& file) {
  return test::FixtureTensors(test::shared_path(kModels) / model / file);
}

GridSize grid_of(const test::FixtureTensors& expected, const std::string& input, std::size_t patch_size) {
  const std::vector<std::size_t> pixels = expected.shape(input + ".pixels");  // (B, 3, height, width)
  return {pixels[2] / patch_size, pixels[3] / patch_size};
}

// The libraries form frequencies, coordinates and angles in float32: an angle a is off by about 2 * 2^-24 a,
// angles of these grids stay below 32, and those above 8 have exact coordinates and frequency 1.
constexpr double kTolerance = 1e-6;

struct AxialModel {
  std::string name;
  std::size_t patch_size;
  PositionConfig config;
};

PositionConfig indexed(double theta) {
  PositionConfig config;
  config.rope = RopeKind::axial;
  config.theta = theta;
  return config;
}

PositionConfig scaled(AxisOrder order, double offset, GridSize reference) {
  PositionConfig config = indexed(1e4);
  config.coordinates = CoordinateRule::scaled_to_reference;
  config.axis_order = order;
  config.coordinate_offset = offset;
  config.reference_grid = reference;
  return config;
}

PositionConfig centered() {
  PositionConfig config = indexed(100.0);
  config.coordinates = CoordinateRule::centered;
  config.axis_order = AxisOrder::y_then_x;
  config.pairing = RopePairing::halves;
  config.angle_scale = 2.0 * std::numbers::pi;
  return config;
}

std::vector<AxialModel> axial_models() {
  const PositionConfig sixteen = scaled(AxisOrder::y_then_x, 0.0, {16, 16});
  PositionConfig meta_pe = indexed(1e4);
  meta_pe.coordinate_offset = 1.0;
  return {
      {"timm-rope-axial", 16, indexed(100.0)},
      {"timm-rope-axial-ape", 16, indexed(100.0)},
      {"timm-rope-axial-f16", 16, indexed(100.0)},
      {"timm-eva02-base", 14, sixteen},
      {"timm-eva02-clip", 16, sixteen},
      {"timm-eva02-tiny", 14, sixteen},
      {"orig-eva02-base", 14, sixteen},
      {"orig-eva02-tiny", 14, sixteen},
      {"timm-sbb-betwixt", 16, sixteen},
      {"timm-sbb-medium", 16, sixteen},
      {"timm-sbb-mediumd", 16, sixteen},
      {"timm-pe-core", 16, scaled(AxisOrder::x_then_y, 1.0, {4, 4})},
      {"timm-pe-gigantic", 14, scaled(AxisOrder::x_then_y, 0.0, {3, 3})},
      {"timm-pe-lang", 14, scaled(AxisOrder::x_then_y, 1.0, {32, 32})},
      {"timm-pe-spatial", 16, scaled(AxisOrder::x_then_y, 1.0, {32, 32})},
      {"orig-meta-pe-core", 16, meta_pe},
      {"timm-dinov3", 16, centered()},
      {"timm-dinov3-qkvb", 16, centered()},
      {"timm-dinov3-plus-qkvb", 16, centered()},
      {"timm-dinov3-plus-bf16", 16, centered()},
      {"hf-dinov3", 16, centered()},
      {"hf-dinov3-7b", 16, centered()},
      {"hf-dinov3-gated-sharded", 16, centered()},
      {"hf-dinov3-nested", 16, centered()},
      {"orig-meta-dinov3", 16, centered()},
  };
}

void check_factors(const RopeFactors& factors, const test::FixtureTensors& expected,
                   const std::string& prefix) {
  const std::vector<double> cos = expected.doubles(prefix + ".rope_cos");
  const std::vector<double> sin = expected.doubles(prefix + ".rope_sin");
  CAPTURE(prefix);
  REQUIRE(cos.size() == factors.num_patches * factors.pairs);
  const double cos_difference = test::largest_difference(std::span(factors.cos, cos.size()), cos);
  const double sin_difference = test::largest_difference(std::span(factors.sin, sin.size()), sin);
  CHECK(cos_difference <= kTolerance);
  CHECK(sin_difference <= kTolerance);
}

}  // namespace

TEST_CASE("position: axial factors of the reference models") {
  SKIP_WITHOUT_SHARED(kModels);
  for (const AxialModel& model : axial_models()) {
    CAPTURE(model.name);
    const auto expected = model_tensors(model.name, "expected.safetensors");
    const std::size_t head_dim = 2 * expected.shape("native.rope_cos").at(1);
    const Position position(model.config, {.head_dim = head_dim}, {});
    for (const std::string& input : kInputs) {
      if (!expected.has(input + ".rope_cos")) continue;
      const PositionContext context = position.build_context(grid_of(expected, input, model.patch_size));
      check_factors(context.factors(0), expected, input);
    }
  }
}

TEST_CASE("position: factors from the periods that a file stores") {
  SKIP_WITHOUT_SHARED(kModels);
  const auto expected = model_tensors("orig-meta-dinov3", "expected.safetensors");
  const auto weights = model_tensors("orig-meta-dinov3", "model.safetensors");
  const Tensor<float> periods = weights.floats("rope_embed.periods");
  PositionConfig config = centered();
  config.frequencies = AxisFrequencies::stored;
  const Position position(config, {.head_dim = 32}, {.periods = periods.flat()});
  for (const std::string input : {"native", "wide"}) {
    check_factors(position.build_context(grid_of(expected, input, 16)).factors(0), expected,
                  input + ".stored_periods");
  }
}

TEST_CASE("position: mixed factors of the reference models") {
  SKIP_WITHOUT_SHARED(kModels);
  for (const std::string model : {"timm-rope-mixed", "timm-rope-mixed-ape", "orig-naver-rope-mixed"}) {
    CAPTURE(model);
    const auto expected = model_tensors(model, "expected.safetensors");
    const auto weights = model_tensors(model, "model.safetensors");
    const std::vector<std::size_t> shape = expected.shape("native.rope_cos");  // (depth, H, N, d / 2)
    const PositionShape sizes{.depth = shape[0], .num_heads = shape[1], .head_dim = 2 * shape[3]};
    const Tensor<float> stored = weights.floats(weights.has("freqs") ? "freqs" : "rope.freqs");
    const TensorView<const float> frequencies(stored.data(), Shape{2, shape[0], shape[1], shape[3]});
    PositionConfig config;
    config.rope = RopeKind::mixed;
    const Position position(config, sizes, {.mixed_frequencies = frequencies});
    for (const std::string& input : kInputs) {
      if (!expected.has(input + ".rope_cos")) continue;
      const PositionContext context = position.build_context(grid_of(expected, input, 16));
      const std::vector<double> cos = expected.doubles(input + ".rope_cos");
      const std::vector<double> sin = expected.doubles(input + ".rope_sin");
      const std::size_t per_layer = cos.size() / sizes.depth;
      double cos_difference = 0.0, sin_difference = 0.0;
      for (std::size_t layer = 0; layer < sizes.depth; ++layer) {
        const auto part = [&](const std::vector<double>& all) {
          const auto first = all.begin() + static_cast<std::ptrdiff_t>(layer * per_layer);
          return std::vector<double>(first, first + static_cast<std::ptrdiff_t>(per_layer));
        };
        const RopeFactors factors = context.factors(layer);
        REQUIRE(per_layer == sizes.num_heads * factors.head_stride);
        const std::span found_cos(factors.cos, per_layer), found_sin(factors.sin, per_layer);
        cos_difference = std::max(cos_difference, test::largest_difference(found_cos, part(cos)));
        sin_difference = std::max(sin_difference, test::largest_difference(found_sin, part(sin)));
      }
      CHECK(cos_difference <= kTolerance);
      CHECK(sin_difference <= kTolerance);
    }
  }
}

namespace {

struct LearnedModel {
  std::string name;
  std::string patch_weight, patch_bias, table;
  std::size_t patch_size;
  std::size_t num_prefix_rows;      // of the table
  std::vector<std::string> prefix;  // tokens of the sequence before the patches, first those with a row
  GridSize grid;
  TableResampling resampling;
  TableReuse reuse;
};

std::vector<LearnedModel> learned_models() {
  using enum TableResampling;
  using enum TableReuse;
  const std::string timm_weight = "patch_embed.proj.weight", timm_bias = "patch_embed.proj.bias";
  const std::string hf = "embeddings.", patches = "patch_embeddings.projection.",
                    rows = "position_embeddings";
  const auto hugging_face = [&](const std::string& name, const std::string& scope, std::size_t patch_size,
                                std::vector<std::string> prefix, std::size_t edge,
                                TableResampling resampling) {
    for (std::string& token : prefix) token = scope + hf + token;
    return LearnedModel{name,
                        scope + hf + patches + "weight",
                        scope + hf + patches + "bias",
                        scope + hf + rows,
                        patch_size,
                        1,
                        prefix,
                        {edge, edge},
                        resampling,
                        equal_count_and_square};
  };
  return {
      {"timm-vit",
       timm_weight,
       timm_bias,
       "pos_embed",
       16,
       1,
       {"cls_token"},
       {3, 3},
       bicubic_antialias,
       equal_grid},
      {"timm-deit-distilled",
       timm_weight,
       timm_bias,
       "pos_embed",
       16,
       2,
       {"cls_token", "dist_token"},
       {3, 3},
       bicubic_antialias,
       equal_grid},
      {"timm-rope-axial-ape",
       timm_weight,
       timm_bias,
       "pos_embed",
       16,
       0,
       {"cls_token"},
       {4, 4},
       bicubic_antialias,
       equal_grid},
      {"timm-siglip", timm_weight, timm_bias, "pos_embed", 16, 0, {}, {3, 3}, bicubic_antialias, equal_grid},
      {"hf-siglip-vision",
       hf + "patch_embedding.weight",
       hf + "patch_embedding.bias",
       hf + "position_embedding.weight",
       16,
       0,
       {},
       {3, 3},
       bicubic,
       equal_count_and_square},
      hugging_face("hf-vit", "vit.", 16, {"cls_token"}, 3, bicubic),
      hugging_face("hf-dinov2", "", 14, {"cls_token"}, 4, bicubic),
      hugging_face("hf-dinov2-registers", "", 14, {"cls_token", "register_tokens"}, 3, bicubic_antialias),
  };
}

// Output of the patch convolution for one patch and channel, without bias.
double patch_value(const Tensor<float>& pixels, std::size_t image, std::size_t y, std::size_t x,
                   std::size_t edge, const float* weight) {
  double sum = 0.0;
  for (std::size_t color = 0; color < 3; ++color) {
    const TensorView<const float> plane = pixels.view()[image][color];
    for (std::size_t dy = 0; dy < edge; ++dy) {
      for (std::size_t dx = 0; dx < edge; ++dx)
        sum += static_cast<double>(plane.row(y + dy)[x + dx]) * *weight++;
    }
  }
  return sum;
}

// tokens entering block 0 of one input, minus those found; the largest magnitude
double tokens_difference(const LearnedModel& model, const test::FixtureTensors& weights,
                         const Position& position, const test::FixtureTensors& expected,
                         const std::string& input) {
  const Tensor<float> weight = weights.floats(model.patch_weight), bias = weights.floats(model.patch_bias);
  const Tensor<float> pixels = expected.floats(input + ".pixels"),
                      tokens = expected.floats(input + ".tokens_in");
  const GridSize grid = grid_of(expected, input, model.patch_size);
  const PositionContext context = position.build_context(grid);
  const std::size_t num_channels = bias.num_elements();
  std::vector<float> prefix;  // (prefix tokens, C)
  for (const std::string& name : model.prefix) {
    const Tensor<float> token = weights.floats(name);
    prefix.insert(prefix.end(), token.flat().begin(), token.flat().end());
  }
  const std::size_t num_prefix = prefix.size() / num_channels;
  REQUIRE(tokens.dim(1) == num_prefix + num_patches(grid));
  double largest = 0.0;
  for (std::size_t t = 0; t < tokens.dim(1); ++t) {
    for (std::size_t c = 0; c < num_channels; ++c) {
      double value = 0.0;
      if (t < num_prefix) {
        const float* const row = t < model.num_prefix_rows ? context.prefix_rows().row(t) : nullptr;
        value = prefix[t * num_channels + c] + (row ? static_cast<double>(row[c]) : 0.0);
      } else {
        const std::size_t n = t - num_prefix, edge = model.patch_size;
        value = patch_value(pixels, 0, n / grid.columns * edge, n % grid.columns * edge, edge,
                            weight.data() + c * 3 * edge * edge);
        value += static_cast<double>(bias.data()[c]) + static_cast<double>(context.patch_rows().row(n)[c]);
      }
      largest = std::max(largest, std::abs(value - static_cast<double>(tokens.data()[t * num_channels + c])));
    }
  }
  return largest;
}

}  // namespace

TEST_CASE("position: learned tables of the reference models at every input size") {
  SKIP_WITHOUT_SHARED(kModels);
  for (const LearnedModel& model : learned_models()) {
    CAPTURE(model.name);
    const auto expected = model_tensors(model.name, "expected.safetensors");
    const auto weights = model_tensors(model.name, "model.safetensors");
    const Tensor<float> table = weights.floats(model.table);
    const std::size_t num_channels = table.shape().last();
    PositionConfig config;
    config.added = model.num_prefix_rows > 0 ? AddedTable::prefix_and_patches : AddedTable::patches;
    config.added_grid = model.grid;
    config.resampling = model.resampling;
    config.reuse = model.reuse;
    const TensorView<const float> rows(table.data(),
                                       Shape{table.num_elements() / num_channels, num_channels});
    const Position position(config, {.embed_dim = num_channels}, {.added_table = rows});
    CHECK(position.num_prefix_rows() == model.num_prefix_rows);
    for (const std::string& input : kInputs) {
      if (!expected.has(input + ".tokens_in")) continue;
      CAPTURE(input);
      const double difference = tokens_difference(model, weights, position, expected, input);
      CHECK(difference <= 1e-6);
    }
  }
}

}  // namespace vit::position
