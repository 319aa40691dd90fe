// Layer norm and rotation of every table against the reference; accuracy of the activations after a product
// against double precision.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/activations.h"
#include "tests/support/linear_product.h"
#include "tests/support/rng.h"
#include "tests/support/rotated_rows.h"
#include "tests/support/tolerance.h"
#include "vit/kernels/kernels.h"

namespace vit::internal::kernels {
namespace {

const std::vector<std::size_t> kWidths{1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 64, 197, 768, 2730};

/// Floats of [low, high], evenly spread over the bit patterns, and the ends.
std::vector<float> floats_between(float low, float high, std::uint32_t stride) {
  std::vector<float> numbers{low, high};
  for (std::uint64_t bits = 0; bits <= 0xFFFFFFFFu; bits += stride) {
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (x >= low && x <= high) numbers.push_back(x);
  }
  return numbers;
}

/// activation(in), as a product with a bias leaves it: all weights are zero.
std::vector<float> activated(const KernelTable& table, const std::vector<float>& in, Activation activation) {
  const Tensor<float> zero(Shape{1, 1}), weight(Shape{in.size(), 1});
  std::vector<float> out = test::linear_product(*table.float32->linear, zero, weight,
                                                {.bias = in.data(), .activation = activation});
  out.resize(in.size());
  return out;
}

struct Worst {
  double ulps = 0.0;
  float at = 0.0f;
};

Worst worst_of(const KernelTable& table, Activation activation, float low, float high) {
  const std::vector<float> in = floats_between(low, high, 4099);
  const std::vector<float> out = activated(table, in, activation);
  Worst worst;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const double ulps = test::ulps_between(out[i], test::exact_activation(in[i], activation));
    if (!(ulps <= worst.ulps)) worst = {ulps, in[i]};
  }
  return worst;
}

}  // namespace

TEST_CASE("kernels: activations are exact to a few ulp over all floats") {
  struct Range {
    Activation activation;
    float low, high;
    double ulps;
  };
  // Where the result decays like exp(-y), the roundings of y and of its constants cost up to y ulp each.
  const std::vector<Range> ranges{
      {Activation::none, -1e38f, 1e38f, 0.0},      {Activation::relu, -1e38f, 1e38f, 0.0},
      {Activation::gelu, -1.0f, 1e38f, 5.0},       {Activation::gelu, -2.0f, -1.0f, 9.0},
      {Activation::gelu, -4.0f, -2.0f, 30.0},      {Activation::silu, -80.0f, 1e38f, 3.0},
      {Activation::quick_gelu, -1.0f, 1e38f, 3.5}, {Activation::quick_gelu, -48.0f, -1.0f, 130.0},
      {Activation::gelu_tanh, -1.0f, 1e12f, 6.0},  {Activation::gelu_tanh, -9.0f, -1.0f, 160.0},
  };
  for (const KernelTable* table : available_kernels()) {
    for (const Range& range : ranges) {
      const Worst worst = worst_of(*table, range.activation, range.low, range.high);
      CAPTURE(table->name);
      CAPTURE(to_string(range.activation));
      CAPTURE(worst.at);
      CHECK(worst.ulps <= range.ulps);
    }
  }
}

TEST_CASE("kernels: gelu is off by at most 1e-7 |x| over all floats") {
  const std::vector<float> in = floats_between(-1e38f, 1e38f, 4099);
  for (const KernelTable* table : available_kernels()) {
    const std::vector<float> out = activated(*table, in, Activation::gelu);
    struct {
      double share = 0.0;
      float at = 0.0f;
    } worst;
    for (std::size_t i = 0; i < in.size(); ++i) {
      const double x = static_cast<double>(in[i]);
      const double error =
          std::fabs(static_cast<double>(out[i]) - test::exact_activation(x, Activation::gelu));
      // numbers below the smallest normal one have fewer digits
      const double share = error / (std::fabs(x) + static_cast<double>(std::numeric_limits<float>::min()));
      if (!(share <= worst.share)) worst = {share, in[i]};
    }
    CAPTURE(table->name);
    CAPTURE(worst.at);
    CHECK(worst.share <= 1e-7);
  }
}

TEST_CASE("kernels: gelu far to the left is zero up to the smallest normal number") {
  for (const KernelTable* table : available_kernels()) {
    CAPTURE(table->name);
    for (const float y : activated(*table, floats_between(-1e38f, -13.2f, 4099), Activation::gelu))
      REQUIRE(std::fabs(y) <= std::numeric_limits<float>::min());
  }
}

TEST_CASE("kernels: activations keep NaN and stay finite at the ends of the range") {
  for (const KernelTable* table : available_kernels()) {
    for (const Activation activation : test::kActivations) {
      CAPTURE(table->name);
      CAPTURE(to_string(activation));
      const std::vector<float> x =
          activated(*table, {std::nanf(""), 1000.0f, -1000.0f, 0.0f, std::numeric_limits<float>::infinity()},
                    activation);
      CHECK(std::isnan(x[0]));
      CHECK(x[1] == 1000.0f);
      CHECK(x[2] == 0.0f);
      CHECK(x[3] == 0.0f);
      CHECK(x[4] == std::numeric_limits<float>::infinity());
    }
  }
}

TEST_CASE("kernels: an activation gives a number the same bits in every column") {
  test::Rng rng(5);
  for (const KernelTable* table : available_kernels()) {
    for (const Activation activation :
         {Activation::gelu, Activation::gelu_tanh, Activation::quick_gelu, Activation::silu}) {
      const std::vector<float> in = rng.numbers(67, -6.0f, 6.0f);
      const std::vector<float> together = activated(*table, in, activation);
      std::vector<float> single;
      for (const float x : in) single.push_back(activated(*table, {x}, activation).front());
      CHECK(together == single);
    }
  }
}

TEST_CASE("kernels: layer_norm agrees with the reference, also in place") {
  const KernelTable& reference = find_kernels("reference");
  test::Rng rng(2);
  for (const std::size_t columns : kWidths) {
    const std::size_t stride = columns + 3;
    const std::vector<float> in = rng.numbers(3 * stride, -2.0f, 5.0f);
    const std::vector<float> gamma = rng.numbers(columns);
    const std::vector<float> beta = rng.numbers(columns);
    std::vector<float> expected = in;
    const auto args = [&](std::vector<float>& rows) -> LayerNormArgs {
      return {.in = rows.data(),
              .in_stride = stride,
              .rows = 3,
              .columns = columns,
              .gamma = gamma.data(),
              .beta = beta.data(),
              .eps = 1e-6f,
              .out = rows.data(),
              .out_stride = stride};
    };
    reference.layer_norm(args(expected));
    for (const KernelTable* table : available_kernels()) {
      CAPTURE(table->name);
      CAPTURE(columns);
      std::vector<float> out = in;
      table->layer_norm(args(out));
      for (std::size_t i = 0; i < out.size(); ++i) {
        if (i % stride >= columns) {
          REQUIRE(out[i] == in[i]);
        } else if (columns == 1) {
          REQUIRE(out[i] == beta[0]);
        } else {
          // The mean of numbers up to 5 errs by `columns` roundings at most; the factor 1 / sigma is about 1
          // / 2, and up to 1 / |difference| for a row of two.
          const double mean_error = test::dot_bound(columns / 2, 5.0) * (columns < 8 ? 200.0 : 2.0);
          REQUIRE(std::fabs(out[i] - expected[i]) <=
                  mean_error + 8 * test::kRoundoff * (1.0 + std::fabs(expected[i])));
        }
      }
    }
  }
}

TEST_CASE("kernels: layer_norm survives a large common offset") {
  const std::size_t columns = 768;
  test::Rng rng(3);
  std::vector<float> in = rng.numbers(columns);
  for (float& x : in) x += 1000.0f;
  const std::vector<float> gamma(columns, 1.0f);
  const std::vector<float> beta(columns, 0.0f);
  for (const KernelTable* table : available_kernels()) {
    CAPTURE(table->name);
    std::vector<float> out(columns);
    table->layer_norm({.in = in.data(),
                       .in_stride = columns,
                       .rows = 1,
                       .columns = columns,
                       .gamma = gamma.data(),
                       .beta = beta.data(),
                       .eps = 1e-6f,
                       .out = out.data(),
                       .out_stride = columns});
    double squares = 0.0;
    for (const float x : out) squares += static_cast<double>(x) * x;
    CHECK(std::fabs(squares / columns - 1.0) < 1e-3);
  }
}

TEST_CASE("kernels: rotation agrees with the reference") {
  constexpr std::pair<RopePairing, RopeAngles> kRotations[] = {
      {RopePairing::neighbors, RopeAngles::per_pair},
      {RopePairing::halves, RopeAngles::per_pair},
      {RopePairing::neighbors, RopeAngles::per_channel},
      {RopePairing::halves, RopeAngles::per_channel}};
  const KernelTable& reference = find_kernels("reference");
  test::Rng rng(6);
  for (const std::size_t columns : {2, 4, 6, 16, 22, 24, 64, 72, 80, 88, 96, 112, 128}) {
    const std::size_t tokens = 11;
    const std::vector<float> in = rng.numbers(tokens * columns);
    const std::vector<float> cos = rng.numbers((tokens - 2) * columns);
    const std::vector<float> sin = rng.numbers((tokens - 2) * columns);
    for (const KernelTable* table : available_kernels()) {
      for (const auto& [pairing, angles] : kRotations) {
        CAPTURE(table->name);
        CAPTURE(columns);
        const Rotation rotation{
            .cos = cos.data(), .sin = sin.data(), .num_prefix = 2, .pairing = pairing, .angles = angles};
        const TensorView<const float> rows(in.data(), {tokens, columns});
        const std::vector<float> out = test::rotated_rows(*table, rows, rotation);
        const std::vector<float> expected = test::rotated_rows(reference, rows, rotation);
        for (std::size_t i = 0; i < out.size(); ++i)
          REQUIRE(std::fabs(out[i] - expected[i]) <= 4 * test::kRoundoff);
        CHECK(std::equal(in.begin(), in.begin() + 2 * static_cast<std::ptrdiff_t>(columns), out.begin()));
      }
    }
  }
}

}  // namespace vit::internal::kernels
