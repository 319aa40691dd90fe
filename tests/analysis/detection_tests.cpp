// AUROC and per-region overlap against scikit-learn and the definition in numpy (scipy.ndimage.label with 8
// neighbors).
#include "vit/analysis/detection.h"

#include <doctest/doctest.h>

#include <limits>
#include <vector>

#include "tests/support/errors.h"

namespace vit {
namespace {

struct Masked {
  Tensor<float> map{Shape{12, 17}};
  Tensor<std::uint8_t> mask{Shape{12, 17}};
};

/// Map k of three, in scores that are often equal; masks 1 and 2 have two regions each.
Masked make_map(std::size_t k) {
  Masked out;
  const auto mark = [&](std::size_t top, std::size_t bottom, std::size_t left, std::size_t right) {
    for (std::size_t y = top; y < bottom; ++y) {
      for (std::size_t x = left; x < right; ++x) out.mask.data()[17 * y + x] = 255;
    }
  };
  if (k == 1)
    mark(2, 5, 3, 7), mark(5, 6, 7, 8), mark(8, 11, 12, 16);  // the second touches the first's corner
  if (k == 2) mark(0, 2, 15, 17), mark(11, 12, 0, 1);
  for (std::size_t y = 0; y < 12; ++y) {
    for (std::size_t x = 0; x < 17; ++x) {
      const double value = static_cast<double>((31 * y + 17 * x + 7 * k) % 29) / 16;
      out.map.data()[17 * y + x] = static_cast<float>(value + (out.mask.data()[17 * y + x] != 0 ? 0.6 : 0.0));
    }
  }
  return out;
}

PixelScores three_maps() {
  PixelScores pixels;
  for (std::size_t k = 0; k < 3; ++k) {
    const Masked masked = make_map(k);
    pixels.add(masked.map, k == 0 ? TensorView<const std::uint8_t>() : masked.mask);
  }
  return pixels;
}

}  // namespace

TEST_CASE("detection: roc_auc is scikit-learn's, ties included") {
  std::vector<float> scores;
  std::vector<std::uint8_t> labels;
  for (std::size_t i = 0; i < 60; ++i) {
    scores.push_back(static_cast<float>((i * 37) % 23) / 8);
    labels.push_back((i * i + i / 3) % 5 < 2);
  }
  CHECK(roc_auc(scores, labels) == doctest::Approx(0.41629464285714285).epsilon(1e-14));
  CHECK_ERROR(ErrorKind::argument, ("good"), roc_auc(scores, std::vector<std::uint8_t>(60, 1)));
  CHECK_ERROR(ErrorKind::argument, ("59"), roc_auc(scores, std::vector<std::uint8_t>(59)));
  scores[3] = std::numeric_limits<float>::quiet_NaN();
  CHECK_ERROR(ErrorKind::argument, ("score 3"), roc_auc(scores, labels));
}

TEST_CASE("detection: pixels and regions are those of numpy") {
  PixelScores pixels = three_maps();
  CHECK(pixels.num_pixels() == 3 * 12 * 17);
  CHECK(pixels.num_regions() == 4);
  CHECK(pixels.roc_auc() == doctest::Approx(0.7939289805269186).epsilon(1e-14));
  CHECK(pixels.per_region_overlap(0.3) == doctest::Approx(0.396552926836432).epsilon(1e-13));
  CHECK(pixels.per_region_overlap(0.05) == doctest::Approx(0.34455128205128205).epsilon(1e-13));
  CHECK_ERROR(ErrorKind::argument, ("1.5"), pixels.per_region_overlap(1.5));
}

TEST_CASE("detection: masks of another size and maps that are not finite are refused") {
  PixelScores pixels;
  Masked masked = make_map(1);
  CHECK_ERROR(ErrorKind::argument, ("(12, 17)", "(3, 3)"),
              pixels.add(masked.map, Tensor<std::uint8_t>(Shape{3, 3})));
  masked.map.data()[7] = std::numeric_limits<float>::infinity();
  CHECK_ERROR(ErrorKind::argument, ("finite"), pixels.add(masked.map, masked.mask));
  CHECK_ERROR(ErrorKind::argument, ("good"), pixels.roc_auc());
}

}  // namespace vit
