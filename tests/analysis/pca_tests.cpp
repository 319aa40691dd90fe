// Principal components against scikit-learn's, and their independence of how the rows come.
#include "vit/analysis/features.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/fixture_tensors.h"
#include "tests/support/rng.h"
#include "tests/support/shared_data.h"
#include "vit/session.h"

namespace vit {
namespace {

void check_near(std::span<const float> found, const std::vector<double>& expected, double allowed) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    CHECK(std::abs(static_cast<double>(found[i]) - expected[i]) <= allowed);
}

Tensor<float> random_rows(std::size_t rows, std::size_t columns, unsigned seed) {
  Tensor<float> out(Shape{rows, columns});
  test::Rng rng(seed);
  // components of clearly different variance, far from zero, where raw sums of squares would cancel
  for (std::size_t i = 0; i < out.num_elements(); ++i)
    out.data()[i] = 1000.0f + static_cast<float>(1 + i % columns) * rng.normal();
  return out;
}

}  // namespace

TEST_CASE("pca: components of patches equal scikit-learn's with the largest loading positive") {
  for (const std::string name : {"timm-vit", "rope-axial", "timm-eva02", "hf-dinov3", "hf-siglip"}) {
    CAPTURE(name);
    const std::string folder = "golden/models/" + name;
    const test::FixtureTensors expected(test::data_path("golden/attention/" + name + ".safetensors"));
    const Tensor<float> pixels =
        test::FixtureTensors(test::data_path(folder + "/expected.safetensors")).floats("native.pixels");
    Session session(Model::load(test::data_path(folder)));
    Outputs outputs;
    session.forward(pixels, {Output::tokens}, outputs);
    PcaAccumulator accumulator;
    accumulator.add(outputs[0].patches());
    accumulator.add(outputs[1].patches());
    CHECK(accumulator.num_rows() == 18);
    const PrincipalComponents pca = accumulator.fit(3);
    check_near(pca.mean.flat(), expected.doubles("pca.mean"), 1e-5);
    check_near(pca.components.flat(), expected.doubles("pca.components"), 1e-4);
    const std::vector<double> values = expected.doubles("pca.values");
    for (std::size_t image = 0; image < 2; ++image) {
      const std::vector<double> part(values.begin() + static_cast<std::ptrdiff_t>(image * 27),
                                     values.begin() + static_cast<std::ptrdiff_t>(image * 27 + 27));
      check_near(pca.transform(outputs[image].patches()).flat(), part, 1e-4);
    }
  }
}

TEST_CASE("pca: rows may come in any parts") {
  const Tensor<float> rows = random_rows(50, 7, 1);
  PcaAccumulator whole, parts;
  whole.add(rows);
  for (std::size_t first = 0; first < 50; first += 10) parts.add(rows.view().part(first, 10));
  const PrincipalComponents a = whole.fit(7), b = parts.fit(7);
  for (std::size_t i = 0; i < 49; ++i)
    CHECK(a.components.flat()[i] == doctest::Approx(b.components.flat()[i]).epsilon(1e-5));
  double total = 0, direct = 0;
  for (const double variance : a.variances) total += variance;
  for (std::size_t c = 0; c < 7; ++c) {
    double mean = 0, square = 0;
    for (std::size_t r = 0; r < 50; ++r) mean += static_cast<double>(rows.view().row(r)[c]) / 50;
    for (std::size_t r = 0; r < 50; ++r)
      square += std::pow(static_cast<double>(rows.view().row(r)[c]) - mean, 2);
    direct += square / 49;
  }
  CHECK(total == doctest::Approx(direct));
}

TEST_CASE("pca: widths that differ and too many components are errors") {
  PcaAccumulator accumulator;
  CHECK_ERROR(ErrorKind::argument, ("1 components requested of 0 rows"), accumulator.fit(1));
  accumulator.add(random_rows(2, 7, 1));
  CHECK_ERROR(ErrorKind::argument, ("rows of 6 features, those before have 7"),
              accumulator.add(random_rows(2, 6, 1)));
  CHECK_ERROR(ErrorKind::argument, ("3 components requested of 2 rows with 7 features"), accumulator.fit(3));
  CHECK_ERROR(ErrorKind::argument, ("for components of 7 features"),
              accumulator.fit(2).transform(random_rows(2, 6, 1)));
}

}  // namespace vit
