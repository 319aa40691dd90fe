#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "vit/base/error.h"
#include "vit/weights/checkpoint/checkpoint_folder.h"
#include "vit/weights/checkpoint/preprocess_config.h"
#include "vit/weights/families/timm_args.h"

namespace {

using vit::ErrorKind;
using vit::internal::load_preprocess_config;

/// A checkpoint folder that lives as long as the object.
class Folder {
 public:
  Folder& add(const std::string& name, const std::string& text) {
    folder_.write(name, text);
    return *this;
  }
  const std::filesystem::path& path() const { return folder_.path(); }

 private:
  vit::test::TemporaryFolder folder_;
};

vit::PreprocessConfig timm(const std::string& cfg, const vit::ModelOptions& options = {}) {
  Folder folder;
  folder.add("config.json", R"({"architecture": "vit_x", "pretrained_cfg": )" + cfg + "}");
  return load_preprocess_config(folder.path(), options);
}

vit::PreprocessConfig hf(const std::string& text, const vit::ModelOptions& options = {}) {
  Folder folder;
  folder.add("preprocessor_config.json", text);
  return load_preprocess_config(folder.path(), options);
}

/// OpenCLIP's with these members of model_cfg.vision_cfg and of preprocess_cfg.
vit::PreprocessConfig vit_processor(const std::string& entry) {
  return hf(R"({"image_processor_type": "ViTImageProcessor", )" + entry + "}");
}

vit::PreprocessConfig open_clip(const std::string& vision_cfg, const std::string& preprocess_cfg) {
  Folder folder;
  folder.add("open_clip_config.json", R"({"model_cfg": {"vision_cfg": {)" + vision_cfg +
                                          R"(}}, "preprocess_cfg": {)" + preprocess_cfg + "}}");
  return load_preprocess_config(folder.path());
}

}  // namespace

TEST_CASE("weights: timm's preprocessing, its defaults and its older form") {
  const vit::PreprocessConfig defaults = timm("{}");
  CHECK(defaults.resize == vit::ResizeRule::shortest_edge);
  CHECK(defaults.resize_height == 256);
  CHECK(defaults.crop_height == 224);
  CHECK(defaults.filter == vit::ResizeFilter::bicubic);
  CHECK(defaults.mean[0] == 0.485);
  CHECK_FALSE(defaults.apply_orientation);
  const vit::PreprocessConfig squash =
      timm(R"({"input_size": [3, 448, 320], "crop_mode": "squash", "crop_pct": 1.0})");
  CHECK(squash.resize == vit::ResizeRule::squash);
  CHECK(squash.resize_width == 320);
  const vit::PreprocessConfig border =
      timm(R"({"crop_mode": "border", "mean": [0.5, 0.1, 1.0], "std": [1, 1, 1]})");
  CHECK(border.resize == vit::ResizeRule::contain);
  CHECK(border.crop_pad_color == std::array<unsigned char, 3>{128, 26, 255});
  Folder flat;
  flat.add("config.json",
           R"({"architecture": "vit_y", "input_size": [3, 96, 96], "crop_pct": null, "labels": []})");
  CHECK(load_preprocess_config(flat.path()).crop_width == 96);
  Folder args;
  args.add("config.json",
           R"({"architecture": "vit_y", "model_args": {"img_size": [64, 32]}, "pretrained_cfg": {}})");
  CHECK(load_preprocess_config(args.path()).crop_width == 32);
  const auto width_of_stale = [](const std::string& more_args, const std::string& more_cfg) {
    Folder folder;
    folder.add("config.json", R"({"architecture": "vit_y", "model_args": {"img_size": 56)" + more_args +
                                  R"(}, "pretrained_cfg": {"input_size": [3, 518, 518])" + more_cfg + "}}");
    return load_preprocess_config(folder.path()).crop_width;
  };
  CHECK(width_of_stale("", R"(, "fixed_input_size": true)") == 56);
  CHECK(width_of_stale("", "") == 518);
  CHECK(width_of_stale(R"(, "dynamic_img_size": true)", R"(, "fixed_input_size": true)") == 518);
  CHECK(width_of_stale(R"(, "strict_img_size": false)", R"(, "fixed_input_size": true)") == 518);
  CHECK(timm("{}", {.exif = vit::ExifChoice::apply}).apply_orientation);
  CHECK(timm("{}", {.resampler = vit::ResamplerChoice::torchvision}).resampler ==
        vit::Resampler::torchvision_uint8);
}

TEST_CASE("weights: Hugging Face's preprocessing, class defaults and size forms") {
  const vit::PreprocessConfig deit =
      hf(R"({"feature_extractor_type": "DeiTFeatureExtractor", "size": null})");
  CHECK(deit.resize == vit::ResizeRule::squash);
  CHECK(deit.resize_height == 256);
  CHECK(deit.crop_height == 224);
  CHECK(deit.apply_orientation);
  CHECK(deit.normalize == vit::NormalizeRule::fused);
  const vit::PreprocessConfig clip =
      hf(R"({"image_processor_type": "CLIPImageProcessorFast", "size": 336, "crop_size": 336})");
  CHECK(clip.resize == vit::ResizeRule::shortest_edge);
  CHECK(clip.resize_height == 336);
  CHECK(clip.mean[0] == 0.48145466);
  const vit::PreprocessConfig pil =
      hf(R"({"image_processor_type": "BitImageProcessor"})",
         {.resampler = vit::ResamplerChoice::pillow, .exif = vit::ExifChoice::ignore});
  CHECK(pil.resampler == vit::Resampler::pillow);
  CHECK(pil.pad_rounding == vit::PadRounding::extra_top_left);
  CHECK_FALSE(pil.apply_orientation);
  CHECK(hf(R"({"image_processor_type": "SiglipImageProcessor", "size": [384, 256]})").resize_width == 256);
  CHECK(hf(R"({"image_processor_type": "SiglipImageProcessor", "size": 384})").resize ==
        vit::ResizeRule::shortest_edge);
  CHECK(
      hf(R"({"image_processor_type": "ViTImageProcessor", "size": {"shortest_edge": 9, "longest_edge": 12}})")
          .longest_edge == 12);
  CHECK(hf(R"({"image_processor_type": "ViTImageProcessor", "size": {"max_height": 9, "max_width": 12}})")
            .resize == vit::ResizeRule::contain_trunc);
  CHECK(hf(R"({"image_processor_type": "ViTImageProcessor", "image_mean": 0.25})").mean[2] == 0.25);
  const vit::PreprocessConfig beit = hf(R"({"feature_extractor_type": "BeitFeatureExtractor", "size": 384})");
  CHECK(beit.resize == vit::ResizeRule::squash);
  CHECK(beit.resize_height == 384);
  CHECK(beit.filter == vit::ResizeFilter::bicubic);
  CHECK_FALSE(beit.crop);
  CHECK(beit.mean[0] == 0.5);
  const vit::PreprocessConfig pvt = hf(R"({"image_processor_type": "PvtImageProcessor"})");
  CHECK(pvt.resize == vit::ResizeRule::squash);
  CHECK(pvt.filter == vit::ResizeFilter::bicubic);
  CHECK_FALSE(pvt.crop);
  CHECK(pvt.mean[0] == 0.485);
  const vit::PreprocessConfig naflex =
      hf(R"({"image_processor_type": "Siglip2ImageProcessorFast", "max_num_patches": 1024})");
  CHECK(naflex.resize == vit::ResizeRule::patches);
  CHECK(naflex.max_patches == 1024);
  CHECK(naflex.patch_size == 16);
  CHECK(naflex.filter == vit::ResizeFilter::bilinear);
  CHECK_FALSE(naflex.crop);
  CHECK_THROWS_WITH_AS(hf(R"({"image_processor_type": "SiglipImageProcessor", "max_num_patches": 256})"),
                       doctest::Contains("max_num_patches"), vit::Error);
  CHECK_THROWS_WITH_AS(hf(R"({"image_processor_type": "Siglip2ImageProcessor", "max_num_patches": 0})"),
                       doctest::Contains("max_num_patches"), vit::Error);
  const vit::PreprocessConfig dino = hf(R"({"image_processor_type": "DINOv3ViTImageProcessorFast"})");
  CHECK(dino.normalize == vit::NormalizeRule::rescale_first);
  CHECK_FALSE(dino.crop);
}

TEST_CASE("weights: a switch that is null is off, whatever the class says") {
  CHECK(vit_processor(R"("do_resize": null)").resize == vit::ResizeRule::none);
  CHECK_FALSE(vit_processor(R"("do_rescale": null)").rescale);
  CHECK_FALSE(vit_processor(R"("do_normalize": null)").subtract_mean);
  CHECK(vit_processor(R"("do_rescale": true, "do_normalize": true)").subtract_mean);
  CHECK_FALSE(hf(R"({"image_processor_type": "CLIPImageProcessor", "do_center_crop": null})").crop);
  CHECK(vit_processor(R"("default_to_square": null, "size": 99)").resize == vit::ResizeRule::shortest_edge);
  CHECK_FALSE(hf(R"({"image_processor_type": "Owlv2ImageProcessor", "do_pad": null})").pad_to_square);
  CHECK(hf(R"({"image_processor_type": "Cohere2VisionImageProcessor", "crop_to_patches": null})").resize ==
        vit::ResizeRule::squash);
  CHECK_ERROR(ErrorKind::unsupported, ("preprocessor_config.json", "do_image_splitting"),
              hf(R"({"image_processor_type": "Idefics3ImageProcessor", "do_image_splitting": null})"));
}

TEST_CASE("weights: the crop of classes that do not crop by themselves, and of those that never do") {
  const auto crop_of = [](const std::string& name) {
    return hf(R"({"image_processor_type": ")" + name + R"(ImageProcessor", "do_center_crop": true})")
        .crop_height;
  };
  CHECK(crop_of("Beit") == 224);
  CHECK(crop_of("OwlViT") == 768);
  CHECK(crop_of("Sapiens2") == 224);
  for (const char* const name : {"Gemma3", "GotOcr2", "Cohere2Vision"}) {
    CAPTURE(name);
    CHECK_FALSE(hf(R"({"image_processor_type": ")" + std::string(name) +
                   R"(ImageProcessor", "do_center_crop": true, "crop_size": 50})")
                    .crop);
  }
  const vit::PreprocessConfig tiles =
      hf(R"({"image_processor_type": "LlavaNextImageProcessor", "size": {"height": 336, "width": 336},
             "crop_size": {"height": 336, "width": 336}})");
  CHECK(tiles.resize == vit::ResizeRule::tiles);
  CHECK_FALSE(tiles.crop);
  CHECK_ERROR(ErrorKind::unsupported, ("crop of tiles"),
              hf(R"({"image_processor_type": "LlavaNextImageProcessor", "size": {"height": 336, "width": 336},
                     "crop_size": {"height": 300, "width": 336}})"));
}

TEST_CASE("weights: what processors of depth say if their files are silent") {
  const vit::PreprocessConfig prompted =
      hf(R"({"image_processor_type": "PromptDepthAnythingImageProcessor"})");
  CHECK(prompted.mean == std::vector<double>{0.5, 0.5, 0.5});
  CHECK(prompted.std == std::vector<double>{0.5, 0.5, 0.5});
  CHECK(prompted.pad_multiple == 0);
  const vit::PreprocessConfig canopy = hf(R"({"image_processor_type": "CHMv2ImageProcessor"})");
  CHECK(canopy.resize == vit::ResizeRule::none);
  CHECK(canopy.pad_multiple == 16);
  CHECK(canopy.pad_normalized);
  CHECK(canopy.mean == std::vector<double>{0.420, 0.411, 0.296});
  CHECK(canopy.std == std::vector<double>{0.213, 0.156, 0.143});
  const vit::PreprocessConfig resized =
      hf(R"({"image_processor_type": "CHMv2ImageProcessor", "do_resize": true, "do_pad": false})");
  CHECK(resized.resize == vit::ResizeRule::nearer_scale);
  CHECK(resized.size_multiple == 16);
  CHECK(resized.pad_multiple == 0);
  CHECK(hf(R"({"image_processor_type": "DPTImageProcessor", "do_pad": true})").pad_multiple == 0);
}

TEST_CASE("weights: min_pixels and max_pixels are limits of the classes that read them") {
  const auto area_of = [](const std::string& name) {
    const vit::PreprocessConfig config = hf(R"({"image_processor_type": ")" + name +
                                            R"(ImageProcessor", "min_pixels": 5000, "max_pixels": 70000})");
    return std::pair(config.min_area, config.max_area);
  };
  for (const char* const name : {"Qwen2VL", "PaddleOCRVL", "VideoLlama3"}) {
    CAPTURE(name);
    CHECK(area_of(name) == std::pair<std::size_t, std::size_t>(5000, 70000));
  }
  CHECK(area_of("Glm4v") == std::pair<std::size_t, std::size_t>(112 * 112, 28 * 28 * 15000));
  CHECK(area_of("Glm46V") == std::pair<std::size_t, std::size_t>(112 * 112, 28 * 28 * 15000));
  CHECK(area_of("Ernie4_5_VLMoe") == std::pair<std::size_t, std::size_t>(56 * 56, 28 * 28 * 6177));
}

TEST_CASE("weights: the image processor may be in processor_config.json, or follow from the model type") {
  Folder nested;
  nested.add("preprocessor_config.json", R"({"image_processor_type": "ViTImageProcessor"})");
  nested.add(
      "processor_config.json",
      R"({"image_processor": {"image_processor_type": "CLIPImageProcessor"}, "processor_class": "CLIPProcessor"})");
  CHECK(load_preprocess_config(nested.path()).crop);
  Folder unnamed;
  unnamed.add("config.json", R"({"model_type": "dinov2"})")
      .add("preprocessor_config.json", R"({"size": {"shortest_edge": 512}})");
  CHECK(load_preprocess_config(unnamed.path()).resize_height == 512);
  unnamed.add("model.safetensors", "");
  CHECK(load_preprocess_config(unnamed.path() / "model.safetensors").resize_height == 512);
  unnamed.add("config.json", R"({"model_type": "metaclip_2"})");
  CHECK(load_preprocess_config(unnamed.path()).source.find("CLIPImageProcessor") != std::string::npos);
}

TEST_CASE("weights: absurd preprocessing is an Error that names file and key") {
  for (const char* const cfg :
       {R"({"input_size": [3, 0, 224]})", R"({"input_size": [3, -1, 224]})",
        R"({"input_size": [3, 1e300, 224]})", R"({"input_size": [3, "224", 224]})",
        R"({"input_size": [224, 224]})", R"({"input_size": 224})", R"({"crop_pct": 0})",
        R"({"crop_pct": -0.9})", R"({"crop_pct": 1e300})", R"({"crop_pct": "0.9"})",
        R"({"interpolation": 3})", R"({"mean": [0.5, 0.5]})", R"({"mean": 0.5})", R"({"std": [0.5, 0, 0.5]})",
        R"({"std": [0.5, -1, 0.5]})", R"({"mean": [1e300, 0, 0]})", R"({"mean": ["a", 0, 0]})"}) {
    CAPTURE(cfg);
    const std::string text(cfg);
    const std::string key = text.substr(2, text.find('"', 2) - 2);
    CHECK_ERROR(ErrorKind::format, ("config.json", key), timm(cfg));
  }
  for (const char* const entry :
       {R"("size": 0)", R"("size": -1)", R"("size": 1e300)", R"("size": "224")",
        R"("size": {"longest_edge": 224})", R"("size": {"height": 224})", R"("size": [1, 2, 3])",
        R"("crop_size": {"height": 3}, "do_center_crop": true)", R"("resample": 6)",
        R"("resample": "bicubic")", R"("rescale_factor": 0)", R"("rescale_factor": -1)", R"("image_std": 0)",
        R"("image_std": [1, 1])", R"("do_resize": 1)", R"("do_normalize": "yes")"}) {
    CAPTURE(entry);
    const std::string text(entry);
    CHECK_ERROR(ErrorKind::format, ("preprocessor_config.json", text.substr(1, text.find('"', 1) - 1)),
                vit_processor(text));
  }
  CHECK_ERROR(ErrorKind::format, ("preprocessor_config.json", "image_processor_type"), hf("{}"));
  CHECK_ERROR(ErrorKind::format, ("preprocessor_config.json"), hf("[]"));
  CHECK_ERROR(ErrorKind::format, ("preprocessor_config.json", "do_center_crop", "crop_size"),
              vit_processor(R"("do_center_crop": true)"));
}

TEST_CASE("weights: preprocessing that is not implemented, or not there, is an Error of another kind") {
  CHECK_ERROR(ErrorKind::unsupported, ("preprocessor_config.json", "do_pad"),
              vit_processor(R"("do_pad": true)"));
  CHECK_ERROR(ErrorKind::unsupported, ("preprocessor_config.json", "size_divisor"),
              vit_processor(R"("size_divisor": 32)"));
  CHECK_ERROR(ErrorKind::unsupported, ("preprocessor_config.json", "ConvNextImageProcessor"),
              hf(R"({"image_processor_type": "ConvNextImageProcessor"})"));
  for (const char* const cfg : {R"({"crop_mode": "diagonal"})", R"({"interpolation": "random"})"})
    CHECK_ERROR(ErrorKind::unsupported, ("config.json", "pretrained_cfg."), timm(cfg));
  for (const char* const entry :
       {R"("mode": "L")", R"("resize_mode": "widest")", R"("interpolation": "lanczos")"})
    CHECK_ERROR(ErrorKind::unsupported, ("open_clip_config.json: preprocess_cfg."), open_clip("", entry));
  Folder empty;
  CHECK_ERROR(ErrorKind::io, (empty.path().string()), load_preprocess_config(empty.path()));
  CHECK(!vit::internal::CheckpointFolder(empty.path()).preprocess_config());
  CHECK_ERROR(ErrorKind::io, ("/no/such/folder"), load_preprocess_config("/no/such/folder"));
}

TEST_CASE("weights: OpenCLIP's preprocessing, its defaults and its modes") {
  const vit::PreprocessConfig defaults = open_clip("", "");
  CHECK(defaults.resampler == vit::Resampler::pillow);
  CHECK(defaults.resize == vit::ResizeRule::shortest_edge);
  CHECK(defaults.resize_height == 224);
  CHECK(defaults.crop_height == 224);
  CHECK(defaults.filter == vit::ResizeFilter::bicubic);
  CHECK(defaults.mean == std::vector<double>{0.48145466, 0.4578275, 0.40821073});
  CHECK(defaults.std == std::vector<double>{0.26862954, 0.26130258, 0.27577711});
  CHECK_FALSE(defaults.apply_orientation);

  // the model's size outranks the transform's
  const vit::PreprocessConfig squash =
      open_clip(R"("image_size": 256)", R"("size": 96, "mode": "RGB", "mean": [0.5, 0.5, 0.25],
                "interpolation": "bilinear", "resize_mode": "squash", "std": null, "later_idea": 1)");
  CHECK(squash.resize == vit::ResizeRule::squash);
  CHECK(squash.resize_width == 256);
  CHECK(squash.filter == vit::ResizeFilter::bilinear);
  CHECK(squash.mean[2] == 0.25);
  CHECK(squash.std[0] == 0.26862954);
  const vit::PreprocessConfig longest =
      open_clip(R"("image_size": [160, 224])",
                R"("resize_mode": "longest", "fill_color": 77, "interpolation": "bilinear")");
  CHECK(longest.resize == vit::ResizeRule::contain);
  CHECK(longest.crop_height == 160);
  CHECK(longest.crop_width == 224);
  CHECK(longest.crop_pad_color == std::array<unsigned char, 3>{77, 77, 77});
  CHECK(longest.filter == vit::ResizeFilter::bilinear);
  const vit::PreprocessConfig rectangle =
      open_clip(R"("image_size": [160, 224])", R"("interpolation": "bilinear")");
  CHECK(rectangle.resize == vit::ResizeRule::cover);
  CHECK(rectangle.filter == vit::ResizeFilter::bicubic);

  for (const char* const wrong : {R"("fill_color": 256)", R"("mean": [0.5])", R"("std": [0, 1, 1])"}) {
    CAPTURE(wrong);
    CHECK_ERROR(ErrorKind::format, ("open_clip_config.json: preprocess_cfg."), open_clip("", wrong));
  }
  Folder without_model;
  without_model.add("open_clip_config.json", R"({"preprocess_cfg": {}})");
  CHECK_ERROR(ErrorKind::format, ("open_clip_config.json", "model_cfg"),
              load_preprocess_config(without_model.path()));
}

TEST_CASE("weights: what preprocessing files say is quoted in one short line") {
  const std::string hostile = R"(x\n[load_checkpoint] fine\u001b[2J)" + std::string(100'000, 'x');
  const auto check = [](const std::string& message) {
    CAPTURE(message.substr(0, 2000));
    CHECK(vit::test::contains(message, "\\x0a[load_checkpoint] fine\\x1b"));
    CHECK(message.size() < 1000);
    CHECK(message.find('\n') == std::string::npos);
  };
  check(vit::test::message_of([&] { timm(R"({"interpolation": ")" + hostile + "\"}"); }));
  check(vit::test::message_of([&] { timm(R"({"crop_mode": ")" + hostile + "\"}"); }));
  check(vit::test::message_of([&] { hf(R"({"image_processor_type": ")" + hostile + "\"}"); }));
  check(vit::test::message_of([&] { open_clip("", R"("resize_mode": ")" + hostile + "\""); }));
  Folder typed;
  typed.add("config.json", R"({"model_type": ")" + hostile + "\"}").add("preprocessor_config.json", "{}");
  check(vit::test::message_of([&] { load_preprocess_config(typed.path()); }));
  Folder named;  // the name becomes part of the source, which later messages show
  named.add("config.json", R"({"architecture": ")" + hostile +
                               R"(", "pretrained_cfg": {"input_size": [3, 1, 1], "crop_pct": 10}})");
  check(vit::test::message_of([&] { load_preprocess_config(named.path()); }));
  const std::string raw = "x\n[load_checkpoint] fine\x1b[2J" + std::string(100'000, 'x');
  check(vit::test::message_of([&] { vit::internal::find_architecture(raw); }));
  check(vit::test::message_of([&] { vit::internal::parse_pillow_release(raw); }));
}

TEST_CASE("weights: preprocessing files that the system does not show are an Error with its reason") {
  for (const char* name :
       {"config.json", "processor_config.json", "preprocessor_config.json", "open_clip_config.json"}) {
    CAPTURE(name);
    const vit::test::TemporaryFolder folder;
    std::filesystem::create_symlink(name, folder.path() / name);
    CHECK_ERROR(ErrorKind::io, ((folder.path() / name).string(), name),
                load_preprocess_config(folder.path()));
  }
  const std::string endless(300, 'x');
  CHECK_ERROR(ErrorKind::io, (endless), load_preprocess_config(endless));
}

TEST_CASE("weights: Pillow versions choose the order of the passes") {
  CHECK(vit::internal::parse_pillow_release("9.4") == vit::PillowRelease::up_to_12_1);
  CHECK(vit::internal::parse_pillow_release("12.1") == vit::PillowRelease::up_to_12_1);
  CHECK(vit::internal::parse_pillow_release("12.2.0") == vit::PillowRelease::from_12_2);
  CHECK(vit::internal::parse_pillow_release("13") == vit::PillowRelease::from_13_0);
  for (const char* const wrong : {"", "x", "12.", "12.x", "-1", "1.2.3.4"})
    CHECK_THROWS_AS(vit::internal::parse_pillow_release(wrong), vit::Error);
}
