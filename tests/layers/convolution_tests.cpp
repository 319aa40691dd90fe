// Convolutions of maps against their sums in double, on sizes that leave every kind of remainder.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/rng.h"
#include "tests/support/tolerance.h"
#include "vit/kernels/kernels.h"
#include "vit/layers/convolution.h"
#include "vit/layers/resize_map.h"

namespace vit::internal {
namespace {

/// A map with its memory, filled with numbers.
struct OwnMap {
  OwnMap(MapSize size, std::size_t channels, std::uint64_t seed)
      : memory(Shape{FeatureMap::num_floats(size, channels)}),
        map(FeatureMap::over(memory.view(), size, channels)) {
    test::Rng rng(seed);
    const std::vector<float> numbers = rng.numbers(memory.num_elements());
    std::copy(numbers.begin(), numbers.end(), memory.data());
    map.clear_border();
  }
  float at(std::size_t y, std::size_t x, std::size_t c) const {
    return map.row(static_cast<std::ptrdiff_t>(y))[x * map.channels() + c];
  }

  Tensor<float> memory;
  FeatureMap map;
};

struct Problem {
  MapSize size;
  std::size_t in, out, edge, stride;
};

/// Sum over the window of an output in double, and of the absolute terms.
struct Sum {
  double value = 0.0, magnitude = 0.0;
};

Sum window_sum(const Problem& p, const OwnMap& in, const Tensor<float>& weight, std::size_t y, std::size_t x,
               std::size_t o) {
  Sum sum;
  const auto pad = static_cast<std::ptrdiff_t>(p.edge / 2);
  for (std::size_t c = 0; c < p.in; ++c) {
    for (std::size_t u = 0; u < p.edge; ++u) {
      for (std::size_t v = 0; v < p.edge; ++v) {
        const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(y * p.stride + u) - pad;
        const std::ptrdiff_t column = static_cast<std::ptrdiff_t>(x * p.stride + v) - pad;
        if (row < 0 || column < 0 || row >= static_cast<std::ptrdiff_t>(p.size.height) ||
            column >= static_cast<std::ptrdiff_t>(p.size.width))
          continue;
        const double term =
            static_cast<double>(in.at(static_cast<std::size_t>(row), static_cast<std::size_t>(column), c)) *
            weight.data()[((o * p.in + c) * p.edge + u) * p.edge + v];
        sum.value += term;
        sum.magnitude += std::abs(term);
      }
    }
  }
  return sum;
}

void check_convolution(const kernels::KernelTable& table, const Problem& p) {
  CAPTURE(table.name);
  CAPTURE(p.size.height);
  CAPTURE(p.size.width);
  CAPTURE(p.in);
  CAPTURE(p.out);
  CAPTURE(p.edge);
  CAPTURE(p.stride);
  test::Rng rng(7);
  const OwnMap in(p.size, p.in, 1);
  const Tensor<float> weight = rng.tensor({p.out, p.in, p.edge, p.edge});
  const std::vector<float> bias = rng.numbers(p.out);
  const Convolution convolution(weight, bias, p.stride, *table.float32->linear);
  const MapSize size = convolution.out_size(p.size);
  const OwnMap before(size, p.out, 2), out(size, p.out, 2);
  convolution.forward(in.map, out.map, 2, {.activation = Activation::relu, .residual = out.map});
  for (std::size_t y = 0; y < size.height; ++y) {
    for (std::size_t x = 0; x < size.width; ++x) {
      for (std::size_t o = 0; o < p.out; ++o) {
        const Sum sum = window_sum(p, in, weight, y, x, o);
        const double exact = std::max(sum.value + bias[o], 0.0) + before.at(y, x, o);
        const double magnitude = sum.magnitude + std::abs(bias[o]) + std::abs(before.at(y, x, o));
        const double bound =
            test::dot_bound(test::gemm_chain(p.in * p.edge * p.edge) + p.edge + 2, magnitude);
        REQUIRE(std::abs(out.at(y, x, o) - exact) <= bound);
      }
    }
  }
  // what is written stays within the map: its border is the padding of the next convolution
  for (std::size_t x = 0; x < size.width * p.out; ++x) {
    REQUIRE(out.map.row(-1)[x] == 0.0f);
    REQUIRE(out.map.row(static_cast<std::ptrdiff_t>(size.height))[x] == 0.0f);
  }
}

}  // namespace

TEST_CASE("convolution: every table against sums in double") {
  for (const kernels::KernelTable* table : kernels::available_kernels()) {
    for (const Problem& p :
         {Problem{{1, 1}, 1, 1, 3, 1}, Problem{{5, 7}, 3, 10, 3, 1}, Problem{{4, 13}, 10, 5, 3, 2},
          Problem{{5, 5}, 24, 24, 3, 2}, Problem{{3, 30}, 17, 33, 3, 1}, Problem{{2, 9}, 300, 20, 3, 1},
          Problem{{6, 4}, 48, 8, 1, 1}}) {
      check_convolution(*table, p);
    }
  }
}

TEST_CASE("convolution: bits do not depend on the number of threads or on how rows are split") {
  test::Rng rng(3);
  const OwnMap in({37, 29}, 20, 1);
  const Tensor<float> weight = rng.tensor({40, 20, 3, 3});
  const kernels::LinearKernels& kernels = *kernels::default_kernels().float32->linear;
  const Convolution convolution(weight, {}, 1, kernels);
  const OwnMap one({37, 29}, 40, 2), two({37, 29}, 40, 2), rows({37, 29}, 40, 2);
  convolution.forward(in.map, one.map, 1);
  convolution.forward(in.map, two.map, 2);
  for (std::size_t y = 0; y < 37; ++y) convolution.forward_rows(in.map, rows.map, {y, 1});
  CHECK(std::ranges::equal(one.memory.flat(), two.memory.flat()));
  CHECK(std::ranges::equal(one.memory.flat(), rows.memory.flat()));
}

TEST_CASE("transposed convolution: every pixel becomes a square") {
  for (const kernels::KernelTable* table : kernels::available_kernels()) {
    for (const std::size_t edge : {2u, 4u}) {
      CAPTURE(table->name);
      CAPTURE(edge);
      test::Rng rng(5);
      const OwnMap in({3, 5}, 11, 1);
      const Tensor<float> weight = rng.tensor({11, 7, edge, edge});
      const std::vector<float> bias = rng.numbers(7);
      const TransposedConvolution convolution(weight, bias, *table->float32->linear);
      const OwnMap out(convolution.out_size({3, 5}), 7, 2);
      convolution.forward(in.map, out.map, 2);
      for (std::size_t y = 0; y < 3 * edge; ++y) {
        for (std::size_t x = 0; x < 5 * edge; ++x) {
          for (std::size_t o = 0; o < 7; ++o) {
            double sum = bias[o], magnitude = std::abs(bias[o]);
            for (std::size_t c = 0; c < 11; ++c) {
              const double term = static_cast<double>(in.at(y / edge, x / edge, c)) *
                                  weight.data()[((c * 7 + o) * edge + y % edge) * edge + x % edge];
              sum += term;
              magnitude += std::abs(term);
            }
            REQUIRE(std::abs(out.at(y, x, o) - sum) <= test::dot_bound(test::gemm_chain(11) + 1, magnitude));
          }
        }
      }
    }
  }
}

TEST_CASE("maps are interpolated as torch does") {
  for (const kernels::KernelTable* table : kernels::available_kernels()) {
    for (const Alignment alignment : {Alignment::corners, Alignment::edges}) {
      CAPTURE(table->name);
      const MapSize from{3, 5}, to{7, 6};
      const OwnMap in(from, 10, 1), out(to, 10, 2);
      Arena arena;
      MapResize resize;
      arena.lay_out([&](Arena::Taker& taker) { resize = MapResize::take(taker, from, to, 10, 2); });
      resize.fill(from, alignment);
      resize_map(in.map, out.map, resize, 2, table->maps);
      const auto source = [&](std::size_t i, std::size_t n, std::size_t m) {
        const double at = static_cast<double>(i);
        if (alignment == Alignment::corners)
          return at * static_cast<double>(n - 1) / static_cast<double>(m - 1);
        return std::max((at + 0.5) * static_cast<double>(n) / static_cast<double>(m) - 0.5, 0.0);
      };
      for (std::size_t y = 0; y < to.height; ++y) {
        for (std::size_t x = 0; x < to.width; ++x) {
          const double v = source(y, from.height, to.height), u = source(x, from.width, to.width);
          const auto top = static_cast<std::size_t>(v), left = static_cast<std::size_t>(u);
          const std::size_t below = std::min(top + 1, from.height - 1),
                            right = std::min(left + 1, from.width - 1);
          const double t = v - static_cast<double>(top), s = u - static_cast<double>(left);
          for (std::size_t c = 0; c < 10; ++c) {
            const double exact = (1 - t) * ((1 - s) * in.at(top, left, c) + s * in.at(top, right, c)) +
                                 t * ((1 - s) * in.at(below, left, c) + s * in.at(below, right, c));
            REQUIRE(out.at(y, x, c) == doctest::Approx(exact).epsilon(1e-5));
          }
        }
      }
    }
  }
}

TEST_CASE("convolution: weights and maps that do not fit are Errors") {
  const kernels::LinearKernels& kernels = *kernels::default_kernels().float32->linear;
  const Tensor<float> five(Shape{4, 3, 5, 5}), three(Shape{4, 3, 3, 3});
  CHECK_THROWS_AS(Convolution(five, {}, 1, kernels), Error);
  const std::vector<float> bias(3);
  CHECK_THROWS_AS(Convolution(three, bias, 1, kernels), Error);
  const Convolution convolution(three, {}, 1, kernels);
  const OwnMap in({4, 4}, 3, 1), narrow({4, 3}, 4, 1);
  CHECK_THROWS_AS(convolution.forward(in.map, narrow.map, 1), Error);
  const OwnMap out({4, 4}, 4, 1);
  CHECK_THROWS_AS(convolution.forward(narrow.map, out.map, 1), Error);
}

}  // namespace vit::internal
