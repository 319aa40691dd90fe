// The first image encoder of DeepSeek-OCR 2 and of Unlimited-OCR by itself: SAM's, followed by two strided
// convolutions. Source: transformers, models/deepseek_ocr2 and unlimited_ocr.
#include "vit/weights/families/hf_config.h"
#include "vit/weights/families/sam.h"

namespace vit::internal {
namespace hf_sam_deepseek {
namespace {

constexpr Row kStrided[] = {
    {Part::merger_second_convolution_weight, "proj.conv1.weight", Form::window_kernel},
    {Part::merger_third_convolution_weight, "proj.conv2.weight", Form::window_kernel},
};
static_assert(is_sound(kStrided));

/// The publishers' own names for SAM's encoder, which Unlimited-OCR keeps.
constexpr Row kPublishedRest[] = {
    {Part::fc1_weight, "blocks.{}.mlp.lin1.*"},
    {Part::fc2_weight, "blocks.{}.mlp.lin2.*"},
    {Part::merger_second_convolution_weight, "net_2.weight", Form::window_kernel},
    {Part::merger_third_convolution_weight, "net_3.weight", Form::window_kernel},
};
constexpr auto kPublished = joined(kPublishedSamRows, kPublishedRest);
static_assert(is_complete(kPublished));

ParsedModel read(const SourceFiles& files) {
  const Json& json = *files.config;
  ParsedModel out{.config = hf_sam_config(files, json), .layout = {kSamRows}};
  std::size_t dims[] = {512, hf_model_type(files).starts_with("unlimited") ? 1024u : 896u};
  if (const auto list = json.find("downsample_channels"); list && list->is_array()) {
    list->expect_array(2, "two numbers of channels");
    for (std::size_t i = 0; i < 2; ++i) dims[i] = (*list)[i].as_size({1, 65536});
  }
  add_strided_convolutions(*out.config.merger, dims[0], dims[1]);
  if (files.find(kPublishedSamAnchor) != nullptr)
    out.layout = {kPublished};
  else
    out.layout.add(kStrided);
  out.config.image.fixed_size = false;
  return out;
}

std::optional<Match> match(const SourceFiles& files) {
  if (!has_model_type(files, {"deepseek_ocr2_sam_vision_model", "unlimited_ocr_sam_vision_model"}))
    return std::nullopt;
  static constexpr std::string_view kPrefixes[] = {""};
  const auto published = match_anchor(files, kPublishedSamAnchor, kPrefixes);
  return published ? published : match_tower(files, kSamAnchor, kPrefixes);
}

}  // namespace
}  // namespace hf_sam_deepseek

constinit const Family kHfSamDeepSeekFamily{.name = "hf_sam_deepseek",
                                            .anchor = kSamAnchor,
                                            .library = "",
                                            .match = hf_sam_deepseek::match,
                                            .read = hf_sam_deepseek::read};

}  // namespace vit::internal
