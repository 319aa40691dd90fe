// Convolutions of maps against their sums in double, on sizes that leave every kind of remainder.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
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
  bool in_relu = false;  // and a second residual
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
        const double read = in.at(static_cast<std::size_t>(row), static_cast<std::size_t>(column), c);
        const double term = (p.in_relu ? std::max(read, 0.0) : read) *
                            weight.data()[((o * p.in + c) * p.edge + u) * p.edge + v];
        sum.value += term;
        sum.magnitude += std::abs(term);
      }
    }
  }
  return sum;
}

constexpr std::size_t kTile = kernels::kConvolutionTile, kWindow = kTile + 2;
using Square = std::array<double, kWindow * kWindow>;

/// Absolute values of the matrices of F(4x4, 3x3) for the points 0, 3/4, -3/4, 3/2, -3/2 and infinity, from
/// their definition: B^T has the coefficients of the products of (x - p) for all other points p, a row of G
/// the powers of a point over its distances to the others, a column of A^T the powers of a point.
struct Transforms {
  Transforms() {
    constexpr std::array<double, kWindow - 1> kPoints{0.0, 0.75, -0.75, 1.5, -1.5};
    for (std::size_t j = 0; j < kWindow; ++j) {
      std::vector<double> polynomial{1.0};
      double distances = 1.0;
      for (std::size_t k = 0; k < kPoints.size(); ++k) {
        if (k == j) continue;
        polynomial.insert(polynomial.begin(), 0.0);  // times x
        for (std::size_t i = 0; i + 1 < polynomial.size(); ++i)
          polynomial[i] -= kPoints[k] * polynomial[i + 1];
        if (j < kPoints.size()) distances *= kPoints[j] - kPoints[k];
      }
      for (std::size_t i = 0; i < polynomial.size(); ++i) of_window[j][i] = std::abs(polynomial[i]);
      const bool infinite = j == kPoints.size();
      for (std::size_t i = 0; i < 3; ++i)
        of_kernel[j][i] = infinite ? (i == 2 ? 1.0 : 0.0)
                                   : std::abs(std::pow(kPoints[j], static_cast<double>(i)) / distances);
      for (std::size_t i = 0; i < kTile; ++i)
        of_sums[i][j] =
            infinite ? (i + 1 == kTile ? 1.0 : 0.0) : std::abs(std::pow(kPoints[j], static_cast<double>(i)));
    }
  }
  double of_window[kWindow][kWindow]{}, of_kernel[kWindow][3]{}, of_sums[kTile][kWindow]{};
};

/// Absolute sums of all terms of the 16 outputs of tiles, of any channel: what rounding errors are relative
/// to.
class TileMagnitudes {
 public:
  TileMagnitudes(const Problem& p, const OwnMap& in, const Tensor<float>& weight) : p_(p) {
    for (std::size_t kernel = 0; kernel < p.out * p.in; ++kernel) {
      kernels_.push_back(square([&](std::size_t u, std::size_t v) {
        double sum = 0.0;
        for (std::size_t i = 0; i < 9; ++i)
          sum += t_.of_kernel[u][i / 3] * t_.of_kernel[v][i % 3] * std::abs(weight.data()[kernel * 9 + i]);
        return sum;
      }));
    }
    for (std::size_t y = 0; y < p.size.height; y += kTile) {
      for (std::size_t x = 0; x < p.size.width; x += kTile) add_windows(in, y, x);
    }
  }

  double at(std::size_t y, std::size_t x, std::size_t o) const {
    const std::size_t across = (p_.size.width + kTile - 1) / kTile;
    const std::size_t tile = y / kTile * across + x / kTile;
    double sum = 0.0;
    for (std::size_t c = 0; c < p_.in; ++c) {
      const Square& window = windows_[tile * p_.in + c];
      const Square& kernel = kernels_[o * p_.in + c];
      for (std::size_t i = 0; i < window.size(); ++i)
        sum +=
            t_.of_sums[y % kTile][i / kWindow] * t_.of_sums[x % kTile][i % kWindow] * window[i] * kernel[i];
    }
    return sum;
  }

 private:
  template <class Value>
  static Square square(const Value& value) {
    Square out;
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = value(i / kWindow, i % kWindow);
    return out;
  }
  void add_windows(const OwnMap& in, std::size_t top, std::size_t left) {
    for (std::size_t c = 0; c < p_.in; ++c) {
      const Square pixels = square([&](std::size_t i, std::size_t j) {
        const std::size_t y = top + i, x = left + j;  // plus one
        const bool outside = y == 0 || x == 0 || y > p_.size.height || x > p_.size.width;
        return outside ? 0.0 : std::abs(double{in.at(y - 1, x - 1, c)});
      });
      windows_.push_back(square([&](std::size_t u, std::size_t v) {
        double sum = 0.0;
        for (std::size_t i = 0; i < pixels.size(); ++i)
          sum += t_.of_window[u][i / kWindow] * t_.of_window[v][i % kWindow] * pixels[i];
        return sum;
      }));
    }
  }

  Problem p_;
  Transforms t_;
  std::vector<Square> kernels_, windows_;
};

/// The scratch memory of a convolution for `threads`.
Tensor<float> scratch_of(const Convolution& convolution, std::size_t threads) {
  return Tensor<float>(Shape{threads, std::max<std::size_t>(convolution.scratch_floats(), 1)});
}

/// Arithmetic of a product, and how far the two factors of a term may be rounded, relative to the term.
struct Products {
  const kernels::LinearKernels* kernels;
  double rounding;
};

Products float_products(const kernels::KernelTable& table) {
  return {table.float32->linear, 0.0};
}
/// Both factors rounded to 8 bits.
Products bfloat16_products(const kernels::KernelTable& table) {
  return {table.bfloat16->linear, 0x1p-8 + 0x1p-18};
}

void check_convolution(const kernels::KernelTable& table, const Problem& p, const Products& products) {
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
  const Convolution convolution(weight, bias, p.stride, table, *products.kernels);
  const MapSize size = convolution.out_size(p.size);
  const OwnMap before(size, p.out, 2), out(size, p.out, 2), second(size, p.out, 3);
  Tensor<float> scratch = scratch_of(convolution, 2);
  MapEpilogue epilogue{.activation = Activation::relu, .residual = out.map};
  if (p.in_relu) epilogue.in_relu = true, epilogue.second = second.map;
  convolution.forward(in.map, out.map, 2, scratch, epilogue);
  const bool of_tiles = p.edge == 3 && p.stride == 1 && p.in >= kernels::kTransformedChannels;
  std::optional<TileMagnitudes> magnitudes;
  if (of_tiles) magnitudes.emplace(p, in, weight);
  for (std::size_t y = 0; y < size.height; ++y) {
    for (std::size_t x = 0; x < size.width; ++x) {
      for (std::size_t o = 0; o < p.out; ++o) {
        const Sum sum = window_sum(p, in, weight, y, x, o);
        const double more = p.in_relu ? second.at(y, x, o) : 0.0;
        const double exact = std::max(sum.value + bias[o], 0.0) + before.at(y, x, o) + more;
        const double terms = of_tiles ? magnitudes->at(y, x, o) : sum.magnitude;
        const double magnitude = terms + std::abs(bias[o]) + std::abs(before.at(y, x, o)) + std::abs(more);
        // to and from tiles: at most four roundings along each axis, and one of the kernel
        const std::size_t chain = of_tiles ? test::gemm_chain(p.in) + 4 * 4 + 1 + 4
                                           : test::gemm_chain(p.in * p.edge * p.edge) + p.edge + 2;
        REQUIRE(std::abs(out.at(y, x, o) - exact) <=
                test::dot_bound(chain, magnitude) + products.rounding * sum.magnitude);
      }
    }
  }
  // what is written stays within the map: its border is the padding of the next convolution
  for (std::size_t x = 0; x < size.width * p.out; ++x) {
    REQUIRE(out.map.row(-1)[x] == 0.0f);
    REQUIRE(out.map.row(static_cast<std::ptrdiff_t>(size.height))[x] == 0.0f);
  }
  for (std::size_t y = 0; y < size.height; ++y) {
    for (std::size_t o = 0; o < p.out; ++o) {
      REQUIRE(*(out.map.row(static_cast<std::ptrdiff_t>(y)) - 1 - o) == 0.0f);
      REQUIRE(out.map.row(static_cast<std::ptrdiff_t>(y))[size.width * p.out + o] == 0.0f);
    }
  }
}

}  // namespace

TEST_CASE("convolution: every table against sums in double") {
  for (const kernels::KernelTable* table : kernels::available_kernels()) {
    for (const Problem& p :
         {Problem{{1, 1}, 1, 1, 3, 1}, Problem{{5, 7}, 3, 10, 3, 1, true}, Problem{{4, 13}, 10, 5, 3, 2},
          Problem{{5, 5}, 24, 24, 3, 2}, Problem{{3, 30}, 17, 33, 3, 1, true}, Problem{{2, 9}, 800, 20, 3, 1},
          Problem{{8, 12}, 32, 32, 3, 1, true}, Problem{{1, 3}, 33, 1, 3, 1},
          Problem{{5, 31}, 35, 33, 3, 1, true}, Problem{{9, 33}, 31, 40, 3, 1},
          Problem{{13, 62}, 5, 17, 3, 1}, Problem{{6, 4}, 48, 8, 1, 1}}) {
      check_convolution(*table, p, float_products(*table));
    }
  }
}

TEST_CASE("convolution: products of bfloat16 against sums in double, for every table") {
  // odd numbers of channels, rows of a map longer than a task, rows of windows that fill one
  for (const kernels::KernelTable* table : kernels::available_kernels()) {
    for (const Problem& p :
         {Problem{{1, 1}, 1, 1, 1, 1}, Problem{{2, 300}, 5, 7, 1, 1}, Problem{{6, 4}, 48, 40, 1, 1},
          Problem{{37, 3}, 33, 33, 1, 1}, Problem{{9, 7}, 20, 6, 1, 2}, Problem{{1, 1}, 1, 3, 3, 2},
          Problem{{4, 13}, 11, 5, 3, 2}, Problem{{5, 5}, 24, 35, 3, 2}, Problem{{3, 90}, 400, 2, 3, 2}}) {
      check_convolution(*table, p, bfloat16_products(*table));
    }
  }
}

TEST_CASE("convolution: 3x3 errs about twice as much as plain sums, not by orders") {
  // What the points of the transforms are chosen for. Root mean squares are relative to the largest output.
  const Problem p{{32, 32}, 64, 8, 3, 1};
  test::Rng rng(11);
  const OwnMap in(p.size, p.in, 1);
  const Tensor<float> weight = rng.tensor({p.out, p.in, 3, 3});
  for (const kernels::KernelTable* table : kernels::available_kernels()) {
    CAPTURE(table->name);
    const Convolution convolution(weight, {}, 1, *table);
    const OwnMap out(p.size, p.out, 2);
    Tensor<float> scratch = scratch_of(convolution, 1);
    convolution.forward(in.map, out.map, 1, scratch);
    double largest = 0.0, error = 0.0;
    for (std::size_t y = 0; y < p.size.height; ++y) {
      for (std::size_t x = 0; x < p.size.width; ++x) {
        for (std::size_t o = 0; o < p.out; ++o) {
          const double exact = window_sum(p, in, weight, y, x, o).value;
          largest = std::max(largest, std::abs(exact));
          error = std::max(error, std::abs(out.at(y, x, o) - exact));
        }
      }
    }
    CHECK(error <= 2e-6 * largest);
  }
}

TEST_CASE("convolution: bits do not depend on the number of threads or on how tiles are split") {
  std::size_t channels = 0;
  SUBCASE("plain sums") {
    channels = 20;
  }
  SUBCASE("transforms") {
    channels = 40;
  }
  test::Rng rng(3);
  const OwnMap in({37, 29}, channels, 1);
  const Tensor<float> weight = rng.tensor({40, channels, 3, 3});
  const Convolution convolution(weight, {}, 1, kernels::default_kernels());
  const OwnMap one({37, 29}, 40, 2), three({37, 29}, 40, 2), strips({37, 29}, 40, 2);
  Tensor<float> scratch = scratch_of(convolution, 3);
  convolution.forward(in.map, one.map, 1, scratch);
  convolution.forward(in.map, three.map, 3, scratch);
  for (std::size_t y = 0; y < 37; y += kTile) {  // the rows around a strip are its border
    const auto row = static_cast<std::ptrdiff_t>(y);
    const MapSize size{std::min(kTile, 37 - y), 29};
    convolution.forward_in_thread(FeatureMap(in.map.row(row), size, channels, in.map.row_stride(), true),
                                  FeatureMap(strips.map.row(row), size, 40, strips.map.row_stride(), true),
                                  scratch.data());
  }
  CHECK(std::ranges::equal(one.memory.flat(), three.memory.flat()));
  CHECK(std::ranges::equal(one.memory.flat(), strips.memory.flat()));
}

TEST_CASE("convolution: a NaN reaches the outputs that read it, and no tile farther away") {
  constexpr MapSize kSize{10, 9};
  const std::vector<std::array<std::size_t, 2>> pixels{{0, 0}, {3, 4}, {5, 6}, {4, 7}, {9, 8}};
  const auto distance = [](std::size_t a, std::size_t b) { return a < b ? b - a : a - b; };
  for (const kernels::KernelTable* table : kernels::available_kernels()) {
    for (const std::size_t channels : {20u, 40u}) {  // plain sums and transforms
      CAPTURE(table->name);
      CAPTURE(channels);
      test::Rng rng(13);
      const Tensor<float> weight = rng.tensor({17, channels, 3, 3});
      const Convolution convolution(weight, {}, 1, *table);
      Tensor<float> scratch = scratch_of(convolution, 1);
      for (const float wrong :
           {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
        // where ReLU makes zeros of negative infinity, only NaN must remain
        const bool relu = std::isnan(wrong);
        const auto run = [&](const OwnMap& in) {
          OwnMap out(kSize, 17, 2);
          const OwnMap residual(kSize, 17, 3);
          convolution.forward(in.map, out.map, 1, scratch,
                              {.activation = relu ? Activation::relu : Activation::none,
                               .residual = residual.map,
                               .in_relu = relu});
          return out;
        };
        const OwnMap expected = run(OwnMap(kSize, channels, 1));
        for (const auto& pixel : pixels) {
          const std::size_t row = pixel[0], column = pixel[1];
          CAPTURE(row);
          CAPTURE(column);
          const OwnMap in(kSize, channels, 1);
          in.map.row(static_cast<std::ptrdiff_t>(row))[column * channels + channels - 1] = wrong;
          const OwnMap found = run(in);
          for (std::size_t y = 0; y < kSize.height; ++y) {
            for (std::size_t x = 0; x < kSize.width; ++x) {
              const bool is_read = distance(y, row) <= 1 && distance(x, column) <= 1;
              // the window of its tile is a pixel larger on each side
              const std::size_t top = y / kTile * kTile, left = x / kTile * kTile;
              const bool in_tile =
                  row + 1 >= top && row <= top + kTile && column + 1 >= left && column <= left + kTile;
              for (std::size_t o = 0; o < 17; ++o) {
                if (is_read) REQUIRE_FALSE(std::isfinite(found.at(y, x, o)));
                if (!in_tile) REQUIRE(found.at(y, x, o) == expected.at(y, x, o));
              }
            }
          }
        }
      }
    }
  }
}

TEST_CASE("convolution: bits of products of bfloat16 depend on nothing but the window") {
  Problem p{{37, 29}, 70, 40, 1, 1};
  SUBCASE("single pixels") {}
  SUBCASE("windows") {
    p.edge = 3, p.stride = 2;
  }
  test::Rng rng(3);
  const OwnMap in(p.size, p.in, 1);
  const Tensor<float> weight = rng.tensor({p.out, p.in, p.edge, p.edge});
  for (const kernels::KernelTable* table : kernels::available_kernels()) {
    CAPTURE(table->name);
    const Convolution convolution(weight, {}, p.stride, *table, *table->bfloat16->linear);
    const MapSize size = convolution.out_size(p.size);
    const OwnMap one(size, p.out, 2), seven(size, p.out, 2), rows(size, p.out, 2);
    Tensor<float> scratch = scratch_of(convolution, 7);
    convolution.forward(in.map, one.map, 1, scratch);
    convolution.forward(in.map, seven.map, 7, scratch);
    for (std::size_t y = 0; y < size.height; ++y) {  // the rows around one are its border
      const auto from = static_cast<std::ptrdiff_t>(y * p.stride), to = static_cast<std::ptrdiff_t>(y);
      convolution.forward_in_thread(
          FeatureMap(in.map.row(from), {1, p.size.width}, p.in, in.map.row_stride(), true),
          FeatureMap(rows.map.row(to), {1, size.width}, p.out, rows.map.row_stride(), true), scratch.data());
    }
    CHECK(std::ranges::equal(one.memory.flat(), seven.memory.flat()));
    CHECK(std::ranges::equal(one.memory.flat(), rows.memory.flat()));
  }
}

TEST_CASE("transposed convolution: every pixel becomes a square") {
  for (const kernels::KernelTable* table : kernels::available_kernels()) {
    for (const std::size_t edge : {2u, 4u}) {
      for (const Products& products : {float_products(*table), bfloat16_products(*table)}) {
        CAPTURE(table->name);
        CAPTURE(edge);
        CAPTURE(products.kernels->description);
        test::Rng rng(5);
        const OwnMap in({2, 270}, 11, 1);
        const Tensor<float> weight = rng.tensor({11, 7, edge, edge});
        const std::vector<float> bias = rng.numbers(7);
        const TransposedConvolution convolution(weight, bias, *products.kernels);
        const OwnMap out(convolution.out_size({2, 270}), 7, 2);
        Tensor<float> scratch(Shape{2, std::max<std::size_t>(convolution.scratch_floats(), 1)});
        convolution.forward(in.map, out.map, 2, scratch);
        for (std::size_t y = 0; y < 2 * edge; ++y) {
          for (std::size_t x = 0; x < 270 * edge; ++x) {
            for (std::size_t o = 0; o < 7; ++o) {
              double sum = bias[o], magnitude = std::abs(bias[o]);
              for (std::size_t c = 0; c < 11; ++c) {
                const double term = static_cast<double>(in.at(y / edge, x / edge, c)) *
                                    weight.data()[((c * 7 + o) * edge + y % edge) * edge + x % edge];
                sum += term;
                magnitude += std::abs(term);
              }
              REQUIRE(std::abs(out.at(y, x, o) - sum) <=
                      test::dot_bound(test::gemm_chain(11) + 1, magnitude) + products.rounding * magnitude);
            }
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

TEST_CASE("convolution: weights, maps and epilogues that do not fit are Errors") {
  const kernels::KernelTable& kernels = kernels::default_kernels();
  const Tensor<float> five(Shape{4, 3, 5, 5}), three(Shape{4, 3, 3, 3}), single(Shape{4, 3, 1, 1});
  CHECK_THROWS_AS(Convolution(five, {}, 1, kernels), Error);
  const std::vector<float> bias(3);
  CHECK_THROWS_AS(Convolution(three, bias, 1, kernels), Error);
  const Convolution convolution(three, {}, 1, kernels), product(single, {}, 1, kernels);
  Tensor<float> scratch = scratch_of(convolution, 1);
  const OwnMap in({4, 4}, 3, 1), narrow({4, 3}, 4, 1), out({4, 4}, 4, 1);
  CHECK_THROWS_AS(convolution.forward(in.map, narrow.map, 1, scratch), Error);
  CHECK_THROWS_AS(convolution.forward(narrow.map, out.map, 1, scratch), Error);
  if (convolution.scratch_floats() > 0)  // not the reference
    CHECK_THROWS_AS(convolution.forward(in.map, out.map, 1, {}), Error);
  CHECK_THROWS_AS(convolution.forward(in.map, out.map, 1, scratch, {.activation = Activation::gelu}), Error);
  CHECK_THROWS_AS(product.forward(in.map, out.map, 1, {}, {.in_relu = true}), Error);
  const Convolution rounded(single, {}, 1, kernels, *kernels.bfloat16->linear);
  const TransposedConvolution square(Tensor<float>(Shape{3, 4, 1, 1}).view(), {}, *kernels.bfloat16->linear);
  CHECK((rounded.scratch_floats() == 0) == (kernels.bfloat16->linear->convert_rows == nullptr));
  if (rounded.scratch_floats() > 0) {
    CHECK_THROWS_AS(rounded.forward(in.map, out.map, 1, {}), Error);
    CHECK_THROWS_AS(square.forward(in.map, out.map, 1, {}), Error);
  }
  convolution.forward(in.map, out.map, 1, scratch);
}

}  // namespace vit::internal
