#include "vit/head/merger.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/rng.h"
#include "vit/kernels/kernels.h"

namespace vit::internal {
namespace {

using Rows = std::vector<std::vector<double>>;

/// A linear map in plain form.
struct Map {
  Tensor<float> weight, bias;

  Map(std::size_t out, std::size_t in, bool has_bias, test::Rng& random) : weight(Shape{out, in}) {
    random.fill(weight.flat(), -0.3f, 0.3f);
    if (!has_bias) return;
    bias = Tensor<float>(Shape{out});
    random.fill(bias.flat(), -1.0f, 1.0f);
  }
  Linear layer(const kernels::LinearKernels& kernels) const { return Linear(weight, bias.flat(), kernels); }
  std::vector<double> of(const std::vector<double>& in) const {
    std::vector<double> out(weight.dim(0));
    for (std::size_t n = 0; n < out.size(); ++n) {
      for (std::size_t k = 0; k < in.size(); ++k)
        out[n] += static_cast<double>(weight.data()[n * in.size() + k]) * in[k];
      if (!bias.empty()) out[n] += static_cast<double>(bias.data()[n]);
    }
    return out;
  }
};

/// A norm in plain form.
struct Norm {
  std::vector<float> gamma, beta;
  float epsilon;

  Norm(std::size_t width, NormKind kind, float eps, test::Rng& random) : gamma(width), epsilon(eps) {
    random.fill(std::span(gamma), 0.5f, 1.5f);
    if (kind == NormKind::rms) return;
    beta.resize(width);
    random.fill(std::span(beta), -1.0f, 1.0f);
  }
  LayerNorm layer() const { return LayerNorm(gamma, beta, epsilon); }
  std::vector<double> of(std::vector<double> x) const {
    const double count = static_cast<double>(x.size());
    double mean = 0, variance = 0;
    for (const double value : x) mean += beta.empty() ? 0.0 : value / count;
    for (const double value : x) variance += (value - mean) * (value - mean) / count;
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] =
          (x[i] - mean) / std::sqrt(variance + static_cast<double>(epsilon)) * static_cast<double>(gamma[i]);
      if (!beta.empty()) x[i] += static_cast<double>(beta[i]);
    }
    return x;
  }
};

double gelu(double x) {
  return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
}
double silu(double x) {
  return x / (1.0 + std::exp(-x));
}

constexpr std::size_t kWidth = 12, kImages = 3;

/// Tokens of images with one prefix token.
struct Case {
  GridSize grid;
  Tensor<float> tokens;
  std::vector<std::uint32_t> places;

  Case(GridSize of, bool shuffled, test::Rng& random)
      : grid(of), tokens(Shape{kImages, 1 + of.rows * of.columns, kWidth}) {
    random.fill(tokens.flat(), -2.0f, 2.0f);
    for (std::uint32_t i = 0; shuffled && i < of.rows * of.columns; ++i) places.push_back(i);
    std::ranges::reverse(places);
  }
  TokenGrid token_grid() const { return {.grid = grid, .num_prefix = 1, .places = places}; }
  std::vector<double> token(std::size_t image, std::size_t row, std::size_t column) const {
    if (row >= grid.rows || column >= grid.columns) return std::vector<double>(kWidth, 0.0);
    const std::size_t patch = row * grid.columns + column;
    const float* const at =
        tokens.view()[image].row(1 + (places.empty() ? patch : static_cast<std::size_t>(places[patch])));
    return {at, at + kWidth};
  }
};

/// Runs the merger, and compares with `expected(image, cell row, cell column)`.
template <typename Expected>
void check(const MergerConfig& config, MergerLayers layers, const Case& the, const Expected& expected) {
  const Merger merger(config, std::move(layers));
  const GridSize first = Merger::cells_of(config.cells, the.grid);
  const GridSize cells{config.out_length(first.rows), config.out_length(first.columns)};
  const std::size_t count = kImages * cells.rows * cells.columns;
  const std::size_t num_first = kImages * first.rows * first.columns;
  const std::size_t map_dim = Merger::widest_map(config, kWidth);
  const kernels::KernelTable& table = kernels::default_kernels();
  Activations activations;
  activations.reserve({.num_images = kImages,
                       .num_tokens = the.tokens.dim(1),
                       .embed_dim = kWidth,
                       .attention_dim = kWidth,
                       .num_cells = Merger::cells_at_once(num_first),
                       .cell_dim = Merger::widest(config, kWidth),
                       .map_rows = map_dim != 0 ? num_first : 0,
                       .map_dim = map_dim},
                      *table.float32);
  const std::size_t width = config.width(kWidth);
  Tensor<float> out(Shape{kImages, cells.rows * cells.columns, width});
  merger.forward(the.tokens, the.token_grid(), {.merged = out}, {.activations = activations, .threads = 2});
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t cell = i % (cells.rows * cells.columns);
    const std::vector<double> wanted =
        expected(i / (cells.rows * cells.columns), cell / cells.columns, cell % cells.columns);
    REQUIRE(wanted.size() == width);
    for (std::size_t c = 0; c < width; ++c)
      CHECK(static_cast<double>(out.data()[i * width + c]) == doctest::Approx(wanted[c]).epsilon(2e-5));
  }
}

}  // namespace

TEST_CASE("merger: the tokens of a cell are normalized, joined row by row and go through an MLP") {
  test::Rng random(1);
  const kernels::LinearKernels& linear = *kernels::default_kernels().float32->linear;
  NormKind kind = NormKind::layer;
  bool of_cells = false;
  SUBCASE("tokens, LayerNorm") {}
  SUBCASE("tokens, RMSNorm") {
    kind = NormKind::rms;
  }
  SUBCASE("cells") {
    of_cells = true;
  }
  MergerConfig config{.cells = {.size = 2}};
  if (of_cells) {
    config.add(MergerPlace::cell_norm, MergerNorm{.norm = {.kind = kind}});
  } else {
    config.cells.token_norm = {.kind = kind};
  }
  config.add(MergerPlace::mlp, MergerMlp{.hidden_dim = 20, .out_dim = 7});
  const Norm norm(of_cells ? 4 * kWidth : kWidth, kind, 1e-6f, random);
  const Map fc1(20, 4 * kWidth, true, random), fc2(7, 20, true, random);
  const Case the({4, 6}, true, random);
  MergerLayers layers;
  if (of_cells) {
    layers.steps.emplace_back(norm.layer());
  } else {
    layers.token_norm = norm.layer();
  }
  layers.steps.emplace_back(MlpLayer{.fc1 = fc1.layer(linear), .fc2 = fc2.layer(linear)});
  check(config, std::move(layers), the, [&](std::size_t image, std::size_t row, std::size_t column) {
    std::vector<double> cell;
    for (std::size_t i = 0; i < 4; ++i) {
      std::vector<double> token = the.token(image, 2 * row + i / 2, 2 * column + i % 2);
      if (!of_cells) token = norm.of(token);
      cell.insert(cell.end(), token.begin(), token.end());
    }
    if (of_cells) cell = norm.of(cell);
    std::vector<double> hidden = fc1.of(cell);
    std::ranges::transform(hidden, hidden.begin(), gelu);
    return fc2.of(hidden);
  });
}

TEST_CASE("merger: cells over the edge are filled with zeros") {
  test::Rng random(2);
  const kernels::LinearKernels& linear = *kernels::default_kernels().float32->linear;
  MergerConfig config{.cells = {.size = 3, .pads = true}};
  config.add(MergerPlace::mlp, MergerMlp{.hidden_dim = 5, .out_dim = 4});
  const Map fc1(5, 9 * kWidth, true, random), fc2(4, 5, true, random);
  const Case the({4, 5}, false, random);
  MergerLayers layers;
  layers.steps.emplace_back(MlpLayer{.fc1 = fc1.layer(linear), .fc2 = fc2.layer(linear)});
  check(config, std::move(layers), the, [&](std::size_t image, std::size_t row, std::size_t column) {
    std::vector<double> cell;
    for (std::size_t i = 0; i < 9; ++i) {
      const std::vector<double> token = the.token(image, 3 * row + i / 3, 3 * column + i % 3);
      cell.insert(cell.end(), token.begin(), token.end());
    }
    std::vector<double> hidden = fc1.of(cell);
    std::ranges::transform(hidden, hidden.begin(), gelu);
    return fc2.of(hidden);
  });
}

TEST_CASE("merger: reduced, through a middle layer and a gated MLP, and projected") {
  test::Rng random(3);
  const kernels::LinearKernels& linear = *kernels::default_kernels().float32->linear;
  MergerConfig config{.cells = {.size = 2}};
  config.add(MergerPlace::reduce, MergerLinear{.dim = 10, .bias = true});
  config.add(MergerPlace::middle, MergerLinear{.dim = 10});
  config.add(MergerPlace::middle_norm, MergerNorm{.norm = {.eps = 1e-5f}});
  config.add(MergerPlace::middle_gelu, MergerGelu{});
  config.add(
      MergerPlace::mlp,
      MergerMlp{
          .hidden_dim = 14, .out_dim = 9, .gated = true, .bias = false, .activation = Activation::silu});
  config.add(MergerPlace::projection, MergerLinear{.dim = 6});
  const Map reduce(10, 4 * kWidth, true, random), middle(10, 10, false, random), gate(14, 10, false, random),
      fc1(14, 10, false, random), fc2(9, 14, false, random), projection(6, 9, false, random);
  const Norm norm(10, NormKind::layer, 1e-5f, random);
  const Case the({2, 4}, true, random);
  MergerLayers layers;
  layers.steps.emplace_back(reduce.layer(linear));
  layers.steps.emplace_back(middle.layer(linear));
  layers.steps.emplace_back(norm.layer());
  layers.steps.emplace_back(GeluLayer{});
  layers.steps.emplace_back(MlpLayer{.gate = gate.layer(linear),
                                     .fc1 = fc1.layer(linear),
                                     .fc2 = fc2.layer(linear),
                                     .activation = Activation::silu});
  layers.steps.emplace_back(projection.layer(linear));
  check(config, std::move(layers), the, [&](std::size_t image, std::size_t row, std::size_t column) {
    std::vector<double> cell;
    for (std::size_t i = 0; i < 4; ++i) {
      const std::vector<double> token = the.token(image, 2 * row + i / 2, 2 * column + i % 2);
      cell.insert(cell.end(), token.begin(), token.end());
    }
    std::vector<double> x = norm.of(middle.of(reduce.of(cell)));
    std::ranges::transform(x, x.begin(), gelu);
    std::vector<double> hidden = fc1.of(x);
    const std::vector<double> gates = gate.of(x);
    for (std::size_t i = 0; i < hidden.size(); ++i) hidden[i] *= silu(gates[i]);
    return projection.of(fc2.of(hidden));
  });
}

TEST_CASE("merger: averaged, scaled and standardized") {
  test::Rng random(4);
  MergerConfig config{.cells = {.size = 3, .rule = CellRule::mean, .scale = 3.5f}};
  config.add(MergerPlace::standardize, MergerAffine{});
  AffineLayer affine{.shift = Tensor<float>(Shape{kWidth}), .scale = Tensor<float>(Shape{kWidth})};
  random.fill(affine.shift.flat(), -1.0f, 1.0f);
  random.fill(affine.scale.flat(), 0.5f, 2.0f);
  const std::vector<float> shift(affine.shift.flat().begin(), affine.shift.flat().end());
  const std::vector<float> scale(affine.scale.flat().begin(), affine.scale.flat().end());
  MergerLayers layers;
  layers.steps.emplace_back(std::move(affine));
  const Case the({3, 6}, false, random);
  check(config, std::move(layers), the, [&](std::size_t image, std::size_t row, std::size_t column) {
    std::vector<double> mean(kWidth);
    for (std::size_t i = 0; i < 9; ++i) {
      const std::vector<double> token = the.token(image, 3 * row + i / 3, 3 * column + i % 3);
      for (std::size_t c = 0; c < kWidth; ++c) mean[c] += token[c] / 9.0;
    }
    for (std::size_t c = 0; c < kWidth; ++c)
      mean[c] = (mean[c] * 3.5 - static_cast<double>(shift[c])) * static_cast<double>(scale[c]);
    return mean;
  });
}

TEST_CASE("merger: probabilities of a vocabulary, with zeros for words that no token means, weigh its rows") {
  test::Rng random(5);
  const kernels::LinearKernels& linear = *kernels::default_kernels().float32->linear;
  MergerConfig config{.cells = {.size = 2}};
  config.add(MergerPlace::reduce, MergerLinear{.dim = 10});
  config.add(MergerPlace::middle_norm, MergerNorm{.norm = {.eps = 1e-5f}});
  config.add(MergerPlace::middle_softmax, MergerSoftmax{.dim = 13});
  config.add(MergerPlace::projection, MergerLinear{.dim = 6});
  const Map reduce(10, 4 * kWidth, false, random), table(6, 13, false, random);
  const Norm norm(10, NormKind::layer, 1e-5f, random);
  const Case the({2, 4}, true, random);
  MergerLayers layers;
  layers.steps.emplace_back(reduce.layer(linear));
  layers.steps.emplace_back(norm.layer());
  layers.steps.emplace_back(SoftmaxLayer{13});
  layers.steps.emplace_back(table.layer(linear));
  check(config, std::move(layers), the, [&](std::size_t image, std::size_t row, std::size_t column) {
    std::vector<double> cell;
    for (std::size_t i = 0; i < 4; ++i) {
      const std::vector<double> token = the.token(image, 2 * row + i / 2, 2 * column + i % 2);
      cell.insert(cell.end(), token.begin(), token.end());
    }
    std::vector<double> x = norm.of(reduce.of(cell));
    double sum = 0.0;
    for (double& value : x) sum += value = std::exp(value);
    for (double& value : x) value /= sum;
    x.resize(13);
    return table.of(x);
  });
}

TEST_CASE("merger: tokens go through an MLP before they are part of a cell") {
  test::Rng random(6);
  const kernels::LinearKernels& linear = *kernels::default_kernels().float32->linear;
  CellRule rule = CellRule::side_by_side;
  SUBCASE("side by side") {}
  SUBCASE("mean") {
    rule = CellRule::mean;
  }
  const bool is_mean = rule == CellRule::mean;
  MergerConfig config;
  config.add(MergerPlace::mlp, MergerMlp{.hidden_dim = 20, .out_dim = 7});
  config.add(MergerPlace::later_cells, MergerCells{.size = 3, .rule = rule});
  config.add(MergerPlace::second_mlp, MergerMlp{.hidden_dim = 11, .out_dim = 5});
  CHECK(config.cell_edge() == 3);
  CHECK(config.width_after(2, kWidth) == (is_mean ? 7 : 63));
  const Map fc1(20, kWidth, true, random), fc2(7, 20, true, random),
      second_fc1(11, is_mean ? 7 : 63, true, random), second_fc2(5, 11, true, random);
  const Case the({3, 6}, true, random);
  MergerLayers layers;
  layers.steps.emplace_back(MlpLayer{.fc1 = fc1.layer(linear), .fc2 = fc2.layer(linear)});
  layers.steps.emplace_back(CellsLayer{.size = 3, .is_mean = is_mean});
  layers.steps.emplace_back(MlpLayer{.fc1 = second_fc1.layer(linear), .fc2 = second_fc2.layer(linear)});
  const auto mlp = [](const Map& first, const Map& second, const std::vector<double>& x) {
    std::vector<double> hidden = first.of(x);
    std::ranges::transform(hidden, hidden.begin(), gelu);
    return second.of(hidden);
  };
  check(config, std::move(layers), the, [&](std::size_t image, std::size_t row, std::size_t column) {
    std::vector<double> cell(is_mean ? 7 : 0);
    for (std::size_t i = 0; i < 9; ++i) {
      const std::vector<double> x = mlp(fc1, fc2, the.token(image, 3 * row + i / 3, 3 * column + i % 3));
      if (!is_mean) cell.insert(cell.end(), x.begin(), x.end());
      for (std::size_t c = 0; is_mean && c < 7; ++c) cell[c] += x[c] / 9.0;
    }
    return mlp(second_fc1, second_fc2, cell);
  });
}

TEST_CASE("merger: a convolution with bias may be the first step") {
  test::Rng random(7);
  const kernels::LinearKernels& linear = *kernels::default_kernels().float32->linear;
  MergerConfig config;
  config.add(MergerPlace::second_convolution, MergerConvolution{.dim = 5, .stride = 2, .bias = true});
  const Map product(5, 9 * kWidth, true, random);
  const Case the({3, 4}, true, random);
  MergerLayers layers;
  layers.steps.emplace_back(ConvolutionLayer{.product = product.layer(linear), .stride = 2});
  check(config, std::move(layers), the, [&](std::size_t image, std::size_t row, std::size_t column) {
    std::vector<double> window;
    for (std::size_t i = 0; i < 9; ++i) {  // rows and columns before the first wrap around, and are outside
      const std::vector<double> x = the.token(image, 2 * row + i / 3 - 1, 2 * column + i % 3 - 1);
      window.insert(window.end(), x.begin(), x.end());
    }
    return product.of(window);
  });
}

TEST_CASE("merger: a grid that cannot be cut into cells is refused") {
  CHECK(test::contains(test::message_of([] { Merger::cells_of({.size = 2}, {3, 4}); }), "3 x 4"));
  MergerConfig config;
  config.add(MergerPlace::mlp, MergerMlp{.hidden_dim = 20, .out_dim = 7});
  config.add(MergerPlace::later_cells, MergerCells{.size = 4});
  CHECK(test::contains(test::message_of([&] { Merger::check_grid(config, {8, 6}); }), "8 x 6"));
}

}  // namespace vit::internal
