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
      for (const OutputRange range : {OutputRange{0, kOutputs}, OutputRange{0, 30}, OutputRange{30, kOutputs},
                                      OutputRange{33, 34}, OutputRange{7, 7}}) {
        Tensor<float> part(Shape{kRows, kOutputs});
        constexpr float kUntouched = 12345.0f;
        std::ranges::fill(part.flat(), kUntouched);
        linear.forward_range(in.view(), part.view(), range, 2, {}, quantised.memory());
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

TEST_CASE("layers: a range outside of the outputs is refused") {
  test::Rng rng(4);
  const Tensor<float> weight = rng.tensor({5, 4}), in = rng.tensor({2, 4});
  Tensor<float> out(Shape{2, 5});
  const Linear linear(weight.view(), {});
  CHECK_THROWS_AS(linear.forward_range(in.view(), out.view(), {2, 6}, 1), Error);
  CHECK_THROWS_AS(linear.forward_range(in.view(), out.view(), {3, 2}, 1), Error);
}

}  // namespace
}  // namespace vit
