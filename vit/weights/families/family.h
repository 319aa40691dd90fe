// What a family's page is: how a checkpoint is recognized, which configuration it means, and by which tables
// its tensors lie in the file, for image towers and for text towers. One page per family in this folder;
// nothing else in the library knows a family's names.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vit/config.h"
#include "vit/config/page_config.h"
#include "vit/config/prompt_config.h"
#include "vit/text_config.h"
#include "vit/weights/families/head_layout.h"
#include "vit/weights/families/layout.h"
#include "vit/weights/families/source_files.h"
#include "vit/weights/families/timm_args.h"

namespace vit::internal {

/// A tower of a checkpoint as its family reads it.
template <typename Config>
struct ParsedCheckpoint {
  Config config;  // not yet validated; of a text tower's score only the kind is known
  Match match{};  // which names of the file are those of the tower
  Layout layout;  // where its tensors lie
  std::vector<std::span<const Ignored>> ignored{};
  std::vector<std::string> notes{};     // whose rules apply, what was assumed
  std::shared_ptr<const void> texts{};  // what the names of tables point into, if they are not constants
  std::optional<DenseReading> dense{};  // a head that gives maps
  std::vector<HeadTable> named{};       // of parts whose tensors have names, not places in blocks
};
using ParsedModel = ParsedCheckpoint<ModelConfig>;
using ParsedText = ParsedCheckpoint<TextConfig>;
using ParsedPrompts = ParsedCheckpoint<PromptConfig>;
using ParsedPage = ParsedCheckpoint<PageConfig>;

/// A family of image towers.
struct Family {
  const char* name;
  std::string_view anchor;          // the tensor by which a file of this family is known, without prefix
  std::string_view other_anchor{};  // of another form of the same model
  /// What the library puts in front of the tower's names inside a model of it.
  std::span<const std::string_view> prefixes{};
  const char* library = "";  // whose architectures it reads by name, in addition to timm's; "" for none
  std::string_view head{};   // the name of its classifier, "" if it has none
  Place head_place = Place::tower;
  std::optional<Match> (*match)(const SourceFiles& files) = nullptr;
  /// Null where `read_as` needs a published architecture.
  ParsedModel (*read)(const SourceFiles& files) = nullptr;
  ParsedModel (*read_as)(const SourceFiles& files, const Architecture& architecture) = nullptr;
  bool is_dense = false;  // its models have a head that gives maps
};

/// All families in the order in which they are asked.
std::span<const Family* const> families();

extern const Family kTimmFamily;        // families/timm_vit.cpp
extern const Family kNaverFamily;       // families/naver_rope_vit.cpp
extern const Family kBaaiFamily;        // families/baai_eva02.cpp
extern const Family kMetaVjepaFamily;   // families/meta_vjepa.cpp
extern const Family kMetaDinov2Family;  // families/meta_dino.cpp
extern const Family kMetaDinov3Family;
extern const Family kOpenAiOwnFamily;  // families/openai_clip.cpp
extern const Family kOpenAiFamily;
extern const Family kOpenClipFamily;         // families/open_clip.cpp
extern const Family kTorchvisionFamily;      // families/torchvision_vit.cpp
extern const Family kGoogleFamily;           // families/google_vit.cpp
extern const Family kHfVitFamily;            // families/hf_vit.cpp
extern const Family kHfBeitFamily;           // families/hf_beit.cpp
extern const Family kHfDinov2Family;         // families/hf_dinov2.cpp
extern const Family kHfDinov3Family;         // families/hf_dinov3.cpp
extern const Family kHfClipFamily;           // families/hf_clip.cpp
extern const Family kHfTipsv2Family;         // families/hf_tipsv2.cpp
extern const Family kHfRadioFamily;          // families/hf_radio.cpp
extern const Family kHfPixioFamily;          // families/hf_pixio.cpp
extern const Family kHfDepthAnythingFamily;  // families/hf_depth_anything.cpp
extern const Family kHfChmv2Family;          // families/hf_chmv2.cpp
extern const Family kHfTipsv2DptFamily;      // families/hf_tipsv2_dpt.cpp
extern const Family kHfDptFamily;            // families/hf_dpt.cpp
extern const Family kHfEomtFamily;           // families/hf_eomt.cpp
extern const Family kHfOwlFamily;            // families/hf_owl.cpp
extern const Family kHfYolosFamily;          // families/hf_yolos.cpp
extern const Family kHfRfDetrFamily;         // families/hf_rf_detr.cpp
extern const Family kHfLwDetrFamily;         // families/hf_lw_detr.cpp
extern const Family kHfLwDetrVitFamily;      // families/hf_lw_detr_vit.cpp
extern const Family kHfVitPoseFamily;        // families/hf_vitpose.cpp
extern const Family kHfVitPoseBackboneFamily;
extern const Family kDepthAnything3Family;  // families/depth_anything_3.cpp
extern const Family kDepthAnythingFamily;   // families/depth_anything.cpp
// vision towers of language models, and other rotary encoders
extern const Family kHfQwenVlFamily;        // families/hf_qwen_vl.cpp
extern const Family kHfPaddleOcrVlFamily;   // families/hf_paddleocr_vl.cpp
extern const Family kHfKimiFamily;          // families/hf_kimi.cpp
extern const Family kHfPixtralFamily;       // families/hf_pixtral.cpp
extern const Family kHfGlm4vFamily;         // families/hf_glm4v.cpp
extern const Family kHfGemma4Family;        // families/hf_gemma4.cpp
extern const Family kHfVjepa2Family;        // families/hf_vjepa2.cpp
extern const Family kHfLlama4Family;        // families/hf_llama4.cpp
extern const Family kHfErnieVlFamily;       // families/hf_ernie_vl.cpp
extern const Family kHfSapiens2Family;      // families/hf_sapiens2.cpp
extern const Family kHfSam3Family;          // families/hf_sam3.cpp
extern const Family kHfRiceFamily;          // families/hf_rice.cpp
extern const Family kHfPerceptionLmFamily;  // families/hf_perception_lm.cpp
extern const Family kHfLlavaFamily;         // families/hf_llava.cpp
extern const Family kHfInternVlFamily;      // families/hf_internvl.cpp
extern const Family kHfAimv2Family;         // families/hf_aimv2.cpp
extern const Family kHfBlipFamily;          // families/hf_blip.cpp
extern const Family kHfRenamedFamily;       // families/hf_renamed.cpp
extern const Family kHfPix2StructFamily;    // families/hf_pix2struct.cpp
extern const Family kHfSamFamily;           // families/hf_sam.cpp
extern const Family kHfSamDeepSeekFamily;   // families/hf_sam_deepseek.cpp
extern const Family kHfSamOcrFamily;        // families/hf_sam_ocr.cpp
extern const Family kHfVitDetFamily;        // families/hf_vitdet.cpp
extern const Family kHfHunyuanFamily;       // families/hf_hunyuan.cpp
extern const Family kHfStepFamily;          // families/hf_step.cpp
extern const Family kHfInklingFamily;       // families/hf_inkling.cpp
extern const Family kHfMuseFamily;          // families/hf_muse.cpp
extern const Family kHfMiniMaxFamily;       // families/hf_minimax.cpp
extern const Family kHfBridgeTowerFamily;   // families/hf_bridgetower.cpp
extern const Family kHfVideoFamily;         // families/hf_video.cpp
extern const Family kHfAstFamily;           // families/hf_ast.cpp
extern const Family kTimmGemma4Family;      // families/timm_gemma4.cpp
extern const Family kTimmSamFamily;         // families/timm_sam.cpp
extern const Family kTimmTowerFamily;       // families/timm_towers.cpp
extern const Family kCroCoFamily;           // families/naver_croco.cpp

/// A text tower in the file of an image tower.
inline constexpr Ignored kTextTower[] = {
    {"text.*", "text tower", Place::outside},
    {"text_model.*", "text tower", Place::outside},
    {"transformer.resblocks.*", "text tower", Place::outside},
    {"token_embedding.*", "text tower", Place::outside},
    {"ln_final.*", "text tower", Place::outside},
    {"text_projection.*", "text tower", Place::outside},
    {"text_decoder.*", "text tower", Place::outside},
    {"positional_embedding", "text tower", Place::outside},
    {"text_projection", "text tower", Place::outside},
    {"logit_scale", "compares images with texts", Place::outside},
    {"logit_bias", "compares images with texts", Place::outside},
};

/// A family of text towers.
struct TextFamily {
  const char* name;
  /// Nothing if the checkpoint is of another family or has no text tower. Files without weights are not
  /// asked for.
  std::optional<ParsedText> (*read)(const SourceFiles& files);
};

/// All of them in the order in which they are asked.
std::span<const TextFamily* const> text_families();

extern const TextFamily kHfTextFamily;        // families/hf_text.cpp
extern const TextFamily kHfBertTextFamily;    // families/hf_bert_text.cpp
extern const TextFamily kTipsv2TextFamily;    // families/hf_tipsv2.cpp
extern const TextFamily kOpenClipTextFamily;  // families/open_clip_text.cpp
extern const TextFamily kDinoTextFamily;      // families/dino_text.cpp
extern const TextFamily kOpenAiTextFamily;    // families/openai_text.cpp

/// The detector of prompts in the file of an image tower (families/hf_sam3_detector.cpp); nothing for other
/// checkpoints.
std::optional<ParsedPrompts> read_prompt_detector(const SourceFiles& files);
/// The encoder of pages after an image tower (families/hf_modernvbert.cpp); nothing for other checkpoints.
std::optional<ParsedPage> read_page_encoder(const SourceFiles& files);

/// Only the logit scale is stored: no bias.
inline constexpr Row kLogitScale[] = {at(Place::outside, {Part::logit_scale, "logit_scale"}),
                                      {Part::logit_bias, ""}};
inline constexpr Row kLogitScaleAndBias[] = {at(Place::outside, {Part::logit_scale, "logit_scale"}),
                                             at(Place::outside, {Part::logit_bias, "logit_bias"})};

}  // namespace vit::internal
