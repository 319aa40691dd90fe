// Pixel formats, strides and reused memory of preprocessing: every format gives the bytes of its conversion
// to RGB, and warm runs allocate nothing.
#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <type_traits>
#include <vector>

#include "tests/support/allocation_count.h"
#include "vit/image/image.h"
#include "vit/image/preprocess.h"

namespace {

using vit::PixelFormat;

constexpr PixelFormat kFormats[] = {PixelFormat::rgb, PixelFormat::bgr, PixelFormat::rgba, PixelFormat::bgra,
                                    PixelFormat::gray};

/// Random pixels with random bytes between the rows.
struct Pixels {
  vit::ImageView view() const& { return {bytes.data(), height, width, layout}; }

  std::size_t height = 0;
  std::size_t width = 0;
  vit::PixelLayout layout;
  std::vector<std::uint8_t> bytes;
};

Pixels random_pixels(std::size_t height, std::size_t width, PixelFormat format) {
  Pixels pixels{.height = height, .width = width, .layout = {.format = format}, .bytes = {}};
  pixels.layout.row_stride = width * vit::bytes_per_pixel(format) + 5;
  pixels.bytes.resize(height * pixels.layout.row_stride);
  std::mt19937 random(23);
  for (std::uint8_t& byte : pixels.bytes) byte = static_cast<std::uint8_t>(random() >> 24);
  return pixels;
}

bool same_numbers(const vit::Tensor<float>& a, const vit::Tensor<float>& b) {
  return a.shape() == b.shape() && std::memcmp(a.data(), b.data(), a.num_elements() * sizeof(float)) == 0;
}

/// Rules that use every path: both 8-bit resamplers, nearest, no resize with padding, and floats.
std::vector<vit::PreprocessConfig> all_rules() {
  std::vector<vit::PreprocessConfig> rules(5);
  rules[1].resampler = vit::Resampler::torchvision_uint8;
  rules[1].filter = vit::ResizeFilter::bilinear;
  rules[2].filter = vit::ResizeFilter::nearest;
  rules[3].resize = vit::ResizeRule::none;
  rules[3].crop_pad_color = {1, 2, 3};
  rules[4].resampler = vit::Resampler::torchvision_float;
  rules[4].normalize = vit::NormalizeRule::rescale_first;
  return rules;
}

}  // namespace

static_assert(!std::is_convertible_v<vit::Image, vit::ImageView>);
static_assert(std::is_convertible_v<vit::Image&, vit::ImageView>);
static_assert(std::is_convertible_v<const vit::Image&, vit::ImageView>);

TEST_CASE("image: every pixel format becomes RGB, transparency dropped or on white") {
  const std::uint8_t rgba[] = {10, 20, 30, 255, 10, 20, 30, 0, 10, 20, 30, 128};
  const vit::Image dropped = vit::to_rgb({rgba, 1, 3, {.format = PixelFormat::rgba}});
  CHECK(std::memcmp(dropped.data(), "\x0A\x14\x1E\x0A\x14\x1E\x0A\x14\x1E", 9) == 0);
  const vit::Image on_white = vit::to_rgb({rgba, 1, 3, {.format = PixelFormat::bgra}}, vit::Alpha::on_white);
  const std::uint8_t expected[] = {30, 20, 10, 255, 255, 255, 142, 137, 132};  // Pillow's alpha_composite
  CHECK(std::memcmp(on_white.data(), expected, 9) == 0);
  const vit::Image grey = vit::to_rgb({rgba, 1, 2, {.format = PixelFormat::gray}});
  CHECK(std::memcmp(grey.data(), "\x0A\x0A\x0A\x14\x14\x14", 6) == 0);
}

TEST_CASE("image: preprocessing of every pixel format is that of the image converted to RGB") {
  for (vit::PreprocessConfig config : all_rules()) {
    for (const bool on_white : {false, true}) {
      config.alpha_on_white = on_white;
      const vit::Preprocessor preprocessor(config);
      for (const PixelFormat format : kFormats) {
        const Pixels pixels = random_pixels(171, 260, format);
        const vit::Image rgb = vit::to_rgb(pixels.view(), on_white ? vit::Alpha::on_white : vit::Alpha::drop);
        CAPTURE(preprocessor.describe());
        CAPTURE(static_cast<int>(format));
        CHECK(same_numbers(preprocessor.run(pixels.view()), preprocessor.run(rgb)));
        if (!preprocessor.has_crop_stage()) continue;
        const vit::Image stage = preprocessor.crop_stage(pixels.view());
        const vit::Image expected = preprocessor.crop_stage(rgb);
        CHECK(std::memcmp(stage.data(), expected.data(), expected.height() * expected.row_stride()) == 0);
      }
    }
  }
}

TEST_CASE("image: rows that do not fit their stride and pixels that are not there are Errors") {
  const std::uint8_t bytes[16] = {};
  CHECK_NOTHROW(vit::ImageView(bytes, 2, 2, {.format = PixelFormat::rgba}));
  CHECK_THROWS_AS(vit::ImageView(bytes, 2, 2, {.format = PixelFormat::rgba, .row_stride = 7}), vit::Error);
  CHECK_THROWS_AS(vit::ImageView(nullptr, 2, 2), vit::Error);
  CHECK_NOTHROW(vit::ImageView(nullptr, 0, 2));
}

TEST_CASE("image: a warm preprocessor allocates nothing, and reused memory changes nothing") {
  for (const vit::PreprocessConfig& config : all_rules()) {
    const vit::Preprocessor preprocessor(config);
    CAPTURE(preprocessor.describe());
    vit::PreprocessMemory memory;
    const vit::ImageSize sizes[] = {{171, 260}, {300, 200}};
    vit::Tensor<float> out(vit::Shape{3, 224, 224});
    for (const int threads : {1, 2}) {
      std::size_t warm_bytes = 0;
      for (int round = 0; round < 3; ++round) {
        for (const vit::ImageSize size : sizes) {
          for (const PixelFormat format : kFormats) {
            const Pixels pixels = random_pixels(size.height, size.width, format);
            const std::size_t before = vit::test::allocation_count();
            preprocessor.run(pixels.view(), out.view(), memory, threads);
            if (round > 0) CHECK(vit::test::allocation_count() == before);
            CHECK(same_numbers(out, preprocessor.run(pixels.view())));
          }
        }
        if (round > 0) CHECK(memory.bytes() == warm_bytes);
        warm_bytes = memory.bytes();
      }
    }
  }
}

TEST_CASE("image: memory for an absurdly large image is given back") {
  vit::PreprocessConfig config;
  config.resize_height = config.resize_width = 16;
  config.crop_height = config.crop_width = 16;
  const vit::Preprocessor preprocessor(config);
  vit::PreprocessMemory memory;
  vit::Tensor<float> out(vit::Shape{3, 16, 16});
  const std::vector<std::uint8_t> grey(std::size_t{9500} * 9500, 7);
  const vit::ImageView large(grey.data(), 9500, 9500, {.format = PixelFormat::gray});  // RGB: 258 MiB
  preprocessor.run(large, out.view(), memory);
  CHECK(memory.bytes() == 0);
  CHECK(same_numbers(out, preprocessor.run(large)));
}
