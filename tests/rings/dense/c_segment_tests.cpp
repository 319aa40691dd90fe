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

#include "tests/support/shared_data.h"
#include "vit/c.h"
#include "vit/dense.h"

TEST_SUITE_BEGIN("dense");

namespace vit {
namespace {

template <typename T, void (*Free)(T*)>
struct Release {
  void operator()(T* handle) const { Free(handle); }
};
using ModelHandle = std::unique_ptr<vit_model, Release<vit_model, vit_model_free>>;
using SessionHandle = std::unique_ptr<vit_session, Release<vit_session, vit_session_free>>;
using ResultsHandle = std::unique_ptr<vit_results, Release<vit_results, vit_results_free>>;

const std::vector<std::string>& images() {
  static const std::vector<std::string> paths{test::data_path("images/cat_tabby.jpg").string(),
                                              test::data_path("images/deer_fawn.png").string()};
  return paths;
}

std::vector<vit_input> inputs() {
  std::vector<vit_input> out;
  for (const std::string& path : images()) {
    vit_input input{};
    input.struct_size = sizeof input;
    input.path = path.c_str();
    out.push_back(input);
  }
  return out;
}

ModelHandle load(const std::string& path) {
  vit_model* model = nullptr;
  REQUIRE(vit_model_load(path.c_str(), nullptr, &model) == VIT_OK);
  return ModelHandle(model);
}

SessionHandle session_of(const ModelHandle& model) {
  vit_session* session = nullptr;
  REQUIRE(vit_session_create(model.get(), nullptr, &session) == VIT_OK);
  return SessionHandle(session);
}

ResultsHandle make_results() {
  vit_results* results = nullptr;
  REQUIRE(vit_results_create(&results) == VIT_OK);
  return ResultsHandle(results);
}

std::span<const float> one(const ResultsHandle& results, std::size_t index, std::uint32_t name) {
  vit_array array{};
  REQUIRE(vit_results_one(results.get(), index, name, 0, &array) == VIT_OK);
  std::size_t count = 1;
  for (std::uint32_t i = 0; i < array.ndim; ++i) count *= array.shape[i];
  return {static_cast<const float*>(array.data), count};
}

}  // namespace

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
