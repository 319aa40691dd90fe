// The matrix product of every table against the reference, on sizes that leave every kind of remainder.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "tests/support/rng.h"
#include "tests/support/tolerance.h"
#include "vit/base/checked.h"
#include "vit/kernels/pack.h"

namespace vit::internal::kernels {
namespace {

struct Problem {
  std::size_t rows, out_features, in_features;
};

/// Inputs with gaps between rows, and all that an epilogue can ask for.
struct Case {
  explicit Case(Problem p, std::uint64_t seed = 1)
      : size(p), in_stride(p.in_features + 3), out_stride(p.out_features + 5) {
    test::Rng rng(seed);
    in = rng.numbers(p.rows * in_stride);
    weight = rng.tensor({p.out_features, p.in_features});
    bias = rng.numbers(p.out_features);
    scale = rng.numbers(p.out_features);
    multiplier = rng.numbers(p.rows * out_stride);
    residual = rng.numbers(p.rows * out_stride);
  }

  GemmArgs args(const PackedMatrix& packed, std::vector<float>& out) const {
    return {.in = reinterpret_cast<const std::byte*>(in.data()),
            .in_step = in_stride * sizeof(float),
            .rows = size.rows,
            .packed = packed.data(),
            .in_features = size.in_features,
            .column_begin = 0,
            .column_end = size.out_features,
            .out = out.data(),
            .out_stride = out_stride};
  }

  /// Bound on the error of element (m, n) before the epilogue.
  double bound(std::size_t m, std::size_t n) const {
    double sum = std::fabs(bias[n]);
    for (std::size_t k = 0; k < size.in_features; ++k) {
      sum += std::fabs(static_cast<double>(in[m * in_stride + k]) * weight.data()[n * size.in_features + k]);
    }
    return test::dot_bound(test::gemm_chain(size.in_features) + 1, sum);
  }

  Problem size;
  std::size_t in_stride, out_stride;
  std::vector<float> in, bias, scale, multiplier, residual;
  Tensor<float> weight;
};

constexpr float kUntouched = 12345.0f;

void check_against_reference(const KernelTable& table, Problem size) {
  CAPTURE(table.name);
  CAPTURE(size.rows);
  CAPTURE(size.out_features);
  CAPTURE(size.in_features);
  const Case c(size);
  const PackedMatrix fast(c.weight, *table.float32->linear);
  const PackedMatrix naive(c.weight, *find_kernels("reference").float32->linear);
  std::vector<float> out(size.rows * c.out_stride, kUntouched);
  std::vector<float> expected = out;
  GemmArgs args = c.args(fast, out);
  args.epilogue.bias = c.bias.data();
  fast.kernels().gemm(args);
  GemmArgs reference_args = c.args(naive, expected);
  reference_args.epilogue.bias = c.bias.data();
  naive.kernels().gemm(reference_args);
  for (std::size_t m = 0; m < size.rows; ++m) {
    for (std::size_t n = 0; n < c.out_stride; ++n) {
      const std::size_t i = m * c.out_stride + n;
      if (n >= size.out_features) {
        REQUIRE(out[i] == kUntouched);
      } else {
        REQUIRE(std::fabs(out[i] - expected[i]) <= c.bound(m, n));
      }
    }
  }
}

void check_epilogues(const Case& c) {
  const PackedMatrix naive(c.weight, *find_kernels("reference").float32->linear);
  for (const KernelTable* table : available_kernels()) {
    const PackedMatrix fast(c.weight, *table->float32->linear);
    for (const Activation activation : {Activation::none, Activation::gelu, Activation::gelu_tanh,
                                        Activation::quick_gelu, Activation::silu, Activation::relu}) {
      for (unsigned terms = 0; terms < 16; ++terms) {
        CAPTURE(table->name);
        CAPTURE(to_string(activation));
        CAPTURE(terms);
        std::vector<float> out = c.residual;  // residual and multiplier may be the output
        std::vector<float> expected(out.size());
        GemmArgs args = c.args(fast, out);
        args.epilogue.activation = activation;
        if (terms & 1) args.epilogue.bias = c.bias.data();
        if (terms & 2) args.epilogue.multiplier = c.multiplier.data();
        args.epilogue.multiplier_stride = c.out_stride;
        if (terms & 4) args.epilogue.scale = c.scale.data();
        if (terms & 8) args.epilogue.residual = out.data();
        args.epilogue.residual_stride = c.out_stride;
        GemmArgs naive_args = args;
        naive_args.packed = naive.data();
        naive_args.out = expected.data();
        if (terms & 8) naive_args.epilogue.residual = c.residual.data();
        naive.kernels().gemm(naive_args);
        fast.kernels().gemm(args);
        for (std::size_t m = 0; m < c.size.rows; ++m) {
          for (std::size_t n = 0; n < c.size.out_features; ++n) {
            const std::size_t i = m * c.out_stride + n;
            // slopes of the activations stay below 1.13; the epilogue adds a few roundings
            const double bound = 1.13 * c.bound(m, n) + 8 * test::kRoundoff * (std::fabs(expected[i]) + 2.0);
            REQUIRE(std::fabs(out[i] - expected[i]) <= bound);
          }
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("kernels: gemm agrees with the reference on every remainder of rows, columns and k") {
  for (const KernelTable* table : available_kernels()) {
    for (const std::size_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 25}) {
      for (const std::size_t columns : {1, 7, 8, 9, 15, 16, 17, 31, 33, 70}) {
        for (const std::size_t k : {1, 2, 33}) check_against_reference(*table, {rows, columns, k});
      }
    }
    for (const std::size_t k : {255, 256, 257, 767, 768, 769, 2730})
      check_against_reference(*table, {7, 18, k});
    check_against_reference(*table, {3, 2730, 65});
    check_against_reference(*table, {3, 170, 192});
    check_against_reference(*table, {196, 48, 100});
    check_against_reference(*table, {241, 33, 300});  // more rows than one block
  }
}

// Whole tiles and panels and rests of them, one and two blocks of k.
TEST_CASE("kernels: gemm applies bias, activation, multiplier, scale and residual in this order") {
  for (const std::size_t k : {50, 770}) check_epilogues(Case({13, 37, k}));
}

TEST_CASE("kernels: gemm gives a row the same bits in every company") {
  const Case c({31, 75, 900});
  for (const KernelTable* table : available_kernels()) {
    CAPTURE(table->name);
    const PackedMatrix packed(c.weight, *table->float32->linear);
    std::vector<float> whole(c.size.rows * c.out_stride, kUntouched);
    GemmArgs args = c.args(packed, whole);
    for (const Epilogue& epilogue :
         {Epilogue{.bias = c.bias.data(), .activation = Activation::gelu, .scale = c.scale.data()},
          Epilogue{.bias = c.bias.data()},
          Epilogue{.multiplier = c.multiplier.data(), .multiplier_stride = c.out_stride},
          Epilogue{.residual = c.residual.data(), .residual_stride = c.out_stride},
          Epilogue{.bias = c.bias.data(),
          .scale = c.scale.data(),
          .residual = c.residual.data(),
          .residual_stride = c.out_stride}}) {
      args.epilogue = epilogue;
      packed.kernels().gemm(args);
      for (const std::size_t rows_at_once : {1, 2, 5, 7, 11}) {
        std::vector<float> parts(whole.size(), kUntouched);
        for (std::size_t row = 0; row < c.size.rows; row += rows_at_once) {
          for (std::size_t column = 0; column < c.size.out_features;
               column += packed.kernels().panel_columns) {
            GemmArgs part = args;
            part.in += row * part.in_step;
            part.out = parts.data() + row * c.out_stride;
            if (epilogue.multiplier) part.epilogue.multiplier += row * c.out_stride;
            if (epilogue.residual) part.epilogue.residual += row * c.out_stride;
            part.rows = std::min(rows_at_once, c.size.rows - row);
            part.column_begin = column;
            part.column_end = std::min(column + packed.kernels().panel_columns, c.size.out_features);
            packed.kernels().gemm(part);
          }
        }
        CHECK(parts == whole);
      }
    }
  }
}

TEST_CASE("kernels: a packed matrix knows its shape and refuses an empty weight") {
  const Case c({1, 37, 50});
  for (const KernelTable* table : available_kernels()) {
    const PackedMatrix packed(c.weight, *table->float32->linear);
    CHECK(packed.out_features() == 37);
    CHECK(packed.in_features() == 50);
    CHECK(&packed.kernels() == table->float32->linear);
    CHECK(packed.bytes() == round_up(37, packed.kernels().panel_columns) * 50 * sizeof(float));
  }
  CHECK_THROWS_AS(
      PackedMatrix(TensorView<const float>(c.weight.data(), {0, 50}), *default_kernels().float32->linear),
      Error);
  CHECK_THROWS_AS(
      PackedMatrix(TensorView<const float>(c.weight.data(), {50}), *default_kernels().float32->linear),
      Error);
}

}  // namespace vit::internal::kernels
