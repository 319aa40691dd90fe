// Linear: a part of its outputs has the bits of the whole, whatever the dtype and the kernels.
#include "vit/layers/linear.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "tests/support/rng.h"
#include "vit/base/error.h"

namespace vit {
namespace {

constexpr std::size_t kRows = 13, kInputs = 197, kOutputs = 91;

/// Room for kRows quantised inputs of any dtype.
class Quantised {
 public:
  QuantisedMemory memory() { return {values_.view(), scales_.view()}; }

 private:
  Tensor<std::byte> values_{Shape{kRows * 8 * kInputs}};
  Tensor<kernels::InputScale> scales_{Shape{kRows * 8}};
};

TEST_CASE("layers: a range of outputs has the bits of the whole product and leaves the others alone") {
  test::Rng rng(3);
  const Tensor<float> weight = rng.tensor({kOutputs, kInputs}), in = rng.tensor({kRows, kInputs});
  const std::vector<float> bias = rng.numbers(kOutputs);
  Quantised quantised;
  for (const kernels::KernelTable* table : kernels::available_kernels()) {
    for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::i8}) {
      CAPTURE(table->name);
      CAPTURE(to_string(dtype));
      const Linear linear(weight.view(), bias, *table, dtype);
      Tensor<float> whole(Shape{kRows, kOutputs});
      linear.forward(in.view(), whole.view(), 2, {}, quantised.memory());
      const PreparedRows rows = linear.prepare(in.view(), 2, quantised.memory());
      for (const OutputRange range : {OutputRange{0, kOutputs}, OutputRange{0, 30}, OutputRange{30, kOutputs},
                                      OutputRange{33, 34}, OutputRange{7, 7}}) {
        Tensor<float> part(Shape{kRows, kOutputs});
        constexpr float kUntouched = 12345.0f;
        std::ranges::fill(part.flat(), kUntouched);
        linear.multiply_range(rows, part.view(), range, 2);
        const std::size_t panel = table->panel_columns;
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
  Quantised quantised;
  for (const kernels::KernelTable* table : kernels::available_kernels()) {
    const LayerNorm norm(gamma, beta, 1e-6f, *table);
    for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::i8}) {
      CAPTURE(table->name);
      CAPTURE(to_string(dtype));
      const Linear linear(weight.view(), {}, *table, dtype);
      Tensor<float> normed(Shape{kRows, kInputs}), expected(Shape{kRows, kOutputs});
      norm.forward(in.view(), normed.view(), 1);
      linear.forward(normed.view(), expected.view(), 1, {}, quantised.memory());
      Tensor<float> rows(Shape{kRows, kInputs}), out(Shape{kRows, kOutputs});
      std::ranges::copy(in.flat(), rows.data());
      const PreparedRows prepared =
          linear.prepare_normed(norm, rows.view(), rows.view(), 2, quantised.memory());
      linear.multiply(prepared, out.view(), 2);
      CHECK(std::ranges::equal(rows.flat(), normed.flat()));
      CHECK(std::ranges::equal(out.flat(), expected.flat()));
    }
  }
}

TEST_CASE("layers: rows of another width than the weight takes are refused") {
  test::Rng rng(6);
  const Tensor<float> weight = rng.tensor({5, 4}), in = rng.tensor({2, 3});
  Tensor<float> normed(Shape{2, 3});
  const Linear linear(weight.view(), {});
  const LayerNorm narrow(rng.numbers(3), rng.numbers(3), 1e-6f),
      fitting(rng.numbers(4), rng.numbers(4), 1e-6f);
  CHECK_THROWS_AS(linear.prepare(in.view(), 1), Error);
  CHECK_THROWS_AS(linear.prepare_normed(narrow, in.view(), normed.view(), 1), Error);
  Tensor<float> wide(Shape{2, 4});
  CHECK_THROWS_AS(linear.prepare_normed(fitting, in.view(), wide.view(), 1), Error);
  CHECK_THROWS_AS(linear.multiply({.rows = in.view()}, wide.view(), 1), Error);
}

TEST_CASE("layers: rows without memory for bfloat16 or int8 are refused") {
  test::Rng rng(7);
  const Tensor<float> weight = rng.tensor({5, 4}), in = rng.tensor({2, 4});
  Tensor<float> out(Shape{2, 5});
  for (const kernels::KernelTable* table : kernels::available_kernels()) {
    CAPTURE(table->name);
    const Linear whole(weight.view(), {}, *table, Dtype::i8);
    CHECK_THROWS_AS(whole.prepare(in.view(), 1), Error);
    CHECK_THROWS_AS(whole.multiply({.rows = in.view()}, out.view(), 1), Error);
    if (!table->bf16->round_rows) continue;
    const Linear rounded(weight.view(), {}, *table, Dtype::bf16);
    CHECK_THROWS_AS(rounded.prepare(in.view(), 1), Error);
    CHECK_THROWS_AS(rounded.multiply({.rows = in.view()}, out.view(), 1), Error);
  }
}

TEST_CASE("layers: a range outside of the outputs is refused") {
  test::Rng rng(4);
  const Tensor<float> weight = rng.tensor({5, 4}), in = rng.tensor({2, 4});
  Tensor<float> out(Shape{2, 5});
  const Linear linear(weight.view(), {});
  const PreparedRows rows = linear.prepare(in.view(), 1);
  CHECK_THROWS_AS(linear.multiply_range(rows, out.view(), {2, 6}, 1), Error);
  CHECK_THROWS_AS(linear.multiply_range(rows, out.view(), {3, 2}, 1), Error);
}

}  // namespace
}  // namespace vit
