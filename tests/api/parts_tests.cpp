// Parts of which a model is put together by hand: each against its definition, and a whole model with the
// bits of a Session.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "tests/support/allocation_count.h"
#include "tests/support/errors.h"
#include "tests/support/rng.h"
#include "tests/support/shared_data.h"
#include "tests/support/tolerance.h"
#include "vit/vit.h"

#define main vit_by_hand_main  // the example as it is
#include "apps/examples/vit_by_hand.cpp"
#undef main

namespace vit {
namespace {

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

struct Heads {
  std::size_t images = 2, prefix = 1, tokens = 0, queries = 4, keys = 4, width = 8;
};

/// Columns [first, first + count) of a product.
TensorView<const float> columns(const Tensor<float>& rows, std::size_t first, std::size_t count) {
  return {rows.data() + first, Shape{rows.dim(0), rows.dim(1), count}, rows.dim(2)};
}

Tensor<float> rotated(TensorView<const float> x, std::size_t heads, const position::RopeFactors& factors,
                      std::size_t prefix) {
  Tensor<float> out(Shape{x.dim(0), x.dim(1), heads, x.dim(2) / heads});
  for (std::size_t row = 0; row < x.num_rows(); ++row)
    std::copy_n(x.row(row), x.dim(2), out.data() + row * x.dim(2));
  position::rotate(out, factors, prefix);
  return out;
}

/// Whether token `key` is in the sequence of `query` and, if causal, not after it.
bool attends(std::size_t query, std::size_t key, const AttentionOptions& options) {
  if (options.causal && key > query) return false;
  if (options.sequences.empty()) return true;
  const auto sequence_of = [&](std::size_t row) {
    return std::ranges::upper_bound(options.sequences, row) - options.sequences.begin();
  };
  return sequence_of(query) == sequence_of(key);
}

/// attention() against loops in double over rotated queries and keys; columns of one product, H and K heads.
void check_attention(const Heads& h, const position::RopeFactors& factors, const AttentionOptions& options) {
  test::Rng rng(7);
  const std::size_t q_width = h.queries * h.width, k_width = h.keys * h.width;
  const Tensor<float> qkv = rng.tensor({h.images, h.tokens, q_width + 2 * k_width});
  const TensorView<const float> q = columns(qkv, 0, q_width), k = columns(qkv, q_width, k_width),
                                v = columns(qkv, q_width + k_width, k_width);
  const Tensor<float> out = attention(q, k, v, factors, h.prefix, options);
  REQUIRE(out.shape() == Shape{h.images, h.tokens, q_width});
  const Tensor<float> queries = rotated(q, h.queries, factors, h.prefix),
                      keys = rotated(k, h.keys, factors, h.prefix);
  const double scale = options.scale != 0 ? options.scale : 1.0 / std::sqrt(static_cast<double>(h.width));
  double worst = 0;
  for (std::size_t image = 0; image < h.images; ++image) {
    for (std::size_t t = 0; t < h.tokens; ++t) {
      for (std::size_t head = 0; head < h.queries; ++head) {
        const std::size_t row = image * h.tokens + t, key_head = head / (h.queries / h.keys);
        const float* const query = queries.data() + (row * h.queries + head) * h.width;
        std::vector<double> weights(h.tokens, 0.0);
        double sum = 0, score_error = 0;
        for (std::size_t other = 0; other < h.tokens; ++other) {
          if (!attends(row, image * h.tokens + other, options)) continue;
          const float* const key = keys.data() + ((image * h.tokens + other) * h.keys + key_head) * h.width;
          double score = 0, sum_abs = 0;
          for (std::size_t i = 0; i < h.width; ++i) {
            score += static_cast<double>(query[i]) * key[i];
            sum_abs += std::fabs(static_cast<double>(query[i]) * key[i]);
          }
          // 8 more roundings: of the rotations of both, of the scale and of the product with it
          score_error = std::max(score_error, scale * test::dot_bound(h.width + 8, sum_abs + 1.0));
          sum += weights[other] = std::exp(scale * score);
        }
        for (std::size_t i = 0; i < h.width; ++i) {
          double expected = 0, sum_abs = 0;
          for (std::size_t other = 0; other < h.tokens; ++other) {
            const double value = v[image].row(other)[key_head * h.width + i];
            expected += weights[other] / sum * value;
            sum_abs += weights[other] / sum * std::fabs(value);
          }
          // relative errors of the exponentials (8 units) are those of their arguments, above and below the
          // line
          const double bound =
              2 * (score_error + 8 * test::kRoundoff) * sum_abs + test::dot_bound(h.tokens, sum_abs);
          worst = std::max(worst, std::fabs(out.view()[image].row(t)[head * h.width + i] - expected) / bound);
        }
      }
    }
  }
  CHECK(worst <= 1.0);
}

}  // namespace

TEST_CASE("parts: a model by hand has the bits of a Session") {
  const auto model = Model::load(test::source_path("data/model"));
  Session session(model);
  std::vector<float> both;
  Tensor<float> batch(Shape{2, 3, 40, 40});
  std::size_t image = 0;
  for (const char* const name : {"data/images/cat_tabby.jpg", "data/images/deer_fawn.png"}) {
    const Image decoded = session.decode(test::source_path(name));
    Outputs outputs;
    session.run(decoded, Output::logits, outputs);
    both.insert(both.end(), outputs[0].logits().begin(), outputs[0].logits().end());
    const Tensor<float> pixels = preprocessor().run(decoded);
    CHECK(same_bits(pixels.flat(), session.preprocessor().run(decoded).flat()));
    std::ranges::copy(pixels.flat(), batch.view()[image++].data());
  }
  const RopeVit by_hand(test::source_path("data/model/model.safetensors").string());
  const Tensor<float> logits = by_hand.forward(batch);
  CHECK(logits.shape() == Shape{2, 10});
  CHECK(same_bits(logits.flat(), both));
}

TEST_CASE("parts: patches are ordered as the weight of a convolution") {
  test::Rng rng(2);
  const Tensor<float> pixels = rng.tensor({2, 3, 9, 13});  // 2 x 3 patches of 4, a remainder of 1 x 1
  const Tensor<float> patches = patchify(pixels, 4);
  REQUIRE(patches.shape() == Shape{2, 6, 48});
  for (std::size_t image = 0; image < 2; ++image) {
    for (std::size_t patch = 0; patch < 6; ++patch) {
      for (std::size_t i = 0; i < 48; ++i) {
        const std::size_t y = patch / 3 * 4 + i / 4 % 4, x = patch % 3 * 4 + i % 4;
        CHECK(patches.view()[image].row(patch)[i] == pixels.view()[image][i / 16].row(y)[x]);
      }
    }
  }
}

TEST_CASE("parts: a linear layer and norms compute their definitions") {
  test::Rng rng(3);
  constexpr std::size_t kRows = 7, kIn = 19, kOut = 21;
  const Tensor<float> weight = rng.tensor({kOut, kIn}), x = rng.tensor({kRows, kIn});
  const std::vector<float> bias = rng.numbers(kOut), scale = rng.numbers(kOut), gamma = rng.numbers(kIn),
                           beta = rng.numbers(kIn);
  Tensor<float> residual = rng.tensor({kRows, kOut}), out(Shape{kRows, kOut}), normed(Shape{kRows, kIn});
  Linear(weight, bias)
      .forward(x, out, {.activation = Activation::relu, .scale = scale, .residual = residual});
  LayerNorm(gamma, beta, 1e-6f).forward(x, normed);
  for (std::size_t row = 0; row < kRows; ++row) {
    for (std::size_t n = 0; n < kOut; ++n) {
      double sum = bias[n], sum_abs = std::fabs(bias[n]);
      for (std::size_t i = 0; i < kIn; ++i) {
        const double term = static_cast<double>(x.view().row(row)[i]) * weight.view().row(n)[i];
        sum += term;
        sum_abs += std::fabs(term);
      }
      const double added = residual.view().row(row)[n], factor = scale[n];
      const double bound = test::dot_bound(kIn + 2, std::fabs(factor) * sum_abs + std::fabs(added));
      CHECK(std::fabs(out.view().row(row)[n] - (added + factor * std::max(sum, 0.0))) <= bound);
    }
    double mean = 0, variance = 0;
    for (std::size_t i = 0; i < kIn; ++i) mean += x.view().row(row)[i] / static_cast<double>(kIn);
    for (std::size_t i = 0; i < kIn; ++i)
      variance += std::pow(x.view().row(row)[i] - mean, 2) / static_cast<double>(kIn);
    for (std::size_t i = 0; i < kIn; ++i) {
      const double unit = (x.view().row(row)[i] - mean) / std::sqrt(variance + 1e-6);
      // numbers are at most 1 and the deviation at least 0.3, so a mean and a variance err by few units each
      CHECK(std::fabs(normed.view().row(row)[i] - (unit * gamma[i] + beta[i])) <=
            test::dot_bound(2 * kIn, 4.0 + std::fabs(unit)));
    }
  }
}

TEST_CASE("parts: attention is softmax(q k^T / sqrt(d)) v of rotated queries and keys") {
  const GridSize grid{3, 4};
  const auto table = position::build_axial_table<float>(
      position::grid_coords(grid),
      position::RopeFrequencies::from_theta(position::num_axial_frequencies(8), 100.0));
  const Heads all{.tokens = 13};
  check_attention(all, table, {.num_heads = 4});
  check_attention(all, table, {.num_heads = 4, .threads = 1});
  check_attention(all, {}, {.num_heads = 4, .scale = 0.5, .causal = true});
  check_attention({.tokens = 13, .keys = 2}, table, {.num_heads = 4});
  const std::vector<std::size_t> windows{0, 4, 8, 12, 16, 20, 24};  // rows of the grid in both images
  check_attention({.prefix = 0, .tokens = 12}, table, {.num_heads = 4, .sequences = windows});
}

TEST_CASE("parts: an encoder is its layers, one after the other") {
  constexpr std::size_t kImages = 2, kTokens = 13, kWidth = 16, kHeads = 2, kHidden = 24, kDepth = 2;
  test::Rng rng(11);
  struct Stored {
    Tensor<float> qkv, proj, gate, fc1, fc2;
    std::vector<float> gamma1, beta1, gamma2, scale1, bias;
  };
  std::vector<Stored> stored;
  std::vector<BlockTensors> blocks;
  for (std::size_t i = 0; i < kDepth; ++i)
    stored.push_back({rng.tensor({3 * kWidth, kWidth}), rng.tensor({kWidth, kWidth}),
                      rng.tensor({kHidden, kWidth}), rng.tensor({kHidden, kWidth}),
                      rng.tensor({kWidth, kHidden}), rng.numbers(kWidth), rng.numbers(kWidth),
                      rng.numbers(kWidth), rng.numbers(kWidth), rng.numbers(kHidden)});
  for (const Stored& s : stored) {
    blocks.push_back({.norm1 = {.gamma = s.gamma1, .beta = s.beta1},
                      .qkv = {.weight = s.qkv},
                      .proj = {.weight = s.proj},
                      .scale1 = s.scale1,
                      .norm2 = {.gamma = s.gamma2},
                      .fc1 = {.weight = s.fc1, .bias = s.bias},
                      .fc2 = {.weight = s.fc2}});
  }
  const auto table = position::build_axial_table<float>(
      position::grid_coords({3, 4}),
      position::RopeFrequencies::from_theta(position::num_axial_frequencies(8), 100.0));
  const std::vector<position::RopeFactors> one{table}, each{table, {}};
  const Tensor<float> tokens = rng.tensor({kImages, kTokens, kWidth});
  const auto copy = [&] {
    Tensor<float> x(tokens.shape());
    std::ranges::copy(tokens.flat(), x.data());
    return x;
  };
  /// The layers by hand.
  const auto by_hand = [&](std::span<const position::RopeFactors> factors, double scale = 0.0) {
    Tensor<float> x = copy(), normed(x.shape()), hidden(Shape{kImages, kTokens, kHidden});
    for (std::size_t i = 0; i < kDepth; ++i) {
      const Stored& s = stored[i];
      const std::size_t width = s.qkv.dim(0) / 3;
      Tensor<float> qkv(Shape{kImages, kTokens, 3 * width});
      LayerNorm(s.gamma1, s.beta1, 1e-6f).forward(x, normed);
      Linear(s.qkv).forward(normed, qkv);
      const Tensor<float> heads =
          attention(columns(qkv, 0, width), columns(qkv, width, width), columns(qkv, 2 * width, width),
                    factors[factors.size() == 1 ? 0 : i], 1, {.num_heads = kHeads, .scale = scale});
      Linear(s.proj).forward(heads, x, {.scale = s.scale1, .residual = x});
      LayerNorm(s.gamma2, {}, 1e-6f).forward(x, normed);
      Linear(s.fc1, s.bias).forward(normed, hidden, {.activation = Activation::silu});
      Linear(s.fc2).forward(hidden, x, {.residual = x});
    }
    return x;
  };
  const BlockOptions options{.num_heads = kHeads, .activation = Activation::silu};
  const Encoder encoder(blocks, options);
  CHECK(encoder.depth() == kDepth);
  Workspace memory;
  for (const std::vector<position::RopeFactors>* factors : {&one, &each}) {
    const Tensor<float> expected = by_hand(*factors);
    for (const int threads : {1, 2}) {
      Tensor<float> x = copy();
      encoder.forward(x, *factors, 1, memory, threads);
      CHECK(same_bits(x.flat(), expected.flat()));
      std::ranges::copy(tokens.flat(), x.data());
      const std::size_t before = test::allocation_count();
      encoder.forward(x, *factors, 1, memory, threads);
      CHECK(test::allocation_count() == before);
      CHECK(same_bits(x.flat(), expected.flat()));
    }
  }
  // A scale of logits is one for all blocks, whatever the width of their heads.
  Tensor<float> qkv = std::exchange(stored.back().qkv, rng.tensor({3 * kWidth / 2, kWidth}));
  Tensor<float> proj = std::exchange(stored.back().proj, rng.tensor({kWidth, kWidth / 2}));
  blocks.back().qkv.weight = stored.back().qkv;
  blocks.back().proj.weight = stored.back().proj;
  for (const double scale : {0.0, 0.9}) {
    Tensor<float> scaled = copy();
    BlockOptions with_scale = options;
    with_scale.scale = scale;
    const std::vector<position::RopeFactors> none(1);
    Encoder(blocks, with_scale).forward(scaled, none, 1, memory);
    CHECK(same_bits(scaled.flat(), by_hand(none, scale).flat()));
  }
  stored.back().qkv = std::move(qkv);
  stored.back().proj = std::move(proj);
  blocks.back().qkv.weight = stored.back().qkv;
  blocks.back().proj.weight = stored.back().proj;

  for (std::size_t i = 0; i < kDepth; ++i) blocks[i].gate = {.weight = stored[i].gate};
  Tensor<float> gated = copy();
  Encoder(blocks, options).forward(gated, one, 1, memory);
  CHECK_FALSE(same_bits(gated.flat(), by_hand(one).flat()));

  Tensor<float> x = copy();
  const auto fails = [&](std::span<const BlockTensors> of, const BlockOptions& settings) {
    CHECK_THROWS_AS(Encoder(of, settings), const Error&);
  };
  fails({}, options);
  fails(blocks, {.num_heads = 3});
  CHECK_THROWS_AS(encoder.forward(x, std::vector<position::RopeFactors>(3), 1, memory), const Error&);
  CHECK_THROWS_AS(encoder.forward(x, one, 0, memory), const Error&);  // 13 patches, factors of 12
  Tensor<float> narrow(Shape{1, kTokens, 8});
  CHECK_THROWS_AS(encoder.forward(narrow, one, 1, memory), const Error&);
  blocks.back().norm2.gamma = std::span(stored.back().gamma2).first(8);
  fails(blocks, options);
}

TEST_CASE("parts: warm calls allocate nothing") {
  test::Rng rng(5);
  const auto table = position::build_axial_table<float>(
      position::grid_coords({4, 4}),
      position::RopeFrequencies::from_theta(position::num_axial_frequencies(8), 100.0));
  const Tensor<float> pixels = rng.tensor({2, 3, 16, 16}), qkv = rng.tensor({2, 17, 48}),
                      weight = rng.tensor({16, 48});
  Tensor<float> patches(Shape{2, 16, 48}), out(Shape{2, 17, 16}), tokens(Shape{2, 16, 16}),
      pooled(Shape{2, 16});
  const Linear linear(weight);
  const LayerNorm norm(rng.numbers(16), {}, 1e-6f);
  Workspace memory;
  const auto run = [&](int threads) {
    patchify(pixels, 4, patches, threads);
    linear.forward(patches, tokens, {.threads = threads});
    norm.forward(tokens, tokens, threads);
    attention(columns(qkv, 0, 16), columns(qkv, 16, 16), columns(qkv, 32, 16), table, 1, out, memory,
              {.num_heads = 2, .threads = threads});
    pool_mean(out, 1, pooled);
  };
  for (const int threads : {1, 2}) {
    run(threads);
    const std::size_t before = test::allocation_count();
    run(threads);
    CHECK(test::allocation_count() == before);
  }
}

TEST_CASE("parts: wrong shapes are named") {
  const Tensor<float> x(Shape{1, 4, 8}), other(Shape{1, 5, 8}), flat(Shape{4, 8});
  Tensor<float> out(Shape{1, 4, 8});
  Workspace memory;
  const auto call = [&](TensorView<const float> q, TensorView<const float> k, std::size_t heads) {
    return test::message_of([&] { attention(q, k, k, {}, 0, out, memory, {.num_heads = heads}); });
  };
  CHECK(call(x, other, 2).find("keys or values (1, 5, 8) for queries (1, 4, 8)") != std::string::npos);
  CHECK(call(x, x, 3).find("8 channels cannot be divided into 3 heads") != std::string::npos);
  CHECK(call(x, x, 0).find("into 0 heads") != std::string::npos);
  CHECK(call(flat, flat, 2).find("must have shape (B, T, heads * width)") != std::string::npos);
  CHECK_THROWS_AS(attention(x, x, x, {}, 0, {.num_heads = 2, .scale = -1.0}), const Error&);
  const std::vector<std::size_t> short_rows{0, 3};
  CHECK_THROWS_AS(attention(x, x, x, {}, 0, {.num_heads = 2, .sequences = short_rows}), const Error&);
  CHECK_THROWS_AS(patchify(x, 2), const Error&);
  CHECK_THROWS_AS(patchify(Tensor<float>(Shape{1, 3, 4, 4}), 5), const Error&);
  CHECK_THROWS_AS(Linear(Tensor<float>(Shape{3})), const Error&);
  CHECK_THROWS_AS(Linear(flat, std::vector<float>(3)), const Error&);
  CHECK_THROWS_AS(LayerNorm({}, {}, 1e-6f), const Error&);
  CHECK_THROWS_AS(pool_mean(x, 4, Tensor<float>(Shape{1, 8}).view()), const Error&);
  CHECK_THROWS_AS(read_safetensors("absent.safetensors"), const Error&);
  const TensorView<const float> nothing(nullptr, Shape{1, 4, 8});
  CHECK(call(nothing, x, 2).find("(1, 4, 8) without data") != std::string::npos);
  CHECK_THROWS_AS(Linear(flat, {}).forward(flat, {out.data(), Shape{4, 4}, 1}),
                  const Error&);  // rows that overlap
  CHECK(test::message_of([] {
          Encoder(std::vector<BlockTensors>(1), {.num_heads = 2});
        }).find("qkv: a weight") != std::string::npos);
}

TEST_CASE(
    "parts: rotations of single heads need as many heads of keys, and pooling the tokens that it names") {
  const auto table = position::build_mixed_table<float>(
      position::grid_coords({2, 2}),
      position::MixedFrequencies(test::Rng(1).tensor<float>(Shape{2, 1, 4, 2}).view()), 0);
  const Tensor<float> q(Shape{1, 4, 16}), k(Shape{1, 4, 8});
  attention(q, q, q, table, 0, {.num_heads = 4});
  CHECK_ERROR(ErrorKind::argument, ("4 heads of queries and 2 of keys"),
              attention(q, k, k, table, 0, {.num_heads = 4}));
  CHECK_ERROR(ErrorKind::argument, ("2 prefix tokens", "num_prefix is 1"),
              Head({}, {.embed_dim = 8, .pooling = Pooling::class_and_distillation, .num_prefix = 1}));
  CHECK_ERROR(ErrorKind::argument, ("1 prefix tokens"), Head({}, {.embed_dim = 8, .num_prefix = 0}));
}

}  // namespace vit
