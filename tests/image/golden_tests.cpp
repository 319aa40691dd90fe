// The project's own golden images: decoding and preprocessing against Pillow, timm and transformers,
// without shared data. Made by tests/golden/make_preprocess_golden.py.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>

#include "tests/support/errors.h"
#include "tests/support/sha256.h"
#include "tests/support/shared_data.h"
#include "vit/image/preprocess.h"
#include "vit/io/json.h"
#include "vit/weights/checkpoint/checkpoint_folder.h"

namespace {

namespace fs = std::filesystem;

std::string digest(const vit::Image& image) {
  return vit::test::sha256(image.data(), image.height() * image.row_stride());
}

/// The formula of the script.
vit::Image synthetic(std::size_t height, std::size_t width) {
  vit::Image image(height, width);
  for (std::size_t y = 0; y < height; ++y) {
    for (std::size_t x = 0; x < width; ++x) {
      for (std::size_t c = 0; c < 3; ++c) {
        const std::size_t value = ((3 * x * x + 5 * y * y + 7 * (c + 1) * x * y) >> 4) + 31 * c;
        image.row(y)[3 * x + c] = static_cast<std::uint8_t>(value & 255);
      }
    }
  }
  return image;
}

void check_golden(const fs::path& folder, const std::string& expected, vit::ResamplerChoice resampler) {
  const vit::Preprocessor preprocessor(
      vit::internal::load_preprocess_config(folder, {.resampler = resampler}));
  const vit::internal::Json sizes = vit::internal::load_json(folder / expected);
  REQUIRE(sizes.size() > 0);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::string size(sizes[i].key());
    CAPTURE(folder.filename().string() + ", " + expected + ", " + size);
    const std::size_t cross = size.find('x');
    const vit::Image image = synthetic(std::stoul(size.substr(0, cross)), std::stoul(size.substr(cross + 1)));
    const vit::Tensor<float> pixels = preprocessor.run(image);
    CHECK(pixels.dim(1) == sizes[i].at("shape")[1].as_size());
    CHECK(pixels.dim(2) == sizes[i].at("shape")[2].as_size());
    CHECK(digest(preprocessor.crop_stage(image)) == sizes[i].at("sha256").as_string());
    CHECK(vit::test::sha256(pixels.data(), pixels.num_elements() * sizeof(float)) ==
          sizes[i].at("tensor_sha256").as_string());
  }
}

/// Whether this build reads `file`: some formats need optional libraries, and say so where they are missing.
bool is_readable(const fs::path& file) {
  const std::string message = vit::test::message_of([&] { static_cast<void>(vit::decode_file(file)); });
  return !vit::test::contains(message, "vit was built without");
}

}  // namespace

TEST_CASE("image: golden containers are decoded as Pillow does") {
  const fs::path folder = vit::test::data_path("golden/preprocess");
  const vit::internal::Json files = vit::internal::load_json(folder / "decode.json");
  REQUIRE(files.size() == 45);
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::string name(files[i].key());
    CAPTURE(name);
    if (!is_readable(folder / "decode" / name)) continue;
    const vit::Image image = vit::decode_file(folder / "decode" / name);
    CHECK(image.width() == files[i].at("size")[0].as_size());
    CHECK(image.height() == files[i].at("size")[1].as_size());
    CHECK(digest(image) == files[i].at("sha256").as_string());
    if (const auto on_white = files[i].find_string("sha256_on_white")) {
      CHECK(digest(vit::decode_file(folder / "decode" / name, {.alpha = vit::Alpha::on_white})) == *on_white);
    }
  }
}

TEST_CASE("image: golden orientation is applied on request") {
  const fs::path folder = vit::test::data_path("golden/preprocess/decode");
  for (const char* const name : {"orientation_6.jpg", "orientation_6.png"}) {
    const vit::Image stored = vit::decode_file(folder / name);
    const vit::Image upright = vit::decode_file(folder / name, {.orientation = vit::Orientation::apply});
    REQUIRE(upright.size() == vit::ImageSize{stored.width(), stored.height()});
    for (std::size_t y = 0; y < upright.height(); ++y) {  // a quarter turn clockwise
      for (std::size_t x = 0; x < upright.width(); ++x) {
        const std::uint8_t* const from = stored.row(stored.height() - 1 - x) + 3 * y;
        REQUIRE(std::equal(from, from + 3, upright.row(y) + 3 * x));
      }
    }
  }
}

TEST_CASE("image: golden preprocessing of timm and transformers") {
  const fs::path root = vit::test::data_path("golden/preprocess");
  for (const char* const name : {"timm-center", "timm-wide", "timm-squash", "timm-border"}) {
    check_golden(root / name, "expected.json", vit::ResamplerChoice::automatic);
  }
  for (const char* const name : {"hf-bit", "hf-vit", "hf-naflex"}) {
    check_golden(root / name, "expected.pil.json", vit::ResamplerChoice::pillow);
    check_golden(root / name, "expected.torchvision.json", vit::ResamplerChoice::torchvision);
  }
}

TEST_CASE("image: a golden file that ends early is an Error") {
  const fs::path folder = vit::test::data_path("golden/preprocess/decode");
  for (const auto& entry : fs::directory_iterator(folder)) {
    CAPTURE(entry.path().filename().string());
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string whole((std::istreambuf_iterator<char>(file)), {});
    REQUIRE(whole.size() > 100);
    if (!is_readable(entry.path())) continue;
    // An animation may end after its first image.
    const std::string half = whole.substr(0, whole.size() / (entry.path().stem() == "animated" ? 8 : 2));
    CHECK_ERROR(vit::ErrorKind::format, ("half"),
                vit::decode_bytes(std::as_bytes(std::span(half)), {}, "half"));
  }
}
