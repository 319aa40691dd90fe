// SAM's image encoder in models that read documents, followed by strided convolutions and linear layers:
// GOT-OCR 2, PP-FormulaNet and SLANeXt. Source: transformers, models/got_ocr2, pp_formulanet and slanext.
#include <algorithm>

#include "vit/weights/families/hf_config.h"
#include "vit/weights/families/sam.h"

namespace vit::internal {
namespace hf_sam_ocr {
namespace {

constexpr std::string_view kPrefixes[] = {
    "", "vision_tower.", "model.vision_tower.", "backbone.vision_tower.", "model.encoder.", "encoder."};
constexpr Ignored kIgnored[] = {{"*", "of the model around the encoder, which is not read", Place::outside}};

constexpr Row strided(Place place, Part part, std::string_view name) {
  return at(place, {part, name, Form::window_kernel});
}
constexpr Row kGotOcr[] = {
    strided(Place::outside, Part::merger_second_convolution_weight,
            "multi_modal_projector.conv_upsampler1.weight"),
    strided(Place::outside, Part::merger_third_convolution_weight,
            "multi_modal_projector.conv_upsampler2.weight"),
    at(Place::outside, {Part::merger_projection_weight, "multi_modal_projector.multimodal_projector.*"}),
};
constexpr Row kFormulaNet[] = {
    strided(Place::tower, Part::merger_second_convolution_weight, "multi_modal_projector.conv1.weight"),
    strided(Place::tower, Part::merger_third_convolution_weight, "multi_modal_projector.conv2.weight"),
    {Part::merger_fc1_weight, "multi_modal_projector.linear_1.*"},
    {Part::merger_fc2_weight, "multi_modal_projector.linear_2.*"},
};
static_assert(is_sound(kGotOcr) && is_sound(kFormulaNet));

ParsedModel read(const SourceFiles& files) {
  const Json json = hf_tower_part(*files.config, "vision");
  const std::string type = hf_model_type(files);
  ParsedModel out{.config = hf_sam_config(files, json), .layout = {kSamRows}, .ignored = {kIgnored}};
  out.config.image.stack = StackRule::apart;  // tiles
  MergerConfig& merger = *out.config.merger;
  if (type == "got_ocr2") {
    const std::size_t text = text_width(files);
    add_strided_convolutions(merger, 2 * merger.width(out.config.embed_dim), text);
    merger.add(MergerPlace::projection, MergerLinear{.dim = text, .bias = true});
    out.layout.add(kGotOcr);
  } else if (type.starts_with("pp_formulanet")) {
    const std::size_t width = find_tower_size(json, {"post_conv_out_channels"}, 1024);
    add_strided_convolutions(merger, find_tower_size(json, {"post_conv_mid_channels"}, 512), width);
    merger.add(MergerPlace::mlp, MergerMlp{.hidden_dim = width,
                                           .out_dim = find_tower_size(json, {"decoder_hidden_size"}, 512),
                                           .activation = Activation::none});
    out.layout.add(kFormulaNet);
  }
  add_whole_model_notes(files, out);
  return out;
}

std::optional<Match> match(const SourceFiles& files) {
  if (!has_model_type(files,
                      {"got_ocr2", "pp_formulanet", "pp_formulanet_vision", "slanext", "slanext_vision"}))
    return std::nullopt;
  return match_tower(files, kSamAnchor, kPrefixes);
}

}  // namespace
}  // namespace hf_sam_ocr

constinit const Family kHfSamOcrFamily{.name = "hf_sam_ocr",
                                       .anchor = kSamAnchor,
                                       .prefixes = hf_sam_ocr::kPrefixes,
                                       .library = "",
                                       .match = hf_sam_ocr::match,
                                       .read = hf_sam_ocr::read};

}  // namespace vit::internal
