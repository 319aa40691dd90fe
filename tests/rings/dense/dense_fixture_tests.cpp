// Every reference model with a dense head, from preprocessed pixels and from images, compared with what its
// library gives. The models lie next to a developer's checkout; data/golden/dense holds small twins.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/numbers.h"
#include "tests/support/shared_data.h"
#include "vit/config.h"
#include "vit/dense.h"
#include "vit/io/safetensors.h"
#include "vit/kernels/kernels.h"

TEST_SUITE_BEGIN("dense");

namespace vit {
using namespace internal;
namespace {

namespace fs = std::filesystem;

/// Difference that is allowed, of the largest value.
constexpr double kTolerance = 2e-5;

/// The outputs of the dense head, and others.
Request maps_and(const Model& model, std::initializer_list<OutputKey> others = {}) {
  Request request = model.dense_config()->request();
  for (const OutputKey& key : others) request.add(key);
  return request;
}

struct DenseCase {
  const char* folder;
  const char* weights;  // a file in it, "" = the folder itself
  ModelOptions options{};
  InputSize size{};
  std::string depth = "depth";  // the tensors of the case: NAME, NAME_image
  std::string logits = "logits";
  std::string segmentation = "segmentation";
};

/// A head of Meta's on the backbone of its case.
ModelOptions joined(const fs::path& head, std::vector<std::size_t> taps, float farthest) {
  ModelOptions options{.architecture = "dinov2_vits14", .overrides = {{"num_heads", "2"}}};
  options.dense.head = head;
  options.dense.taps = std::move(taps);
  if (farthest > 0.0f) options.dense.depth_range = std::array<float, 2>{0.001f, farthest};
  return options;
}

std::vector<DenseCase> dense_cases(const fs::path& root) {
  const InputSize small{.kind = InputSize::Kind::fixed, .height = 56, .width = 56};
  ModelOptions original{.overrides = {{"num_heads", "3"}}};
  original.dense.taps = {0, 1, 3, 4};
  const fs::path heads = root / "orig-dinov2-heads";
  return {
      {"hf-depth-anything", ""},
      {"hf-depth-anything-metric", ""},
      {"orig-depth-anything-v2", "model.pth", original, small},
      {"orig-depth-anything-3-mono", "model.pth", original, small},
      {"hf-dpt-dinov2", ""},
      {"hf-dpt-vit", ""},
      {"hf-dpt-vit-segmentation", ""},
      {"hf-tipsv2-dpt", ""},
      {"hf-chmv2", ""},
      {"orig-dinov2-dpt", "backbone.pth",
       joined(root / "orig-dinov2-dpt/nyu_dpt_head.pth", {0, 1, 2, 3}, 0.6f)},
      {"orig-dinov2-heads", "backbone.pth", joined(heads / "nyu_linear_head.pth", {}, 0.0f), {}, "depth1"},
      {"orig-dinov2-heads",
       "backbone.pth",
       joined(heads / "nyu_linear4_head.pth", {0, 1, 2, 3}, 10.0f),
       {},
       "depth4"},
      {"orig-dinov2-heads",
       "backbone.pth",
       joined(heads / "ade20k_linear_head.pth", {}, 0.0f),
       {},
       "",
       "linear_logits",
       "linear_segmentation"},
      {"orig-dinov2-heads",
       "backbone.pth",
       joined(heads / "ade20k_ms_head.pth", {}, 0.0f),
       {},
       "",
       "ms_logits",
       "ms_segmentation"},
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

/// Int32 of a file.
std::vector<std::int32_t> integers_of(const TensorEntry& entry) {
  std::vector<std::int32_t> out(entry.num_elements());
  entry.bytes.read(0, std::as_writable_bytes(std::span(out)));
  return out;
}

void check_input(const DenseCase& c, Session& session, Session& images, const fs::path& image_folder,
                 const TensorFile& expected, const std::string& input) {
  const DenseConfig& config = *session.model().dense_config();
  Outputs outputs;
  session.forward(to_float(expected.at(input + ".pixels")), config.request(), outputs);
  const Image image = images.decode(image_folder / (input + ".png"));
  Outputs from_image;
  images.run(image, config.request(), from_image);
  const ImageOutputs maps = outputs[0], seen = from_image[0];
  if (config.find(Output::depth) != nullptr) {
    check_near(maps[Output::depth], expected, input + "." + c.depth);
    if (config.sky_is_farthest) {
      const TensorView<const float> depth = seen[Output::depth];
      check_near(maps[Output::sky], expected, input + ".sky");
      check_near(depth_of(seen.of({.image = {depth.dim(0), depth.dim(1)}})).depth, expected,
                 input + ".depth_final");
    } else {
      check_near(depth_of(seen, 2).depth, expected, input + "." + c.depth + "_image");
    }
  }
  if (config.find(Output::normals) != nullptr) {
    check_near(maps[Output::normals], expected, input + ".normals");
    check_near(normals_of(seen, 2), expected, input + ".normals_image");
  }
  if (config.find(Output::classes) == nullptr) return;
  check_near(maps[Output::classes], expected, input + "." + c.logits);
  const SegmentMap found = segments_of(seen, {}, 2);
  const std::vector<std::int32_t> classes = integers_of(expected.at(input + "." + c.segmentation));
  REQUIRE(found.map.num_elements() == classes.size());
  CHECK(std::ranges::equal(found.map.flat(), classes));
}

void check_case(const DenseCase& c, const fs::path& folder, const fs::path& images) {
  CAPTURE(c.folder);
  CAPTURE(c.options.dense.head.string());
  const auto model = Model::load(*c.weights != '\0' ? folder / c.weights : folder, c.options);
  REQUIRE(model->dense_config() != nullptr);
  const TensorFile expected = open_safetensors(folder / "expected.safetensors");
  Session from_pixels(model, {.threads = 2}), from_images(model, {.threads = 2, .input_size = c.size});
  for (const char* const input : {"landscape", "portrait", "panorama"}) {
    CAPTURE(input);
    if (expected.find(std::string(input) + ".pixels") == nullptr) continue;
    check_input(c, from_pixels, from_images, images, expected, input);
  }
}

}  // namespace

TEST_CASE("dense fixtures: maps from pixels and from images") {
  SKIP_WITHOUT_SHARED("fixtures/dense");
  const fs::path root = test::shared_path("fixtures/dense");
  for (const DenseCase& c : dense_cases(root)) check_case(c, root / c.folder, root / "images");
}

TEST_CASE("dense golden models: depth of transformers' Depth Anything") {
  const fs::path folder = test::data_path("golden/dense/hf-depth-anything");
  const auto model = Model::load(folder);
  const TensorFile expected = open_safetensors(folder / "expected.safetensors");
  Session session(model, {.threads = 2});
  Outputs outputs;
  session.forward(to_float(expected.at("pixels")), maps_and(*model), outputs);
  check_near(outputs[0][Output::depth], expected, "depth");
  constexpr std::size_t kHalf = std::size_t{1} << 31;  // edges whose product is a number, but no memory holds
  CHECK_THROWS_WITH_AS(depth_of(outputs[0].of({.image = {kHalf, kHalf}})), doctest::Contains("overflow"),
                       Error);
  const DepthMap map = depth_of(outputs[0].of({.image = {17, 23}}));
  CHECK(map.unit == DepthUnit::meter);
  check_near(map.depth, expected, "depth_image");
  CHECK(map.lowest == *std::ranges::min_element(map.depth.flat()));
  CHECK(map.highest == *std::ranges::max_element(map.depth.flat()));
}

TEST_CASE("dense golden models: heads in files of their own") {
  const fs::path folder = test::data_path("golden/dense/dinov2-heads");
  const TensorFile expected = open_safetensors(folder / "expected.safetensors");
  const auto outputs_of = [&](const char* head) {
    ModelOptions options;
    options.dense.head = folder / head;
    const auto model = Model::load(folder / "model.safetensors", options);
    Session session(model, {.threads = 2});
    Outputs outputs;
    session.forward(to_float(expected.at("pixels")), maps_and(*model), outputs);
    return outputs;
  };
  const Outputs classes = outputs_of("voc2012_ms_head.safetensors");
  check_near(classes[0][Output::classes], expected, "logits");
  CHECK_THROWS_AS(classes[0][Output::depth], Error);
  const Outputs depth = outputs_of("nyu_linear_head.safetensors");
  check_near(depth[0][Output::depth], expected, "depth");
}

TEST_CASE("dense golden models: bits do not depend on threads, the batch, or the place in it") {
  ModelOptions options;
  SUBCASE("float32") {}
  SUBCASE("bfloat16") {
    options.precision = Precision::bfloat16;
  }
  SUBCASE("int8") {
    options.precision = Precision::int8;
  }
  const fs::path folder = test::data_path("golden/dense/hf-depth-anything");
  const auto model = Model::load(folder, options);
  const TensorFile expected = open_safetensors(folder / "expected.safetensors");
  const Tensor<float> pixels = to_float(expected.at("pixels"));
  const std::size_t count = pixels.num_elements();
  Tensor<float> batch(Shape{3, 3, pixels.dim(2), pixels.dim(3)});
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t k = 0; k < count; ++k)
      batch.data()[i * count + k] = i == 1 ? -pixels.data()[k] : pixels.data()[k];
  }
  Outputs one, three;
  Session(model, {.threads = 1}).forward(pixels, maps_and(*model), one);
  Session(model, {.threads = 2}).forward(batch, maps_and(*model, {{Output::block, 1}}), three);
  CHECK(std::ranges::equal(one[0][Output::depth].flat(), three[0][Output::depth].flat()));
  CHECK(std::ranges::equal(one[0][Output::depth].flat(), three[2][Output::depth].flat()));
  CHECK(!std::ranges::equal(one[0][Output::depth].flat(), three[1][Output::depth].flat()));
  CHECK(three.has({Output::block, 1}));
}

TEST_CASE("dense golden models: depth has the same bits under all kernels that fuse") {
  const fs::path folder = test::data_path("golden/dense/hf-depth-anything");
  const Tensor<float> pixels = to_float(open_safetensors(folder / "expected.safetensors").at("pixels"));
  std::vector<float> first;
  for (const kernels::KernelTable* table : kernels::available_kernels()) {
    if (!table->is_portable) continue;
    CAPTURE(table->name);
    const auto model = Model::load(folder, {.kernels = table->name});
    Outputs outputs;
    Session(model, {.threads = 2}).forward(pixels, maps_and(*model), outputs);
    const std::span<const float> depth = outputs[0][Output::depth].flat();
    if (first.empty()) first.assign(depth.begin(), depth.end());
    CHECK(std::ranges::equal(first, depth));
  }
}

TEST_CASE(
    "dense golden models: reduced precision stays near float32, and so does what follows another size") {
  // The head works in the memory of the blocks: nothing of one pass may be read by the next.
  const fs::path folder = test::data_path("golden/dense/hf-depth-anything");
  const TensorFile expected = open_safetensors(folder / "expected.safetensors");
  const Tensor<float> pixels = to_float(expected.at("pixels"));
  for (const Precision precision : {Precision::bfloat16, Precision::int8}) {
    const double limit = precision == Precision::bfloat16 ? 0.05 : 0.15;
    CAPTURE(to_string(precision));
    const auto model = Model::load(folder, {.precision = precision});
    const std::size_t patch = model->config().patch.size;
    Session session(model, {.threads = 2});
    Outputs first, other, again;
    session.forward(pixels, maps_and(*model), first);
    const std::vector<double> exact = to_double(expected.at("depth"));
    const double largest = std::ranges::max(exact, {}, [](double x) { return std::abs(x); });
    CHECK(test::largest_difference(first[0][Output::depth].flat(), exact) <= limit * std::abs(largest));
    for (const std::size_t edge : {7 * patch, patch}) {
      session.forward(Tensor<float>(Shape{2, 3, edge, 2 * edge}), maps_and(*model), other);
      session.forward(pixels, maps_and(*model), again);
      CHECK(std::ranges::equal(first[0][Output::depth].flat(), again[0][Output::depth].flat()));
    }
  }
}

TEST_CASE("dense heads: what does not fit is an Error that says what is missing") {
  const fs::path folder = test::data_path("golden/dense/dinov2-heads");
  ModelOptions options;
  SUBCASE("a head that is none") {
    options.dense.head = folder / "model.safetensors";
  }
  SUBCASE("taps beyond the last block") {
    options.dense.head = folder / "nyu_linear_head.safetensors";
    options.dense.taps = {4};
  }
  SUBCASE("no such file") {
    options.dense.head = folder / "none.pth";
  }
  CHECK_THROWS_AS(Model::load(folder / "model.safetensors", options), Error);
  CHECK_THROWS_AS(DepthEstimator(Model::load(folder)), Error);
  CHECK_THROWS_AS(Segmenter(Model::load(test::data_path("golden/dense/hf-depth-anything"))), Error);
}

}  // namespace vit
