// Encoder: blocks over windows, wanted rows, and an observer that changes nothing.
#include "vit/config.h"
#include "vit/config/output_table.h"
#include "vit/encoder/encoder.h"
#include "vit/encoder/observer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "tests/support/rng.h"

namespace vit::internal {
namespace {

constexpr std::size_t kWidth = 16, kHeads = 2, kDepth = 3, kImages = 2, kTokens = 6;

const kernels::Arithmetic& arithmetic() {
  return *kernels::default_kernels().float32;
}

Block make_block(test::Rng& rng) {
  const auto linear = [&](std::size_t out, std::size_t in) {
    return Linear(rng.tensor({out, in}, -0.3f, 0.3f), rng.numbers(out), *arithmetic().linear);
  };
  const auto norm = [&] { return LayerNorm(rng.numbers(kWidth), rng.numbers(kWidth), 1e-6f); };
  Attention attention(linear(3 * kWidth, kWidth), {}, std::nullopt, linear(kWidth, kWidth), kHeads,
                      arithmetic().attention);
  Mlp mlp({.fc1 = linear(2 * kWidth, kWidth)}, {}, linear(kWidth, 2 * kWidth), Activation::gelu);
  return Block(norm(), std::move(attention), {}, norm(), std::move(mlp), {});
}

/// The blocks [first, first + count) of the same three.
Encoder make_encoder(std::size_t first, std::size_t count) {
  test::Rng rng(12);
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < first + count; ++i) {
    Block block = make_block(rng);
    if (i >= first) blocks.push_back(std::move(block));
  }
  return Encoder(std::move(blocks));
}

Tensor<float> tokens_of_images() {
  test::Rng rng(5);
  return rng.tensor({kImages, kTokens, kWidth});
}

TensorView<const float> rows_of(const Tensor<float>& tokens) {
  return {tokens.data(), Shape{kImages * kTokens, kWidth}};
}

struct Memory {
  explicit Memory(std::size_t num_leading = 0) {
    activations.reserve({.num_images = kImages,
                         .num_tokens = kTokens,
                         .num_leading = num_leading,
                         .embed_dim = kWidth,
                         .attention_dim = kWidth,
                         .num_heads = kHeads,
                         .hidden_dim = 2 * kWidth,
                         .threads = 2},
                        arithmetic());
  }
  Activations activations;
  Pass pass{.activations = activations, .threads = 2};
};

const Sequences kWhole(kImages, kTokens);
const Sequences kWindows(3 * kImages, kTokens / 3);

}  // namespace

TEST_CASE("encoder: blocks may attend to windows, each block to its own") {
  Memory memory;
  Tensor<float> mixed = tokens_of_images();
  const std::vector<Sequences> of_blocks{kWindows, kWhole, kWindows};
  make_encoder(0, 3).forward(mixed, {.sequences = kWhole, .of_blocks = of_blocks}, {}, memory.pass);

  Tensor<float> one_by_one = tokens_of_images();
  for (std::size_t layer = 0; layer < kDepth; ++layer)
    make_encoder(layer, 1).forward(one_by_one, {.sequences = of_blocks[layer]}, {}, memory.pass);
  CHECK(std::ranges::equal(mixed.flat(), one_by_one.flat()));

  Tensor<float> whole = tokens_of_images();
  make_encoder(0, 3).forward(whole, {.sequences = kWhole}, {}, memory.pass);
  CHECK_FALSE(std::ranges::equal(mixed.flat(), whole.flat()));
}

TEST_CASE("encoder: the rows that are wanted are those of the full pass") {
  Memory all_rows;
  Tensor<float> all = tokens_of_images();
  make_encoder(0, 3).forward(all, {.sequences = kWhole}, {}, all_rows.pass);
  for (const bool last : {false, true}) {
    CAPTURE(last);
    Memory memory(2);
    Tensor<float> tokens = tokens_of_images();
    const TensorView<float> wanted = make_encoder(0, 3).forward(
        tokens, {.sequences = kWhole, .wanted = Sequences(kImages, 2), .wanted_last = last}, {}, memory.pass);
    REQUIRE(wanted.shape() == Shape{kImages, 2, kWidth});
    for (std::size_t image = 0; image < kImages; ++image) {
      const TensorView<float> expected = all.view()[image].part(last ? kTokens - 2 : 0, 2);
      CHECK(std::ranges::equal(wanted[image].flat(), expected.flat()));
    }
  }
}

TEST_CASE("encoder: an observer keeps what passes and changes nothing") {
  Memory memory;
  Tensor<float> plain = tokens_of_images();
  make_encoder(0, 3).forward(plain, {.sequences = kWhole}, {}, memory.pass);

  const OutputKey last(Output::block, 2), middle(Output::attention, 1), row(Output::attention_query, 1, 4),
      rolled(Output::rollout, 0, 3);
  const std::size_t others = 1;  // an image of another pass, which stays as it is
  ModelConfig config;
  config.embed_dim = kWidth;
  config.encoder.depth = 3;
  config.attention.num_heads = kHeads;
  config.tokens.class_token = false;
  Outputs outputs;
  OutputWriter(outputs).reserve({last, {Output::block, 0}, middle, row, rolled, Output::embedded}, config,
                                others + kImages, {1, kTokens});
  const Encoder encoder = make_encoder(0, 3);
  Observer observer({OutputWriter(outputs).tensors(), others, kImages}, encoder.blocks(), memory.pass);
  BlockHook* const hooks[] = {&observer};
  Tensor<float> observed = tokens_of_images();
  observer.keep_embedded(rows_of(observed));
  encoder.forward(observed, {.sequences = kWhole}, hooks, memory.pass);
  CHECK(std::ranges::equal(observed.flat(), plain.flat()));

  const auto of_images = [&](const OutputKey& key) { return outputs[key].part(others, kImages).flat(); };
  CHECK(std::ranges::equal(of_images(Output::embedded), tokens_of_images().flat()));
  CHECK(std::ranges::equal(of_images(last), plain.flat()));
  Tensor<float> first = tokens_of_images();
  make_encoder(0, 1).forward(first, {.sequences = kWhole}, {}, memory.pass);
  CHECK(std::ranges::equal(of_images({Output::block, 0}), first.flat()));
  for (std::size_t image = others; image < others + kImages; ++image) {
    for (std::size_t head = 0; head < kHeads; ++head) {
      const std::span<const float> query(outputs[row][image].row(head), kTokens);
      CHECK(std::ranges::equal(query, std::span(outputs[middle][image][head].row(4), kTokens)));
    }
    double sum = 0;  // rows of a product of stochastic matrices
    for (const float weight : outputs[rolled][image].flat()) sum += weight;
    CHECK(sum == doctest::Approx(1.0));
    CHECK(outputs[rolled][image].data()[3] >= 0.5f);
  }
  for (const OutputKey& key : {OutputKey(Output::block, 0), middle, rolled})
    CHECK(std::ranges::all_of(outputs[key][0].flat(), [](float number) { return number == 0; }));
}

}  // namespace vit::internal
