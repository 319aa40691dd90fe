// The segments of the C interface are those of the C++ interface, bit for bit.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tests/support/c_handles.h"
#include "tests/support/shared_data.h"
#include "vit/c.h"
#include "vit/dense.h"

TEST_SUITE_BEGIN("dense");

namespace vit {
using namespace test;

TEST_CASE("c: segments of all tasks") {
  const std::string path = test::data_path("golden/dense/hf-eomt").string();
  const ModelHandle model = load(path);
  const SessionHandle session = session_of(model);
  const ResultsHandle results = make_results();
  const auto loaded = Model::load(path);
  const std::size_t stuff[] = {0, 1};
  for (const SegmentTask task : {SegmentTask::semantic, SegmentTask::instance, SegmentTask::panoptic}) {
    CAPTURE(static_cast<int>(task));
    vit_segment_options options{};
    options.struct_size = sizeof options;
    options.task = static_cast<std::int32_t>(task) + VIT_SEGMENT_SEMANTIC;
    options.threshold = 0.05;
    options.overlap = 0.1;
    options.stuff = stuff;
    options.num_stuff = 2;
    const Segmenter segmenter(loaded, {.task = task, .threshold = 0.05, .overlap = 0.1, .stuff = {0, 1}});
    REQUIRE(vit_session_segment(session.get(), inputs().data(), 2, &options, results.get()) == VIT_OK);
    for (std::size_t i = 0; i < 2; ++i) {
      const SegmentMap expected = segmenter.segment(std::filesystem::path(images()[i]));
      const auto numbers = [&](std::uint32_t name) {
        vit_array array{};
        REQUIRE(vit_results_one(results.get(), i, name, 0, &array) == VIT_OK);
        REQUIRE(array.dtype == VIT_INT32);
        return std::span(static_cast<const std::int32_t*>(array.data),
                         array.ndim == 2 ? array.shape[0] * array.shape[1] : array.shape[0]);
      };
      CHECK(std::ranges::equal(numbers(VIT_SEGMENTATION), expected.map.flat()));
      REQUIRE(numbers(VIT_SEGMENT_IDS).size() == expected.segments.size());
      CHECK(!expected.segments.empty());
      const std::span<const float> scores = one(results, i, VIT_SCORES);
      for (std::size_t k = 0; k < expected.segments.size(); ++k) {
        const Segment& segment = expected.segments[k];
        CHECK(numbers(VIT_SEGMENT_IDS)[k] == segment.id);
        CHECK(numbers(VIT_CLASSES)[k] == static_cast<std::int32_t>(segment.index));
        CHECK(numbers(VIT_AREAS)[k] == static_cast<std::int32_t>(segment.area));
        CHECK((segment.score ? scores[k] == *segment.score : std::isnan(scores[k])));
      }
    }
  }
}

}  // namespace vit
