#include "vit/weights/families/family.h"

namespace vit::internal {

std::span<const Family* const> families() {
  static constexpr const Family* kAll[] = {
      &kHfQwenVlFamily,        &kHfPaddleOcrVlFamily, &kHfKimiFamily,        &kHfPixtralFamily,
      &kHfGlm4vFamily,         &kHfGemma4Family,      &kHfLlama4Family,      &kHfVjepa2Family,
      &kHfErnieVlFamily,       &kHfSapiens2Family,    &kHfSam3Family,        &kHfRiceFamily,
      &kHfPerceptionLmFamily,  &kHfLlavaFamily,       &kHfInternVlFamily,    &kHfAimv2Family,
      &kHfBlipFamily,          &kHfRenamedFamily,     &kHfPix2StructFamily,  &kHfVitPoseBackboneFamily,
      &kHfSamFamily,           &kHfSamOcrFamily,      &kHfSamDeepSeekFamily, &kHfVitDetFamily,
      &kHfHunyuanFamily,       &kHfStepFamily,        &kHfInklingFamily,     &kHfMuseFamily,
      &kHfMiniMaxFamily,       &kHfBridgeTowerFamily, &kHfVideoFamily,       &kHfAstFamily,
      &kTimmSamFamily,         &kTimmGemma4Family,    &kTimmTowerFamily,     &kCroCoFamily,
      &kHfDepthAnythingFamily, &kHfDptFamily,         &kHfEomtFamily,        &kHfChmv2Family,
      &kHfTipsv2DptFamily,     &kHfOwlFamily,         &kHfYolosFamily,       &kHfRfDetrFamily,
      &kHfLwDetrFamily,        &kHfLwDetrVitFamily,   &kHfVitPoseFamily,     &kDepthAnythingFamily,
      &kDepthAnything3Family,  &kHfBeitFamily,        &kHfVitFamily,         &kHfDinov2Family,
      &kHfDinov3Family,        &kHfClipFamily,        &kHfTipsv2Family,      &kHfRadioFamily,
      &kHfPixioFamily,         &kOpenClipFamily,      &kMetaVjepaFamily,     &kMetaDinov3Family,
      &kMetaDinov2Family,      &kBaaiFamily,          &kNaverFamily,         &kOpenAiOwnFamily,
      &kOpenAiFamily,          &kTorchvisionFamily,   &kGoogleFamily,        &kTimmFamily};
  return kAll;
}

std::span<const TextFamily* const> text_families() {
  static constexpr const TextFamily* kAll[] = {&kHfTextFamily,       &kHfBertTextFamily, &kTipsv2TextFamily,
                                               &kOpenClipTextFamily, &kDinoTextFamily,   &kOpenAiTextFamily};
  return kAll;
}

}  // namespace vit::internal
