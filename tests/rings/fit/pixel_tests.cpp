// Classes of pixels: features, rows of training and classes of pixels against their definitions.
#include "vit/pixels.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/rng.h"
#include "tests/support/shared_data.h"
#include "vit/classifier_head.h"
#include "vit/rings/fit/pixel_rows.h"

TEST_SUITE_BEGIN("fit");

namespace vit {

using namespace internal;

namespace {

const std::shared_ptr<const Model>& shipped_model() {
  static const auto model = Model::load(test::data_path("model"));
  return model;
}

/// A bright square, textured, on a darker ground with noise.
Image square_image(std::size_t height, std::size_t width, std::size_t left, std::size_t top,
                   std::size_t edge) {
  test::Rng rng(5);
  Image image(height, width);
  for (std::size_t y = 0; y < height; ++y) {
    for (std::size_t x = 0; x < width; ++x) {
      const bool inside = x >= left && x < left + edge && y >= top && y < top + edge;
      for (std::size_t c = 0; c < 3; ++c) {
        const float level =
            inside ? 200.0f - 40.0f * static_cast<float>(c) : 60.0f + 20.0f * static_cast<float>(c);
        image.row(y)[3 * x + c] = static_cast<std::uint8_t>(level + rng.uniform(-20.0f, 20.0f));
      }
    }
  }
  return image;
}

Tensor<std::int32_t> no_labels(const Image& image) {
  Tensor<std::int32_t> labels(Shape{image.height(), image.width()});
  std::ranges::fill(labels.flat(), -1);
  return labels;
}

void paint(Tensor<std::int32_t>& labels, std::int32_t label, std::size_t left, std::size_t top,
           std::size_t width, std::size_t height) {
  for (std::size_t y = top; y < top + height; ++y) std::fill_n(labels.view().row(y) + left, width, label);
}

/// Strokes on the ground (0) and in the square (1): two of each.
Tensor<std::int32_t> strokes_on(const Image& image, std::size_t left, std::size_t top, std::size_t edge) {
  Tensor<std::int32_t> labels = no_labels(image);
  paint(labels, 0, 1, 2, image.width() - 2, 2);
  paint(labels, 0, 2, image.height() - 4, image.width() - 4, 2);
  paint(labels, 1, left + 2, top + 2, edge - 4, 3);
  paint(labels, 1, left + 2, top + edge - 6, edge - 4, 3);
  return labels;
}

PixelOptions native(PixelOptions options = {}) {
  options.size = {.kind = InputSize::Kind::native};
  options.unit_length = false;
  return options;
}

PixelOptions with_unit_length(PixelOptions options = {}) {
  options.size = {.kind = InputSize::Kind::native};
  return options;
}

std::vector<float> features_at(const PixelFeatures& features, std::size_t x, std::size_t y) {
  std::vector<float> out(features.num_features());
  features.at(x, y, out);
  return out;
}

PixelHead fitted(const PixelFeatures& features, const Tensor<std::int32_t>& labels,
                 FitMethod method = FitMethod::logistic, const FitOptions& options = {}) {
  PixelTrainer trainer;
  trainer.add(features, labels, 1);
  return trainer.fit(method, options);
}

std::vector<double> softmax(const std::vector<float>& values) {
  std::vector<double> out(values.begin(), values.end());
  const double largest = *std::ranges::max_element(out);
  for (double& value : out) value = std::exp(value - largest);
  const double sum = std::accumulate(out.begin(), out.end(), 0.0);
  for (double& value : out) value /= sum;
  return out;
}

double overlap(const Tensor<std::int32_t>& found, std::size_t left, std::size_t top, std::size_t edge) {
  double hits = 0, all = 0;
  for (std::size_t y = 0; y < found.dim(0); ++y) {
    for (std::size_t x = 0; x < found.dim(1); ++x) {
      const bool truth = x >= left && x < left + edge && y >= top && y < top + edge;
      const bool is = found.view().row(y)[x] == 1;
      hits += truth && is;
      all += truth || is;
    }
  }
  return hits / all;
}

constexpr std::size_t kHeight = 48, kWidth = 64, kLeft = 20, kTop = 12, kEdge = 24;

Image sample() {
  return square_image(kHeight, kWidth, kLeft, kTop, kEdge);
}

}  // namespace

TEST_CASE("pixels: features are those of patches, interpolated between their centers") {
  const Image image = sample();
  const PixelFeatures features = PixelExtractor(shipped_model(), native(), 1).extract(image);
  Session session(shipped_model(), {.threads = 1, .input_size = {.kind = InputSize::Kind::native}});
  Outputs outputs;
  session.run(image, Output::patches, outputs);
  const TensorView<const float> patches = outputs[0].patches();  // of 4 x 4 pixels
  REQUIRE(patches.dim(0) == kHeight / 4);
  REQUIRE(features.num_features() == patches.dim(2));
  const auto check = [&](std::size_t x, std::size_t y) {
    const auto axis = [](std::size_t at, std::size_t count) {
      const double place =
          std::clamp((static_cast<double>(at) + 0.5) / 4 - 0.5, 0.0, static_cast<double>(count - 1));
      return std::pair(static_cast<std::size_t>(place), place - std::floor(place));
    };
    const auto [row, down] = axis(y, patches.dim(0));
    const auto [column, right] = axis(x, patches.dim(1));
    const std::size_t below = std::min(row + 1, patches.dim(0) - 1);
    const std::size_t next = std::min(column + 1, patches.dim(1) - 1);
    const std::vector<float> found = features_at(features, x, y);
    for (std::size_t c = 0; c < found.size(); ++c) {
      const auto of = [&](std::size_t r, std::size_t k) { return static_cast<double>(patches[r].row(k)[c]); };
      const double expected = (1 - down) * ((1 - right) * of(row, column) + right * of(row, next)) +
                              down * ((1 - right) * of(below, column) + right * of(below, next));
      // one rounding to float32
      CHECK(static_cast<double>(found[c]) == doctest::Approx(expected).epsilon(1e-6));
    }
  };
  for (const auto& [x, y] : {std::pair<std::size_t, std::size_t>{0, 0}, {63, 47}, {17, 22}, {2, 45}, {30, 1}})
    check(x, y);
}

TEST_CASE("pixels: weights of all ways are a mean, and guided ones follow the edges of the image") {
  const Image image = sample();
  for (const PixelUpsampling way :
       {PixelUpsampling::bilinear, PixelUpsampling::shift, PixelUpsampling::guided}) {
    CAPTURE(to_string(way));
    FeatureGrid grid;
    for (double at = 2; at < 64; at += 4) grid.xs.push_back(at);
    for (double at = 2; at < 48; at += 4) grid.ys.push_back(at);
    grid.step = {4, 4};
    grid.rows = between_centers(kHeight, grid.ys);
    grid.columns = between_centers(kWidth, grid.xs);
    if (way == PixelUpsampling::guided) grid.guide(image);
    PatchWeights weights;
    for (std::size_t x = 0; x < kWidth; x += 3) {
      grid.weigh(image, x, (x * 7) % kHeight, weights);
      double sum = 0;
      for (const WeightedPatch& of : weights.all()) {
        CHECK(of.patch < grid.num_patches());
        CHECK(of.weight >= 0);
        sum += of.weight;
      }
      CHECK(sum == doctest::Approx(1).epsilon(1e-12));
    }
    // a pixel just inside of the left edge of the square, far from its other edges
    grid.weigh(image, kLeft, kTop + 12, weights);
    double inside = 0;
    for (const WeightedPatch& of : weights.all())
      inside += grid.xs[of.patch % grid.xs.size()] > kLeft ? of.weight : 0;
    if (way == PixelUpsampling::guided) {
      CHECK(inside > 0.95);
    } else {
      CHECK(inside < 0.7);
    }
  }
}

TEST_CASE("pixels: shifted passes are the features of the moved image") {
  const Image image = sample();
  const PixelFeatures shifted =
      PixelExtractor(shipped_model(), native({.upsampling = PixelUpsampling::shift, .shifts = 2}), 1)
          .extract(image);
  // Patches of 4 pixels in two passes: moved by -1 and 1 pixels, so centers lie at 1, 3, 5, ...; that of the
  // pass moved by one pixel to the right and down, patch (r, c), is at 4 c + 3.
  Image moved(kHeight, kWidth);
  for (std::size_t y = 0; y < kHeight; ++y) {
    for (std::size_t x = 0; x < kWidth; ++x)
      std::copy_n(image.row(std::min(y + 1, kHeight - 1)) + 3 * std::min(x + 1, kWidth - 1), 3,
                  moved.row(y) + 3 * x);
  }
  const PixelFeatures plain = PixelExtractor(shipped_model(), native(), 1).extract(moved);
  const auto between = [](const PixelFeatures& of, std::size_t x, std::size_t y) {
    // at a corner of four pixels, their mean is the value there
    std::vector<float> sum(of.num_features());
    for (std::size_t i = 0; i < 4; ++i) {
      const std::vector<float> at = features_at(of, x - i % 2, y - i / 2);
      for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += at[c] / 4;
    }
    return sum;
  };
  // Interpolation is not linear across a center, so values are compared as interpolated around it: with steps
  // of 2 and of 4 pixels the four pixels at a center have the weights 3/4 and 7/8 for it on each axis.
  const std::vector<float> fine = between(shifted, 4 * 5 + 3, 4 * 4 + 3);
  const std::vector<float> coarse = between(plain, 4 * 5 + 2, 4 * 4 + 2);
  double difference = 0, size = 0;
  for (std::size_t c = 0; c < fine.size(); ++c) {
    difference += std::pow(static_cast<double>(fine[c] - coarse[c]), 2.0);
    size += std::pow(static_cast<double>(coarse[c]), 2.0);
  }
  CHECK(std::sqrt(difference / size) < 0.25);
  const PixelFeatures single =
      PixelExtractor(shipped_model(), native({.upsampling = PixelUpsampling::shift, .shifts = 1}), 1)
          .extract(image);
  const PixelFeatures bilinear = PixelExtractor(shipped_model(), native(), 1).extract(image);
  CHECK(features_at(single, 33, 21) == features_at(bilinear, 33, 21));
}

TEST_CASE("pixels: layers, scales and colors are joined in this order") {
  const Image image = sample();
  const PixelFeatures joined =
      PixelExtractor(shipped_model(), native({.layers = {1, 3}, .scales = {1.0, 0.5}, .color = true}), 1)
          .extract(image);
  const PixelFeatures first = PixelExtractor(shipped_model(), native({.layers = {1}}), 1).extract(image);
  const PixelFeatures second = PixelExtractor(shipped_model(), native({.layers = {3}}), 1).extract(image);
  const PixelFeatures half =
      PixelExtractor(shipped_model(), native({.layers = {1, 3}, .scales = {0.5}}), 1).extract(image);
  std::vector<float> expected = features_at(first, 31, 17);
  const auto append = [&](const std::vector<float>& more) {
    expected.insert(expected.end(), more.begin(), more.end());
  };
  append(features_at(second, 31, 17));
  append(features_at(half, 31, 17));
  for (std::size_t c = 0; c < 3; ++c)
    expected.push_back(static_cast<float>(image.row(17)[3 * 31 + c]) / 255.0f);
  CHECK(features_at(joined, 31, 17) == expected);
}

TEST_CASE("pixels: strokes are connected by edges and corners, of one class") {
  Tensor<std::int32_t> labels(Shape{4, 5});
  const std::int32_t values[] = {0,  -1, 1,  1,  -1,  //
                                 -1, 0,  -1, -1, 0,   //
                                 1,  -1, 0,  -1, 0,   //
                                 1,  -1, -1, -1, -1};
  std::ranges::copy(values, labels.data());
  const std::vector<std::int32_t> expected{0, -1, 1, 1,  -1, -1, 0,  -1, -1, 2,
                                           3, -1, 0, -1, 2,  3,  -1, -1, -1, -1};
  CHECK(std::ranges::equal(strokes_of(labels).flat(), expected));
}

TEST_CASE("pixels: a row is the mean of the pixels of a class and stroke at one patch") {
  const Image image = sample();
  const PixelFeatures features = PixelExtractor(shipped_model(), native({.color = true}), 1).extract(image);
  Tensor<std::int32_t> labels = no_labels(image);
  paint(labels, 1, 9, 8, 2, 3);    // in the patch of columns 8 to 11 and rows 8 to 11
  paint(labels, 0, 40, 20, 8, 1);  // in two patches
  PixelTrainer trainer;
  trainer.add(features, labels, 2);
  CHECK(trainer.num_images() == 1);
  CHECK(trainer.num_pixels() == 14);
  REQUIRE(trainer.classes().size() == 3);
  CHECK(trainer.classes()[0] == 1);
  std::vector<double> mean(features.num_features());
  for (std::size_t y = 8; y < 11; ++y) {
    for (std::size_t x = 9; x < 11; ++x) {
      const std::vector<float> at = features_at(features, x, y);
      for (std::size_t c = 0; c < mean.size(); ++c) mean[c] += static_cast<double>(at[c]) / 6;
    }
  }
  for (std::size_t c = 0; c < mean.size(); ++c)
    CHECK(static_cast<double>(trainer.rows().row(0)[c]) == doctest::Approx(mean[c]).epsilon(1e-6));
}

TEST_CASE("pixels: classes are those of the head for the features of each pixel") {
  const Image image = sample();
  const Tensor<std::int32_t> labels = strokes_on(image, kLeft, kTop, kEdge);
  const PixelOptions cases[]{native(), native({.upsampling = PixelUpsampling::shift}),
                             native({.upsampling = PixelUpsampling::guided}),
                             native({.layers = {1, 3}, .scales = {1.0, 1.5}, .color = true})};
  for (const PixelOptions& options : cases) {
    for (const FitMethod method : {FitMethod::logistic, FitMethod::centroid}) {
      CAPTURE(to_string(options.upsampling));
      CAPTURE(to_string(method));
      const PixelFeatures features = PixelExtractor(shipped_model(), options, 1).extract(image);
      const PixelHead head = fitted(features, labels, method);
      const Tensor<std::int32_t> classes = head.classes(features, 1);
      const Tensor<float> probabilities = head.probabilities(features, 2);
      CHECK(overlap(classes, kLeft, kTop, kEdge) > 0.7);
      CHECK(std::ranges::equal(classes.flat(), head.classes(features, 3).flat()));
      std::vector<float> values(2);
      for (std::size_t i = 0; i < kHeight * kWidth; i += 37) {
        const std::size_t x = i % kWidth, y = i / kWidth;
        head.classifier.apply(features_at(features, x, y), values);
        const std::vector<double> expected = softmax(values);
        for (std::size_t k = 0; k < 2; ++k) {
          // float32 features, of a sum over some hundred, and float32 logits of the other way
          CHECK(static_cast<double>(probabilities.view()[k].row(y)[x]) ==
                doctest::Approx(expected[k]).epsilon(1e-3));
        }
        if (std::abs(expected[0] - 0.5) > 1e-3)
          CHECK(classes.view().row(y)[x] == (expected[1] > expected[0] ? 1 : 0));
      }
    }
  }
}

TEST_CASE("pixels: patches that were computed elsewhere have the features of an extractor") {
  const Image image = sample();
  for (const PixelUpsampling upsampling : {PixelUpsampling::bilinear, PixelUpsampling::guided}) {
    const PixelOptions options = native({.upsampling = upsampling, .color = true});
    const PixelFeatures features = PixelExtractor(shipped_model(), options, 1).extract(image);
    const PixelFeatures again = PixelFeatures::of(image, options, features.patches());
    REQUIRE(again.num_features() == features.num_features());
    for (std::size_t i = 0; i < kHeight * kWidth; i += 29)
      CHECK(features_at(again, i % kWidth, i / kWidth) == features_at(features, i % kWidth, i / kWidth));
    PixelPatches patches = features.patches();
    patches.xs = patches.xs.first(patches.xs.size() - 1);
    CHECK(test::error_of([&] { PixelFeatures::of(image, options, patches); })->kind() == ErrorKind::mismatch);
  }
  const PixelFeatures features = PixelExtractor(shipped_model(), native(), 1).extract(image);
  const PixelOptions shifted{.upsampling = PixelUpsampling::shift}, scaled{.scales = {1.0, 0.5}};
  for (const PixelOptions& options : {shifted, scaled})
    CHECK(test::error_of([&] { PixelFeatures::of(image, options, features.patches()); })->kind() ==
          ErrorKind::argument);
}

TEST_CASE("pixels: neighbors vote for patches, and their shares are interpolated") {
  const Image image = sample();
  const PixelFeatures features = PixelExtractor(shipped_model(), native(), 1).extract(image);
  const PixelHead head =
      fitted(features, strokes_on(image, kLeft, kTop, kEdge), FitMethod::knn, {.neighbors = 5});
  const Tensor<float> probabilities = head.probabilities(features, 2);
  CHECK(overlap(head.classes(features, 1), kLeft, kTop, kEdge) > 0.7);
  // of the pixel at the corner, which has the value of its patch
  std::vector<float> values(2);
  head.classifier.apply(features_at(features, 2, 2), values);
  CHECK(static_cast<double>(probabilities.view()[1].row(0)[0]) ==
        doctest::Approx(softmax(values)[1]).epsilon(1e-5));
}

TEST_CASE("pixels: the head of labeled pixels is that of their rows") {
  const Image image = sample();
  const PixelFeatures features = PixelExtractor(shipped_model(), native(), 1).extract(image);
  PixelTrainer trainer;
  trainer.add(features, strokes_on(image, kLeft, kTop, kEdge));
  for (const double strength : {0.1, 10.0}) {
    const PixelHead head = trainer.fit(FitMethod::logistic, {.strength = strength, .threads = 1});
    const ClassifierHead rows =
        fit_linear(trainer.rows(), trainer.classes(), {.strength = strength, .num_folds = 0, .threads = 1});
    CHECK(std::ranges::equal(head.classifier.coefficients.flat(), rows.coefficients.flat()));
    CHECK(std::ranges::equal(head.classifier.intercepts.flat(), rows.intercepts.flat()));
  }
}

TEST_CASE("pixels: functions of vectors of length one pass through the origin") {
  const Image image = sample();
  const PixelFeatures features =
      PixelExtractor(shipped_model(), with_unit_length({.layers = {1, 3}}), 1).extract(image);
  const TensorView<const float> patches = features.patches().features;
  for (const std::size_t first : {std::size_t{0}, patches.num_columns() / 2}) {  // of each layer
    const float* const layer = patches.row(5) + first;
    CHECK(std::inner_product(layer, layer + patches.num_columns() / 2, layer, 0.0) ==
          doctest::Approx(1.0).epsilon(1e-6));
  }
  PixelTrainer trainer;
  trainer.add(features, strokes_on(image, kLeft, kTop, kEdge));
  for (const FitMethod method : {FitMethod::logistic, FitMethod::centroid}) {
    const PixelHead head = trainer.fit(method, {.strength = 2.0, .threads = 1});
    CHECK(overlap(head.classes(features, 1), kLeft, kTop, kEdge) > 0.7);
    for (const float scale : head.classifier.scale.flat()) REQUIRE(scale == 1.0f);
    for (const float mean : head.classifier.mean.flat()) REQUIRE(mean == 0.0f);
    if (method == FitMethod::centroid) continue;
    for (const float intercept : head.classifier.intercepts.flat()) CHECK(intercept == 0.0f);
    const ClassifierHead rows = fit_linear(trainer.rows(), trainer.classes(),
                                           {.strength = 2.0,
                                            .num_folds = 0,
                                            .threads = 1,
                                            .standardize = false,
                                            .intercept = false,
                                            .balanced = true});
    CHECK(std::ranges::equal(head.classifier.coefficients.flat(), rows.coefficients.flat()));
    const ClassifierHead plain = fit_linear(trainer.rows(), trainer.classes(),
                                            {.strength = 2.0, .num_folds = 0, .standardize = false});
    CHECK(plain.intercepts.data()[0] != 0.0f);
  }
}

TEST_CASE("pixels: what is held out are images, else strokes, else nothing") {
  const Image image = sample(), other = square_image(kHeight, kWidth, 8, 16, 24);
  PixelExtractor extractor(shipped_model(), native(), 1);
  const PixelFeatures features = extractor.extract(image), more = extractor.extract(other);
  PixelTrainer trainer;
  trainer.add(features, strokes_on(image, kLeft, kTop, kEdge));
  for (const FitMethod method : {FitMethod::logistic, FitMethod::knn, FitMethod::centroid}) {
    const PixelHead head = trainer.fit(method);
    CHECK(head.held_out == HeldOut::strokes);
    CHECK(head.classifier.num_folds == 2);
    CHECK(head.cross_validated_iou.value() > 0.8);
  }
  trainer.add(more, strokes_on(other, 8, 16, 24));
  trainer.add(more, no_labels(other));  // which has none, and does not count
  const PixelHead head = trainer.fit();
  CHECK(head.held_out == HeldOut::images);
  CHECK(head.num_images == 2);
  CHECK(head.classifier.num_folds == 2);
  CHECK(head.cross_validated_iou.value() > 0.8);

  PixelTrainer single;
  Tensor<std::int32_t> labels = no_labels(image);
  paint(labels, 0, 1, 1, 10, 2);
  paint(labels, 1, kLeft + 4, kTop + 4, 10, 2);
  single.add(features, labels);
  const PixelHead plain = single.fit();
  CHECK(plain.held_out == HeldOut::nothing);
  CHECK(!plain.cross_validated_iou);
  CHECK(plain.classifier.strength == 1.0);
}

TEST_CASE("pixels: a head is saved with all that it needs") {
  const test::TemporaryFolder folder;
  const Image image = sample();
  const PixelOptions options =
      native({.layers = {1, 3}, .scales = {1.0, 0.5}, .upsampling = PixelUpsampling::guided, .color = true});
  const PixelFeatures features = PixelExtractor(shipped_model(), options, 1).extract(image);
  for (const FitMethod method : {FitMethod::logistic, FitMethod::knn}) {
    PixelHead head = fitted(features, strokes_on(image, kLeft, kTop, kEdge), method);
    head.classifier.labels = {"ground", "square"};
    head.sources = {"3", "7"};
    head.attach(*shipped_model());
    const auto path = folder.path() / "head.safetensors";
    head.save(path);
    CHECK(test::read_text(path) == head.bytes());
    const PixelHead loaded = PixelHead::load(path);
    loaded.check(*shipped_model());
    CHECK(loaded.classifier.labels == head.classifier.labels);
    CHECK(loaded.sources == head.sources);
    CHECK(loaded.held_out == HeldOut::strokes);
    CHECK(loaded.cross_validated_iou == head.cross_validated_iou);
    CHECK(loaded.num_pixels == head.num_pixels);
    CHECK(loaded.options.layers == options.layers);
    CHECK(std::ranges::equal(loaded.probabilities(features).flat(), head.probabilities(features).flat()));
    // a head of pixels is none of images
    CHECK(test::error_of([&] { load_head(path); })->kind() == ErrorKind::mismatch);
    const PixelFeatures others = PixelExtractor(shipped_model(), native(), 1).extract(image);
    const auto error = test::error_of([&] { loaded.classes(others); });
    REQUIRE(error);
    CHECK(test::contains(error->what(), "block.1,block.3"));
    CHECK(test::contains(error->what(), "patches, size native"));
    const auto stranger = Model::load(test::data_path("golden/models/hf-dinov3"));
    CHECK(test::error_of([&] { loaded.check(*stranger); })->kind() == ErrorKind::mismatch);
  }
  const auto images = folder.path() / "images.safetensors";
  Tensor<float> rows(Shape{4, 2});
  rows.data()[0] = 1;
  save_head(images, fit_centroid(rows, std::vector<std::uint32_t>{0, 1, 0, 1}, {.num_folds = 0}));
  CHECK(test::error_of([&] { PixelHead::load(images); })->kind() == ErrorKind::mismatch);
}

TEST_CASE("pixels: an example finds what is like it") {
  const Image image = sample(), other = square_image(kHeight, kWidth, 36, 20, 24);
  PixelExtractor extractor(shipped_model(), with_unit_length(), 1);
  Tensor<std::int32_t> labels(Shape{kHeight, kWidth});
  paint(labels, 1, kLeft, kTop, kEdge, kEdge);
  PixelTrainer trainer;
  trainer.add(extractor.extract(image), labels);
  const PixelHead head = trainer.fit_example();
  CHECK(overlap(head.classes(extractor.extract(image)), kLeft, kTop, kEdge) > 0.7);
  CHECK(overlap(head.classes(extractor.extract(other)), 36, 20, 24) > 0.6);
}

TEST_CASE("pixels: sizes show the whole image") {
  // rules that crop: the shortest edge, in whole patches, in the ratio of the image
  const Image image = square_image(60, 120, 70, 20, 20);
  const PixelFeatures features =
      PixelExtractor(shipped_model(), {.size = {InputSize::Kind::fixed, 48, 48}}, 1).extract(image);
  Tensor<std::int32_t> labels = no_labels(image);
  paint(labels, 0, 2, 2, 30, 3);
  paint(labels, 1, 74, 24, 12, 12);
  CHECK(overlap(fitted(features, labels).classes(features), 70, 20, 20) > 0.5);
  // of one size only: the squashed image
  const auto fixed = Model::load(test::data_path("golden/models/hf-vit"));
  const PixelFeatures squashed = PixelExtractor(fixed, {}, 1).extract(image);
  CHECK(squashed.size() == image.size());
}

TEST_CASE("pixels: wrong use is named") {
  const Image image = sample();
  PixelExtractor extractor(shipped_model(), native(), 1);
  const PixelFeatures features = extractor.extract(image);
  const auto error = [&](const Tensor<std::int32_t>& labels) {
    return test::message_of([&] { fitted(features, labels); });
  };
  CHECK(test::contains(error(no_labels(image)), "no pixel is labeled"));
  Tensor<std::int32_t> labels = no_labels(image);
  paint(labels, 0, 0, 0, 5, 5);
  CHECK(test::contains(error(labels), "of one class"));
  paint(labels, 2, 8, 8, 5, 5);
  CHECK(test::contains(error(labels), "class 1 of 3 has no labeled pixel"));
  labels.view().row(3)[4] = -7;
  CHECK(test::contains(error(labels), "label -7 at pixel 4,3"));
  CHECK(test::contains(error(Tensor<std::int32_t>(Shape{48, 63})), "(48, 63)"));
  PixelTrainer trainer;
  trainer.add(features, no_labels(image));
  labels = strokes_on(image, kLeft, kTop, kEdge);
  trainer.add(features, labels);
  const PixelFeatures colored = PixelExtractor(shipped_model(), native({.color = true}), 1).extract(image);
  CHECK(test::contains(test::message_of([&] { trainer.add(colored, labels); }), "color"));
  CHECK(test::contains(test::message_of([&] { trainer.fit_example(); }), "unit_length"));
  CHECK(test::contains(test::message_of([&] { PixelExtractor(shipped_model(), {.layers = {99}}); }),
                       "layer 99"));
  CHECK(test::contains(test::message_of([&] { PixelExtractor(shipped_model(), {.scales = {0.0}}); }),
                       "scales"));
  CHECK(test::contains(test::message_of([&] {
                         PixelExtractor(shipped_model(), {.upsampling = PixelUpsampling::shift, .shifts = 9});
                       }),
                       "shifts"));
  CHECK(test::contains(test::message_of([&] {
                         PixelExtractor(shipped_model(), {.upsampling = static_cast<PixelUpsampling>(4)});
                       }),
                       "upsampling is 4"));
  CHECK(test::contains(test::message_of([&] { trainer.fit(static_cast<FitMethod>(9)); }), "method is 9"));
}

TEST_CASE("pixels: what was moved from, and heads that contradict themselves, are errors") {
  const Image image = sample();
  PixelExtractor extractor(shipped_model(), native(), 1);
  PixelFeatures features = extractor.extract(image);
  const Tensor<std::int32_t> labels = strokes_on(image, kLeft, kTop, kEdge);
  PixelTrainer trainer;
  trainer.add(features, labels, 1);
  PixelHead head = trainer.fit();
  const test::TemporaryFolder folder;
  for (const std::size_t count : {1, 8}) {
    head.classifier.labels.assign(count, "a");
    CHECK_ERROR(ErrorKind::argument, ("labels with coefficients"), head.classes(features, 1));
    CHECK_ERROR(ErrorKind::argument, ("labels with coefficients"), head.probabilities(features, 1));
    CHECK_ERROR(ErrorKind::argument, ("labels with coefficients"), head.save(folder.path() / "head"));
  }
  head.classifier.labels.resize(2);
  const PixelTrainer taken_trainer = std::move(trainer);
  CHECK_ERROR(ErrorKind::argument, ("moved from"), trainer.add(features, labels, 1));
  CHECK_ERROR(ErrorKind::argument, ("moved from"), trainer.num_pixels());
  CHECK_ERROR(ErrorKind::argument, ("moved from"), trainer.fit());
  const PixelFeatures taken_features = std::move(features);
  CHECK_ERROR(ErrorKind::argument, ("moved from"), features.size());
  CHECK_ERROR(ErrorKind::argument, ("moved from"), head.classes(features, 1));
  const PixelExtractor taken_extractor = std::move(extractor);
  CHECK_ERROR(ErrorKind::argument, ("moved from"), extractor.extract(image));
  CHECK_ERROR(ErrorKind::argument, ("moved from"), extractor.model());
}

}  // namespace vit

TEST_SUITE_END();
