// OpenCLIP's folders: how open_clip_config.json defines a tower, which file of a folder counts, and what is
// refused. Numbers are compared in model/fixture_tests.cpp (OpenCLIP's own tower).
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "tests/support/checkpoint_files.h"
#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/shared_data.h"
#include "vit/base/error.h"
#include "vit/weights/checkpoint/checkpoint_folder.h"
#include "vit/weights/checkpoint/loader.h"

namespace vit {
using namespace internal;
namespace {

namespace fs = std::filesystem;
using test::FileCopy;
using test::ScratchFolder;

constexpr const char* kConfigName = "open_clip_config.json";

fs::path golden() {
  return test::data_path("golden/models/open-clip");
}

/// The golden config with fields put in front of those of vision_cfg.
std::string with_vision_fields(const std::string& fields) {
  return test::replaced(test::read_text(golden() / kConfigName), R"("vision_cfg": {)",
                        R"("vision_cfg": {)" + fields + ",");
}

/// timm's tiny ViT as OpenCLIP stores it, with a text tower.
FileCopy timm_tower() {
  FileCopy copy(test::data_path("golden/models/timm-vit"));
  for (FileCopy::Entry& entry : copy.entries()) entry.name = "visual.trunk." + entry.name;
  copy.add("text.transformer.resblocks.0.ln_1.weight", {4}).add("logit_scale", {}).add("logit_bias", {});
  return copy.set_config("");
}

void write_timm_config(const fs::path& folder, const std::string& vision_fields) {
  test::write_text(
      folder / kConfigName,
      R"({"model_cfg": {"embed_dim": 9, "custom_text": true, "init_logit_bias": -10, "text_cfg": {},
                   "vision_cfg": {"image_size": 24, "timm_model_name": "vit_tiny_patch16_224")" +
          vision_fields + "}}}");
}

/// Sizes that no published model has.
const ModelOptions kTinyTimm{
    .overrides = {
        {"img_size", "24"}, {"patch_size", "8"}, {"embed_dim", "30"}, {"depth", "2"}, {"mlp_ratio", "2.5"}}};

}  // namespace

TEST_CASE("weights: OpenCLIP's own tower is what model_cfg says") {
  const ModelConfig plain = load_checkpoint(golden()).config;
  CHECK(plain.library == "OpenCLIP");
  CHECK(plain.family == "clip");
  CHECK(plain.attention.num_heads == 3);
  CHECK(plain.mlp.dim == 42);
  CHECK(plain.mlp.activation == Activation::quick_gelu);
  CHECK(plain.encoder.norm.eps == 1e-5f);
  CHECK(plain.encoder.layer_scale);
  CHECK(plain.projection_dim() == 10);
  CHECK(plain.head.num_classes == 0);

  const ScratchFolder scratch("open_clip_own");
  FileCopy(golden())
      .remove("visual.ln_pre.weight")
      .remove("visual.ln_pre.bias")
      .set_config(test::replaced(
          with_vision_fields(R"("no_ln_pre": true, "final_ln_after_pool": true, "qk_norm": false,
                         "pool_type": "avg", "norm_kwargs": {"eps": 0.001}, "block_type": null,
                         "act_kwargs": {"approximate": "tanh"})"),
          R"("quick_gelu": true)", R"("quick_gelu": false)"))
      .write_to(scratch.path());
  const ModelConfig clipa = load_checkpoint(scratch.path()).config;
  CHECK(clipa.head.pooling == Pooling::patch_mean);
  CHECK(clipa.head.pooled_norm);
  CHECK_FALSE(clipa.encoder.token_norm);
  CHECK_FALSE(clipa.encoder.norm_pre);
  CHECK_FALSE(clipa.patch.bias);
  CHECK(clipa.mlp.activation == Activation::gelu_tanh);
  CHECK(clipa.encoder.norm.eps == 1e-3f);
}

TEST_CASE("weights: OpenCLIP's timm towers project inside, outside or not at all") {
  const ScratchFolder scratch("open_clip_timm");
  timm_tower().write_to(scratch.path());
  write_timm_config(scratch.path(), R"(, "timm_pool": "token", "timm_proj": null)");
  const LoadedTower inside = load_checkpoint(scratch.path(), kTinyTimm);
  const LoadedTower original = load_checkpoint(test::data_path("golden/models/timm-vit"));
  CHECK(inside.config.architecture == "vit_tiny_patch16_224");
  CHECK(inside.config.projection_dim() == 9);
  CHECK(inside.config.head.num_classes == 0);
  const auto same = [](const WeightTensor& a, const WeightTensor& b) {
    return std::ranges::equal(a.load().flat(), b.load().flat());
  };
  CHECK(same(inside.weights.projection.weight, original.weights.head.weight));
  CHECK(same(inside.weights.projection.bias, original.weights.head.bias));

  // without a field the pooling is the mean; the norm stays where the model was built with it
  FileCopy outside = timm_tower();
  outside.rename("visual.trunk.head.weight", "visual.head.proj.weight").remove("visual.trunk.head.bias");
  outside.write_to(scratch.path());
  write_timm_config(scratch.path(), "");
  const ModelConfig linear = load_checkpoint(scratch.path(), kTinyTimm).config;
  CHECK(linear.head.pooling == Pooling::patch_mean);
  CHECK(linear.encoder.token_norm);
  CHECK_FALSE(linear.head.pooled_norm);
  CHECK_FALSE(linear.head.projection->bias);
  write_timm_config(scratch.path(), R"(, "timm_proj_bias": true, "timm_pool": "")");
  CHECK_ERROR(ErrorKind::mismatch, ("visual.head.proj.bias"), load_checkpoint(scratch.path(), kTinyTimm));
  outside.add("visual.head.proj.bias", {9}).write_to(scratch.path());
  const ModelConfig biased = load_checkpoint(scratch.path(), kTinyTimm).config;
  CHECK(biased.head.projection->bias);
  CHECK(biased.head.pooling == Pooling::class_token);

  timm_tower().remove("visual.trunk.head.weight").remove("visual.trunk.head.bias").write_to(scratch.path());
  write_timm_config(scratch.path(), R"(, "timm_pool": "token", "timm_proj": "none")");
  CHECK(load_checkpoint(scratch.path(), kTinyTimm).config.projection_dim() == 0);
  // the name determines all sizes, so another depth does not pass
  CHECK_ERROR(ErrorKind::mismatch, ("visual.trunk."), load_checkpoint(scratch.path()));
}

TEST_CASE("weights: OpenCLIP's NaFlex tower is timm's, and takes a number of patches") {
  const fs::path own = test::data_path("golden/models/timm-naflex");
  FileCopy copy(own);
  for (FileCopy::Entry& entry : copy.entries()) entry.name = "visual.trunk." + entry.name;
  const ScratchFolder scratch("open_clip_naflex");
  copy.set_config("").write_to(scratch.path());
  test::write_text(scratch.path() / kConfigName,
                   R"({"model_cfg": {"embed_dim": 32, "custom_text": true, "text_cfg": {}, "vision_cfg":
                   {"image_size": 48, "timm_model_name": "naflexvit_base_patch16_siglip", "timm_pool": "map",
                    "timm_proj": "none"}},
                   "preprocess_cfg": {"mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5], "resize_mode": "squash"}})");
  ModelOptions tiny{.overrides = {{"patch_size", "8"},
                                  {"embed_dim", "32"},
                                  {"depth", "2"},
                                  {"num_heads", "4"},
                                  {"mlp_ratio", "1.5"},
                                  {"pos_embed_grid_size", "2x3"}}};
  const LoadedTower found = load_checkpoint(scratch.path(), tiny);
  const LoadedTower original = load_checkpoint(own);
  CHECK(found.config.image.height == 48);
  CHECK(found.config.position.added_grid == GridSize{2, 3});
  CHECK(found.config.position.resampling == TableResampling::bilinear_antialias);
  CHECK(found.config.projection_dim() == 0);
  const auto same = [](const WeightTensor& a, const WeightTensor& b) {
    return std::ranges::equal(a.load().flat(), b.load().flat());
  };
  CHECK(same(found.weights.patch.weight, original.weights.patch.weight));
  CHECK(same(found.weights.position_table, original.weights.position_table));

  CHECK(CheckpointFolder(scratch.path(), tiny).preprocess_config().value().resize == ResizeRule::squash);
  tiny.overrides["max_num_patches"] = "100";
  const PreprocessConfig naflex = CheckpointFolder(scratch.path(), tiny).preprocess_config().value();
  CHECK(naflex.resize == ResizeRule::patches);
  CHECK(naflex.max_patches == 100);
  CHECK(naflex.patch_size == 8);
  CHECK(naflex.resampler == Resampler::pillow);
}

TEST_CASE("weights: what OpenCLIP has and this library has not is refused by name") {
  const ScratchFolder scratch("open_clip_refused");
  FileCopy(golden()).write_to(scratch.path());
  const auto check = [&](const std::string& config, const std::string& name,
                         ErrorKind kind = ErrorKind::unsupported) {
    test::write_text(scratch.path() / kConfigName, config);
    CHECK_ERROR(kind, (kConfigName, name), load_checkpoint(scratch.path()));
  };
  check(with_vision_fields(R"("attentional_pool": true)"), "vision_cfg.attentional_pool");
  check(with_vision_fields(R"("attentional_pool": "cascade")"), "vision_cfg.attentional_pool");
  check(with_vision_fields(R"("scale_fc": true)"), "vision_cfg.scale_fc");
  check(with_vision_fields(R"("pool_type": "none")"), "vision_cfg.pool_type");
  check(with_vision_fields(R"("new_idea": 1)"), "vision_cfg.new_idea");
  check(with_vision_fields(R"("norm_kwargs": {"bias": false})"), "vision_cfg.norm_kwargs.bias");
  check(with_vision_fields(R"("act_kwargs": {"approximate": "tanh"})"), "quick_gelu");
  check(with_vision_fields(R"("timm_model_name": "convnext_base")"), "\"convnext_base\"");
  check(with_vision_fields(R"("timm_model_name": "PE-Core-L14-336")"), "\"PE-Core-L14-336\"");
  check(with_vision_fields(R"("timm_model_name": "vit_tiny_patch16_224")"),
        "visual.trunk.patch_embed.proj.weight", ErrorKind::mismatch);
  check(with_vision_fields(R"("timm_proj": "mlp")"), "vision_cfg.timm_proj");
  check(with_vision_fields(R"("timm_pool": "abs_attn")"), "vision_cfg.timm_pool");
  const std::string sound = test::read_text(golden() / kConfigName);
  check(test::replaced(sound, R"("layers": 2)", R"("layers": [3, 4, 6, 3])"), "vision_cfg.layers");
  check(test::replaced(sound, R"("head_width": 8)", R"("head_width": 25)"), "num_heads", ErrorKind::format);
  check(test::replaced(sound, R"("quick_gelu")", R"("other_gelu")"), "other_gelu");
  check(test::replaced(sound, R"("embed_dim": 10)", R"("embed_dim": 11)"), "\"visual.proj\"",
        ErrorKind::mismatch);
  test::write_text(scratch.path() / kConfigName, "{}");
  CHECK_ERROR(ErrorKind::argument, ("ModelOptions::architecture"), load_checkpoint(scratch.path()));

  timm_tower().write_to(scratch.path());
  write_timm_config(scratch.path(), R"(, "timm_pool": "", "timm_proj": "none")");
  CHECK_ERROR(ErrorKind::unsupported, ("timm_pool"), load_checkpoint(scratch.path(), kTinyTimm));
}

TEST_CASE("weights: the weight file decides which of two configs counts") {
  const ScratchFolder scratch("open_clip_both");
  const fs::path& folder = scratch.path();
  const auto check = [](const fs::path& path, const char* library, std::size_t edge, const char* config) {
    CAPTURE(path);
    const ModelConfig found = load_checkpoint(path).config;
    CHECK(found.library == library);
    const PreprocessConfig preprocess = CheckpointFolder(path).preprocess_config().value();
    CHECK(preprocess.crop_height == edge);
    CHECK_MESSAGE(preprocess.source.find(config) != std::string::npos, preprocess.source);
  };
  fs::copy(golden() / kConfigName, folder / kConfigName);
  fs::copy(golden() / "open_clip_model.safetensors", folder / "open_clip_model.safetensors");
  check(folder, "OpenCLIP", 24, "open_clip_config.json (OpenCLIP)");

  // transformers' or timm's config next to it says nothing about these weights
  FileCopy other(test::data_path("golden/models/rope-axial-avg"));
  test::write_text(folder / "config.json",
                   test::read_text(test::data_path("golden/models/rope-axial-avg/config.json")));
  check(folder, "OpenCLIP", 24, "open_clip_config.json (OpenCLIP)");

  other.write_to(folder);  // model.safetensors, the first choice
  check(folder, "timm", 16, "config.json (timm");
  check(folder / "model.safetensors", "timm", 16, "config.json (timm");
  check(folder / "open_clip_model.safetensors", "OpenCLIP", 24, "open_clip_config.json (OpenCLIP)");
}

TEST_CASE("weights: an architecture given by name keeps OpenCLIP's preprocessing") {
  const ModelOptions named{.architecture = "vit_base_patch32_clip_224", .overrides = {{"num_heads", "3"}}};
  const LoadedTower checkpoint = load_checkpoint(golden(), named);
  CHECK(checkpoint.config.architecture == "vit_base_patch32_clip_224");
  CHECK(checkpoint.config.head.num_classes == 10);
  const PreprocessConfig preprocess = CheckpointFolder(golden(), named).preprocess_config().value();
  CHECK(preprocess.mean == std::vector<double>{0.5, 0.4, 0.6});
  CHECK(preprocess.resize == ResizeRule::squash);

  const ScratchFolder scratch("open_clip_bare");
  FileCopy(golden()).set_config("").write_to(scratch.path());
  CHECK(CheckpointFolder(scratch.path(), named).preprocess_config()->mean[0] == 0.48145466);
}

}  // namespace vit
