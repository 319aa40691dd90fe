// Linear: a part of its outputs has the bits of the whole, whatever the precision and the kernels.
#include "vit/layers/linear.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/rng.h"
#include "vit/base/error.h"

namespace vit::internal {
namespace {

constexpr std::size_t kRows = 13, kInputs = 197, kOutputs = 91;

constexpr Precision kPrecisions[]{Precision::float32, Precision::bfloat16, Precision::int8};

/// Activations for kRows inputs of any precision.
struct Memory {
  explicit Memory(const kernels::Arithmetic& arithmetic) {
    activations.reserve({.num_tokens = kRows, .embed_dim = kInputs, .attention_dim = kInputs}, arithmetic);
  }
  Pass pass(int threads = 2) { return {.activations = activations, .threads = threads}; }
  Activations activations;
};

/// Only threads.
struct NoMemory {
  Pass pass() { return {.activations = activations}; }
  Activations activations;
};

const kernels::LinearKernels& float32() {
  return *kernels::default_kernels().float32->linear;
}

TEST_CASE("layers: a range of outputs has the bits of the whole product and does not write the others") {
  test::Rng rng(3);
  const Tensor<float> weight = rng.tensor({kOutputs, kInputs}), in = rng.tensor({kRows, kInputs});
  const std::vector<float> bias = rng.numbers(kOutputs);
  for (const kernels::KernelTable* table : kernels::available_kernels()) {
    for (const Precision precision : kPrecisions) {
      const kernels::Arithmetic& arithmetic = arithmetic_of(*table, precision);
      Memory memory(arithmetic);
      CAPTURE(std::string(table->name));
      CAPTURE(std::string(to_string(precision)));
      const Linear linear(weight.view(), bias, *arithmetic.linear);
      Tensor<float> whole(Shape{kRows, kOutputs});
      linear.forward(in, whole, memory.pass());
      const LinearInput rows = linear.convert(in, memory.pass());
      for (const OutputRange range : {OutputRange{0, kOutputs}, OutputRange{0, 30}, OutputRange{30, kOutputs},
                                      OutputRange{33, 34}, OutputRange{7, 7}}) {
        Tensor<float> part(Shape{kRows, kOutputs});
        constexpr float kUntouched = 12345.0f;
        std::ranges::fill(part.flat(), kUntouched);
        linear.multiply_range(rows, part, range, memory.pass());
        const std::size_t panel = arithmetic.linear->panel_columns;
        for (std::size_t i = 0; i < part.num_elements(); ++i) {
          const std::size_t column = i % kOutputs;
          const bool wanted = range.begin <= column && column < range.end;
          const bool in_panels = range.begin / panel * panel <= column && column < range.end + panel - 1;
          if (wanted) {
            CHECK(part.data()[i] == whole.data()[i]);
          } else if (!in_panels || range.begin == range.end) {
            CHECK(part.data()[i] == kUntouched);
          }
        }
      }
    }
  }
}

TEST_CASE("layers: rows normed on the way have the bits of rows normed before") {
  test::Rng rng(5);
  const Tensor<float> weight = rng.tensor({kOutputs, kInputs}), in = rng.tensor({kRows, kInputs});
  const std::vector<float> gamma = rng.numbers(kInputs), beta = rng.numbers(kInputs);
  for (const kernels::KernelTable* table : kernels::available_kernels()) {
    const LayerNorm norm(gamma, beta, 1e-6f, *table);
    for (const Precision precision : kPrecisions) {
      const kernels::Arithmetic& arithmetic = arithmetic_of(*table, precision);
      Memory memory(arithmetic);
      CAPTURE(std::string(table->name));
      CAPTURE(std::string(to_string(precision)));
      const Linear linear(weight.view(), {}, *arithmetic.linear);
      Tensor<float> normed(Shape{kRows, kInputs}), expected(Shape{kRows, kOutputs});
      norm.forward(in.view(), normed.view(), 1);
      linear.forward(normed, expected, memory.pass(1));
      Tensor<float> rows(Shape{kRows, kInputs}), out(Shape{kRows, kOutputs});
      std::ranges::copy(in.flat(), rows.data());
      const LinearInput converted = linear.convert({norm, rows.view()}, rows, memory.pass());
      linear.multiply(converted, out, memory.pass());
      CHECK(std::ranges::equal(rows.flat(), normed.flat()));
      CHECK(std::ranges::equal(out.flat(), expected.flat()));
    }
  }
}

TEST_CASE("layers: rows of another width than the weight takes are refused") {
  test::Rng rng(6);
  const Tensor<float> weight = rng.tensor({5, 4}), in = rng.tensor({2, 3});
  Tensor<float> normed(Shape{2, 3});
  const Linear linear(weight, {}, float32());
  const LayerNorm narrow(rng.numbers(3), rng.numbers(3), 1e-6f),
      fitting(rng.numbers(4), rng.numbers(4), 1e-6f);
  NoMemory none;
  CHECK_THROWS_AS(linear.convert(in, none.pass()), Error);
  CHECK_THROWS_AS(linear.convert({narrow, in}, normed, none.pass()), Error);
  Tensor<float> wide(Shape{2, 4});
  CHECK_THROWS_AS(linear.convert({fitting, in}, wide, none.pass()), Error);
  CHECK_THROWS_AS(linear.multiply({.rows = in}, wide, none.pass()), Error);
}

TEST_CASE("layers: rows without memory to convert them are refused") {
  test::Rng rng(7);
  const Tensor<float> weight = rng.tensor({5, 4}), in = rng.tensor({2, 4});
  Tensor<float> out(Shape{2, 5});
  NoMemory none;
  for (const kernels::KernelTable* table : kernels::available_kernels()) {
    for (const Precision precision : kPrecisions) {
      CAPTURE(std::string(table->name));
      CAPTURE(std::string(to_string(precision)));
      const kernels::LinearKernels& kernels = *arithmetic_of(*table, precision).linear;
      const Linear linear(weight, {}, kernels);
      if (kernels.convert_rows == nullptr) {
        linear.multiply({.rows = in}, out, none.pass());
      } else {
        CHECK_THROWS_AS(linear.convert(in, none.pass()), Error);
        CHECK_THROWS_AS(linear.multiply({.rows = in}, out, none.pass()), Error);
      }
    }
  }
}

TEST_CASE(
    "layers: a product with outlier columns has the same bits for any rows, range and number of threads") {
  test::Rng rng(8);
  const Tensor<float> weight = rng.tensor({kOutputs, kInputs});
  Tensor<float> in = rng.tensor({kRows, kInputs});
  const std::vector<std::uint32_t> outliers{3, 194};
  for (std::size_t row = 0; row < kRows; ++row) {
    for (const std::uint32_t k : outliers) in.view().row(row)[k] *= 300.0f;
  }
  const LayerNorm norm(rng.numbers(kInputs), rng.numbers(kInputs), 1e-6f);
  for (const kernels::KernelTable* table : kernels::available_kernels()) {
    CAPTURE(std::string(table->name));
    const kernels::Arithmetic& arithmetic = arithmetic_of(*table, Precision::int8);
    Memory memory(arithmetic);
    const Linear plain(weight.view(), {}, *arithmetic.linear),
        linear(weight.view(), {}, *arithmetic.linear, outliers);
    Tensor<float> whole(Shape{kRows, kOutputs}), again(Shape{kRows, kOutputs});
    linear.forward(in, whole, memory.pass(1));
    const LinearInput rows = linear.convert(in, memory.pass());
    linear.multiply_range(rows, again, {0, 40}, memory.pass());
    linear.multiply_range(rows, again, {40, kOutputs}, memory.pass());
    CHECK(std::ranges::equal(again.flat(), whole.flat()));
    for (std::size_t row = 0; row < kRows; ++row) {
      const TensorView<float> one(again.view().row(row), Shape{1, kOutputs});
      linear.forward(in.view().part(row, 1), one, memory.pass(1));
    }
    CHECK(std::ranges::equal(again.flat(), whole.flat()));
    Tensor<float> normed(Shape{kRows, kInputs}), expected(Shape{kRows, kOutputs});
    norm.forward(in, normed, 1);
    linear.forward(normed, expected, memory.pass());
    linear.multiply(linear.convert({norm, in}, normed, memory.pass()), again, memory.pass());
    CHECK(std::ranges::equal(again.flat(), expected.flat()));
    CHECK_THROWS_AS(plain.multiply(linear.convert(in, memory.pass()), again, memory.pass()), Error);
    CHECK_THROWS_AS(linear.multiply(plain.convert(in, memory.pass()), again, memory.pass()), Error);
  }
}

TEST_CASE(
    "layers: outlier columns that a weight does not have, or that its kernels cannot add, are refused") {
  test::Rng rng(9);
  Tensor<float> weight = rng.tensor({5, 4});
  const kernels::KernelTable& table = kernels::default_kernels();
  const kernels::LinearKernels& int8 = *arithmetic_of(table, Precision::int8).linear;
  const auto build = [&](std::vector<std::uint32_t> outliers, const kernels::LinearKernels& kernels) {
    Linear(weight.view(), {}, kernels, outliers);
  };
  build({0, 3}, int8);
  CHECK_THROWS_AS(build({4}, int8), Error);
  CHECK_THROWS_AS(build({1, 1}, int8), Error);
  CHECK_THROWS_AS(build({2, 1}, int8), Error);
  CHECK_THROWS_AS(build({1}, float32()), Error);
  weight.data()[1] = std::numeric_limits<float>::infinity();
  CHECK_THROWS_AS(build({1}, int8), Error);
}

TEST_CASE("layers: a range outside of the outputs is refused") {
  test::Rng rng(4);
  const Tensor<float> weight = rng.tensor({5, 4}), in = rng.tensor({2, 4});
  Tensor<float> out(Shape{2, 5});
  const Linear linear(weight, {}, float32());
  NoMemory none;
  const LinearInput rows = linear.convert(in, none.pass());
  CHECK_THROWS_AS(linear.multiply_range(rows, out, {2, 6}, none.pass()), Error);
  CHECK_THROWS_AS(linear.multiply_range(rows, out, {3, 2}, none.pass()), Error);
}

}  // namespace
}  // namespace vit::internal
