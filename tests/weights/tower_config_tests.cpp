// Configurations of vision towers that make no sense, or need what is not implemented: each is refused
// in one line that names the file, before any number of the weights is read.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "tests/support/checkpoint_files.h"
#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/shared_data.h"
#include "tests/support/training_files.h"
#include "vit/model.h"
#include "vit/weights/checkpoint/checkpoint_folder.h"

namespace vit {
using namespace internal;
namespace {

namespace fs = std::filesystem;

/// The tensor by which a tower is recognized, its config.json, and the sizes in that.
struct Tower {
  const char* anchor;
  const char* config;
  std::vector<const char*> sizes;
};

const Tower kTowers[] = {
    {"visual.patch_embed.proj.weight",
     R"({"model_type": "qwen2_vl", "vision_config": {"embed_dim": 40, "hidden_size": 28, "num_heads": 2, "depth": 2,
        "patch_size": 8, "spatial_merge_size": 2, "temporal_patch_size": 2}})",
     {"embed_dim", "hidden_size", "num_heads", "depth", "patch_size", "spatial_merge_size",
      "temporal_patch_size"}},
    {"visual.patch_embed.proj.weight",
     R"({"model_type": "qwen2_5_vl", "vision_config": {"hidden_size": 48, "out_hidden_size": 24, "num_heads": 2,
        "depth": 2, "intermediate_size": 60, "patch_size": 8, "spatial_merge_size": 2, "window_size": 32,
        "temporal_patch_size": 2, "fullatt_block_indexes": [1]}})",
     {"hidden_size", "out_hidden_size", "num_heads", "depth", "intermediate_size", "patch_size",
      "spatial_merge_size", "window_size", "temporal_patch_size", "fullatt_block_indexes"}},
    {"model.visual.patch_embed.proj.weight",
     R"({"model_type": "qwen3_vl", "vision_config": {"hidden_size": 32, "out_hidden_size": 24, "num_heads": 2,
        "depth": 2, "intermediate_size": 44, "patch_size": 8, "spatial_merge_size": 2, "temporal_patch_size": 2,
        "num_position_embeddings": 25, "deepstack_visual_indexes": [0]}})",
     {"hidden_size", "out_hidden_size", "num_heads", "depth", "intermediate_size", "patch_size",
      "spatial_merge_size", "temporal_patch_size", "num_position_embeddings", "deepstack_visual_indexes"}},
    {"model.visual.patch_embed.proj.weight",
     R"({"model_type": "exaone4_5", "vision_config": {"hidden_size": 64, "out_hidden_size": 24, "num_heads": 4,
        "num_key_value_heads": 2, "depth": 2, "intermediate_size": 44, "patch_size": 8, "spatial_merge_size": 2,
        "window_size": 32, "fullatt_block_indexes": [1]}})",
     {"hidden_size", "num_heads", "num_key_value_heads", "depth", "patch_size", "spatial_merge_size",
      "window_size"}},
    {"model.visual.patch_embed.proj.weight",
     R"({"model_type": "glm4v", "vision_config": {"hidden_size": 48, "num_heads": 2, "depth": 2, "patch_size": 8,
        "image_size": 40, "out_hidden_size": 32, "intermediate_size": 56, "spatial_merge_size": 2}})",
     {"hidden_size", "num_heads", "depth", "patch_size", "image_size", "out_hidden_size",
      "spatial_merge_size"}},
    {"model.visual.patch_embed.proj.weight",
     R"({"model_type": "glm5_next", "vision_config": {"hidden_size": 48, "num_heads": 2, "depth": 2, "patch_size": 8,
        "image_size": 40, "out_hidden_size": 32, "intermediate_size": 56, "swiglu_limit": 7,
        "projection_intermediate_size": 60}})",
     {"hidden_size", "num_heads", "depth", "patch_size", "out_hidden_size", "intermediate_size"}},
    {"visual.vision_model.embeddings.patch_embedding.weight",
     R"({"model_type": "paddleocr_vl", "vision_config": {"hidden_size": 48, "num_attention_heads": 2,
        "num_hidden_layers": 2, "patch_size": 8, "image_size": 40, "intermediate_size": 60,
        "spatial_merge_size": 2}})",
     {"hidden_size", "num_attention_heads", "num_hidden_layers", "patch_size", "image_size",
      "intermediate_size", "spatial_merge_size"}},
    {"model.vision_model.embeddings.patch_embedding.weight",
     R"({"model_type": "video_llama_3", "vision_config": {"hidden_size": 48, "num_attention_heads": 2,
        "num_hidden_layers": 2, "patch_size": 8, "intermediate_size": 60}})",
     {"hidden_size", "num_attention_heads", "num_hidden_layers", "patch_size", "intermediate_size"}},
    {"vision_tower.patch_embed.pos_emb.weight",
     R"({"model_type": "kimi_k25", "vision_config": {"hidden_size": 40, "num_attention_heads": 2,
        "num_hidden_layers": 2, "patch_size": 8, "intermediate_size": 52, "pos_emb_height": 5, "pos_emb_width": 5,
        "merge_kernel_size": 2}})",
     {"hidden_size", "num_attention_heads", "num_hidden_layers", "patch_size", "intermediate_size",
      "pos_emb_height", "pos_emb_width", "merge_kernel_size"}},
    {"vision_tower.patch_conv.weight",
     R"({"model_type": "mistral3", "spatial_merge_size": 2, "text_config": {"hidden_size": 20}, "vision_config": {
        "model_type": "pixtral", "hidden_size": 40, "num_attention_heads": 2, "num_hidden_layers": 2,
        "patch_size": 8, "image_size": 64, "intermediate_size": 56}})",
     {"hidden_size", "num_attention_heads", "num_hidden_layers", "patch_size", "image_size",
      "intermediate_size", "spatial_merge_size"}},
    {"vision_model.patch_embedding.linear.weight",
     R"({"model_type": "llama4", "vision_config": {"hidden_size": 48, "num_attention_heads": 2,
        "num_hidden_layers": 2, "patch_size": 8, "image_size": 48, "intermediate_size": 192,
        "pixel_shuffle_ratio": 0.5, "projector_input_dim": 40, "projector_output_dim": 40}})",
     {"hidden_size", "num_attention_heads", "num_hidden_layers", "patch_size", "image_size",
      "intermediate_size", "pixel_shuffle_ratio", "projector_input_dim", "projector_output_dim"}},
    {"model.vision_tower.patch_embedder.input_proj.weight",
     R"({"model_type": "gemma4", "vision_config": {"hidden_size": 48, "num_attention_heads": 2, "head_dim": 24,
        "num_hidden_layers": 2, "patch_size": 8, "intermediate_size": 60, "pooling_kernel_size": 3,
        "position_embedding_size": 16, "num_key_value_heads": 2}})",
     {"hidden_size", "num_attention_heads", "num_hidden_layers", "patch_size", "intermediate_size",
      "pooling_kernel_size", "position_embedding_size"}},
    {"vision_model.patch_embed.proj.weight",
     R"({"model_type": "ernie4_5_vl_moe", "vision_config": {"hidden_size": 48, "num_heads": 3, "depth": 2,
        "patch_size": 8, "intermediate_size": 56, "spatial_merge_size": 2, "temporal_merge_size": 2}})",
     {"hidden_size", "num_heads", "depth", "patch_size", "intermediate_size", "spatial_merge_size",
      "temporal_merge_size"}},
    {"vision_model.embeddings.patch_embedding.weight",
     R"({"model_type": "mlcd_vision_model", "hidden_size": 48, "num_attention_heads": 3, "num_hidden_layers": 2,
        "patch_size": 8, "image_size": 48, "intermediate_size": 60})",
     {"hidden_size", "num_attention_heads", "num_hidden_layers", "patch_size", "image_size",
      "intermediate_size"}},
    {"encoder.embeddings.patch_embeddings.proj.weight",
     R"({"model_type": "vjepa2", "hidden_size": 56, "num_attention_heads": 2, "num_hidden_layers": 2,
        "patch_size": 8, "crop_size": 48, "mlp_ratio": 2, "tubelet_size": 2})",
     {"hidden_size", "num_attention_heads", "num_hidden_layers", "patch_size", "crop_size", "mlp_ratio",
      "tubelet_size"}},
    {"embeddings.patch_embeddings.projection.weight",
     R"({"model_type": "sam3_vit_model", "hidden_size": 48, "num_attention_heads": 3, "num_hidden_layers": 2,
        "patch_size": 4, "image_size": 48, "pretrain_image_size": 20, "intermediate_size": 40, "window_size": 4,
        "global_attn_indexes": [1]})",
     {"hidden_size", "num_attention_heads", "num_hidden_layers", "patch_size", "image_size",
      "pretrain_image_size", "intermediate_size", "window_size", "global_attn_indexes"}},
};

const Tower kClipTowers[] = {
    {"vision_tower.embeddings.patch_embedding.weight",
     R"({"model_type": "llava", "vision_feature_layer": -2, "vision_config": {"model_type": "clip_vision_model",
        "hidden_size": 48, "num_attention_heads": 2, "num_hidden_layers": 2, "patch_size": 8, "image_size": 48,
        "intermediate_size": 60}})",
     {"hidden_size", "num_attention_heads", "num_hidden_layers", "patch_size", "image_size",
      "intermediate_size"}},
    {"model.vision_tower.embeddings.patch_embedding.weight",
     R"({"model_type": "aya_vision", "downsample_factor": 2, "vision_config": {"hidden_size": 48,
        "num_attention_heads": 2, "num_hidden_layers": 2, "patch_size": 8, "image_size": 48,
        "intermediate_size": 60}})",
     {"downsample_factor", "hidden_size", "num_attention_heads", "num_hidden_layers", "patch_size",
      "image_size", "intermediate_size"}},
    {"vision_tower.embeddings.patch_embedding.weight",
     R"({"model_type": "gemma3", "mm_tokens_per_image": 9, "vision_config": {"hidden_size": 48,
        "num_attention_heads": 2, "num_hidden_layers": 2, "patch_size": 8, "image_size": 48,
        "intermediate_size": 60}})",
     {"mm_tokens_per_image", "hidden_size", "num_attention_heads", "num_hidden_layers", "patch_size",
      "image_size", "intermediate_size"}},
    {"model.vision_model.embeddings.patch_embedding.weight",
     R"({"model_type": "smolvlm", "scale_factor": 2, "vision_config": {"hidden_size": 48,
        "num_attention_heads": 2, "num_hidden_layers": 2, "patch_size": 8, "image_size": 48,
        "intermediate_size": 60}})",
     {"scale_factor", "hidden_size", "num_attention_heads", "num_hidden_layers", "patch_size", "image_size",
      "intermediate_size"}},
    {"vision_tower.embeddings.patch_embeddings.projection.weight",
     R"({"model_type": "internvl", "downsample_ratio": 0.5, "vision_config": {"hidden_size": 48,
        "num_attention_heads": 2, "num_hidden_layers": 2, "patch_size": 8, "image_size": 48,
        "intermediate_size": 60}})",
     {"downsample_ratio", "hidden_size", "num_attention_heads", "num_hidden_layers", "patch_size",
      "image_size", "intermediate_size"}},
    {"model.vision_tower.transformer.embeddings.patch_embedding.weight",
     R"({"model_type": "ovis2", "vision_config": {"hidden_size": 48, "num_attention_heads": 2,
        "num_hidden_layers": 2, "patch_size": 8, "image_size": 48, "intermediate_size": 60, "hidden_stride": 2,
        "vocab_size": 99}})",
     {"hidden_size", "num_attention_heads", "num_hidden_layers", "patch_size", "image_size",
      "intermediate_size", "hidden_stride", "vocab_size"}},
    {"vision_model.embeddings.patch_embedding.weight",
     R"({"model_type": "blip-2", "vision_config": {"hidden_size": 48, "num_attention_heads": 2,
        "num_hidden_layers": 2, "patch_size": 8, "image_size": 48, "intermediate_size": 60}})",
     {"hidden_size", "num_attention_heads", "num_hidden_layers", "patch_size", "image_size",
      "intermediate_size"}},
};

/// The text of `config` with another value of a size.
std::string with_value(std::string config, const std::string& size, const std::string& value) {
  const std::size_t at = config.find("\"" + size + "\": ");
  REQUIRE(at != std::string::npos);
  const std::size_t begin = at + size.size() + 4;
  const std::size_t end =
      config[begin] == '[' ? config.find(']', begin) + 1 : config.find_first_of(",}", begin);
  return config.replace(begin, end - begin, value);
}

void check_sizes(std::span<const Tower> towers) {
  for (const Tower& tower : towers) {
    CAPTURE(tower.config);
    const test::ScratchFolder folder("tower-sizes");
    const std::vector<std::byte> number(4);
    write_safetensors(folder.path() / "model.safetensors",
                      std::vector<TensorToWrite>{{tower.anchor, Dtype::f32, {1, 1, 1, 1}, number}});
    const auto message_with = [&](const std::string& config) {
      folder.write("config.json", config);
      return test::message_of([&] { Model::load(folder.path()); });
    };
    CHECK(test::contains(message_with(tower.config),
                         "missing"));  // the other tensors: the configuration is read
    for (const char* const size : tower.sizes) {
      for (const char* const value : {"0", "-1", "4000000000", "1e300", "\"x\"", "[1, -2]", "{}"}) {
        CAPTURE(size);
        CAPTURE(value);
        const std::string message = message_with(with_value(tower.config, size, value));
        CAPTURE(message);
        CHECK(test::contains(message, "config.json"));
        CHECK(!test::contains(message, "missing"));
        CHECK(!test::contains(message, "\n"));
      }
    }
  }
}

TEST_CASE("towers: a size that makes no sense is refused in one line, in every family") {
  check_sizes(kTowers);
}

TEST_CASE("towers: a size that makes no sense is refused in one line, in models with CLIP, SigLIP or ViT") {
  check_sizes(kClipTowers);
}

TEST_CASE("towers: the default sizes of the classes of transformers are accepted") {
  // those that a config.json of nothing but its type means
  for (const char* const type : {"gemma4_vision",
                                 "clip_vision_model",
                                 "altclip_vision_model",
                                 "chinese_clip_vision_model",
                                 "clipseg_vision_model",
                                 "git_vision_model",
                                 "kosmos_2_vision_model",
                                 "siglip_vision_model",
                                 "siglip2_vision_model",
                                 "idefics2_vision",
                                 "idefics3_vision",
                                 "smolvlm_vision",
                                 "phi4_multimodal_vision",
                                 "janus_vision_model",
                                 "cosmos3_edge_vision",
                                 "blip_vision_model",
                                 "blip_2_vision_model",
                                 "instructblip_vision_model",
                                 "internvl_vision",
                                 "qianfan_ocr_vision",
                                 "aimv2_vision_model",
                                 "ovis2_vision",
                                 "molmo2_vision",
                                 "glm_image_vision",
                                 "mgp-str",
                                 "flava_image_model",
                                 "llava",
                                 "llava_next",
                                 "llava_onevision",
                                 "paligemma",
                                 "gemma3",
                                 "aya_vision",
                                 "cohere2_vision",
                                 "lfm2_vl",
                                 "janus",
                                 "deepseek_vl",
                                 "modernvbert",
                                 "smolvlm",
                                 "internvl",
                                 "ovis2"}) {
    CAPTURE(type);
    const test::ScratchFolder folder("default-sizes");
    folder.write("config.json", R"({"model_type": ")" + std::string(type) + R"(", "vision_config": {}})");
    CHECK(test::message_of([&] { CheckpointFolder(folder.path(), {}).model_config(); }) == "");
  }
}

TEST_CASE(
    "towers: the activation of a configuration is that of the blocks, and of the projector that shares it") {
  const auto config_of = [](const std::string& type, const char* activation) {
    const test::ScratchFolder folder("activation");
    folder.write("config.json", R"({"model_type": ")" + type + R"(", "vision_config": {"hidden_act": ")" +
                                    activation + R"("}})");
    return CheckpointFolder(folder.path(), {}).model_config();
  };
  for (const char* const type : {"sam", "sam_hq", "got_ocr2", "slanext", "pp_formulanet"}) {
    CAPTURE(type);
    CHECK(config_of(type, "silu").mlp.activation == Activation::silu);
    CHECK(config_of(type, "gelu").mlp.activation == Activation::gelu);
  }
  const ModelConfig janus = config_of("janus", "quick_gelu");
  REQUIRE(janus.merger);
  const auto* const mlp = std::get_if<MergerMlp>(&janus.merger->steps.back().layer);
  REQUIRE(mlp != nullptr);
  CHECK(mlp->activation == Activation::quick_gelu);
}

TEST_CASE(
    "towers: a table of positions of Kimi K2.5 that is no square, which the library reads as one, is "
    "refused") {
  const test::ScratchFolder folder("kimi-table");
  const auto grid_of = [&](const std::string& type, const std::string& rest) {
    folder.write("config.json", R"({"model_type": ")" + type + R"(", )" + rest + "}");
    return CheckpointFolder(folder.path(), {}).model_config().position.added_grid;
  };
  const std::string square = R"("pos_emb_height": 4, "pos_emb_width": 4)",
                    wide = R"("pos_emb_height": 4, "pos_emb_width": 6)";
  CHECK(grid_of("kimi_k25_vision", square) == GridSize{4, 4});
  CHECK(test::contains(test::message_of([&] { grid_of("kimi_k25_vision", wide); }), "4 x 6"));
  CHECK(grid_of("moonvit", R"("init_pos_emb_height": 4, "init_pos_emb_width": 6)") == GridSize{4, 6});
}

TEST_CASE("towers: attention_bias of GLM-Image is that of all layers of attention") {
  const test::ScratchFolder folder("attention-bias");
  folder.write("config.json", R"({"model_type": "glm_image_vision", "attention_bias": false})");
  const ModelConfig config = CheckpointFolder(folder.path(), {}).model_config();
  CHECK_FALSE(config.attention.qkv_bias);
  CHECK_FALSE(config.attention.proj_bias);
}

TEST_CASE(
    "towers: of two parts of config.json for a tower the one that the class of the model takes counts") {
  const test::ScratchFolder folder("two-parts");
  const auto eps_of = [&](const std::string& type) {
    folder.write("config.json", R"({"model_type": ")" + type +
                                    R"(", "vision_config": {"layer_norm_eps": 0.25},
                                        "vision_config_dict": {"layer_norm_eps": 0.125}})");
    return CheckpointFolder(folder.path(), {}).model_config().encoder.norm.eps;
  };
  CHECK(eps_of("clip") == 0.125f);
  CHECK(eps_of("siglip") == 0.25f);
  for (const std::string type : {"hf-altclip", "hf-siglip"}) {
    CAPTURE(type);
    const test::ScratchFolder text("two-texts");
    fs::remove(text.path());
    fs::copy(test::data_path("golden/text") / type, text.path());
    std::string config = test::read_text(text.path() / "config.json");
    config.insert(config.find("\"text_config\""), R"("text_config_dict": {"layer_norm_eps": 0.125}, )");
    test::write_text(text.path() / "config.json", config);
    const CheckpointFolder checkpoint(text.path());
    const auto& parsed = checkpoint.parsed<TextConfig>();
    REQUIRE(parsed);
    CHECK((parsed->config.norm_eps == 0.125f) == (type == "hf-altclip"));
  }
}

TEST_CASE("towers: a table of Hy4 is resampled as torch does, and by bicubic interpolation always") {
  const test::ScratchFolder folder("hy4");
  const auto position_of = [&](const std::string& mode) {
    folder.write("config.json",
                 R"({"model_type": "hy_v4_vl", "vision_config": {"interpolate_mode": ")" + mode + R"("}})");
    return CheckpointFolder(folder.path(), {}).model_config().position;
  };
  CHECK(position_of("bilinear").reuse == TableReuse::equal_grid);
  CHECK(position_of("bicubic").reuse == TableReuse::never);
}

TEST_CASE("towers: windows of LW-DETR are as many in a row as in a column") {
  const test::ScratchFolder folder("windows");
  const auto load = [&](const std::string& count) {
    folder.write("config.json", R"({"model_type": "lw_detr_vit", "num_windows": )" + count +
                                    R"(, "window_block_indices": [0, 1]})");
    return CheckpointFolder(folder.path(), {}).model_config();
  };
  CHECK(load("9").attention.windows->per_side == 3);
  CHECK_ERROR(ErrorKind::unsupported, ("num_windows", "square"), load("2"));
}

TEST_CASE("towers: what CroCo's files note of heads and positions is read") {
  const test::ScratchFolder folder("croco");
  const std::vector<std::byte> numbers(4 * 48 * 192);
  const auto tensor = [&](const char* name, std::vector<std::size_t> shape) {
    std::size_t bytes = 4;
    for (const std::size_t edge : shape) bytes *= edge;
    return TensorToWrite{name, Dtype::f32, std::move(shape), std::span(numbers).first(bytes)};
  };
  write_safetensors(folder.path() / "model.safetensors",
                    std::vector<TensorToWrite>{tensor("patch_embed.proj.weight", {48, 3, 8, 8}),
                                               tensor("enc_blocks.0.attn.qkv.weight", {144, 48}),
                                               tensor("enc_blocks.0.mlp.fc1.weight", {96, 48})});
  const auto message_with = [&](const std::string& config) {
    folder.write("config.json", config);
    return test::message_of([&] { Model::load(folder.path()); });
  };
  // as Python writes DUSt3R's
  CHECK(test::contains(
      message_with(
          R"({"enc_num_heads": 5, "pos_embed": "RoPE100", "depth_mode": ["exp", -Infinity, Infinity]})"),
      "embed_dim 48 is not divisible by num_heads 5"));
  CHECK(test::contains(message_with(R"({"enc_num_heads": 3, "pos_embed": "RoPE100"})"), "missing"));
  for (const char* const positions : {"cosine", "RoPE", "RoPE0", "RoPE-1"})
    CHECK(test::contains(message_with(R"({"pos_embed": ")" + std::string(positions) + "\"}"),
                         "positions \"" + std::string(positions) + "\" are not those of CroCo v2"));

  namespace op = test::opcode;
  fs::remove(folder.path() / "config.json");
  const test::PickledModel model{test::FileCopy(folder.path())};
  const auto pickled_with = [&](const std::string& note) {
    const fs::path file =
        folder.write("model.pth", model.file(op::dict(note + model.member("model", model.dict()))));
    return test::message_of([&] { Model::load(file); });
  };
  CHECK(test::contains(
      pickled_with(model.member("croco_kwargs", op::dict(model.member("enc_num_heads", "K\x05")))),
      "not divisible by num_heads 5"));
  // DUSt3R's and MASt3R's "args" hold the call that makes the model
  const std::string call =
      "AsymmetricMASt3R(pos_embed='RoPE100', patch_embed_cls='ManyAR_PatchEmbed', img_size=(512, 512), "
      "head_type='catmlp+dpt', output_mode='pts3d+desc24', depth_mode=('exp', -inf, inf), conf_mode=('exp', "
      "1, inf), dec_num_heads=12, enc_embed_dim=48, enc_depth=1, enc_num_heads=5, two_confs=True)";
  const auto args = [&](const std::string& text) {
    return model.member("args", op::global("argparse", "Namespace") + ")\x81" +
                                    op::dict(model.member("model", op::string(text))) + "b");
  };
  CHECK(test::contains(pickled_with(args(call)), "not divisible by num_heads 5"));
  CHECK(test::contains(pickled_with(args("CroCo(enc_num_heads=3, pos_embed='cosine')")),
                       "positions \"cosine\""));
}

TEST_CASE("towers: values that contradict each other are refused by name") {
  const fs::path folder = fs::temp_directory_path() / "vit-tower-config";
  fs::remove_all(folder);
  fs::copy(test::data_path("golden/towers/qwen2.5-vl-shards"), folder);
  std::ifstream in(folder / "config.json");
  const std::string config((std::istreambuf_iterator<char>(in)), {});
  struct Change {
    const char *from, *to, *message;
  };
  for (const Change& change :
       {Change{"\"window_size\": 16", "\"window_size\": 0", "window_size"},
        Change{"\"window_size\": 16", "\"window_size\": 7", "window_size"},
        Change{"\"spatial_merge_size\": 2", "\"spatial_merge_size\": 0", "spatial_merge_size"},
        Change{"\"spatial_merge_size\": 2", "\"spatial_merge_size\": 70", "spatial_merge_size"},
        Change{"\"patch_size\": 4", "\"patch_size\": 0", "patch_size"},
        Change{"\"num_heads\": 2", "\"num_heads\": 3", "num_heads"},
        Change{"\"hidden_size\": 40", "\"hidden_size\": 4000000000", "hidden_size"}}) {
    CAPTURE(change.to);
    std::ofstream(folder / "config.json") << test::replaced(config, change.from, change.to);
    const std::string message = test::message_of([&] { Model::load(folder); });
    CHECK(test::contains(message, change.message));
    CHECK(!test::contains(message, "\n"));
  }
  fs::remove_all(folder);
}

TEST_CASE("towers: what a configuration of a tower can need and is not implemented is named") {
  struct Change {
    const char *golden, *from, *to, *message;
  };
  for (const Change& change :
       {Change{"sam3", "\"window_size\": 3", "\"window_size\": 0", "window_size"},
        Change{"sapiens2", "  2,\n", "  3,\n", "3 key heads cannot be shared by 4 heads"},
        Change{"sapiens2", "  2,\n", "", "2 numbers of key heads for 3 blocks"},
        Change{"ernie4.5-vl", "\"temporal_merge_size\": 2", "\"temporal_merge_size\": 3",
               "temporal_merge_size must be 2"}}) {
    CAPTURE(change.message);
    const test::ScratchFolder folder("tower-options");
    fs::remove(folder.path());
    fs::copy(test::data_path("golden/towers") / change.golden, folder.path());
    const std::string config = test::read_text(folder.path() / "config.json");
    std::ofstream(folder.path() / "config.json") << test::replaced(config, change.from, change.to);
    const std::string message = test::message_of([&] { Model::load(folder.path()); });
    CHECK(test::contains(message, change.message));
    CHECK(!test::contains(message, "\n"));
  }
}

}  // namespace
}  // namespace vit
