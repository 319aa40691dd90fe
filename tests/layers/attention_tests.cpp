// Attention: layers wider and narrower than the model against loops in double precision.
#include "vit/layers/attention.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/rng.h"
#include "tests/support/tolerance.h"
#include "vit/base/error.h"

namespace vit::internal {
namespace {

using Matrix = std::vector<std::vector<double>>;

struct AttentionCase {
  std::size_t embed_dim = 0;  // C
  std::size_t num_heads = 0;
  std::size_t head_dim = 0;
  bool has_bias = false;
  bool has_norm = false;
  std::size_t num_queries = kTokens;
  double logit_factor = 1.0;

  static constexpr std::size_t kImages = 2, kTokens = 11;
  std::size_t attention_dim() const { return num_heads * head_dim; }  // A
};

Matrix product(const Matrix& in, const Tensor<float>& weight, const std::vector<float>& bias) {
  Matrix out(in.size(), std::vector<double>(weight.dim(0)));
  for (std::size_t m = 0; m < in.size(); ++m) {
    for (std::size_t n = 0; n < weight.dim(0); ++n) {
      out[m][n] = bias.empty() ? 0.0 : double{bias[n]};
      for (std::size_t k = 0; k < weight.dim(1); ++k) out[m][n] += in[m][k] * weight.view().row(n)[k];
    }
  }
  return out;
}

void normalize(Matrix& rows, const std::vector<float>& gamma, const std::vector<float>& beta) {
  for (std::vector<double>& row : rows) {
    const auto count = static_cast<double>(row.size());
    double mean = 0.0, variance = 0.0;
    for (const double x : row) mean += x / count;
    for (const double x : row) variance += (x - mean) * (x - mean) / count;
    for (std::size_t c = 0; c < row.size(); ++c)
      row[c] = (row[c] - mean) / std::sqrt(variance + 1e-6) * gamma[c] + beta[c];
  }
}

/// softmax(q k^T / sqrt(d)) v of every head, image by image; qkv (B * T, 3A) -> (B * T, A).
Matrix attended(const Matrix& qkv, const AttentionCase& c) {
  const std::size_t width = c.attention_dim(), tokens = AttentionCase::kTokens;
  Matrix out(qkv.size(), std::vector<double>(width, 0.0));
  for (std::size_t row = 0; row < qkv.size(); ++row) {
    const std::size_t first = row / tokens * tokens;
    for (std::size_t head = 0; head < width; head += c.head_dim) {
      std::vector<double> weights(tokens);
      double sum = 0.0;
      for (std::size_t t = 0; t < tokens; ++t) {
        double score = 0.0;
        for (std::size_t i = head; i < head + c.head_dim; ++i)
          score += qkv[row][i] * qkv[first + t][width + i];
        sum += weights[t] = std::exp(c.logit_factor * score / std::sqrt(static_cast<double>(c.head_dim)));
      }
      for (std::size_t t = 0; t < tokens; ++t) {
        for (std::size_t i = head; i < head + c.head_dim; ++i)
          out[row][i] += weights[t] / sum * qkv[first + t][2 * width + i];
      }
    }
  }
  return out;
}

Matrix matrix_of(const Tensor<float>& numbers) {
  Matrix rows;
  for (std::size_t r = 0; r < numbers.dim(0); ++r)
    rows.emplace_back(numbers.view().row(r), numbers.view().row(r) + numbers.dim(1));
  return rows;
}

/// x += attention(norm1(x)) by the layer and by the loops, everywhere and only in the rows of the queries.
void check(const kernels::KernelTable& table, const AttentionCase& c) {
  CAPTURE(std::string(table.name));
  CAPTURE(c.embed_dim);
  CAPTURE(c.attention_dim());
  test::Rng rng(3);
  const std::size_t width = c.attention_dim(), tokens = AttentionCase::kTokens,
                    images = AttentionCase::kImages;
  const Tensor<float> qkv = rng.tensor({3 * width, c.embed_dim}, -0.3f, 0.3f);
  const Tensor<float> proj = rng.tensor({c.embed_dim, width}, -0.3f, 0.3f);
  const std::vector<float> qkv_bias = c.has_bias ? rng.numbers(3 * width) : std::vector<float>();
  const std::vector<float> proj_bias = c.has_bias ? rng.numbers(c.embed_dim) : std::vector<float>();
  const std::vector<float> gamma1 = rng.numbers(c.embed_dim), beta1 = rng.numbers(c.embed_dim);
  const std::vector<float> gamma = rng.numbers(width), beta = rng.numbers(width);
  const Tensor<float> x = rng.tensor({images * tokens, c.embed_dim});

  const kernels::Arithmetic& arithmetic = *table.float32;
  std::optional<LayerNorm> norm;
  if (c.has_norm) norm.emplace(gamma, beta, 1e-6f, table);
  const Attention attention(Linear(qkv, qkv_bias, *arithmetic.linear), {}, std::move(norm),
                            Linear(proj, proj_bias, *arithmetic.linear), c.num_heads, arithmetic.attention);
  const LayerNorm norm1(gamma1, beta1, 1e-6f, table);
  Activations activations;
  activations.reserve({.num_images = images,
                       .num_tokens = tokens,
                       .embed_dim = c.embed_dim,
                       .attention_dim = width,
                       .num_heads = c.num_heads,
                       .threads = 2},
                      arithmetic);
  Tensor<float> out(Shape{images * c.num_queries, c.embed_dim});
  attention.forward({norm1, x},
                    {.sequences = Sequences(images, tokens),
                     .queries = Sequences(images, c.num_queries),
                     .logit_factor = c.logit_factor},
                    {.add_to = out}, {.activations = activations, .threads = 2});

  Matrix expected = matrix_of(x);
  normalize(expected, gamma1, beta1);
  expected = attended(product(expected, qkv, qkv_bias), c);
  if (c.has_norm) normalize(expected, gamma, beta);
  expected = product(expected, proj, proj_bias);
  // Numbers of order one pass through two products, whose chains are C and A long, a softmax over T tokens
  // and, with a norm, a division by a deviation that may be as small as a tenth.
  const double sum = 0.3 * 3.0 * static_cast<double>(width) + 1.0;  // of |terms| of the second product
  const double bound = test::dot_bound(c.embed_dim + width + tokens + 20, sum) * (c.has_norm ? 10.0 : 1.0);
  for (std::size_t row = 0; row < out.dim(0); ++row) {
    const std::size_t of_all = row / c.num_queries * tokens + row % c.num_queries;
    for (std::size_t i = 0; i < c.embed_dim; ++i)
      REQUIRE(std::fabs(out.view().row(row)[i] - expected[of_all][i]) <= bound);
  }
}

}  // namespace

TEST_CASE("layers: attention may be wider or narrower than the model, with and without biases and norm") {
  for (const kernels::KernelTable* table : kernels::available_kernels()) {
    for (const bool has_bias : {false, true}) {
      for (const bool has_norm : {false, true}) {
        for (const std::size_t num_queries : {AttentionCase::kTokens, std::size_t{1}, std::size_t{2}}) {
          for (const auto& [embed_dim, num_heads, head_dim] :
               {std::array<std::size_t, 3>{24, 3, 16}, {48, 2, 8}, {24, 3, 8}, {20, 1, 64}}) {
            check(*table, {.embed_dim = embed_dim,
                           .num_heads = num_heads,
                           .head_dim = head_dim,
                           .has_bias = has_bias,
                           .has_norm = has_norm,
                           .num_queries = num_queries});
          }
        }
      }
    }
  }
}

TEST_CASE("layers: the logits of attention are multiplied by the factor of the positions") {
  for (const kernels::KernelTable* table : kernels::available_kernels())
    check(*table, {.embed_dim = 24, .num_heads = 3, .head_dim = 16, .logit_factor = 1.7});
}

TEST_CASE("layers: a head of a long sequence gets the bits that it gets separately") {
  // Keys and values of four heads are more than is looked for in a cache, those of one are not.
  constexpr std::size_t kHeads = 4, kHeadDim = 64, kTokens = 4200, kQueries = 300, kWidth = kHeads * kHeadDim;
  test::Rng rng(8);
  const Tensor<float> qkv = rng.tensor({kTokens, 3 * kWidth});
  const kernels::Arithmetic& arithmetic = *kernels::default_kernels().float32;
  const auto run = [&](std::size_t first_head, std::size_t num_heads) {
    const std::size_t width = num_heads * kHeadDim;
    const auto columns = [&](std::size_t third) {
      return TensorView<const float>(qkv.data() + third * kWidth + first_head * kHeadDim, {kTokens, width},
                                     3 * kWidth);
    };
    Activations activations;
    activations.reserve({.num_tokens = kTokens,
                         .embed_dim = width,
                         .attention_dim = width,
                         .num_heads = num_heads,
                         .threads = 2},
                        arithmetic);
    Tensor<float> out(Shape{kQueries, width});
    const Sequences all(1, kTokens);
    attend({.queries = columns(0), .query_tokens = all, .keys = columns(1), .values = columns(2)},
           {.sequences = all, .queries = Sequences(1, kQueries)}, num_heads, out.view(), arithmetic.attention,
           {.activations = activations, .threads = 2});
    return out;
  };
  const Tensor<float> together = run(0, kHeads);
  for (std::size_t head = 0; head < kHeads; ++head) {
    const Tensor<float> alone = run(head, 1);
    for (std::size_t query = 0; query < kQueries; ++query) {
      CHECK(std::equal(alone.view().row(query), alone.view().row(query) + kHeadDim,
                       together.view().row(query) + head * kHeadDim));
    }
  }
}

TEST_CASE("layers: texts of different lengths get the bits that each gets separately") {
  const std::size_t width = 24, heads = 3;
  const std::vector<std::size_t> starts{0, 3, 14, 15, 55};
  test::Rng rng(6);
  const Tensor<float> qkv = rng.tensor({3 * width, width}), proj = rng.tensor({width, width});
  const std::vector<float> gamma = rng.numbers(width), beta = rng.numbers(width);
  const Tensor<float> x = rng.tensor({starts.back(), width});
  for (const kernels::KernelTable* table : kernels::available_kernels()) {
    CAPTURE(std::string(table->name));
    const kernels::Arithmetic& arithmetic = *table->float32;
    const Attention attention(Linear(qkv, {}, *arithmetic.linear), {}, std::nullopt,
                              Linear(proj, {}, *arithmetic.linear), heads, arithmetic.attention);
    const LayerNorm norm(gamma, beta, 1e-6f, *table);
    Activations activations;
    activations.reserve({.num_images = 4,
                         .num_tokens = 40,
                         .num_rows = starts.back(),
                         .embed_dim = width,
                         .attention_dim = width,
                         .num_heads = heads,
                         .threads = 2},
                        arithmetic);
    const Pass pass{.activations = activations, .threads = 2};
    for (const bool causal : {false, true}) {
      AttentionInput input{.sequences = Sequences(starts), .causal = causal};
      Tensor<float> all(Shape{starts.back(), width}), last(Shape{4, width});
      attention.forward({norm, x}, input, {.add_to = all}, pass);
      input.queries = Sequences(4, 1);
      input.queries_last = true;
      attention.forward({norm, x}, input, {.add_to = last}, pass);
      for (std::size_t text = 0; text < 4; ++text) {
        const std::size_t tokens = starts[text + 1] - starts[text];
        Tensor<float> alone(Shape{tokens, width});
        attention.forward({norm, x.view().part(starts[text], tokens)},
                          {.sequences = Sequences(1, tokens), .causal = causal}, {.add_to = alone}, pass);
        CHECK(std::ranges::equal(alone.flat(), all.view().part(starts[text], tokens).flat()));
        CHECK(std::ranges::equal(alone.view()[tokens - 1].flat(), last.view()[text].flat()));
      }
    }
    Tensor<float> out(Shape{starts.back(), width});
    const auto refuses = [&](const AttentionInput& input) {
      CHECK_THROWS_AS(attention.forward({norm, x}, input, {.add_to = out}, pass), Error);
    };
    refuses({.sequences = Sequences(std::span(starts).first(4))});          // fewer rows than x
    refuses({.sequences = Sequences(starts), .queries = Sequences(4, 2)});  // one text has a single token
    refuses({.sequences = Sequences(starts), .queries = Sequences(3, 1)});
  }
}

TEST_CASE("layers: windows of rotated images get the bits that each gets separately") {
  // Two images of one prefix token and eleven patches, cut into windows that are not alike; a separate window
  // reads factors of its own rows, of which that of the prefix token rotates by nothing.
  const std::size_t heads = 3, head_dim = 8, width = heads * head_dim, pairs = head_dim / 2, tokens = 12;
  const std::vector<std::size_t> starts{0, 5, 6, 12, 17, 24};
  test::Rng rng(9);
  const Tensor<float> qkv = rng.tensor({3 * width, width}), proj = rng.tensor({width, width});
  const std::vector<float> gamma = rng.numbers(width), beta = rng.numbers(width);
  const Tensor<float> x = rng.tensor({2 * tokens, width});
  Tensor<float> cos(Shape{heads, tokens, pairs}), sin(Shape{heads, tokens, pairs});
  for (std::size_t head = 0; head < heads; ++head) {
    for (std::size_t i = 0; i < tokens * pairs; ++i) {
      const float angle = i < pairs ? 0.0f : rng.uniform(-3.0f, 3.0f);
      cos.view()[head].data()[i] = std::cos(angle);
      sin.view()[head].data()[i] = std::sin(angle);
    }
  }
  const auto rope_from = [&](std::size_t token, std::size_t num_tokens, std::size_t num_heads) {
    return position::RopeFactors{.cos = cos.data() + token * pairs,
                                 .sin = sin.data() + token * pairs,
                                 .num_patches = num_tokens,
                                 .pairs = pairs,
                                 .head_stride = num_heads == 1 ? 0 : tokens * pairs,
                                 .num_heads = num_heads};
  };
  for (const kernels::KernelTable* table : kernels::available_kernels()) {
    for (const Precision precision : {Precision::float32, Precision::bfloat16, Precision::int8}) {
      CAPTURE(std::string(table->name));
      const kernels::Arithmetic& arithmetic = arithmetic_of(*table, precision);
      const Attention attention(Linear(qkv, {}, *arithmetic.linear), {}, std::nullopt,
                                Linear(proj, {}, *arithmetic.linear), heads, arithmetic.attention);
      const LayerNorm norm(gamma, beta, 1e-6f, *table);
      Activations activations;
      activations.reserve({.num_images = 5,
                           .num_tokens = 7,
                           .num_rows = 2 * tokens,
                           .embed_dim = width,
                           .attention_dim = width,
                           .num_heads = heads,
                           .threads = 2},
                          arithmetic);
      const Pass pass{.activations = activations, .threads = 2};
      for (const std::size_t num_heads : {std::size_t{1}, heads}) {
        const Sequences windows(starts);
        AttentionInput input{
            .sequences = windows, .rope = rope_from(1, tokens - 1, num_heads), .num_prefix = 1};
        Tensor<float> all(Shape{2 * tokens, width});
        attention.forward({norm, x}, input, {.add_to = all}, pass);
        for (std::size_t i = 0; i < windows.size(); ++i) {
          CAPTURE(i);
          const std::size_t first = windows.first_row(i), length = windows.length(i);
          Tensor<float> alone(Shape{length, width});
          attention.forward(
              {norm, x.view().part(first, length)},
              {.sequences = Sequences(1, length), .rope = rope_from(first % tokens, length, num_heads)},
              {.add_to = alone}, pass);
          CHECK(std::ranges::equal(alone.flat(), all.view().part(first, length).flat()));
        }
        std::vector<std::size_t> across{0, 5, 6, 13, 17, 24};  // a window of both images
        CHECK_THROWS_AS(attention.forward(
                            {norm, x}, {.sequences = Sequences(across), .rope = input.rope, .num_prefix = 1},
                            {.add_to = all}, pass),
                        Error);
      }
    }
  }
}

TEST_CASE("layers: sequences lie one after the other") {
  const Sequences alike(3, 5);
  CHECK(alike.size() == 3);
  CHECK(alike.rows() == 15);
  CHECK(alike.first_row(2) == 10);
  CHECK(alike.length(2) == 5);
  const std::vector<std::size_t> starts{0, 2, 9, 10};
  const Sequences others(starts);
  CHECK(others.size() == 3);
  CHECK(others.rows() == 10);
  CHECK(others.longest() == 7);
  CHECK(others.first_row(1) == 2);
  CHECK(others.length(2) == 1);
  const Sequences part{std::span(starts).subspan(1)};  // rows count from the first
  CHECK(part.rows() == 8);
  CHECK(part.first_row(0) == 0);
  CHECK(part.first_row(1) == 7);
  for (const std::vector<std::size_t>& wrong : {std::vector<std::size_t>{}, {0, 2, 2}, {0, 3, 2}})
    CHECK_THROWS_AS(Sequences{std::span(wrong)}, Error);
  CHECK_THROWS_AS(Sequences(~std::size_t{0}, 2), Error);
}

TEST_CASE("layers: parts of attention that do not fit together are refused") {
  test::Rng rng(4);
  const kernels::KernelTable& table = kernels::default_kernels();
  const auto linear = [&](std::size_t out, std::size_t in) {
    return Linear(rng.tensor({out, in}), {}, *table.float32->linear);
  };
  const auto make = [&](Linear qkv, Linear proj, std::size_t num_heads) {
    return Attention(std::move(qkv), {}, std::nullopt, std::move(proj), num_heads, table.float32->attention);
  };
  CHECK(make(linear(96, 8), linear(8, 32), 4).attention_dim() == 32);
  CHECK_THROWS_AS(make(linear(95, 8), linear(8, 32), 4), Error);
  CHECK_THROWS_AS(make(linear(96, 9), linear(8, 32), 4), Error);
  CHECK_THROWS_AS(make(linear(96, 8), linear(8, 32), 5), Error);
}

}  // namespace vit::internal
