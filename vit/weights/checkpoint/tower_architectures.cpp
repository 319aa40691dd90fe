#include "vit/weights/checkpoint/tower_architectures.h"

#include <algorithm>
#include <string>

#include "vit/base/check.h"
#include "vit/io/in_quotes.h"
#include "vit/weights/checkpoint/find_family.h"
#include "vit/weights/checkpoint/preprocess_config.h"
#include "vit/weights/families/timm_towers.h"

namespace vit::internal {
namespace {

struct TowerArchitecture {
  std::string_view name;
  std::string_view config;     // config.json
  std::string_view processor;  // preprocessor_config.json
};

constexpr std::string_view kQwen2Processor =
    R"({"image_processor_type": "Qwen2VLImageProcessor", "min_pixels": 3136, "max_pixels": 12845056})";
constexpr std::string_view kQwen3Processor =
    R"({"image_processor_type": "Qwen2VLImageProcessor", "patch_size": 16, "image_mean": 0.5, "image_std": 0.5,
        "size": {"shortest_edge": 65536, "longest_edge": 16777216}})";

constexpr TowerArchitecture kTowers[] = {
    {"ernie4_5_vl_28b",
     R"({"model_type": "ernie4_5_vl_moe", "text_config": {"hidden_size": 2560}, "vision_config": {}})",
     R"({"image_processor_type": "Ernie4_5_VLMoeImageProcessor"})"},
    {"exaone4_5_33b",
     R"({"model_type": "exaone4_5", "vision_config": {"depth": 28, "hidden_size": 2048, "num_heads": 32,
         "num_key_value_heads": 8, "intermediate_size": 5120, "out_hidden_size": 5120,
         "fullatt_block_indexes": [6, 13, 20, 27]}})",
     kQwen2Processor},
    {"gemma4_vision_550m",
     R"({"model_type": "gemma4", "text_config": {"hidden_size": 5376}, "vision_config": {"hidden_size": 1152,
         "num_hidden_layers": 27, "num_attention_heads": 16, "head_dim": 72, "intermediate_size": 4304}})",
     R"({"image_processor_type": "Gemma4ImageProcessor"})"},
    {"glm4v_9b", R"({"model_type": "glm4v", "vision_config": {}})",
     R"({"image_processor_type": "Glm4vImageProcessor"})"},
    {"glm_ocr", R"({"model_type": "glm_ocr", "vision_config": {}})",
     R"({"image_processor_type": "Glm46VImageProcessor"})"},
    {"kimi_k2_5", R"({"model_type": "kimi_k25", "text_config": {"hidden_size": 7168}, "vision_config": {}})",
     R"({"image_processor_type": "Kimi_K25ImageProcessor"})"},
    {"kimi_vl", R"({"model_type": "kimi_vl", "text_config": {"hidden_size": 2048}, "vision_config": {}})",
     R"({"image_processor_type": "KimiVLImageProcessor"})"},
    {"llama4_scout",
     R"({"model_type": "llama4", "text_config": {"hidden_size": 5120}, "vision_config": {"hidden_size": 1408,
         "image_size": 336}})",
     R"({"image_processor_type": "SiglipImageProcessor", "size": {"height": 336, "width": 336}, "resample": 2})"},
    {"mistral_small_3_1",
     R"({"model_type": "mistral3", "text_config": {"hidden_size": 5120, "rms_norm_eps": 1e-5}, "vision_config":
         {"model_type": "pixtral", "image_size": 1540, "patch_size": 14, "hidden_act": "silu"}})",
     R"({"image_processor_type": "PixtralImageProcessor", "patch_size": 28, "size": {"longest_edge": 1540}})"},
    {"mlcd_bigg_336", R"({"model_type": "mlcd_vision_model"})",
     R"({"image_processor_type": "CLIPImageProcessor", "size": {"shortest_edge": 336}, "crop_size": 336})"},
    {"paddleocr_vl",
     R"({"model_type": "paddleocr_vl", "text_config": {"hidden_size": 1024}, "vision_config": {}})",
     R"({"image_processor_type": "PaddleOCRVLImageProcessor"})"},
    {"pixtral_12b",
     R"({"model_type": "llava", "text_config": {"hidden_size": 5120}, "vision_config": {"model_type": "pixtral",
         "hidden_act": "silu"}})",
     R"({"image_processor_type": "PixtralImageProcessor"})"},
    {"qwen2_5_vl_32b",
     R"({"model_type": "qwen2_5_vl", "vision_config": {"hidden_size": 1280, "intermediate_size": 3456,
         "out_hidden_size": 5120}})",
     kQwen2Processor},
    {"qwen2_5_vl_3b",
     R"({"model_type": "qwen2_5_vl", "vision_config": {"hidden_size": 1280, "out_hidden_size": 2048}})",
     kQwen2Processor},
    {"qwen2_5_vl_72b",
     R"({"model_type": "qwen2_5_vl", "vision_config": {"hidden_size": 1280, "intermediate_size": 3456,
         "out_hidden_size": 8192}})",
     kQwen2Processor},
    {"qwen2_5_vl_7b",
     R"({"model_type": "qwen2_5_vl", "vision_config": {"hidden_size": 1280, "out_hidden_size": 3584}})",
     kQwen2Processor},
    {"qwen2_vl_2b", R"({"model_type": "qwen2_vl", "vision_config": {"hidden_size": 1536}})", kQwen2Processor},
    {"qwen2_vl_72b", R"({"model_type": "qwen2_vl", "vision_config": {"hidden_size": 8192}})",
     kQwen2Processor},
    {"qwen2_vl_7b", R"({"model_type": "qwen2_vl", "vision_config": {"hidden_size": 3584}})", kQwen2Processor},
    {"qwen3_5_0_8b",
     R"({"model_type": "qwen3_5", "vision_config": {"depth": 12, "hidden_size": 768, "num_heads": 12,
         "intermediate_size": 3072, "out_hidden_size": 1024}})",
     kQwen3Processor},
    {"qwen3_5_27b", R"({"model_type": "qwen3_5", "vision_config": {"out_hidden_size": 5120}})",
     kQwen3Processor},
    {"qwen3_5_4b",
     R"({"model_type": "qwen3_5", "vision_config": {"depth": 24, "hidden_size": 1024, "intermediate_size": 4096,
         "out_hidden_size": 2560}})",
     kQwen3Processor},
    {"qwen3_vl_4b",
     R"({"model_type": "qwen3_vl", "vision_config": {"depth": 24, "hidden_size": 1024, "intermediate_size": 4096,
         "out_hidden_size": 2560, "deepstack_visual_indexes": [5, 11, 17]}})",
     kQwen3Processor},
    {"qwen3_vl_8b", R"({"model_type": "qwen3_vl", "vision_config": {"out_hidden_size": 4096}})",
     kQwen3Processor},
    {"sam3", R"({"model_type": "sam3"})", R"({"image_processor_type": "Sam3ImageProcessor"})"},
    {"sapiens2_0_4b", R"({"model_type": "sapiens2", "image_size": [1024, 768]})",
     R"({"image_processor_type": "Sapiens2ImageProcessor"})"},
};

const TowerArchitecture* find(std::string_view name) {
  const auto found = std::ranges::find(kTowers, name, &TowerArchitecture::name);
  return found == std::end(kTowers) ? nullptr : found;
}

/// Files of a repository that has its configuration and no weights.
struct NoWeights {
  TensorFile tensors{{.path = {}}};
  ModelOptions options{};

  SourceFiles files(std::string_view name) const {
    return {.tensors = tensors, .options = options, .weights_name = std::string(name), .has_weights = false};
  }
};

}  // namespace

bool is_tower_architecture(std::string_view name) {
  return find(name) != nullptr || find_timm_tower(name) != nullptr;
}

std::vector<std::string_view> tower_architectures() {
  std::vector<std::string_view> names;
  for (const TowerArchitecture& tower : kTowers) names.push_back(tower.name);
  return names;
}

ModelConfig tower_architecture(std::string_view name) {
  const NoWeights nothing;
  SourceFiles files = nothing.files(name);
  if (const TimmTower* const timm = find_timm_tower(name)) return timm_tower_config(files, name, *timm);
  const TowerArchitecture* const tower = find(name);
  VIT_CHECK(tower != nullptr, (Where{"random_checkpoint", ErrorKind::argument}), "no tower is called ",
            in_quotes(name));
  files.config = parse_json(tower->config, name);
  ModelConfig config = parse_by_family(files).config;
  config.architecture = name;
  return config;
}

PreprocessConfig tower_architecture_preprocess(std::string_view name, const ModelOptions& options) {
  if (const TowerArchitecture* const tower = find(name))
    return read_hf_preprocess(parse_json(tower->processor, name), "", options);
  const bool qwen3 = find_timm_tower(name)->kind == TowerKind::qwen3;
  const std::size_t edge = qwen3 ? 768 : 546;
  return build_timm_preprocess({.height = edge,
                                .width = edge,
                                .crop_pct = 1.0,
                                .crop_mode = qwen3 ? TimmCropMode::squash : TimmCropMode::border,
                                .mean = {0.5, 0.5, 0.5},
                                .std = {0.5, 0.5, 0.5}},
                               options, "timm " + std::string(name));
}

}  // namespace vit::internal
