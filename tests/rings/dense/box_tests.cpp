// Boxes and keypoints of YOLOS, RF-DETR, LW-DETR, OWL-ViT, OWLv2 and ViTPose, from preprocessed pixels and
// from images, against what transformers gives. data/golden/boxes holds the models; larger ones lie next to a
// developer's checkout.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/files.h"
#include "tests/support/numbers.h"
#include "tests/support/shared_data.h"
#include "vit/boxes.h"
#include "vit/image/resample_axis.h"
#include "vit/io/safetensors.h"
#include "vit/pose.h"

TEST_SUITE_BEGIN("dense");

namespace vit {
using namespace internal;
namespace {

namespace fs = std::filesystem;

/// Difference that is allowed, of the largest value.
constexpr double kTolerance = 2e-5;

std::vector<double> values_of(const TensorFile& file, const std::string& name) {
  const TensorEntry* const entry = file.find(name);
  REQUIRE_MESSAGE(entry != nullptr, name);
  return to_double(*entry);
}

void check_near(std::span<const float> found, const std::vector<double>& expected, const std::string& name) {
  CAPTURE(name);
  REQUIRE(found.size() == expected.size());
  double largest = 0.0;
  for (const double value : expected) largest = std::max(largest, std::abs(value));
  CHECK(test::largest_difference(found, expected) <= kTolerance * largest);
}

void check_near(std::span<const float> found, const TensorFile& file, const std::string& name) {
  check_near(found, values_of(file, name), name);
}

/// Rows (class, score, x0, y0, x1, y1).
void check_detections(const std::vector<Detection>& found, const std::vector<double>& rows) {
  REQUIRE(found.size() * 6 == rows.size());
  std::vector<float> scores, boxes;
  std::vector<double> expected_scores, expected_boxes;
  for (std::size_t i = 0; i < found.size(); ++i) {
    CHECK(static_cast<double>(found[i].index) == rows[6 * i]);
    scores.push_back(found[i].score);
    expected_scores.push_back(rows[6 * i + 1]);
    for (const double edge : {found[i].box.x0, found[i].box.y0, found[i].box.x1, found[i].box.y1})
      boxes.push_back(static_cast<float>(edge));
    expected_boxes.insert(expected_boxes.end(), rows.begin() + static_cast<std::ptrdiff_t>(6 * i + 2),
                          rows.begin() + static_cast<std::ptrdiff_t>(6 * i + 6));
  }
  check_near(scores, expected_scores, "scores");
  check_near(boxes, expected_boxes, "boxes");
}

ClassVectors words_of(const TensorFile& expected, const std::string& name) {
  const TensorEntry& entry = expected.at(name);
  const Tensor<float> stored = to_float(entry);
  const std::size_t width = entry.shape.back(), count = entry.num_elements() / width;
  ClassVectors words{.names = {}, .vectors = Tensor<float>(Shape{count, width})};
  for (std::size_t i = 0; i < count; ++i) words.names.push_back("word " + std::to_string(i));
  std::ranges::copy(stored.flat(), words.vectors.data());
  return words;
}

struct BoxCase {
  fs::path folder, images;
  std::vector<std::string> names;  // of the images
  float threshold;
};

void check_boxes(const BoxCase& c) {
  CAPTURE(c.folder.string());
  const auto model = Model::load(c.folder);
  const TensorFile expected = open_safetensors(c.folder / "expected.safetensors");
  const bool takes_words = model->dense_config()->find(Output::box_vectors) != nullptr;
  Session session(model, {.threads = 2});
  for (const std::string& name : c.names) {
    CAPTURE(name);
    const std::string words = expected.find("text_embeds") != nullptr ? "text_embeds" : name + ".text_embeds";
    const Detector detector =
        takes_words ? Detector::of_texts(model, words_of(expected, words)) : Detector(model);
    Outputs outputs;
    session.forward(to_float(expected.at(name + ".pixels")), detector.request(), outputs);
    const auto check = [&](const ImageOutputs& found) {
      check_near(found[Output::boxes].flat(), expected, name + ".boxes");
      check_near(detector.logits(found, 2).flat(), expected, name + ".logits");
      if (expected.find(name + ".objectness") != nullptr)
        check_near(found[Output::objectness].flat(), expected, name + ".objectness");
    };
    check(outputs[0]);
    const fs::path file = c.images / (name + ".png");
    const Image image = session.decode(file);
    check_near(session.preprocessor().run(image).flat(), expected, name + ".pixels");
    session.run(file, detector.request(), outputs);
    check(outputs[0]);
    const std::vector<double> rows = values_of(expected, name + ".detected");
    check_detections(detector.detect(outputs[0], c.threshold), rows);
    check_detections(detector.detect(image, c.threshold), rows);
    Session one_thread(model, {.threads = 1});
    check_detections(detector.detect(one_thread, file, c.threshold), rows);
  }
}

fs::path golden(const char* model) {
  return test::data_path("golden/boxes") / model;
}

void check_poses(const fs::path& folder, const ModelOptions& options = {}) {
  CAPTURE(folder.string());
  const TensorFile expected = open_safetensors(folder / "expected.safetensors");
  const PoseEstimator estimator(folder, options);
  Session session(estimator.model(), {.threads = 2});
  const std::vector<std::pair<std::string, std::vector<Box>>> pictures{
      {"wide", {{10.5, 4.25, 31.5, 34.25}, {-6.0, 15.0, 24.0, 27.5}}}, {"high", {{3.0, 2.0, 23.0, 28.0}}}};
  for (const auto& [name, boxes] : pictures) {
    const Image image = session.decode(folder / (name + ".png"));
    const std::vector<Pose> poses = estimator.estimate(session, image, boxes),
                            whole = estimator.estimate(image);
    REQUIRE(poses.size() == boxes.size());
    REQUIRE(whole.size() == 1);
    CHECK(whole.front().box == Box::whole(image.size()));
    for (std::size_t i = 0; i <= boxes.size(); ++i) {
      const bool is_whole = i == boxes.size();
      const Pose& pose = is_whole ? whole.front() : poses[i];
      const std::string key = name + (is_whole ? ".whole.0." : "." + std::to_string(i) + ".");
      check_near(session.preprocessor().run_box(image, pose.box).flat(), expected, key + "pixels");
      Outputs outputs;
      session.forward(to_float(expected.at(key + "pixels")), Output::heatmaps, outputs);
      check_near(outputs[0][Output::heatmaps].flat(), expected, key + "heatmaps");
      std::vector<float> points;
      for (const Keypoint& point : pose.keypoints)
        points.insert(points.end(), {point.x, point.y, point.score});
      check_near(points, expected, key + "keypoints");
    }
  }
}

}  // namespace

TEST_CASE("boxes: golden models give transformers' boxes and scores") {
  for (const char* const model : {"yolos", "owlv2", "owlvit", "rf-detr", "lw-detr"})
    check_boxes({golden(model), golden(model), {"wide", "high"}, 0.3f});
}

TEST_CASE("boxes: words through the text tower of the checkpoint") {
  for (const char* const model : {"owlv2", "owlvit"}) {
    CAPTURE(model);
    const TensorFile expected = open_safetensors(golden(model) / "expected.safetensors");
    Detector detector =
        Detector::of_texts(ImageAndText::load(golden(model)), {"a cat", "the remote control", "dog"});
    check_detections(detector.detect(golden(model) / "wide.png", 0.3f), values_of(expected, "wide.detected"));
    CHECK(detector.labels()[1] == "the remote control");
    CHECK(detector.threshold() == 0.1f);
  }
}

TEST_CASE("boxes: the fixtures of YOLOS and OWLv2") {
  SKIP_WITHOUT_SHARED("fixtures/dense");
  const fs::path root = test::shared_path("fixtures/dense");
  check_boxes({root / "hf-yolos", root / "images", {"landscape", "portrait"}, 0.0f});
  check_boxes({root / "hf-owlv2", root / "images", {"landscape", "portrait"}, 0.0f});
}

TEST_CASE("poses: golden models give transformers' heat maps and keypoints") {
  check_poses(golden("vitpose"));
  ModelOptions expert;
  expert.dense.expert = 1;
  check_poses(golden("vitpose-plus"), expert);
}

TEST_CASE("poses: the fixture of ViTPose") {
  SKIP_WITHOUT_SHARED("fixtures/dense");
  const fs::path root = test::shared_path("fixtures/dense");
  const TensorFile expected = open_safetensors(root / "hf-vitpose/expected.safetensors");
  const PoseEstimator estimator(root / "hf-vitpose");
  Session session(Model::load(root / "hf-vitpose"), {.threads = 2});
  for (const std::string name : {"landscape", "portrait"}) {
    CAPTURE(name);
    Outputs outputs;
    session.forward(to_float(expected.at(name + ".pixels")), Output::heatmaps, outputs);
    std::vector<float> maps, points, scores;
    std::vector<Box> boxes;
    const std::vector<double> given = values_of(expected, name + ".boxes");
    for (std::size_t i = 0; i < given.size(); i += 4)
      boxes.push_back({given[i], given[i + 1], given[i] + given[i + 2], given[i + 1] + given[i + 3]});
    for (std::size_t i = 0; i < boxes.size(); ++i) {
      const auto map = outputs[i][Output::heatmaps].flat();
      maps.insert(maps.end(), map.begin(), map.end());
    }
    check_near(maps, expected, name + ".heatmaps");
    for (const Pose& pose : estimator.estimate(root / "images" / (name + ".png"), boxes)) {
      for (const Keypoint& point : pose.keypoints) {
        points.insert(points.end(), {point.x, point.y});
        scores.push_back(point.score);
      }
    }
    // some maps are flat: the library's own results in float32 and float64 are a hundredth of a pixel apart
    CHECK(test::largest_difference(points, values_of(expected, name + ".keypoints")) <= 0.05);
    check_near(scores, expected, name + ".scores");
  }
}

TEST_CASE("boxes: bits do not depend on threads, the batch, or the place in it") {
  for (const char* const model : {"yolos", "owlv2", "rf-detr", "lw-detr", "vitpose-plus"}) {
    CAPTURE(model);
    const auto loaded = Model::load(golden(model));
    const TensorFile expected = open_safetensors(golden(model) / "expected.safetensors");
    const std::string key = std::string(model) == "vitpose-plus" ? "wide.0.pixels" : "wide.pixels";
    const Tensor<float> pixels = to_float(expected.at(key));
    Tensor<float> batch(Shape{3, 3, pixels.dim(2), pixels.dim(3)});
    const std::size_t count = pixels.num_elements();
    for (std::size_t i = 0; i < 3 * count; ++i)
      batch.data()[i] = i / count == 1 ? -pixels.data()[i % count] : pixels.data()[i % count];
    Outputs one, three;
    Session(loaded, {.threads = 1}).forward(pixels, loaded->dense_config()->request(), one);
    Session(loaded, {.threads = 2}).forward(batch, loaded->dense_config()->request(), three);
    for (const MapOutput& output : loaded->dense_config()->branches.front().outputs) {
      const auto alone = one[0][output.meaning].flat();
      CHECK(std::ranges::equal(alone, three[0][output.meaning].flat()));
      CHECK(std::ranges::equal(alone, three[2][output.meaning].flat()));
      CHECK(!std::ranges::equal(alone, three[1][output.meaning].flat()));
    }
  }
}

TEST_CASE("boxes: what does not fit is an Error that says why") {
  CHECK_THROWS_WITH_AS(Detector(golden("owlv2")), doctest::Contains("compared with texts"), Error);
  CHECK_THROWS_WITH_AS(Detector(golden("vitpose")), doctest::Contains("no head that gives boxes"), Error);
  CHECK_THROWS_WITH_AS(PoseEstimator(golden("yolos")), doctest::Contains("heat maps"), Error);
  CHECK_THROWS_WITH_AS(Detector(Model::load(golden("yolos")), {"one"}), doctest::Contains("3 classes"),
                       Error);
  const auto words = [] {
    ClassVectors out{.names = {"a"}, .vectors = Tensor<float>(Shape{1, 3})};
    out.vectors.data()[0] = 1.0f;
    return out;
  };
  CHECK_THROWS_WITH_AS(Detector::of_texts(Model::load(golden("yolos")), words()),
                       doctest::Contains("of their own"), Error);
  CHECK_THROWS_WITH_AS(Detector::of_texts(Model::load(golden("owlv2")), words()),
                       doctest::Contains("vectors of 3"), Error);
  ModelOptions options;
  options.dense.expert = 3;
  CHECK_THROWS_WITH_AS(Model::load(golden("vitpose-plus"), options), doctest::Contains("no expert 3"), Error);
  PoseEstimator estimator(golden("vitpose"));
  const Image image(20, 30);
  CHECK_THROWS_WITH_AS(Detector(golden("yolos")).detect(image.view(), std::nanf("")),
                       doctest::Contains("not a number"), Error);
  for (const Box& box : {Box{5, 5, 5, 9}, Box{9, 5, 4, 9}, Box{0, 0, 1e30, 5},
                         Box{0, std::numeric_limits<double>::quiet_NaN(), 4, 5}}) {
    CHECK_THROWS_AS(estimator.estimate(image, std::span(&box, 1)), Error);
  }
}

TEST_CASE("poses: a box outside of the image has no keypoints, and the others theirs") {
  PoseEstimator estimator(golden("vitpose"));
  const Image image = decode_file(golden("vitpose") / "wide.png");
  const auto width = static_cast<double>(image.width()), height = static_cast<double>(image.height());
  const Box inside{3, 2, 23, 28};
  const std::vector<Box> outside{{width, 0, width + 9, 9},
                                 {0, height, 9, height + 9},
                                 {-9, 0, 0, 9},
                                 {0, -9, 9, 0},
                                 {4e5, 4e5, 5e5, 5e5}};
  std::vector<Box> boxes(outside);
  boxes.insert(boxes.begin() + 2, inside);
  const std::vector<Pose> poses = estimator.estimate(image, boxes),
                          only = estimator.estimate(image, {{inside}});
  REQUIRE(poses.size() == boxes.size());
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    CAPTURE(i);
    CHECK(poses[i].box == boxes[i]);
    REQUIRE(poses[i].keypoints.size() == only[0].keypoints.size());
    for (std::size_t k = 0; k < only[0].keypoints.size(); ++k) {
      const Keypoint &found = poses[i].keypoints[k], &expected = only[0].keypoints[k];
      if (i == 2) {
        CHECK(std::array{found.x, found.y, found.score} ==
              std::array{expected.x, expected.y, expected.score});
      } else {
        CHECK((std::isnan(found.x) && std::isnan(found.y) && found.score == 0.0f));
      }
    }
  }
  CHECK(estimator.estimate(image, outside).size() == outside.size());
  const Session session(Model::load(golden("vitpose")));
  for (const Box& box : outside) {
    CHECK_THROWS_WITH_AS(session.preprocessor().run_box(image, box),
                         doctest::Contains("lies outside of the image of"), Error);
  }
  // the last pixel counts
  const Box corner{width - 1, height - 1, width + 9, height + 9};
  CHECK_FALSE(std::isnan(estimator.estimate(image, {{corner}})[0].keypoints[0].x));
}

TEST_CASE("boxes: configurations of other models are refused by name") {
  const test::TemporaryFolder folder;
  const auto load_with = [&](const char* model, const char* from, const char* to) {
    folder.write("config.json", test::replaced(test::read_text(golden(model) / "config.json"), from, to));
    fs::copy_file(golden(model) / "model.safetensors", folder.path() / "model.safetensors",
                  fs::copy_options::overwrite_existing);
    Model::load(folder.path());
  };
  CHECK_THROWS_AS(load_with("yolos", "\"num_detection_tokens\": 5", "\"num_detection_tokens\": 4"), Error);
  CHECK_THROWS_AS(load_with("yolos", "\"num_detection_tokens\": 5", "\"num_detection_tokens\": 100000"),
                  Error);
  CHECK_THROWS_AS(
      load_with("yolos", "\"use_mid_position_embeddings\": true", "\"use_mid_position_embeddings\": false"),
      Error);
  for (const char* const model : {"rf-detr", "lw-detr"}) {
    CAPTURE(model);
    CHECK_THROWS_AS(load_with(model, "\"d_model\": 16", "\"d_model\": 18"), Error);
    CHECK_THROWS_AS(load_with(model, "\"d_model\": 16", "\"d_model\": 1e9"), Error);
    CHECK_THROWS_AS(load_with(model, "\"num_queries\": 5", "\"num_queries\": 0"), Error);
    CHECK_THROWS_AS(load_with(model, "\"num_queries\": 5", "\"num_queries\": 6"), Error);
    CHECK_THROWS_AS(
        load_with(model, "\"decoder_cross_attention_heads\": 4", "\"decoder_cross_attention_heads\": 3"),
        Error);
    CHECK_THROWS_AS(load_with(model, "\"decoder_n_points\": 2", "\"decoder_n_points\": 3"), Error);
    CHECK_THROWS_AS(load_with(model, "\"hidden_expansion\": 0.5", "\"hidden_expansion\": -1"), Error);
    CHECK_THROWS_AS(
        load_with(model, "\"activation_function\": \"silu\"", "\"activation_function\": \"gelu_new\""),
        Error);
  }
  CHECK_THROWS_AS(load_with("lw-detr", "2.0,", "3.0,"), Error);
  CHECK_THROWS_AS(load_with("rf-detr", "\"num_windows\": 2", "\"num_windows\": 65"), Error);
  CHECK_THROWS_AS(load_with("owlv2", "\"projection_dim\": 16", "\"projection_dim\": 17"), Error);
  CHECK_THROWS_AS(load_with("vitpose", "\"vitpose_backbone\"", "\"swin\""), Error);
  CHECK_THROWS_AS(load_with("vitpose", "\"use_simple_decoder\": true", "\"use_simple_decoder\": false"),
                  Error);
  CHECK_THROWS_AS(load_with("vitpose-plus", "\"part_features\": 4", "\"part_features\": 16"), Error);
}

TEST_CASE("boxes: images that windows do not divide, or with fewer places than boxes, are refused") {
  const auto run = [](const char* model, std::size_t height, std::size_t width) {
    const auto loaded = Model::load(golden(model));
    Outputs outputs;
    Tensor<float> pixels(Shape{1, 3, height, width});
    std::ranges::fill(pixels.flat(), 0.5f);
    Session(loaded, {.threads = 1}).forward(pixels, Output::boxes, outputs);
    return outputs[0][Output::boxes].dim(0);
  };
  CHECK(run("lw-detr", 24, 40) == 5);
  CHECK(run("rf-detr", 16, 16) == 5);
  CHECK_THROWS_WITH_AS(run("lw-detr", 20, 24), doctest::Contains("2 x 2 windows"), Error);
  CHECK_THROWS_WITH_AS(run("rf-detr", 16, 24), doctest::Contains("squares"), Error);
  CHECK_THROWS_WITH_AS(run("rf-detr", 8, 8), doctest::Contains("fewer than the 5 boxes"), Error);
}

TEST_CASE("boxes: two neighbors without antialias") {
  const FloatAxis axis({.in = 9, .out = 3, .begin = 0, .end = 3}, ResizeFilter::near_bilinear);
  for (std::size_t o = 0; o < 3; ++o) {  // places 1, 4 and 7
    CHECK(axis.first[o] == 3 * o + 1);
    CHECK(axis.weights[axis.offset[o]] == 1.0f);
  }
  const FloatAxis between({.in = 4, .out = 2, .begin = 0, .end = 2}, ResizeFilter::near_bilinear);
  for (std::size_t o = 0; o < 2; ++o) {
    CHECK(between.first[o] == 2 * o);
    CHECK(between.count[o] == 2);
    CHECK(between.weights[between.offset[o]] == 0.5f);
  }
}

TEST_CASE("boxes: a blurred resize is a Gaussian, reflected at the ends, then two neighbors") {
  constexpr std::size_t kIn = 23, kOut = 7;
  const Blur blur = blur_of({kIn, kIn}, {kOut, kOut}, ResizeFilter::blurred_bilinear);
  const FloatAxis axis({.in = kIn, .out = kOut, .begin = 0, .end = kOut}, ResizeFilter::blurred_bilinear,
                       blur.rows);
  std::vector<double> line(kIn), blurred(kIn);
  for (std::size_t i = 0; i < kIn; ++i) line[i] = std::sin(static_cast<double>(i * i));
  const double sigma = (23.0 / 7.0 - 1.0) / 2.0;
  const int radius = static_cast<int>(std::ceil(3.0 * sigma)), last = kIn - 1;
  for (int i = 0; i <= last; ++i) {
    double sum = 0.0, weights = 0.0;
    for (int k = -radius; k <= radius; ++k) {
      const double weight = std::exp(-0.5 * k * k / (sigma * sigma));
      const int at = std::abs(i + k) <= last ? std::abs(i + k) : 2 * last - i - k;
      sum += weight * line[static_cast<std::size_t>(at)];
      weights += weight;
    }
    blurred[static_cast<std::size_t>(i)] = sum / weights;
  }
  for (std::size_t o = 0; o < kOut; ++o) {
    const double at = (static_cast<double>(o) + 0.5) * 23.0 / 7.0 - 0.5;
    const auto low = static_cast<std::size_t>(at);
    const double expected =
        blurred[low] + (at - static_cast<double>(low)) * (blurred[low + 1] - blurred[low]);
    double found = 0.0;
    for (std::size_t j = 0; j < axis.count[o]; ++j)
      found += static_cast<double>(axis.weights[axis.offset[o] + j]) * line[axis.first[o] + j];
    CHECK(found == doctest::Approx(expected).epsilon(1e-6));
  }
  CHECK(blur_of({9, 23}, {9, 7}, ResizeFilter::blurred_bilinear).columns == 0.0f);     // unless both shrink
  CHECK(blur_of({20, 30}, {10, 10}, ResizeFilter::blurred_bilinear).columns == 0.5f);  // of the height
}

}  // namespace vit
