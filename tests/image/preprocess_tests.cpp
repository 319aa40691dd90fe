#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/fixture_tensors.h"
#include "tests/support/sha256.h"
#include "tests/support/shared_data.h"
#include "vit/image/preprocess.h"
#include "vit/io/json.h"
#include "vit/weights/checkpoint/checkpoint_folder.h"
#include "vit/weights/checkpoint/preprocess_config.h"

namespace {

namespace fs = std::filesystem;

std::string digest(const vit::Image& image) {
  return vit::test::sha256(image.data(), image.height() * image.row_stride());
}

std::string digest(const vit::Tensor<float>& tensor) {
  return vit::test::sha256(tensor.data(), tensor.num_elements() * sizeof(float));
}

/// One image of expected*.json; a name that ends in #exif is the image rotated upright.
vit::Image load_image(const fs::path& shared, std::string name) {
  vit::DecodeOptions options;
  if (const auto mark = name.find("#exif"); mark != std::string::npos) {
    options.orientation = vit::Orientation::apply;
    name.resize(mark);
  }
  const fs::path synthetic = shared / "fixtures/preprocess/images" / name;
  return vit::decode_file(fs::exists(synthetic) ? synthetic : shared / "images/imagenet-sample" / name,
                          options);
}

/// Checks every image of one expected file; returns their number.
std::size_t check_configuration(const fs::path& shared, const fs::path& folder, const std::string& expected,
                                vit::ResamplerChoice resampler) {
  const vit::internal::Json images = vit::internal::load_json(folder / expected).at("images");
  const vit::Preprocessor preprocessor(
      vit::internal::load_preprocess_config(folder, {.resampler = resampler}));
  const vit::Preprocessor older(vit::internal::load_preprocess_config(
      folder, {.resampler = resampler, .pillow = vit::PillowRelease::up_to_12_1}));
  for (std::size_t i = 0; i < images.size(); ++i) {
    const vit::internal::Json item = images[i];
    const std::string name(item.key());
    CAPTURE(name);
    const vit::Image image = load_image(shared, name);
    REQUIRE(image.width() == item.at("in_size")[0].as_size());
    REQUIRE(image.height() == item.at("in_size")[1].as_size());
    const vit::ImageSize size{item.at("shape")[1].as_size(), item.at("shape")[2].as_size()};
    CHECK(preprocessor.output_size(image.size()) == size);
    const vit::Image stage = preprocessor.crop_stage(image);
    CHECK(stage.size() == size);
    CHECK(digest(stage) == item.at("sha256").as_string());
    CHECK(digest(preprocessor.run(image)) == item.at("tensor_sha256").as_string());
    if (const auto horizontal = item.find_string("sha256_horizontal_first")) {
      CHECK(digest(older.crop_stage(image)) == *horizontal);
    }
  }
  return images.size();
}

/// Largest distance of the DINOv3 tensors from the reference, and of all images' sums.
void check_float_configuration(const fs::path& shared, const fs::path& folder) {
  const vit::internal::Json images =
      vit::internal::load_json(folder / "expected.torchvision.json").at("images");
  const vit::test::FixtureTensors tensors(folder / "tensors.torchvision.safetensors");
  const vit::Preprocessor preprocessor(vit::internal::load_preprocess_config(folder));
  std::size_t num_compared = 0;
  for (std::size_t i = 0; i < images.size(); ++i) {
    const std::string name(images[i].key());
    CAPTURE(name);
    const vit::Image image = load_image(shared, name);
    const vit::Tensor<float> pixels = preprocessor.run(image);
    double sum = 0.0;
    for (const float value : pixels.flat()) sum += static_cast<double>(value);
    CHECK(std::abs(sum - images[i].at("sum").as_double()) <
          1e-5 * static_cast<double>(pixels.num_elements()));
    if (!tensors.has(name)) continue;
    const vit::Tensor<float> expected = tensors.floats(name);
    REQUIRE(expected.shape() == pixels.shape());
    float worst = 0.0f;
    for (std::size_t k = 0; k < pixels.num_elements(); ++k)
      worst = std::max(worst, std::abs(pixels.flat()[k] - expected.flat()[k]));
    CHECK(worst < 5e-6f);  // float32 tables like torch's
    ++num_compared;
    CHECK_ERROR(vit::ErrorKind::mismatch, ("preprocessor_config.json"), preprocessor.crop_stage(image));
  }
  CHECK(num_compared > 0);
}

vit::Image gradient(std::size_t height, std::size_t width) {
  vit::Image image(height, width);
  for (std::size_t y = 0; y < height; ++y) {
    for (std::size_t x = 0; x < width; ++x) {
      std::uint8_t* const rgb = image.row(y) + 3 * x;
      rgb[0] = static_cast<std::uint8_t>(3 * x + y);
      rgb[1] = static_cast<std::uint8_t>(5 * y + x);
      rgb[2] = static_cast<std::uint8_t>(7 * x * y);
    }
  }
  return image;
}

}  // namespace

TEST_CASE("image: every published configuration on every image") {
  SKIP_WITHOUT_SHARED("fixtures/preprocess");
  const fs::path shared = vit::test::shared_path("fixtures/preprocess");
  const fs::path root = shared.parent_path().parent_path();
  std::size_t num_configurations = 0;
  std::size_t num_images = 0;
  for (const auto& entry : fs::directory_iterator(shared)) {
    if (!fs::exists(entry.path() / "config.json")) continue;
    CAPTURE(entry.path().filename().string());
    ++num_configurations;
    if (entry.path().filename() == "hf-dinov3") {
      check_float_configuration(root, entry.path());
      CHECK_THROWS_AS(
          vit::internal::load_preprocess_config(entry.path(), {.resampler = vit::ResamplerChoice::pillow}),
          vit::Error);
    } else if (fs::exists(entry.path() / "expected.json")) {
      num_images += check_configuration(root, entry.path(), "expected.json", vit::ResamplerChoice::automatic);
    } else {
      num_images +=
          check_configuration(root, entry.path(), "expected.pil.json", vit::ResamplerChoice::pillow);
      num_images += check_configuration(root, entry.path(), "expected.torchvision.json",
                                        vit::ResamplerChoice::automatic);
    }
  }
  CHECK(num_configurations == 25);
  CHECK(num_images > 1000);
}

TEST_CASE("image: threads do not change the result") {
  const vit::Image image = gradient(517, 389);
  for (const auto resampler : {vit::Resampler::pillow, vit::Resampler::torchvision_float}) {
    vit::PreprocessConfig config;
    config.resampler = resampler;
    if (resampler == vit::Resampler::torchvision_float) config.normalize = vit::NormalizeRule::rescale_first;
    const vit::Preprocessor preprocessor(config);
    CHECK(digest(preprocessor.run(image, 1)) == digest(preprocessor.run(image, 3)));
  }
}

TEST_CASE("image: another target keeps timm's margin") {
  const vit::PreprocessConfig base = vit::internal::build_timm_preprocess({.crop_pct = 0.9}, {}, "test");
  CHECK(base.resize_height == 248);
  using Kind = vit::InputSize::Kind;
  const auto square = vit::with_input_size(base, {Kind::fixed, 384, 384}, 16);
  CHECK(square.resize == vit::ResizeRule::shortest_edge);
  CHECK(square.resize_height == 426);
  CHECK(vit::Preprocessor(square).output_size({500, 375}) == vit::ImageSize{384, 384});
  const auto wide = vit::with_input_size(base, {Kind::fixed, 192, 256}, 16);
  CHECK(wide.resize == vit::ResizeRule::cover);
  CHECK(wide.resize_height == 213);
  CHECK(wide.resize_width == 284);
  CHECK(vit::Preprocessor(wide).output_size({500, 375}) == vit::ImageSize{192, 256});
  CHECK(vit::with_input_size(base, {}, 16).resize_height == 248);
}

TEST_CASE("image: another target keeps the ratio of resize to crop elsewhere") {
  using Kind = vit::InputSize::Kind;
  vit::PreprocessConfig base;  // shortest edge 256, crop 224
  CHECK(vit::with_input_size(base, {Kind::fixed, 224, 224}, 16).resize_height == 256);
  CHECK(vit::with_input_size(base, {Kind::fixed, 448, 224}, 16).resize_height == 512);
  base.resize = vit::ResizeRule::squash;
  CHECK(vit::with_input_size(base, {Kind::fixed, 112, 448}, 16).resize_height == 128);
  CHECK(vit::with_input_size(base, {Kind::fixed, 112, 448}, 16).resize_width == 512);
  base.crop = false;
  CHECK(vit::Preprocessor(base, {Kind::fixed, 96, 160}, 16).output_size({10, 10}) == vit::ImageSize{96, 160});
  base.resize = vit::ResizeRule::none;
  CHECK_THROWS_AS(vit::with_input_size(base, {Kind::fixed, 96, 160}, 16), vit::Error);
}

TEST_CASE("image: a resize to a number of patches keeps the aspect ratio and stays below the number") {
  using Kind = vit::InputSize::Kind;
  vit::PreprocessConfig base;
  base.resize = vit::ResizeRule::patches;
  base.crop = false;
  base.max_patches = 256;
  base.patch_size = 16;
  // sizes of transformers' get_image_size_for_max_num_patches
  struct Case {
    vit::ImageSize in, out;
  };
  for (const Case& size : {Case{{256, 256}, {256, 256}},
                           {{1, 1}, {112, 112}},
                           {{480, 640}, {224, 288}},
                           {{1000, 667}, {304, 208}},
                           {{3024, 4032}, {224, 288}},
                           {{1, 9000}, {16, 4096}},
                           {{100, 41}, {400, 160}},
                           {{31, 4000}, {16, 2080}}}) {
    CAPTURE(size.in.height);
    CAPTURE(size.in.width);
    const vit::ImageSize found = vit::Preprocessor(base).output_size(size.in);
    CHECK(found.height == size.out.height);
    CHECK(found.width == size.out.width);
  }
  CHECK(vit::Preprocessor(base, {Kind::fixed, 512, 512}, 16).config().max_patches == 1024);
  CHECK(vit::Preprocessor(base, {.kind = Kind::native}, 16).output_size({100, 41}) == vit::ImageSize{96, 32});
  CHECK_ERROR(vit::ErrorKind::mismatch, ("give one size"),
              vit::with_input_size(base, {Kind::fixed, 512, 256}, 16));
  CHECK_ERROR(vit::ErrorKind::mismatch, ("at least 16"),
              vit::with_input_size(base, {Kind::fixed, 15, 15}, 16));
  CHECK(vit::Preprocessor(base).describe().find("to at most 256 patches of 16 x 16, bicubic") !=
        std::string::npos);
  base.max_patches = 0;
  CHECK_THROWS_AS(vit::Preprocessor{base}, vit::Error);
}

TEST_CASE("image: native size keeps the pixels and drops the ragged edge") {
  const vit::PreprocessConfig base = vit::internal::build_timm_preprocess({}, {}, "test");
  const vit::Preprocessor native(base, {.kind = vit::InputSize::Kind::native}, 16);
  const vit::Image image = gradient(100, 70);
  CHECK(native.output_size(image.size()) == vit::ImageSize{96, 64});
  const vit::Image stage = native.crop_stage(image);
  for (std::size_t y = 0; y < 96; ++y)
    REQUIRE(std::memcmp(stage.row(y), image.row(y + 2) + 3 * 3, 3 * 64) == 0);
  CHECK_ERROR(vit::ErrorKind::argument, ("64 x 15"), native.output_size({15, 64}));
}

TEST_CASE("image: the source map leads from pixels of the result to those of the image") {
  const auto check = [](const vit::SourceMap& map, double left, double top, double x_step, double y_step) {
    CHECK(map.left == doctest::Approx(left));
    CHECK(map.top == doctest::Approx(top));
    CHECK(map.x_step == doctest::Approx(x_step));
    CHECK(map.y_step == doctest::Approx(y_step));
  };
  const vit::PreprocessConfig base = vit::internal::build_timm_preprocess({.crop_pct = 0.9}, {}, "test");
  // 375 x 500 becomes 248 x 330, of which 224 x 224 in the middle is left
  check(vit::Preprocessor(base).source_map({500, 375}), 12 * 375 / 248.0, 53 * 500 / 330.0, 375 / 248.0,
        500 / 330.0);
  check(vit::Preprocessor(base, {.kind = vit::InputSize::Kind::native}, 16).source_map({100, 70}), 3, 2, 1,
        1);
  vit::PreprocessConfig padded;  // 40 x 60 in the middle of 224 x 224
  padded.resize = vit::ResizeRule::none;
  check(vit::Preprocessor(padded).source_map({60, 40}), -92, -82, 1, 1);
}

TEST_CASE("image: images that the rules cannot handle are Errors") {
  vit::PreprocessConfig border =
      vit::internal::build_timm_preprocess({.crop_mode = vit::internal::TimmCropMode::border}, {}, "test");
  const vit::Preprocessor preprocessor(border);
  CHECK_ERROR(vit::ErrorKind::argument, ("1000 x 1"), preprocessor.output_size({1, 1000}));
  CHECK_THROWS_AS(preprocessor.output_size({0, 5}), vit::Error);
  vit::PreprocessConfig open;
  open.crop = false;
  CHECK_THROWS_WITH_AS(vit::Preprocessor(open).output_size({1, 100'000'000}),
                       doctest::Contains("too many pixels"), vit::Error);
  open.std[1] = 0.0;
  CHECK_THROWS_AS(vit::Preprocessor{open}, vit::Error);
  vit::Tensor<float> wrong(vit::Shape{3, 10, 10});
  const vit::Image image = gradient(30, 30);
  CHECK_THROWS_AS(vit::Preprocessor(vit::PreprocessConfig()).run(image, wrong.view()), vit::Error);
}

TEST_CASE("image: an image smaller than the crop is padded on the side of each library") {
  vit::PreprocessConfig config;
  config.resize = vit::ResizeRule::none;
  config.crop_height = 4;
  config.crop_width = 5;
  config.crop_pad_color = {9, 8, 7};
  const vit::Image image = gradient(3, 8);
  const vit::Image right = vit::Preprocessor(config).crop_stage(image);  // 8 -> 5: half of 3 is 1.5, even 2
  CHECK(std::memcmp(right.row(0), image.row(0) + 6, 15) == 0);
  CHECK(right.row(3)[0] == 9);
  config.pad_rounding = vit::PadRounding::extra_top_left;
  config.crop_rounding = vit::CropRounding::floor;
  const vit::Image left = vit::Preprocessor(config).crop_stage(image);
  CHECK(left.row(0)[2] == 7);
  CHECK(std::memcmp(left.row(1), image.row(0) + 3, 15) == 0);
}

TEST_CASE("image: the rules in words") {
  const std::string words =
      vit::Preprocessor(vit::internal::build_timm_preprocess({.crop_pct = 0.9}, {}, "test")).describe();
  CHECK(words.find("resize the shortest edge to 248, bicubic, as Pillow 13") != std::string::npos);
  CHECK(words.find("crop the center 224 x 224") != std::string::npos);
  CHECK(words.find("divide by 255, subtract mean (0.485, 0.456, 0.406)") != std::string::npos);
}
