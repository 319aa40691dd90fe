// Masks of queries and the segments made of them: EoMT, compared with what transformers gives, and on small
// twins of data/golden/dense with what plain definitions give.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/files.h"
#include "tests/support/numbers.h"
#include "tests/support/shared_data.h"
#include "vit/config.h"
#include "vit/dense.h"
#include "vit/io/safetensors.h"

TEST_SUITE_BEGIN("dense");

namespace vit {
using namespace internal;
namespace {

namespace fs = std::filesystem;

constexpr double kTolerance = 2e-5;  // of the largest value

Request maps_and(std::initializer_list<OutputKey> others = {}) {
  Request request(others);
  request.add(Output::masks);
  request.add(Output::mask_classes);
  return request;
}

void check_near(TensorView<const float> found, const TensorFile& expected, const std::string& name) {
  CAPTURE(name);
  const std::vector<double> values = to_double(expected.at(name));
  REQUIRE(found.num_elements() == values.size());
  double largest = 0.0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  CHECK(test::largest_difference(found.flat(), values) <= kTolerance * largest);
}

void check_map(TensorView<const std::int32_t> found, const TensorFile& expected, const std::string& name) {
  CAPTURE(name);
  const TensorEntry& entry = expected.at(name);
  std::vector<std::int32_t> values(entry.num_elements());
  entry.bytes.read(0, std::as_writable_bytes(std::span(values)));
  REQUIRE(found.num_elements() == values.size());
  CHECK(std::ranges::equal(found.flat(), values));
}

/// Rows (id, class, score).
void check_segments(std::span<const Segment> found, const TensorFile& expected, const std::string& name) {
  CAPTURE(name);
  const std::vector<double> rows = to_double(expected.at(name));
  REQUIRE(rows.size() == 3 * found.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CHECK(found[i].id == static_cast<std::int32_t>(rows[3 * i]));
    CHECK(static_cast<double>(found[i].index) == rows[3 * i + 1]);
    CHECK(static_cast<double>(found[i].score.value()) == doctest::Approx(rows[3 * i + 2]).epsilon(1e-5));
  }
}

std::size_t area_of(const SegmentMap& map) {
  return static_cast<std::size_t>(
      std::ranges::count_if(map.map.flat(), [](std::int32_t id) { return id >= 0; }));
}

/// Fills a folder with the model's files and another processor's.
void link_with_processor(const fs::path& folder, const char* processor, const test::TemporaryFolder& to) {
  for (const char* const file : {"config.json", "model.safetensors"})
    fs::create_symlink(fs::absolute(folder / file), to / file);
  fs::create_symlink(fs::absolute(folder / processor), to / "preprocessor_config.json");
}

SegmentOptions options_of(SegmentTask task) {
  return {.task = task, .threshold = 0.05, .mask_threshold = 0.5, .overlap = 0.1, .stuff = {0, 1}};
}

void check_padded(const fs::path& folder, const fs::path& images, const TensorFile& expected,
                  const std::string& input) {
  const auto model = Model::load(folder);
  CHECK(Segmenter::default_task(*model) == SegmentTask::panoptic);
  Session session(model, {.threads = 2});
  Outputs outputs;
  session.forward(to_float(expected.at(input + ".pixels")), maps_and({{Output::block, 2}, Output::tokens}),
                  outputs);
  check_near(outputs[0][Output::masks], expected, input + ".mask_logits");
  check_near(outputs[0][Output::mask_classes], expected, input + ".class_logits");
  if (expected.find(input + ".block.2") != nullptr)
    check_near(outputs[0].block(2), expected, input + ".block.2");
  const Image image = session.decode(images / (input + ".png"));
  session.run(image, maps_and(), outputs);
  check_near(outputs[0][Output::masks], expected, input + ".mask_logits");
  for (const auto& [task, name] :
       {std::pair(SegmentTask::panoptic, "panoptic"), std::pair(SegmentTask::instance, "instance")}) {
    const SegmentMap found = segments_of(outputs[0], options_of(task), 2);
    check_map(found.map, expected, input + "." + name);
    check_segments(found.segments, expected, input + "." + name + "_segments");
  }
}

void check_windows(const fs::path& folder, const fs::path& images, const TensorFile& expected,
                   const std::string& input) {
  const test::TemporaryFolder windowed;
  link_with_processor(folder, "preprocessor_config.semantic.json", windowed);
  const auto model = Model::load(windowed.path());
  CHECK(Segmenter::default_task(*model) == SegmentTask::semantic);
  Session session(model, {.threads = 2});
  const Image image = session.decode(images / (input + ".png"));
  Outputs outputs;
  session.run(image, maps_and(), outputs);
  check_near(outputs[0][Output::masks], expected, input + ".windows.mask_logits");
  check_near(outputs[0][Output::mask_classes], expected, input + ".windows.class_logits");
  const auto segments = [&](SegmentTask task) { return segments_of(outputs[0], options_of(task), 2); };
  check_map(segments(SegmentTask::semantic).map, expected, input + ".windows.segmentation");
  CHECK_THROWS_AS(segments(SegmentTask::panoptic), Error);
}

/// The twin with a processor that says so.
std::shared_ptr<const Model> twin_with(const std::string& from, const std::string& to) {
  const fs::path folder = test::data_path("golden/dense/hf-eomt");
  const test::TemporaryFolder changed;
  for (const char* const file : {"config.json", "model.safetensors"}) fs::copy(folder / file, changed / file);
  changed.write("preprocessor_config.json",
                test::replaced(test::read_text(folder / "preprocessor_config.json"), from, to));
  return Model::load(changed.path());
}

/// The twin and what it gives for its pixels; longer ones are cut into squares.
struct Twin {
  std::shared_ptr<const Model> model;
  TensorFile expected = open_safetensors(test::data_path("golden/dense/hf-eomt/expected.safetensors"));
  Outputs outputs;

  explicit Twin(const std::string& pixels = "pixels", int threads = 2)
      : model(pixels == "wide" ? twin_with("\"do_split_image\": false", "\"do_split_image\": true")
                               : Model::load(test::data_path("golden/dense/hf-eomt"))) {
    Session(model, {.threads = threads}).forward(to_float(expected.at(pixels)), maps_and(), outputs);
  }
  const DenseConfig& config() const { return *model->dense_config(); }
};

constexpr ImageFrame kFrame{.image = {17, 13}, .pixels = {12, 12}, .content = {12, 9}};

SegmentOptions twin_options(SegmentTask task) {
  return {.task = task, .threshold = 0.2, .mask_threshold = 0.5, .overlap = 0.2, .stuff = {0}};
}

}  // namespace

TEST_CASE("dense fixtures: masks, panoptic segments, instances and windows of EoMT") {
  SKIP_WITHOUT_SHARED("fixtures/dense");
  const fs::path root = test::shared_path("fixtures/dense");
  for (const char* const folder : {"hf-eomt", "hf-eomt-masked", "hf-eomt-dinov3", "hf-eomt-dinov3-masked"}) {
    CAPTURE(folder);
    const TensorFile expected = open_safetensors(root / folder / "expected.safetensors");
    for (const char* const input : {"landscape", "portrait"}) {
      CAPTURE(input);
      check_padded(root / folder, root / "images", expected, input);
      check_windows(root / folder, root / "images", expected, input);
    }
  }
}

TEST_CASE("dense golden models: masks of queries that enter late and hide patches from each other") {
  const Twin twin;
  CHECK(twin.model->config().tokens.late->masked_blocks == std::vector<std::size_t>{2});
  check_near(twin.outputs[0][Output::masks], twin.expected, "mask_logits");
  check_near(twin.outputs[0][Output::mask_classes], twin.expected, "class_logits");
}

TEST_CASE("dense golden models: masks of a backbone whose MLP is gated, next to heads with GELU") {
  const fs::path folder = test::data_path("golden/dense/hf-eomt-gated");
  const TensorFile expected = open_safetensors(folder / "expected.safetensors");
  const auto model = Model::load(folder);
  CHECK(model->config().mlp.kind == MlpKind::gated);
  Outputs outputs;
  Session(model, {.threads = 2}).forward(to_float(expected.at("pixels")), maps_and(), outputs);
  check_near(outputs[0][Output::masks], expected, "mask_logits");
  check_near(outputs[0][Output::mask_classes], expected, "class_logits");
}

TEST_CASE(
    "dense golden models: panoptic segments and instances of an image that fills a part of the square") {
  const Twin twin;
  for (const auto& [task, name] :
       {std::pair(SegmentTask::panoptic, "panoptic"), std::pair(SegmentTask::instance, "instance")}) {
    const SegmentMap found = segments_of(twin.outputs[0].of(kFrame), twin_options(task), 2);
    check_map(found.map, twin.expected, name);
    check_segments(found.segments, twin.expected, std::string(name) + "_segments");
    std::size_t area = 0;
    for (const Segment& segment : found.segments) area += segment.area;
    CHECK(area == area_of(found));
    CHECK(found.segments.front().label == twin.config().labels[found.segments.front().index]);
  }
}

TEST_CASE("dense golden models: classes of pixels that are computed as windows") {
  const Twin twin("wide");
  CHECK(twin.outputs.num_windows() == 2);
  CHECK(twin.outputs.num_images() == 1);
  CHECK(twin.outputs[0][Output::masks].dim(0) == 2);
  const ImageFrame frame{.image = {18, 30}, .pixels = {12, 20}, .content = {12, 20}};
  SegmentOptions options;
  const SegmentMap found = segments_of(twin.outputs[0].of(frame), options, 2);
  check_map(found.map, twin.expected, "semantic");
  CHECK(area_of(found) == 18 * 30);
  SUBCASE("names are those of all classes") {
    options.labels = {"one"};
    CHECK_THROWS_AS(segments_of(twin.outputs[0].of(frame), options), Error);
  }
  SUBCASE("a task that is none") {
    options.task = static_cast<SegmentTask>(3);
    CHECK_THROWS_AS(segments_of(twin.outputs[0].of(frame), options), Error);
  }
  SUBCASE("segments of a whole image cannot be joined") {
    options.task = SegmentTask::panoptic;
    CHECK_THROWS_AS(segments_of(twin.outputs[0].of(frame), options), Error);
  }
  SUBCASE("only maps are joined") {
    Outputs outputs;
    Session session(twin.model, {.threads = 1});
    const Tensor<float> wide = to_float(twin.expected.at("wide"));
    CHECK_THROWS_AS(session.forward(wide, Output::tokens, outputs), Error);
    CHECK_THROWS_AS(session.forward(wide, maps_and({Output::tokens}), outputs), Error);
  }
}

TEST_CASE("dense golden models: an image is cut into squares only if the processor says so") {
  const auto model = twin_with("\"do_resize\": true", "\"do_resize\": false");
  Session session(model, {.threads = 1});
  Outputs outputs;
  const Image square(12, 12);
  session.run(square, maps_and(), outputs);
  CHECK(outputs.num_windows() == 1);
  const Image wide(12, 24);
  CHECK_THROWS_WITH_AS(session.run(wide, maps_and(), outputs), doctest::Contains("takes images of 12 x 12"),
                       Error);
}

TEST_CASE("dense golden models: bits of masks do not depend on threads, the batch, or the place in it") {
  const Twin one("pixels", 1);
  const Tensor<float> pixels = to_float(one.expected.at("pixels"));
  const std::size_t count = pixels.num_elements();
  Tensor<float> batch(Shape{3, 3, pixels.dim(2), pixels.dim(3)});
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t k = 0; k < count; ++k)
      batch.data()[i * count + k] = i == 1 ? -pixels.data()[k] : pixels.data()[k];
  }
  Outputs three;
  Session(one.model, {.threads = 2})
      .forward(batch, maps_and({{Output::block, 1}, {Output::block, 3}}), three);
  for (const Output meaning : {Output::masks, Output::mask_classes}) {
    const std::span<const float> wanted = one.outputs[0][meaning].flat();
    CHECK(std::ranges::equal(wanted, three[0][meaning].flat()));
    CHECK(std::ranges::equal(wanted, three[2][meaning].flat()));
    CHECK(!std::ranges::equal(wanted, three[1][meaning].flat()));
  }
  CHECK(three[0].block(1).dim(0) == 11);  // class token, register, 9 patches
  CHECK(three[0].block(3).dim(0) == 16);  // and 5 queries
  ImageFrame large = kFrame;
  large.image = {301, 57};
  const SegmentMap a = segments_of(one.outputs[0].of(large), twin_options(SegmentTask::panoptic), 1);
  const SegmentMap b = segments_of(one.outputs[0].of(large), twin_options(SegmentTask::panoptic), 3);
  CHECK(std::ranges::equal(a.map.flat(), b.map.flat()));
}

TEST_CASE("segments of masks: what does not fit is an Error") {
  const Twin twin;
  SegmentOptions options = twin_options(SegmentTask::panoptic);
  ImageFrame frame = kFrame;
  SUBCASE("a threshold beyond 1") {
    options.threshold = 1.5;
  }
  SUBCASE("a class of stuff that there is not") {
    options.stuff = {3};
  }
  SUBCASE("an image larger than what was computed") {
    frame.content = {13, 9};
  }
  SUBCASE("an image without pixels") {
    frame.content = {0, 9};
  }
  CHECK_THROWS_AS(segments_of(twin.outputs[0].of(frame), options), Error);
  const auto classes = Model::load(test::data_path("golden/dense/dinov2-heads/model.safetensors"), [] {
    ModelOptions join;
    join.dense.head = test::data_path("golden/dense/dinov2-heads/voc2012_ms_head.safetensors");
    return join;
  }());
  CHECK(Segmenter(classes).options().task == SegmentTask::semantic);
}

}  // namespace vit
