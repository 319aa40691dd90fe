// Every reference model with a dense head, from prepared pixels and from images, compared with what its
// library gives. The models lie next to a developer's checkout; data/golden/dense holds small twins.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/numbers.h"
#include "tests/support/shared_data.h"
#include "vit/dense.h"
#include "vit/io/safetensors.h"

namespace vit {
using namespace internal;
namespace {

namespace fs = std::filesystem;

/// Difference that is allowed, of the largest value.
constexpr double kTolerance = 2e-5;

struct DenseCase {
  const char* folder;
  const char* weights;  // a file in it, "" = the folder itself
  ModelOptions options{};
  InputSize size{};
};

std::vector<DenseCase> depth_cases() {
  const InputSize small{.kind = InputSize::Kind::fixed, .height = 56, .width = 56};
  return {
      {"hf-depth-anything", ""},
      {"hf-depth-anything-metric", ""},
      {"orig-depth-anything-v2",
       "model.pth",
       {.overrides = {{"num_heads", "3"}}, .dense = {.taps = {0, 1, 3, 4}}},
       small},
  };
}

void check_near(TensorView<const float> found, const TensorFile& expected, const std::string& name) {
  CAPTURE(name);
  const TensorEntry* const entry = expected.find(name);
  REQUIRE(entry != nullptr);
  const std::vector<double> values = to_double(*entry);
  REQUIRE(found.num_elements() == values.size());
  double largest = 0.0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  CHECK(test::largest_difference(found.flat(), values) <= kTolerance * largest);
}

void check_depth_case(const DenseCase& c, const fs::path& folder, const fs::path& images) {
  CAPTURE(c.folder);
  const auto model = Model::load(*c.weights != '\0' ? folder / c.weights : folder, c.options);
  REQUIRE(model->dense_config() != nullptr);
  const TensorFile expected = open_safetensors(folder / "expected.safetensors");
  Session session(model, {.threads = 2});
  DepthEstimator estimator(model, {.threads = 2, .input_size = c.size});
  for (const char* const input : {"landscape", "portrait", "panorama"}) {
    CAPTURE(input);
    const std::string name(input);
    const Tensor<float> pixels = to_float(expected.at(name + ".pixels"));
    Outputs outputs;
    session.forward(pixels, {.dense = true}, outputs);
    check_near(outputs[0].depth(), expected, name + ".depth");
    check_near(estimator.estimate(images / (name + ".png")).depth, expected, name + ".depth_image");
  }
}

}  // namespace

TEST_CASE("dense fixtures: depth from pixels and from images") {
  SKIP_WITHOUT_SHARED("fixtures/dense");
  const fs::path root = test::shared_path("fixtures/dense");
  for (const DenseCase& c : depth_cases()) check_depth_case(c, root / c.folder, root / "images");
}

}  // namespace vit
