// PatchEmbed: norms around the projection, against sums in double.
#include "vit/patch/patch_embed.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "tests/support/rng.h"
#include "vit/patch/patchify.h"

namespace vit::internal {
namespace {

constexpr std::size_t kPatch = 2, kPixels = 3 * kPatch * kPatch, kWidth = 10, kImages = 2;
constexpr GridSize kGrid{2, 3};
constexpr std::size_t kPatches = kGrid.rows * kGrid.columns;
constexpr float kEps = 1e-3f;

struct Norm {
  std::vector<float> gamma, beta;

  std::vector<double> of(const std::vector<double>& row) const {
    double mean = 0.0, variance = 0.0;
    for (const double value : row) mean += value / static_cast<double>(row.size());
    for (const double value : row) {
      variance += (value - mean) * (value - mean) / static_cast<double>(row.size());
    }
    std::vector<double> out(row.size());
    for (std::size_t c = 0; c < row.size(); ++c) {
      out[c] = (row[c] - mean) / std::sqrt(variance + static_cast<double>(kEps)) * gamma[c] + beta[c];
    }
    return out;
  }
  LayerNorm layer() const { return {gamma, beta, kEps}; }
};

/// A patch embedding in float, and the same sums in double.
struct Case {
  test::Rng rng{11};
  const Tensor<float> pixels = rng.tensor({kImages, 3, kGrid.rows* kPatch, kGrid.columns* kPatch});
  const Tensor<float> weight = rng.tensor({kWidth, kPixels});
  const Tensor<float> table = rng.tensor({kPatches, kWidth});
  const std::vector<float> bias = rng.numbers(kWidth), prefix = rng.numbers(kWidth);
  const Norm on_pixels{rng.numbers(kPixels), rng.numbers(kPixels)};
  const Norm on_projected{rng.numbers(kWidth), rng.numbers(kWidth)};

  /// (B, 1 + N, C)
  Tensor<float> run(bool before, bool after) const {
    PositionConfig added;
    added.added = AddedTable::patches;
    added.added_grid = kGrid;
    const Position position(added, {.embed_dim = kWidth, .depth = 1, .num_heads = 1, .head_dim = kWidth},
                            {.added_table = table});
    const kernels::Arithmetic& arithmetic = *kernels::default_kernels().float32;
    Activations activations;
    activations.reserve({.num_images = kImages,
                         .num_patches = kPatches,
                         .patch_dim = kPixels,
                         .num_tokens = 1 + kPatches,
                         .embed_dim = kWidth,
                         .attention_dim = kWidth},
                        arithmetic);
    PatchNorms norms;
    if (before) norms.pixels.emplace(on_pixels.layer());
    if (after) norms.projected.emplace(on_projected.layer());
    Tensor<float> token(Shape{1, kWidth});
    std::ranges::copy(prefix, token.data());
    const PatchEmbed embed(Linear(weight, bias, *arithmetic.linear), std::move(token),
                           PatchConfig{.size = kPatch}, std::move(norms));
    Tensor<float> tokens(Shape{kImages, 1 + kPatches, kWidth});
    embed.forward(pixels, position.build_context(kGrid), tokens, {.activations = activations, .threads = 2});
    return tokens;
  }

  /// The token of patch `t`.
  std::vector<double> expected(std::size_t image, std::size_t t, bool before, bool after) const {
    Tensor<float> rows(Shape{kGrid.rows * kGrid.columns, kPixels});
    patchify(pixels.view()[image], {.size = kPatch}, t / kGrid.columns, rows);
    const float* const patch = rows.view().row(t);
    std::vector<double> in(patch, patch + kPixels), out(bias.begin(), bias.end());
    if (before) in = on_pixels.of(in);
    for (std::size_t c = 0; c < kWidth; ++c) {
      for (std::size_t k = 0; k < kPixels; ++k) {
        out[c] += in[k] * static_cast<double>(weight.data()[c * kPixels + k]);
      }
    }
    if (after) out = on_projected.of(out);
    for (std::size_t c = 0; c < kWidth; ++c) out[c] += static_cast<double>(table.data()[t * kWidth + c]);
    return out;
  }
};

}  // namespace

TEST_CASE("patch: norms before and after the projection, then the positions") {
  const Case the;
  for (const bool before : {false, true}) {
    for (const bool after : {false, true}) {
      CAPTURE(before);
      CAPTURE(after);
      const Tensor<float> tokens = the.run(before, after);
      for (std::size_t image = 0; image < kImages; ++image) {
        const TensorView<const float> own = tokens.view()[image];
        CHECK(std::ranges::equal(std::span(own.row(0), kWidth), the.prefix));
        for (std::size_t t = 0; t < kPatches; ++t) {
          const std::vector<double> expected = the.expected(image, t, before, after);
          for (std::size_t c = 0; c < kWidth; ++c) {
            CHECK(std::abs(static_cast<double>(own.row(1 + t)[c]) - expected[c]) < 3e-5);
          }
        }
      }
    }
  }
}

TEST_CASE("patch: patches that overlap begin a step apart") {
  constexpr std::size_t kEdge = 4, kRows = 11, kColumns = 13;
  const PatchConfig cut{.size = kEdge, .step = {3, 2}};
  const GridSize grid = cut.grid(kRows, kColumns);
  CHECK(grid == GridSize{3, 5});
  CHECK(cut.grid(3, 13) == GridSize{});
  Tensor<float> pixels(Shape{1, kRows, kColumns});
  for (std::size_t i = 0; i < pixels.num_elements(); ++i) pixels.data()[i] = static_cast<float>(i + 1);
  Tensor<float> rows(Shape{grid.rows * grid.columns, kEdge * kEdge});
  for (std::size_t row = 0; row < grid.rows; ++row) patchify(pixels, cut, row, rows);
  for (std::size_t patch = 0; patch < grid.rows * grid.columns; ++patch) {
    for (std::size_t i = 0; i < kEdge * kEdge; ++i) {
      const std::size_t y = patch / grid.columns * 3 + i / kEdge, x = patch % grid.columns * 2 + i % kEdge;
      CHECK(rows.view().row(patch)[i] == pixels.view()[0].row(y)[x]);
    }
  }
}

TEST_CASE("patch: zeros around the image are part of the first patches") {
  constexpr std::size_t kEdge = 5, kPadding = 2, kRows = 2, kColumns = 3;
  Tensor<float> pixels(Shape{2, kRows * kEdge, kColumns * kEdge});
  for (std::size_t i = 0; i < pixels.num_elements(); ++i) pixels.data()[i] = static_cast<float>(i + 1);
  Tensor<float> rows(Shape{kRows * kColumns, 2 * kEdge * kEdge});
  std::ranges::fill(rows.flat(), -1.0f);
  for (std::size_t row = 0; row < kRows; ++row)
    patchify(pixels, {.size = kEdge, .padding = kPadding}, row, rows);
  for (std::size_t patch = 0; patch < kRows * kColumns; ++patch) {
    for (std::size_t i = 0; i < 2 * kEdge * kEdge; ++i) {
      const std::size_t channel = i / (kEdge * kEdge);
      const std::size_t y = patch / kColumns * kEdge + i / kEdge % kEdge,
                        x = patch % kColumns * kEdge + i % kEdge;
      const bool is_outside = y < kPadding || x < kPadding;
      const float expected = is_outside ? 0.0f : pixels.view()[channel].row(y - kPadding)[x - kPadding];
      CHECK(rows.view().row(patch)[i] == expected);
    }
  }
}

}  // namespace vit::internal
