#include "vit/weights/checkpoint/hf_processors.h"

#include <optional>
#include <span>

#include "vit/base/check.h"
#include "vit/io/in_quotes.h"
#include "vit/weights/architectures/pixel_statistics.h"

namespace vit::internal {

namespace {

constexpr Where kWhere{"load_preprocess_config", ErrorKind::format};

constexpr ProcessorClass kClasses[] = {
    {"ViT", ResizeFilter::bilinear, 224, true, true, 0, kHalf, kHalf},
    {"DeiT", ResizeFilter::bicubic, 256, true, true, 224, kHalf, kHalf},
    {"Beit", ResizeFilter::bicubic, 224, true, true, 0, kHalf, kHalf, {.unused_crop = 224}},
    {"Pvt", ResizeFilter::bicubic, 224, true, true, 0, kImageNetMean, kImageNetStd},
    {"Bit", ResizeFilter::bicubic, 224, false, false, 224, kClipMean, kClipStd},
    {"DINOv3ViT", ResizeFilter::bilinear, 224, true, true, 0, kImageNetMean, kImageNetStd},
    {"Siglip", ResizeFilter::bicubic, 224, true, false, 0, kHalf, kHalf},
    {kNaFlex, ResizeFilter::bilinear, 256, true, false, 0, kHalf, kHalf},  // 256 patches
    {"Tipsv2", ResizeFilter::bilinear, 448, true, true, 0, kHalf, kHalf, {.normalizes = false}},
    {"CLIP", ResizeFilter::bicubic, 224, false, false, 224, kClipMean, kClipStd},
    {"ChineseCLIP", ResizeFilter::bicubic, 224, false, false, 224, kClipMean, kClipStd},
    {"Llava", ResizeFilter::bicubic, 224, false, false, 224, kClipMean, kClipStd},
    {"Blip", ResizeFilter::bicubic, 384, true, true, 0, kClipMean, kClipStd},
    {"Flava", ResizeFilter::bicubic, 224, true, true, 224, kClipMean, kClipStd},
    {"Gemma3", ResizeFilter::bilinear, 224, true, true, 0, kHalf, kHalf, {.can_crop = false}},
    {"GotOcr2", ResizeFilter::bicubic, 384, true, true, 0, kClipMean, kClipStd, {.can_crop = false}},
    {"Cohere2Vision", ResizeFilter::bicubic, 512, true, true, 0, kClipMean, kClipStd, {.can_crop = false}},
    {"LlavaNext", ResizeFilter::bicubic, 224, false, false, 224, kClipMean, kClipStd},
    {"LlavaOnevision", ResizeFilter::bicubic, 384, true, true, 0, kClipMean, kClipStd},
    {"Idefics3", ResizeFilter::lanczos, 364, true, true, 0, kHalf, kHalf},
    {"SmolVLM", ResizeFilter::lanczos, 364, true, true, 0, kHalf, kHalf},
    {"DPT", ResizeFilter::bicubic, 384, true, true, 0, kHalf, kHalf},
    {"PromptDepthAnything", ResizeFilter::bicubic, 384, true, true, 0, kHalf, kHalf},
    {"CHMv2", ResizeFilter::bicubic, 384, true, true, 0, kCanopyMean, kCanopyStd, {.resizes = false}},
    {"Tipsv2Dpt", ResizeFilter::bilinear, 448, true, true, 0, kHalf, kHalf, {.normalizes = false}},
    {"Eomt", ResizeFilter::bilinear, 640, false, false, 0, kImageNetMean, kImageNetStd},
    {kOwlv2, ResizeFilter::bilinear, 960, true, true, 0, kClipMean, kClipStd},
    {"OwlViT", ResizeFilter::bicubic, 768, true, true, 0, kClipMean, kClipStd, {.unused_crop = 768}},
    {"Yolos", ResizeFilter::bilinear, 800, false, false, 0, kImageNetMean, kImageNetStd},
    {kRfDetr, ResizeFilter::bilinear, 800, false, false, 0, kImageNetMean, kImageNetStd},
    {"DeformableDetr", ResizeFilter::bilinear, 800, false, false, 0, kImageNetMean, kImageNetStd},
    {kVitPose, ResizeFilter::bilinear, 256, true, true, 0, kImageNetMean, kImageNetStd},
    {"Sam3", ResizeFilter::bilinear, 1008, true, true, 0, kHalf, kHalf},
    {"Sapiens2",
     ResizeFilter::bilinear,
     1024,
     true,
     true,
     0,
     kImageNetMean,
     kImageNetStd,
     {.unused_crop = 224, .width = 768}},
    {"VideoMAE", ResizeFilter::bilinear, 224, false, false, 224, kHalf, kHalf},
    {"VideoMAEVideo", ResizeFilter::bilinear, 224, false, false, 224, kHalf, kHalf},
    {"VJEPA2Video", ResizeFilter::bilinear, 292, false, false, 256, kImageNetMean, kImageNetStd},
    {kLlama4, ResizeFilter::bilinear, 336, true, true, 0, kHalf, kHalf},
    // sizes by hf_token_sizes.cpp
    {"Qwen2VL", ResizeFilter::bicubic, 0, false, false, 0, kClipMean, kClipStd},
    {"Qwen2VLVideo", ResizeFilter::bicubic, 0, false, false, 0, kClipMean, kClipStd},
    {"Qwen3VLVideo", ResizeFilter::bicubic, 0, false, false, 0, kHalf, kHalf},
    {"Glm4vVideo", ResizeFilter::bicubic, 0, false, false, 0, kClipMean, kClipStd},
    {"Glm46VVideo", ResizeFilter::bicubic, 0, false, false, 0, kClipMean, kClipStd},
    {"Glm4v", ResizeFilter::bicubic, 0, false, false, 0, kClipMean, kClipStd},
    {"Glm46V", ResizeFilter::bicubic, 0, false, false, 0, kClipMean, kClipStd},
    {"PaddleOCRVL", ResizeFilter::bicubic, 0, false, false, 0, kClipMean, kClipStd},
    {"VideoLlama3", ResizeFilter::bicubic, 0, false, false, 0, kHalf, kHalf},
    {"Ernie4_5_VLMoe", ResizeFilter::bicubic, 0, false, false, 0, kClipMean, kClipStd},
    {"Ernie4_5_VL_Moe", ResizeFilter::bicubic, 0, false, false, 0, kClipMean, kClipStd},
    {"Pixtral", ResizeFilter::bicubic, 0, false, false, 0, kClipMean, kClipStd},
    {"Kimi_K25", ResizeFilter::bicubic, 0, false, false, 0, kHalf, kHalf},
    {"KimiVL", ResizeFilter::bicubic, 0, false, false, 0, kClipMean, kClipStd},
    {"Gemma4", ResizeFilter::bicubic, 0, false, false, 0, kZero, kOne, {.normalizes = false}},
};

struct ModelType {
  std::string_view model_type;
  std::string_view processor;
};

constexpr ModelType kModelTypes[] = {
    {"vit", "ViT"},
    {"ijepa", "ViT"},
    {"deit", "DeiT"},
    {"dinov2", "Bit"},
    {"dinov2_with_registers", "Bit"},
    {"dinov3_vit", "DINOv3ViT"},
    {"siglip", "Siglip"},
    {"siglip_vision_model", "Siglip"},
    {"siglip2", kNaFlex},
    {"siglip2_vision_model", kNaFlex},
    {"tipsv2", "Tipsv2"},
    {"tipsv2_vision_model", "Tipsv2"},
    {"clip", "CLIP"},
    {"clip_vision_model", "CLIP"},
    {"metaclip_2", "CLIP"},
    {"metaclip_2_vision_model", "CLIP"},
    {"altclip", "CLIP"},
    {"chinese_clip", "ChineseCLIP"},
    {"aimv2", "CLIP"},
    {"git", "CLIP"},
    {"kosmos-2", "CLIP"},
    {"llava", "Llava"},
    {"llava_next", "LlavaNext"},
    {"llava_onevision", "LlavaOnevision"},
    {"idefics3", "Idefics3"},
    {"smolvlm", "SmolVLM"},
    {"cohere2_vision", "Cohere2Vision"},
    {"blip", "Blip"},
    {"blip-2", "Blip"},
    {"instructblip", "Blip"},
    {"flava", "Flava"},
    {"paligemma", "Siglip"},
    {"colpali", "Siglip"},
    {"gemma3", "Gemma3"},
    {"shieldgemma2", "Gemma3"},
    {"internvl", "GotOcr2"},
    {"qianfan_ocr", "GotOcr2"},
    {"aya_vision", "GotOcr2"},
    {"dpt", "DPT"},
    {"depth_anything", "DPT"},
    {"prompt_depth_anything", "PromptDepthAnything"},
    {"chmv2", "CHMv2"},
    {"tipsv2_dpt", "Tipsv2Dpt"},
    {"eomt", "Eomt"},
    {"eomt_dinov3", "Eomt"},
    {"owlv2", kOwlv2},
    {"owlvit", "OwlViT"},
    {"yolos", "Yolos"},
    {"rf_detr", kRfDetr},
    {"lw_detr", "DeformableDetr"},
    {"vitpose", kVitPose},
    {"mlcd_vision_model", "CLIP"},
    {"qwen2_vl", "Qwen2VL"},
    {"qwen2_vl_vision", "Qwen2VL"},
    {"qwen2_5_vl", "Qwen2VL"},
    {"qwen2_5_vl_vision", "Qwen2VL"},
    {"qwen2_5_omni", "Qwen2VL"},
    {"qwen3_vl", "Qwen2VL"},
    {"qwen3_vl_vision", "Qwen2VL"},
    {"qwen3_vl_moe", "Qwen2VL"},
    {"qwen3_5", "Qwen2VL"},
    {"qwen3_5_moe", "Qwen2VL"},
    {"qwen4_exp", "Qwen2VL"},
    {"qwen3_omni_moe", "Qwen2VL"},
    {"exaone4_5", "Qwen2VL"},
    {"llavaonevision1_5", "Qwen2VL"},
    {"llava_onevision1_5", "Qwen2VL"},
    {"rice_vit", "Qwen2VL"},
    {"glm4v", "Glm4v"},
    {"glm4v_vision", "Glm4v"},
    {"glm4v_moe", "Glm4v"},
    {"paddleocr_vl", "PaddleOCRVL"},
    {"video_llama_3", "VideoLlama3"},
    {"pixtral", "Pixtral"},
    {"mistral3", "Pixtral"},
    {"kimi_k25", "Kimi_K25"},
    {"kimi_vl", "KimiVL"},
    {"llama4", "Llama4"},
    {"llama4_vision_model", "Llama4"},
    {"gemma4", "Gemma4"},
    {"gemma4_vision", "Gemma4"},
    {"glm46v", "Glm46V"},
    {"glm_ocr", "Glm46V"},
    {"ernie4_5_vl_moe", "Ernie4_5_VLMoe"},
    {"ernie4_5_vl_moe_vision", "Ernie4_5_VLMoe"},
    {"ernie4_5_moe_vl", "Ernie4_5_VLMoe"},
    {"sapiens2", "Sapiens2"},
    {"videomae", "VideoMAE"},
    {"sam3", "Sam3"},
    {"sam3_video", "Sam3"},
    {"sam3_vision_model", "Sam3"},
    {"sam3_vit_model", "Sam3"},
};

/// Processors of clips, by model_type.
constexpr ModelType kVideoTypes[] = {
    {"vjepa2", "VJEPA2Video"},          {"videomae", "VideoMAEVideo"},
    {"qwen2_vl", "Qwen2VLVideo"},       {"qwen2_vl_vision", "Qwen2VLVideo"},
    {"qwen2_5_vl", "Qwen2VLVideo"},     {"qwen2_5_vl_vision", "Qwen2VLVideo"},
    {"qwen2_5_omni", "Qwen2VLVideo"},   {"exaone4_5", "Qwen2VLVideo"},
    {"qwen3_vl", "Qwen3VLVideo"},       {"qwen3_vl_vision", "Qwen3VLVideo"},
    {"qwen3_vl_moe", "Qwen3VLVideo"},   {"qwen3_5", "Qwen3VLVideo"},
    {"qwen3_5_moe", "Qwen3VLVideo"},    {"qwen4_exp", "Qwen3VLVideo"},
    {"qwen3_omni_moe", "Qwen2VLVideo"}, {"glm4v", "Glm4vVideo"},
    {"glm4v_vision", "Glm4vVideo"},     {"glm4v_moe", "Glm4vVideo"},
    {"glm46v", "Glm46VVideo"},          {"glm_ocr", "Glm46VVideo"},
};

/// The class name without the suffix for its generation or backend; "Qwen2VLVideo" of processors of clips.
std::string_view without_suffix(std::string_view name) {
  for (const std::string_view suffix :
       {"Processor", "ImageProcessorFast", "ImageProcessorPil", "ImageProcessor", "FeatureExtractor"}) {
    if (suffix == "Processor" && !name.ends_with("VideoProcessor")) continue;
    if (name.ends_with(suffix)) return name.substr(0, name.size() - suffix.size());
  }
  return name;
}

}  // namespace

bool read_switch(const Json& file, std::string_view key, bool if_absent) {
  return file.find_bool(key).value_or(if_absent && !file.has_null(key));
}

const ProcessorClass& find_processor(const Json& file, const std::string& model_type, bool of_clips) {
  const std::string& source = file.file();
  auto named = file.find_string("video_processor_type");
  if (!named && !of_clips) named = file.find_string("image_processor_type");
  if (!named && !of_clips) named = file.find_string("feature_extractor_type");
  std::string_view wanted;
  if (named) {
    wanted = without_suffix(*named);
  } else {
    const std::span<const ModelType> types =
        of_clips ? std::span<const ModelType>(kVideoTypes) : std::span<const ModelType>(kModelTypes);
    for (const ModelType& known : types) {
      if (known.model_type == model_type) wanted = known.processor;
    }
    VIT_CHECK(!wanted.empty() || !of_clips, kWhere.with(ErrorKind::unsupported), source,
              ": no rules for the frames of clips are known for model_type ", in_quotes(model_type),
              "; Qwen-VL, GLM-4V, V-JEPA 2 and VideoMAE have some");
    VIT_CHECK(!wanted.empty(), kWhere, source, ": image_processor_type is missing, and model_type ",
              in_quotes(model_type), " does not determine the image processor");
  }
  for (const ProcessorClass& known : kClasses) {
    if (known.name == wanted) return known;
  }
  fail(kWhere.with(ErrorKind::unsupported), source, ": image_processor_type ", in_quotes(*named),
       " is not implemented; ViT, DeiT, Beit, Pvt, Bit, DINOv3ViT, Siglip, Siglip2, Tipsv2, Tipsv2Dpt, CLIP, "
       "ChineseCLIP, Llava, LlavaNext, LlavaOnevision, Blip, Flava, Gemma3, GotOcr2, Cohere2Vision, "
       "Idefics3, SmolVLM, DPT, PromptDepthAnything, CHMv2, Eomt, Owlv2, OwlViT, Yolos, RfDetr, "
       "DeformableDetr, VitPose, Sam3, Sapiens2, Llama4, VideoMAE, VJEPA2Video, Qwen2VL, Qwen2VLVideo, "
       "Qwen3VLVideo, Glm4vVideo, Glm4v, PaddleOCRVL, VideoLlama3, Ernie4_5_VLMoe, Pixtral, Kimi_K25, KimiVL "
       "and Gemma4 are");
}

}  // namespace vit::internal
