// The part of SAM 3 that points, boxes and masks control: in the whole model, as the library saves that
// again, or by itself. Source: transformers, models/sam3_tracker.
#include "vit/base/check.h"
#include "vit/weights/families/hf_config.h"
#include "vit/weights/families/hf_sam3.h"

namespace vit::internal {
namespace hf_sam3_tracker {
namespace {

constexpr SizeRange kCount{1, std::size_t{1} << 20};

constexpr HeadRow kRows[] = {
    {"skip0.*", "mask_decoder.conv_s0.*"},
    {"skip1.*", "mask_decoder.conv_s1.*"},
    {"no_memory", "no_memory_embedding"},
    {"fourier", "prompt_encoder.shared_embedding.positional_embedding"},
    {"points", "prompt_encoder.point_embed.weight"},
    {"no_point", "prompt_encoder.not_a_point_embed.weight"},
    {"no_mask", "prompt_encoder.no_mask_embed.weight"},
    {"mask.*", "prompt_encoder.mask_embed.*"},
    {"object_token", "mask_decoder.obj_score_token.weight"},
    {"iou_token", "mask_decoder.iou_token.weight"},
    {"mask_tokens", "mask_decoder.mask_tokens.weight"},
    {"two_way.*", "mask_decoder.transformer.*"},
    {"up1.*", "mask_decoder.upscale_conv1.*"},
    {"up_norm.*", "mask_decoder.upscale_layer_norm.*"},
    {"up2.*", "mask_decoder.upscale_conv2.*"},
    {"hyper.*", "mask_decoder.output_hypernetworks_mlps.*"},
    {"iou.*", "mask_decoder.iou_prediction_head.*"},
    {"object.*", "mask_decoder.pred_obj_score_head.*"},
};

/// The first of `prefixes` under which there is a tensor of that name; nothing if none is.
std::optional<std::string> find_prefix(const SourceFiles& files, std::string_view name,
                                       std::initializer_list<const char*> prefixes) {
  for (const char* const prefix : prefixes) {
    if (files.tensors.find(files.root + prefix + std::string(name)) != nullptr) return prefix;
  }
  return std::nullopt;
}

ClickConfig read_config(const Json& json) {
  const auto part = [&](const char* key) { return sam3_part(json, key); };
  const Json decoder = part("mask_decoder_config"), prompts = part("prompt_encoder_config");
  const auto size = [](const Json& of, const char* key, std::size_t fallback) {
    return of.find_size(key, kCount).value_or(fallback);
  };
  check_sam3_activation(prompts, {"gelu", "gelu_python"});
  ClickConfig c;
  c.layers = {.depth = size(decoder, "num_hidden_layers", 2),
              .num_heads = size(decoder, "num_attention_heads", 8),
              .mlp_dim = size(decoder, "mlp_dim", 2048)};
  c.downsample = size(decoder, "attention_downsample_rate", 2);
  c.mask_channels = size(prompts, "mask_input_channels", 16);
  c.num_masks = size(decoder, "num_multimask_outputs", 3);
  c.iou_depth = size(decoder, "iou_head_depth", 3);
  c.iou_dim = size(decoder, "iou_head_hidden_dim", 256);
  c.mask_norm_eps = static_cast<float>(prompts.find_double("layer_norm_eps").value_or(1e-6));
  c.prefers_stable = decoder.find_bool("dynamic_multimask_via_stability").value_or(true);
  c.stable_margin = decoder.find_double("dynamic_multimask_stability_delta").value_or(0.05);
  c.stable_share = decoder.find_double("dynamic_multimask_stability_thresh").value_or(0.98);
  return c;
}

}  // namespace
}  // namespace hf_sam3_tracker

void add_sam3_tracker(const SourceFiles& files, ParsedPrompts& out) {
  using namespace hf_sam3_tracker;
  const auto tracker = find_prefix(files, "mask_decoder.iou_token.weight",
                                   {"tracker_model.", "tracker_model.tracker_model.", ""});
  const auto neck = find_prefix(
      files, "fpn_layers.2.proj1.weight",
      {"tracker_neck.", "tracker_model.tracker_neck.", "tracker_model.tracker_model.tracker_neck."});
  if (!tracker || !neck) return;
  out.config.clicks = read_config(nested_config(*files.config, {"tracker_config"}));
  out.named.push_back({"clicks.", *tracker, kRows});
  out.named.push_back({"clicks.neck.", *neck + "fpn_layers.", kSam3Neck});
}

}  // namespace vit::internal
