#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "tests/support/errors.h"
#include "vit/image/preprocess.h"
#include "vit/io/json.h"
#include "vit/weights/checkpoint/preprocess_config.h"

namespace vit {
using namespace internal;
namespace {

/// The rules of an image processor's file.
PreprocessConfig rules(const std::string& file) {
  return read_hf_preprocess(parse_json(file, "preprocessor_config.json"), "", {});
}

ImageSize size_of(const PreprocessConfig& config, std::size_t height, std::size_t width) {
  return Preprocessor(config).output_size({height, width});
}

struct Sizes {
  ImageSize in, out;
};

void check_sizes(const PreprocessConfig& config, std::initializer_list<Sizes> all) {
  for (const Sizes& sizes : all) {
    CAPTURE(sizes.in.height);
    CAPTURE(sizes.in.width);
    const ImageSize found = size_of(config, sizes.in.height, sizes.in.width);
    CHECK(found.height == sizes.out.height);
    CHECK(found.width == sizes.out.width);
  }
}

}  // namespace

// The sizes are those of the processors' own functions in transformers 5.24 (smart_resize and its relatives).
TEST_CASE("image: sizes by limits of area are those of the processors") {
  SUBCASE("Qwen2-VL: 28 pixels, half to even, both limits") {
    check_sizes(rules(R"({"image_processor_type": "Qwen2VLImageProcessor"})"), {{{480, 640}, {476, 644}},
                                                                                {{42, 70}, {56, 56}},
                                                                                {{1024, 1024}, {980, 980}},
                                                                                {{4000, 3000}, {1148, 840}},
                                                                                {{10, 300}, {28, 308}}});
  }
  SUBCASE("Qwen3-VL: 32 pixels") {
    check_sizes(
        rules(R"({"image_processor_type": "Qwen2VLImageProcessorFast", "patch_size": 16, "merge_size": 2,
                          "size": {"shortest_edge": 65536, "longest_edge": 16777216}})"),
        {{{1024, 1024}, {1024, 1024}}, {{100, 150}, {224, 320}}});
  }
  SUBCASE("GLM-4V counts two frames and enlarges short edges") {
    check_sizes(rules(R"({"image_processor_type": "Glm4vImageProcessor"})"),
                {{{480, 640}, {476, 644}}, {{10, 20}, {56, 112}}, {{5000, 5000}, {2408, 2408}}});
  }
  SUBCASE("PaddleOCR-VL") {
    check_sizes(rules(R"({"image_processor_type": "PaddleOCRVLImageProcessor"})"),
                {{{480, 640}, {476, 644}}, {{20, 100}, {196, 868}}});
  }
}

TEST_CASE("image: sizes by other limits are those of the processors") {
  SUBCASE("Pixtral: no edge above the longest, then up to whole patches") {
    check_sizes(rules(R"({"image_processor_type": "PixtralImageProcessor"})"),
                {{{480, 640}, {480, 640}}, {{481, 1}, {496, 16}}, {{2000, 1500}, {1024, 768}}});
  }
  SUBCASE("MoonViT of Kimi K2.5: never enlarged, padded to whole cells") {
    check_sizes(rules(R"({"image_processor_type": "Kimi_K25ImageProcessor"})"),
                {{{480, 640}, {504, 644}}, {{28, 28}, {28, 28}}, {{7169, 14}, {7168, 28}}});
  }
  SUBCASE("Kimi-VL cuts to whole cells") {
    check_sizes(rules(R"({"image_processor_type": "KimiVLImageProcessor"})"), {{{480, 640}, {476, 616}}});
  }
  SUBCASE("Gemma 4: always about as many tokens") {
    check_sizes(rules(R"({"image_processor_type": "Gemma4ImageProcessor"})"),
                {{{480, 640}, {672, 912}}, {{100, 100}, {768, 768}}, {{16, 4000}, {48, 12672}}});
  }
}

TEST_CASE("image: hostile limits of sizes are refused in one line") {
  const auto message = [](const std::string& file) { return test::message_of([&] { rules(file); }); };
  CHECK(test::contains(
      message(R"({"image_processor_type": "Qwen2VLImageProcessor", "min_pixels": 100, "max_pixels": 99})"),
      "must be no more than the largest"));
  CHECK(test::contains(message(R"({"image_processor_type": "Qwen2VLImageProcessor", "patch_size": 0})"),
                       "patch_size"));
  CHECK(test::contains(message(R"({"image_processor_type": "Qwen2VLImageProcessor", "merge_size": 0})"),
                       "merge_size"));
  CHECK(
      test::contains(message(R"({"image_processor_type": "PixtralImageProcessor", "size": {}})"), "height"));
  CHECK(test::contains(
      message(R"({"image_processor_type": "Gemma4ImageProcessor", "pooling_kernel_size": [3, 4]})"),
      "square"));
  const PreprocessConfig huge = rules(
      R"({"image_processor_type": "Qwen2VLImageProcessor", "min_pixels": 1000000000, "max_pixels": 1000000000})");
  CHECK(test::contains(test::message_of([&] { size_of(huge, 100, 100); }), "too many pixels"));
  CHECK(test::contains(test::message_of([&] {
                         size_of(rules(R"({"image_processor_type": "Qwen2VLImageProcessor"})"), 1, 201);
                       }),
                       "200 times"));
}

}  // namespace vit
