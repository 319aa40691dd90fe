// Learned upsamplers against the published classes in float64, and files and images that they refuse.
#include "vit/pixel_upsampler.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "tests/support/archive_writer.h"
#include "tests/support/files.h"
#include "tests/support/shared_data.h"
#include "vit/io/json.h"
#include "vit/io/json_writer.h"
#include "vit/io/pickle.h"
#include "vit/io/safetensors.h"
#include "vit/pixels.h"

TEST_SUITE_BEGIN("fit");

namespace vit {

using namespace internal;

TEST_CASE("upsamplers: features of pixels are those of the published networks, for any number of threads") {
  for (const std::string name : {"naf", "anyup", "jafar"}) {
    CAPTURE(name);
    const std::shared_ptr<const PixelUpsampler> upsampler =
        PixelUpsampler::load(test::data_path("golden/upsamplers/" + name + ".pth"));
    const TensorFile expected =
        open_safetensors(test::data_path("golden/upsamplers/" + name + ".expected.safetensors"));
    const Json errors = parse_json(expected.metadata().at("float32_errors"), name);
    for (const std::string kind : {"even", "uneven"}) {
      CAPTURE(kind);
      const TensorEntry& stored = expected.at(kind + ".image");
      Image image(stored.shape[0], stored.shape[1]);
      stored.bytes.read(
          0, std::as_writable_bytes(std::span(image.data(), 3 * stored.shape[0] * stored.shape[1])));
      const Tensor<float> features = to_float(expected.at(kind + ".features"));
      const Tensor<float> exact = to_float(expected.at(kind + ".pixels"));
      const Tensor<float> found = upsampler->upsample(image, features, 1);
      REQUIRE(found.shape() == exact.shape());
      float largest = 0, error = 0;
      for (std::size_t i = 0; i < exact.num_elements(); ++i) {
        largest = std::max(largest, std::abs(exact.data()[i]));
        error = std::max(error, std::abs(found.data()[i] - exact.data()[i]));
      }
      CHECK(static_cast<double>(error / largest) <= std::max(3e-6, 2 * errors.at(kind).as_double()));
      CHECK(std::ranges::equal(found.flat(), upsampler->upsample(image, features, 2).flat()));
    }
  }
}

TEST_CASE("upsamplers: a file without one, and images that a network is not for, are errors that say so") {
  CHECK_THROWS_WITH_AS((void)PixelUpsampler::load(test::data_path("golden/fit/fit.safetensors")),
                       doctest::Contains("no upsampler that is known"), Error);
  const auto naf = PixelUpsampler::load(test::data_path("golden/upsamplers/naf.pth"));
  CHECK(naf->name() == "NAF");
  const Image image(40, 40);
  CHECK_THROWS_WITH_AS((void)naf->upsample(image, Tensor<float>(Shape{5, 9, 8})), doctest::Contains("9 x 9"),
                       Error);
  CHECK_THROWS_WITH_AS((void)naf->upsample(image, Tensor<float>(Shape{9, 9, 6})),
                       doctest::Contains("4 parts"), Error);
  const auto jafar = PixelUpsampler::load(test::data_path("golden/upsamplers/jafar.pth"));
  CHECK_THROWS_WITH_AS((void)jafar->upsample(image, Tensor<float>(Shape{9, 9, 12})),
                       doctest::Contains("8 features"), Error);
}

TEST_CASE("upsamplers: damaged weights are errors that name the file and the tensor") {
  const test::TemporaryFolder folder;
  const TensorFile golden = open_pickle(test::data_path("golden/upsamplers/naf.pth"));
  const std::string damaged = "image_encoder.encoder.1.conv1.weight";
  const auto load = [&](bool is_narrow) {
    std::string header, numbers;
    for (const TensorEntry& entry : golden.entries()) {
      Tensor<float> values = to_float(entry);
      if (entry.name == damaged) values.data()[5] = std::nanf("");
      std::vector<std::size_t> shape = entry.shape;
      if (is_narrow && entry.name == damaged) {
        shape[0] /= 2;
        values = Tensor<float>(Shape(std::span<const std::size_t>(shape)));
      }
      const std::size_t begin = numbers.size();
      numbers.append(reinterpret_cast<const char*>(values.data()), values.num_elements() * sizeof(float));
      std::string sizes;
      for (const std::size_t size : shape) sizes += (sizes.empty() ? "" : ",") + std::to_string(size);
      header += (header.empty() ? "{" : ",") + json_string(entry.name) + R"(:{"dtype":"F32","shape":[)" +
                sizes + R"(],"data_offsets":[)" + std::to_string(begin) + "," +
                std::to_string(numbers.size()) + "]}";
    }
    return PixelUpsampler::load(
        folder.write("damaged.safetensors", test::safetensors(header + "}", numbers)));
  };
  CHECK_THROWS_WITH_AS((void)load(false), doctest::Contains("conv1.weight"), Error);
  CHECK_THROWS_WITH_AS((void)load(false), doctest::Contains("not all numbers are finite"), Error);
  CHECK_THROWS_WITH_AS((void)load(true), doctest::Contains("expected the shape"), Error);
  CHECK_THROWS_WITH_AS((void)load(true), doctest::Contains("damaged.safetensors"), Error);
}

TEST_CASE("upsamplers: tensors of layers that the network of the release has not are refused") {
  const test::TemporaryFolder folder;
  const TensorFile golden = open_pickle(test::data_path("golden/upsamplers/naf.pth"));
  const auto load_with = [&](const std::string& more) {
    std::vector<std::vector<std::byte>> bytes;
    std::vector<TensorToWrite> tensors;
    for (const TensorEntry& entry : golden.entries()) {
      bytes.push_back(entry.bytes.copy());
      tensors.push_back({entry.name, entry.dtype, entry.shape, bytes.back()});
    }
    const std::array<std::byte, 4> number{};
    tensors.push_back({more, Dtype::f32, {1}, number});
    write_safetensors(folder / "more.safetensors", tensors);
    return PixelUpsampler::load(folder / "more.safetensors");
  };
  CHECK_NOTHROW((void)load_with("discriminator.weight"));  // of no part of the network
  CHECK_THROWS_WITH_AS((void)load_with("image_encoder.encoder.3.conv1.weight"),
                       doctest::Contains("encoder.3.conv1.weight"), Error);
}

namespace {

constexpr std::size_t kHeight = 70, kWidth = 91, kRows = 9, kColumns = 11, kFeatures = 8;

Image drawn() {
  Image image(kHeight, kWidth);
  for (std::size_t i = 0; i < 3 * kHeight * kWidth; ++i)
    image.data()[i] = static_cast<std::uint8_t>((i * 37 + i / 300 * 11) % 251);
  return image;
}

Tensor<float> drawn_patches() {
  Tensor<float> patches(Shape{kRows, kColumns, kFeatures});
  for (std::size_t i = 0; i < patches.num_elements(); ++i)
    patches.data()[i] = static_cast<float>((i * 7919) % 101) / 50.0f - 1.0f;
  return patches;
}

/// Of patches that cover the image evenly.
PixelFeatures features_by(const std::shared_ptr<const PixelUpsampler>& upsampler, bool unit_length) {
  const Image image = drawn();
  const Tensor<float> patches = drawn_patches();
  std::vector<double> ys, xs;
  for (std::size_t r = 0; r < kRows; ++r)
    ys.push_back((static_cast<double>(r) + 0.5) * static_cast<double>(kHeight) / kRows);
  for (std::size_t c = 0; c < kColumns; ++c)
    xs.push_back((static_cast<double>(c) + 0.5) * static_cast<double>(kWidth) / kColumns);
  return PixelFeatures::of(
      image, {.upsampling = PixelUpsampling::learned, .upsampler = upsampler, .unit_length = unit_length},
      {.ys = ys, .xs = xs, .features = {patches.data(), Shape{kRows * kColumns, kFeatures}}});
}

/// The upper and the lower rows.
Tensor<std::int32_t> drawn_labels() {
  Tensor<std::int32_t> labels(Shape{kHeight, kWidth});
  for (std::size_t i = 0; i < labels.num_elements(); ++i)
    labels.data()[i] = i / kWidth < 8 ? 0 : i / kWidth > 60 ? 1 : -1;
  return labels;
}

}  // namespace

TEST_CASE("upsamplers: classes of pixels are those of the features that a network gives to pixels") {
  const Image image = drawn();
  const Tensor<float> patches = drawn_patches();
  const Tensor<std::int32_t> labels = drawn_labels();
  for (const std::string name : {"naf", "anyup", "jafar"}) {
    CAPTURE(name);
    const auto upsampler = PixelUpsampler::load(test::data_path("golden/upsamplers/" + name + ".pth"));
    const Tensor<float> expected = upsampler->upsample(image, patches);
    const PixelFeatures features = features_by(upsampler, /*unit_length=*/false);
    PixelTrainer trainer;
    trainer.add(features, labels);
    const PixelHead head = trainer.fit(FitMethod::logistic, {.strength = 1.0});
    const Tensor<float> found = head.probabilities(features, 1);
    CHECK(std::ranges::equal(found.flat(), head.probabilities(features, 2).flat()));
    std::vector<float> of_pixel(kFeatures), logits(2);
    float feature_error = 0, error = 0;
    for (std::size_t y = 0; y < kHeight; y += 3) {
      for (std::size_t x = 0; x < kWidth; x += 5) {
        features.at(x, y, of_pixel);
        const float* const exact = expected.view().row(y * kWidth + x);
        for (std::size_t c = 0; c < kFeatures; ++c)
          feature_error = std::max(feature_error, std::abs(of_pixel[c] - exact[c]));
        head.classifier.apply(of_pixel, logits);
        const float second = 1 / (1 + std::exp(logits[0] - logits[1]));
        error = std::max(error, std::abs(second - found.view()[1].row(y)[x]));
      }
    }
    CHECK(feature_error < 3e-6f);  // of values up to 1: the tiles, and the sums of tiles, are others
    CHECK(error < 1e-5f);
  }
}

// The weights of NAF follow from the image only, so that upsample() takes any values of patches.
TEST_CASE("upsamplers: vectors of patches of length one, and votes of neighbors, are upsampled as they are") {
  const Image image = drawn();
  const auto upsampler = PixelUpsampler::load(test::data_path("golden/upsamplers/naf.pth"));
  const PixelFeatures features = features_by(upsampler, /*unit_length=*/true);
  Tensor<float> patches = drawn_patches();
  for (std::size_t i = 0; i < kRows * kColumns; ++i) {
    const std::span<float> vector(patches.data() + i * kFeatures, kFeatures);
    double sum = 0;
    for (const float x : vector) sum += static_cast<double>(x) * static_cast<double>(x);
    for (float& x : vector) x = static_cast<float>(static_cast<double>(x) / std::sqrt(sum));
  }
  const Tensor<float> expected = upsampler->upsample(image, patches);
  std::vector<float> of_pixel(kFeatures);
  float feature_error = 0;
  for (std::size_t i = 0; i < kHeight * kWidth; i += 7) {
    features.at(i % kWidth, i / kWidth, of_pixel);
    for (std::size_t c = 0; c < kFeatures; ++c)
      feature_error = std::max(feature_error, std::abs(of_pixel[c] - expected.view().row(i)[c]));
  }
  CHECK(feature_error < 3e-6f);

  PixelTrainer trainer, other;
  trainer.add(features, drawn_labels(), 1);
  other.add(features, drawn_labels(), 2);
  CHECK(std::ranges::equal(std::span(trainer.rows().data(), trainer.rows().num_elements()),
                           std::span(other.rows().data(), other.rows().num_elements())));
  const PixelHead head = trainer.fit(FitMethod::knn, {.neighbors = 3});
  const Tensor<float> found = head.probabilities(features, 1);
  CHECK(std::ranges::equal(found.flat(), head.probabilities(features, 2).flat()));
  constexpr std::size_t kHeads = 4;  // of NAF: each has a part of the values
  Tensor<float> votes(Shape{kRows, kColumns, 2 * kHeads});
  for (std::size_t i = 0; i < kRows * kColumns; ++i) {
    const PixelPatches of = features.patches();
    features.at(static_cast<std::size_t>(of.xs[i % kColumns]), static_cast<std::size_t>(of.ys[i / kColumns]),
                of_pixel);
    std::vector<float> logits(2);
    head.classifier.apply(of_pixel, logits);
    for (std::size_t j = 0; j < 2 * kHeads; ++j)
      votes.data()[i * 2 * kHeads + j] = 1 / (1 + std::exp(logits[1 - j % 2] - logits[j % 2]));
  }
  const Tensor<float> shares = upsampler->upsample(image, votes);
  float error = 0, least = 1, most = 0;
  for (std::size_t i = 0; i < kHeight * kWidth; ++i) {
    float mean = 0;
    for (std::size_t g = 0; g < kHeads; ++g) mean += shares.view().row(i)[2 * g + 1] / kHeads;
    const float share = found.view()[1].row(i / kWidth)[i % kWidth];
    error = std::max(error, std::abs(mean - share));
    least = std::min(least, share);
    most = std::max(most, share);
  }
  CHECK(error < 3e-6f);
  CHECK(most - least > 0.1f);  // the votes differ
}

}  // namespace vit

TEST_SUITE_END();
