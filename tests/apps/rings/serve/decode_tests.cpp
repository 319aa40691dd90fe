// The processes that decode: the pixels of the library, its errors, and nothing of another image.
#include <doctest/doctest.h>

#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "apps/vit/rings/serve/work/decode_pool.h"
#include "apps/vit/rings/serve/work/decode_worker.h"
#include "tests/apps/rings/serve/server.h"
#include "tests/support/files.h"
#include "tests/support/shared_data.h"

TEST_SUITE_BEGIN("serve");

using namespace vit;
using namespace vit::app;
using namespace vit::test;

namespace {

std::chrono::steady_clock::time_point soon() {
  return std::chrono::steady_clock::now() + std::chrono::seconds(20);
}

/// Whole images: what is seen is what the decoder gave.
PreprocessConfig whole_images() {
  PreprocessConfig config;
  config.resize = ResizeRule::none;
  config.crop = false;
  config.subtract_mean = false;
  return config;
}

bool have_same_bits(const Tensor<float>& a, const Tensor<float>& b) {
  return a.shape() == b.shape() && std::memcmp(a.data(), b.data(), a.num_elements() * sizeof(float)) == 0;
}

/// Nothing where the file is refused.
std::optional<Tensor<float>> pixels_of(DecodePool& pool, std::string_view file) {
  try {
    return pool.decode(0, file, {.model = 0}, soon()).pixels;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

TEST_CASE("serve: processes give the pixels and the errors of the library") {
  const std::vector<std::optional<Preprocessor>> preprocessors{Preprocessor(whole_images())};
  DecodePool pool(preprocessors, {.processes = 2, .max_file_bytes = 1 << 20, .confined = has_sandbox()});
  CHECK(pool.size() == 2);
  for (const char* const name : {"full.heic", "alpha.heic"}) {
    const std::filesystem::path path = data_path("golden/preprocess/decode") / name;
    PreprocessMemory memory;
    const FilePixels expected = preprocessors[0]->run_file(path, memory);
    const FilePixels found = pool.decode(1, read_text(path), {.model = 0}, soon());
    CHECK(have_same_bits(found.pixels, expected.pixels));
    CHECK(found.image_size == expected.image_size);
  }
  try {
    pool.decode(0, "no image", {.model = 0}, soon());
    FAIL("no Error");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::format);
    CHECK(contains(error.what(), "not an image"));
  }
  CHECK_THROWS_AS(pool.decode(0, std::string((1 << 20) + 4097, 'x'), {.model = 0}, soon()), Error);
  CHECK(pool.num_restarts() == 0);
}

TEST_CASE("serve: a file that takes too long costs itself only") {
  const TestFolder folder;
  write_picture(folder / "large.ppm", 4000, 4000, 1);
  write_picture(folder / "small.ppm", 10, 10, 1);
  const std::vector<std::optional<Preprocessor>> preprocessors{Preprocessor(whole_images())};
  DecodePool pool(preprocessors,
                  {.processes = 1, .max_file_bytes = std::size_t{64} << 20, .confined = has_sandbox()});
  const auto now = std::chrono::steady_clock::now();
  CHECK_THROWS_AS(pool.decode(0, read_text(folder / "large.ppm"), {.model = 0}, now), Error);
  CHECK(pixels_of(pool, read_text(folder / "small.ppm")));
}

// Of these files libde265 1.0.11 leaves 15 % of the frame as it found the memory: in a process that has
// decoded the other image, parts of that. They were found among random damages of an image of the same size,
// as heif-enc writes it.
TEST_CASE("serve: a damaged HEIC shows nothing of an image before it") {
  const std::filesystem::path folder = source_path("tests/apps/rings/serve/heic");
  const std::string secret = read_text(folder / "secret.heic");
  const std::vector<std::optional<Preprocessor>> preprocessors{Preprocessor(whole_images())};
  DecodePool used(preprocessors, {.processes = 1, .confined = has_sandbox()});
  for (const char* const name : {"damaged_1.heic", "damaged_2.heic"}) {
    CAPTURE(name);
    const std::string damaged = read_text(folder / name);
    DecodePool fresh(preprocessors, {.processes = 1, .confined = has_sandbox()});
    const std::optional<Tensor<float>> expected = pixels_of(fresh, damaged);
    REQUIRE(pixels_of(used, secret));
    const std::optional<Tensor<float>> after = pixels_of(used, damaged);
    REQUIRE(expected.has_value() == after.has_value());
    if (expected) CHECK(have_same_bits(*expected, *after));
  }
  CHECK(used.num_restarts() == 0);
}

TEST_CASE("serve: immich's rules of resizing, cropping and scaling") {
  const TestFolder folder;
  write_picture(folder / "a.ppm", 61, 100, 3);
  const std::string file = read_text(folder / "a.ppm");
  PreprocessConfig config;
  config.crop_height = config.crop_width = 32;
  config.mean = {0.1, 0.2, 0.3};
  config.std = {0.5, 0.4, 0.3};
  PreprocessMemory memory;
  const auto by_rules = [&](ImageRules rules) {
    return run_by_immich_rules(config, rules, std::as_bytes(std::span(file)), memory);
  };
  const FilePixels found = by_rules(ImageRules::immich);
  CHECK(found.image_size == ImageSize{61, 100});
  CHECK(found.pixels.shape() == Shape{3, 32, 32});
  // 100 / 61 * 32 = 52.46 columns, of which those from int(52 / 2 - 16) = 10 on are kept
  PreprocessConfig expected = config;
  expected.resize = ResizeRule::squash;
  expected.resize_height = 32;
  expected.resize_width = 52;
  expected.crop_rounding = CropRounding::floor;
  const auto pixels_by = [&](const PreprocessConfig& rules) {
    return Preprocessor(rules).run_bytes(std::as_bytes(std::span(file)), "a", memory).pixels;
  };
  CHECK(have_same_bits(found.pixels, pixels_by(expected)));
  CHECK(have_same_bits(by_rules(ImageRules::immich_model).pixels, found.pixels));
  // a model that squashes, with another filter: releases pass over both
  config.resize = ResizeRule::squash;
  config.filter = ResizeFilter::bilinear;
  CHECK(have_same_bits(by_rules(ImageRules::immich).pixels, found.pixels));
  expected.resize_width = 32;
  expected.filter = ResizeFilter::bilinear;
  CHECK(have_same_bits(by_rules(ImageRules::immich_model).pixels, pixels_by(expected)));
}
