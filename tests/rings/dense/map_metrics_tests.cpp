// Measures of maps of depth and of segments, compared with numpy's (tests/golden/make_map_metrics_golden.py)
// and on maps whose measures are seen at once.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/shared_data.h"
#include "vit/io/safetensors.h"
#include "vit/rings/dense/map_metrics.h"

TEST_SUITE_BEGIN("dense");

namespace vit {
using namespace internal;
namespace {

Tensor<std::int32_t> integers(const TensorFile& file, const std::string& name) {
  const TensorEntry& entry = file.at(name);
  Tensor<std::int32_t> out(Shape{entry.shape[0], entry.shape[1]});
  entry.bytes.read(0, std::as_writable_bytes(out.flat()));
  return out;
}

Tensor<std::int32_t> map_of(std::size_t width, const std::vector<std::int32_t>& ids) {
  Tensor<std::int32_t> out(Shape{ids.size() / width, width});
  std::ranges::copy(ids, out.data());
  return out;
}

/// Rows (id, class, crowd).
std::vector<PanopticSegment> segments_of(const TensorFile& file, const std::string& name) {
  const Tensor<std::int32_t> rows = integers(file, name);
  std::vector<PanopticSegment> out;
  for (std::size_t i = 0; i < rows.dim(0); ++i) {
    const std::int32_t* const row = rows.view().row(i);
    out.push_back({.id = row[0], .index = static_cast<std::size_t>(row[1]), .is_crowd = row[2] != 0});
  }
  return out;
}

}  // namespace

TEST_CASE("map metrics: depth, classes and panoptic quality as numpy computes them") {
  const TensorFile file = open_safetensors(test::data_path("golden/dense/metrics.safetensors"));
  const Tensor<float> depth = to_float(file.at("depth")), truth = to_float(file.at("truth"));
  const std::vector<double> expected = to_double(file.at("depth_measures"));
  for (std::size_t i = 0; i < 4; ++i) {
    const auto found = measure_depth(depth, truth, static_cast<DepthAlignment>(i), 0.5f, 8.0f);
    REQUIRE(found);
    CAPTURE(i);
    CHECK(found->abs_rel == doctest::Approx(expected[3 * i]).epsilon(1e-9));
    CHECK(found->delta1 == doctest::Approx(expected[3 * i + 1]).epsilon(1e-9));
    CHECK(found->rmse == doctest::Approx(expected[3 * i + 2]).epsilon(1e-9));
  }
  ClassScores classes(5);
  PanopticScores panoptic(5);
  for (const char* const image : {"0.", "1."}) {
    const std::string prefix = image;
    classes.add(integers(file, prefix + "classes"), integers(file, prefix + "classes_truth"));
    panoptic.add(integers(file, prefix + "ids"), segments_of(file, prefix + "segments"),
                 integers(file, prefix + "ids_truth"), segments_of(file, prefix + "segments_truth"));
  }
  const std::vector<double> scores = to_double(file.at("class_measures"));
  CHECK(classes.mean_iou() == doctest::Approx(scores[0]).epsilon(1e-12));
  CHECK(classes.accuracy() == doctest::Approx(scores[1]).epsilon(1e-12));
  const PanopticScores::Quality quality = panoptic.mean();
  CHECK(quality.quality == doctest::Approx(scores[2]).epsilon(1e-12));
  CHECK(quality.segmentation == doctest::Approx(scores[3]).epsilon(1e-12));
  CHECK(quality.recognition == doctest::Approx(scores[4]).epsilon(1e-12));
}

TEST_CASE("map metrics: the truth itself is perfect, also after a change of scale that is fitted") {
  Tensor<float> truth(Shape{2, 3}), inverse(Shape{2, 3});
  for (std::size_t i = 0; i < 6; ++i) {
    truth.data()[i] = 1.0f + static_cast<float>(i);
    inverse.data()[i] = 40.0f / truth.data()[i] + 3.0f;
  }
  for (const auto& [map, alignment] :
       {std::pair(&truth, DepthAlignment::none), std::pair(&truth, DepthAlignment::median),
        std::pair(&inverse, DepthAlignment::inverse)}) {
    const auto found = measure_depth(*map, truth, alignment, 0.1f, 100.0f);
    REQUIRE(found);
    CHECK(found->abs_rel < 1e-5);
    CHECK(found->delta1 == doctest::Approx(1.0));
    CHECK(found->pixels == 6);
  }
  truth.data()[0] = 0.0f;
  truth.data()[1] = NAN;
  CHECK(measure_depth(inverse, truth, DepthAlignment::none, 0.1f, 100.0f)->pixels == 4);
  CHECK(!measure_depth(inverse, truth, DepthAlignment::none, 50.0f, 100.0f));
}

TEST_CASE("map metrics: pixels without a truth, crowds and segments that no list has") {
  const std::vector<PanopticSegment> one{{.id = 0, .index = 1}};
  PanopticScores scores(2);
  SUBCASE("what lies where nothing is known does not count") {
    scores.add(map_of(4, {0, 0, 0, -1}), one, map_of(4, {-1, -1, -1, -1}), {});
    CHECK(scores.mean().classes == 0);
  }
  SUBCASE("nor what lies in a crowd") {
    const std::vector<PanopticSegment> crowd{{.id = 7, .index = 1, .is_crowd = true}};
    scores.add(map_of(4, {0, 0, -1, -1}), one, map_of(4, {7, 7, 7, 7}), crowd);
    CHECK(scores.mean().classes == 0);
  }
  SUBCASE("an image with a segment that no list has counts as nothing") {
    const std::vector<PanopticSegment> same{{.id = 3, .index = 1}};
    CHECK_THROWS_AS(scores.add(map_of(4, {0, 0, 0, 9}), one, map_of(4, {3, 3, 3, 3}), same), Error);
    CHECK(scores.mean().classes == 0);
  }
  SUBCASE("half of a segment is not enough") {
    scores.add(map_of(4, {0, 0, -1, -1}), one, map_of(4, {3, 3, 3, 3}),
               std::vector<PanopticSegment>{{.id = 3, .index = 1}});
    CHECK(scores.mean().quality == 0.0);
    CHECK(scores.mean().classes == 1);
  }
  SUBCASE("an id that no segment has") {
    CHECK_THROWS_AS(scores.add(map_of(2, {0, 5}), one, map_of(2, {0, 0}), one), Error);
  }
  SUBCASE("maps of different sizes") {
    CHECK_THROWS_AS(scores.add(map_of(2, {0, 0}), one, map_of(1, {0, 0}), one), Error);
    CHECK_THROWS_AS(ClassScores(2).add(map_of(2, {0, 0}), map_of(1, {0, 0})), Error);
  }
  SUBCASE("a class beyond those of the model") {
    const std::vector<PanopticSegment> far{{.id = 0, .index = 2}};
    CHECK_THROWS_AS(scores.add(map_of(2, {0, 0}), far, map_of(2, {0, 0}), one), Error);
  }
}

}  // namespace vit
