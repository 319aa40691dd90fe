#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "tests/support/errors.h"
#include "vit/checkpoint.h"
#include "vit/image/preprocess.h"
#include "vit/image/token_sizes.h"
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

TEST_CASE("image: a fixed size takes the place of limits, in whole cells") {
  const struct {
    const char* architecture;
    std::size_t cell;
  } models[] = {{"kimi_vl", 28}, {"kimi_k2_5", 28}, {"qwen2_vl_2b", 28}, {"pixtral_12b", 16}};
  for (const auto& model : models) {
    CAPTURE(model.architecture);
    const std::size_t cell = model.cell;
    const auto config = Checkpoint::random(model.architecture)
                            .preprocess_config({.kind = InputSize::Kind::fixed, .height = 448, .width = 230});
    REQUIRE(config);
    const std::size_t width = (230 + cell / 2) / cell * cell;
    for (const ImageSize in : {ImageSize{600, 900}, ImageSize{100, 100}, ImageSize{1, 1}})
      CHECK(Preprocessor(*config).output_size(in) == ImageSize{448, width});
  }
}

TEST_CASE("image: canvases of tiles, and images in them, are those of Llama 4's processor") {
  struct Case {
    ImageSize in;
    std::size_t max_tiles, edge;
    bool fills;
    ImageSize canvas, resized;
  };
  for (const Case& c : {Case{{333, 333}, 16, 336, false, {336, 336}, {336, 335}},
                        Case{{336, 336}, 16, 336, true, {1344, 1344}, {1344, 1344}},
                        Case{{1, 1}, 5, 112, false, {112, 112}, {112, 112}},
                        Case{{5000, 3}, 16, 336, false, {5040, 336}, {5000, 3}},
                        Case{{3, 5000}, 16, 336, true, {336, 5376}, {3, 5376}},
                        Case{{672, 336}, 5, 112, false, {224, 112}, {224, 112}},
                        Case{{336, 672}, 16, 336, false, {336, 672}, {336, 672}},
                        Case{{671, 1007}, 16, 336, true, {1008, 1680}, {1008, 1512}},
                        Case{{1080, 1920}, 5, 112, false, {224, 224}, {126, 224}},
                        Case{{1920, 1080}, 16, 336, false, {1680, 1008}, {1680, 945}},
                        Case{{100, 700}, 16, 336, false, {336, 1008}, {100, 700}},
                        Case{{3039, 1469}, 5, 112, false, {336, 112}, {231, 112}},
                        Case{{3258, 2829}, 16, 336, false, {1344, 1344}, {1344, 1167}},
                        Case{{3861, 3447}, 16, 336, true, {1344, 1344}, {1344, 1199}},
                        Case{{119, 3443}, 16, 336, true, {336, 5376}, {185, 5376}}}) {
    CAPTURE(c.in.height);
    CAPTURE(c.in.width);
    PreprocessConfig config = rules(R"({"image_processor_type": "Llama4ImageProcessor"})");
    config.max_tiles = c.max_tiles;
    config.resize_height = config.resize_width = c.edge;
    config.fills_canvas = c.fills;
    CHECK(canvas_of_tiles(c.in, config) == c.canvas);
    CHECK(size_in_canvas(c.in, c.canvas, config) == c.resized);
    const std::size_t tiles = (c.canvas.height / c.edge) * (c.canvas.width / c.edge);
    const Preprocessor preprocessor(config);
    CHECK(preprocessor.output_size(c.in) == ImageSize{c.edge, c.edge});
    CHECK(preprocessor.num_planes(c.in) == 3 * (tiles > 1 ? tiles + 1 : 1));
  }
}

// By get_optimal_tiled_canvas of GOT-OCR 2 and of Command A Vision, select_best_resolution and
// get_patch_output_size, and Idefics 3's two resizes.
TEST_CASE("image: canvases of other tiles are those of the processors") {
  struct Case {
    ImageSize in, nearest, few, enlarged, listed, in_listed, first, edges;
  };
  const PreprocessConfig nearest = rules(
      R"({"image_processor_type": "GotOcr2ImageProcessor", "crop_to_patches": true,
          "size": {"height": 448, "width": 448}})");
  const PreprocessConfig few = rules(
      R"({"image_processor_type": "GotOcr2ImageProcessor", "crop_to_patches": true, "min_patches": 2,
          "max_patches": 7, "size": {"height": 256, "width": 256}})");
  const PreprocessConfig enlarged = rules(R"({"image_processor_type": "Cohere2VisionImageProcessor"})");
  const PreprocessConfig listed = rules(
      R"({"image_processor_type": "LlavaNextImageProcessor", "size": {"shortest_edge": 336},
          "crop_size": {"height": 336, "width": 336}})");
  const PreprocessConfig edges = rules(R"({"image_processor_type": "Idefics3ImageProcessor"})");
  for (const Case& c : {Case{{333, 333},
                             {448, 448},
                             {512, 512},
                             {512, 512},
                             {336, 672},
                             {336, 336},
                             {1456, 1456},
                             {1456, 1456}},
                        Case{{449, 447},
                             {448, 448},
                             {512, 512},
                             {512, 512},
                             {672, 672},
                             {672, 670},
                             {1456, 1450},
                             {1456, 1456}},
                        Case{{1080, 1920},
                             {896, 1792},
                             {256, 512},
                             {1536, 2048},
                             {672, 672},
                             {378, 672},
                             {820, 1456},
                             {1092, 1456}},
                        Case{{1920, 1080},
                             {1792, 896},
                             {512, 256},
                             {2048, 1536},
                             {672, 672},
                             {672, 378},
                             {1456, 820},
                             {1456, 1092}},
                        Case{{100, 700},
                             {448, 3136},
                             {256, 1792},
                             {512, 1024},
                             {336, 1008},
                             {144, 1008},
                             {208, 1456},
                             {364, 1456}},
                        Case{{3039, 1469},
                             {1792, 896},
                             {512, 256},
                             {2560, 1024},
                             {1008, 336},
                             {696, 336},
                             {1456, 704},
                             {1456, 728}},
                        Case{{20, 25},
                             {1344, 1792},
                             {512, 512},
                             {512, 512},
                             {336, 672},
                             {336, 420},
                             {1164, 1456},
                             {1456, 1456}},
                        Case{{5000, 300},
                             {5376, 448},
                             {1792, 256},
                             {5120, 512},
                             {1008, 336},
                             {1008, 61},
                             {1456, 88},
                             {1456, 364}},
                        Case{{900, 1400},
                             {896, 1344},
                             {512, 768},
                             {1024, 1536},
                             {672, 672},
                             {432, 672},
                             {936, 1456},
                             {1092, 1456}}}) {
    CAPTURE(c.in.height);
    CAPTURE(c.in.width);
    CHECK(canvas_of_tiles(c.in, nearest) == c.nearest);
    CHECK(size_in_canvas(c.in, c.nearest, nearest) == c.nearest);
    CHECK(canvas_of_tiles(c.in, few) == c.few);
    CHECK(canvas_of_tiles(c.in, enlarged) == c.enlarged);
    CHECK(canvas_of_tiles(c.in, listed) == c.listed);
    CHECK(size_in_canvas(c.in, c.listed, listed) == c.in_listed);
    CHECK(size_before_canvas(c.in, edges) == c.first);
    CHECK(canvas_of_tiles(c.in, edges) == c.edges);
  }
}

TEST_CASE("image: a whole image before its tiles, which are centered") {
  const PreprocessConfig config = rules(
      R"({"image_processor_type": "LlavaNextImageProcessor", "size": {"shortest_edge": 4}, "crop_size": 4,
          "image_grid_pinpoints": [[4, 8]], "image_mean": 0.5, "image_std": 0.5})");
  Image image(2, 8);
  for (std::size_t i = 0; i < 3 * 2 * 8; ++i) image.data()[i] = 255;
  const Tensor<float> pixels = Preprocessor(config).run(image);
  REQUIRE(pixels.shape() == Shape{9, 4, 4});
  for (std::size_t plane = 0; plane < 9; ++plane) {
    for (std::size_t y = 0; y < 4; ++y) {
      const bool is_outside = plane >= 3 && (y == 0 || y == 3);
      for (std::size_t x = 0; x < 4; ++x)
        CHECK(pixels.view().row(plane * 4 + y)[x] == (is_outside ? -1.0f : 1.0f));
    }
  }
}

TEST_CASE("image: rules of tiles that contradict each other are refused") {
  const auto refusal = [](const std::string& file) { return test::message_of([&] { rules(file); }); };
  CHECK(test::contains(refusal(R"({"image_processor_type": "LlavaNextImageProcessor", "size": 336,
                                   "crop_size": 224})"),
                       "the same square tile"));
  CHECK(test::contains(refusal(R"({"image_processor_type": "LlavaOnevisionImageProcessor",
                                   "image_grid_pinpoints": [[384, 400]]})"),
                       "no whole tiles of 384"));
  CHECK(test::contains(refusal(R"({"image_processor_type": "LlavaOnevisionImageProcessor",
                                   "image_grid_pinpoints": []})"),
                       "1 to 256 pairs"));
  CHECK(test::contains(refusal(R"({"image_processor_type": "GotOcr2ImageProcessor", "crop_to_patches": true,
                                   "min_patches": 9, "max_patches": 8})"),
                       "least number of tiles"));
  CHECK(test::contains(refusal(R"({"image_processor_type": "Idefics3ImageProcessor",
                                   "do_image_splitting": false})"),
                       "do_image_splitting"));
  CHECK(test::contains(refusal(R"({"image_processor_type": "Idefics3ImageProcessor",
                                   "do_resize": false})"),
                       "cut into tiles"));
}

TEST_CASE("image: tiles lie row by row, black below and to the right, the whole image last") {
  PreprocessConfig config = rules(
      R"({"image_processor_type": "Llama4ImageProcessor", "max_patches": 2, "size": {"height": 4, "width": 4}})");
  Image image(3, 7);
  for (std::size_t i = 0; i < 3 * 3 * 7; ++i) image.data()[i] = 255;
  const Tensor<float> pixels = Preprocessor(config).run(image);
  REQUIRE(pixels.shape() == Shape{9, 4, 4});
  for (std::size_t plane = 0; plane < 9; ++plane) {
    for (std::size_t y = 0; y < 4; ++y) {
      for (std::size_t x = 0; x < 4; ++x) {
        const bool is_outside = plane < 6 && (y == 3 || (plane >= 3 && x == 3));
        CHECK(pixels.view().row(plane * 4 + y)[x] == (is_outside ? -1.0f : 1.0f));
      }
    }
  }
}

TEST_CASE("image: frames of a clip are those that the video processors take") {
  const auto sampled = [](FrameSampling sampling, std::size_t count, std::size_t total) {
    PreprocessConfig config;
    config.sampling = sampling;
    config.clip_frames = count;
    config.frames_of_patch = 2;
    return sample_frames(config, total);
  };
  using Indices = std::vector<std::size_t>;
  CHECK(sampled(FrameSampling::even, 4, 10) == Indices{0, 2, 5, 7});
  CHECK(sampled(FrameSampling::even_float32, 4, 10) == Indices{0, 2, 5, 7});
  CHECK(sampled(FrameSampling::even_float32, 5, 10) == Indices{0, 2, 5, 7});  // 2.5 patches: half to even
  CHECK(sampled(FrameSampling::end_to_end, 4, 10) == Indices{0, 3, 6, 9});
  CHECK(sampled(FrameSampling::end_to_end, 3, 4) == Indices{0, 2, 3});
  CHECK(sampled(FrameSampling::end_to_end, 1, 4) == Indices{0});
  CHECK(test::contains(test::message_of([&] { sampled(FrameSampling::even, 5, 4); }), "take fewer"));
}

TEST_CASE("image: sizes of frames of clips are those of the video processors") {
  const auto clip = [](const std::string& file, std::size_t frames) {
    return read_hf_preprocess(parse_json(file, "video_preprocessor_config.json"), "",
                              {.clip_frames = frames});
  };
  check_sizes(clip(R"({"video_processor_type": "Qwen2VLVideoProcessor"})", 4),
              {{{480, 640}, {476, 644}}, {{333, 120}, {532, 196}}, {{24, 90}, {168, 616}}});
  check_sizes(clip(R"({"video_processor_type": "Qwen3VLVideoProcessor"})", 4),
              {{{480, 640}, {384, 512}}, {{333, 120}, {320, 128}}});
  check_sizes(clip(R"({"video_processor_type": "Qwen3VLVideoProcessor"})", 3), {{{24, 90}, {128, 416}}});
  check_sizes(clip(R"({"video_processor_type": "VJEPA2VideoProcessor"})", 4), {{{480, 640}, {256, 256}}});
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
  for (
      const char* const file :
      {R"({"image_processor_type": "Llama4ImageProcessor", "max_patches": 0})",
       R"({"image_processor_type": "Llama4ImageProcessor", "max_patches": 100000})",
       R"({"image_processor_type": "Llama4ImageProcessor", "size": {"height": 8, "width": 9}})",
       R"({"image_processor_type": "Llama4ImageProcessor", "do_resize": false})",
       R"({"image_processor_type": "Gemma4ImageProcessor", "max_soft_tokens": 0})",
       R"({"image_processor_type": "Kimi_K25ImageProcessor", "max_patches": 0})",
       R"({"image_processor_type": "Qwen2VLImageProcessor", "size": {"shortest_edge": 9, "longest_edge": 8}})",
       R"({"image_processor_type": "PixtralImageProcessor", "size": {"longest_edge": 1000000000}})"}) {
    CAPTURE(file);
    CHECK(!message(file).empty());
    CHECK(!test::contains(message(file), "\n"));
  }
  const PreprocessConfig huge = rules(
      R"({"image_processor_type": "Qwen2VLImageProcessor", "min_pixels": 1000000000, "max_pixels": 1000000000})");
  CHECK(test::contains(test::message_of([&] { size_of(huge, 100, 100); }), "too many pixels"));
  CHECK(test::contains(test::message_of([&] {
                         size_of(rules(R"({"image_processor_type": "Qwen2VLImageProcessor"})"), 1, 201);
                       }),
                       "200 times"));
}

}  // namespace vit
