// SAM 3's detector: neck, geometry encoder, fusion encoder, decoder, scoring and masks, by itself or in the
// whole model. Source: transformers, models/sam3 and sam3_video.
#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "vit/base/check.h"
#include "vit/io/in_quotes.h"
#include "vit/weights/families/hf_config.h"
#include "vit/weights/families/hf_sam3.h"
#include "vit/weights/families/tower.h"

namespace vit::internal {
namespace hf_sam3_detector {
namespace {

constexpr Where kWhere{"hf_sam3", ErrorKind::mismatch};
constexpr std::string_view kPrefixes[] = {"detector_model.", ""};
constexpr std::string_view kTrackerPrefixes[] = {"tracker_model.tracker_model.", "tracker_model.", ""};
constexpr std::string_view kTrackerAnchor = "mask_decoder.iou_token.weight";
constexpr std::string_view kAnchor = "detr_decoder.query_embed.weight";
constexpr SizeRange kCount{1, std::size_t{1} << 20};

constexpr HeadRow kRows[] = {
    {"geometry.direct.*", "geometry_encoder.boxes_direct_project.*"},
    {"geometry.pool.*", "geometry_encoder.boxes_pool_project.*"},
    {"geometry.position.*", "geometry_encoder.boxes_pos_enc_project.*"},
    {"geometry.labels", "geometry_encoder.label_embed.weight"},
    {"geometry.class_token", "geometry_encoder.cls_embed.weight"},
    {"geometry.final.*", "geometry_encoder.final_proj.*"},
    {"geometry.prompt_norm.*", "geometry_encoder.prompt_layer_norm.*"},
    {"geometry.vision_norm.*", "geometry_encoder.vision_layer_norm.*"},
    {"geometry.output_norm.*", "geometry_encoder.output_layer_norm.*"},
    {"geometry.layers.*", "geometry_encoder.layers.*"},
    {"fusion.layers.*", "detr_encoder.layers.*"},
    {"decoder.queries", "detr_decoder.query_embed.weight"},
    {"decoder.points", "detr_decoder.reference_points.weight"},
    {"decoder.presence_token", "detr_decoder.presence_token.weight"},
    {"decoder.layers.*", "detr_decoder.layers.*"},
    {"decoder.output_norm.*", "detr_decoder.output_layer_norm.*"},
    {"decoder.presence_norm.*", "detr_decoder.presence_layer_norm.*"},
    {"decoder.boxes.{}.*", "detr_decoder.box_head.layer{}.*"},
    {"decoder.presence.{}.*", "detr_decoder.presence_head.layer{}.*"},
    {"decoder.position.{}.*", "detr_decoder.ref_point_head.layer{}.*"},
    {"decoder.bias_x.{}.*", "detr_decoder.box_rpb_embed_x.layer{}.*"},
    {"decoder.bias_y.{}.*", "detr_decoder.box_rpb_embed_y.layer{}.*"},
    {"scoring.mlp.{}.*", "dot_product_scoring.text_mlp.layer{}.*"},
    {"scoring.norm.*", "dot_product_scoring.text_mlp_out_norm.*"},
    {"scoring.prompt.*", "dot_product_scoring.text_proj.*"},
    {"scoring.query.*", "dot_product_scoring.query_proj.*"},
    {"masks.attention.*", "mask_decoder.prompt_cross_attn.*"},
    {"masks.attention_norm.*", "mask_decoder.prompt_cross_attn_norm.*"},
    {"masks.refine.{}.*", "mask_decoder.pixel_decoder.conv_layers.{}.*"},
    {"masks.refine_norm.{}.*", "mask_decoder.pixel_decoder.norms.{}.*"},
    {"masks.embed.{}.*", "mask_decoder.mask_embedder.layers.{}.*", 1, -1},
    {"masks.instance.*", "mask_decoder.instance_projection.*"},
    {"masks.semantic.*", "mask_decoder.semantic_projection.*"},
};

constexpr Ignored kIgnored[] = {
    {"vision_encoder.backbone.*", "image tower"},
    {"vision_encoder.neck.fpn_layers.3.*", "the coarsest map, which nothing reads"},
    {"text_encoder.*", "text tower"},
    {"text_projection.*", "text tower"},
    {"mask_decoder.pixel_decoder.*", "of a fourth map, which nothing reads"},
    {"*", "not read: of tracking in videos, or the image tower", Place::outside},
};

constexpr Ignored kTrackerIgnored[] = {
    {"detector_model.vision_encoder.backbone.*", "image tower"},
    {"tracker_neck.fpn_layers.3.*", "the coarsest map, which nothing reads"},
    {"shared_image_embedding.*", "the same as in the prompt encoder"},
    {"*", "not read: image tower", Place::outside},
};

/// The levels of the neck: twice and once enlarged, as it is, and halved, which nothing reads.
void check_levels(const Json& vision) {
  constexpr double kFactors[] = {4.0, 2.0, 1.0, 0.5};
  const auto factors = vision.find("scale_factors");
  if (!factors) return;
  factors->expect(Json::Kind::array);
  std::vector<std::string> found;
  bool same = factors->size() == std::size(kFactors);
  for (std::size_t i = 0; i < factors->size(); ++i) {
    const double factor = (*factors)[i].as_double();
    same = same && factor == kFactors[i];
    found.push_back(text(factor));
  }
  VIT_CHECK(same, kWhere.with(ErrorKind::unsupported), factors->where(), " are [", listed(found),
            "], only [4, 2, 1, 0.5] is implemented");
}

PromptLayersConfig read_layers(const Json& json, std::size_t depth) {
  check_sam3_activation(json, {"relu"});
  return {.depth = json.find_size("num_layers", kCount).value_or(depth),
          .num_heads = json.find_size("num_attention_heads", kCount).value_or(8),
          .mlp_dim = json.find_size("intermediate_size", kCount).value_or(2048)};
}

PromptConfig read_config(const Json& json) {
  const Json vision = sam3_part(json, "vision_config"), backbone = sam3_part(vision, "backbone_config");
  const Json geometry = sam3_part(json, "geometry_encoder_config"),
             decoder = sam3_part(json, "detr_decoder_config");
  check_levels(vision);
  PromptConfig c{.family = "sam3"};
  c.dim = vision.find_size("fpn_hidden_size", kCount).value_or(256);
  c.backbone_dim = backbone.find_size("hidden_size", kCount).value_or(1024);
  c.image_size = find_tower_size(backbone, {"image_size"}, 1008);
  const std::size_t patch = find_tower_size(backbone, {"patch_size"}, 14);
  VIT_CHECK(patch != 0 && c.image_size % patch == 0, kWhere.with(ErrorKind::format), backbone.where(),
            ": image_size ", c.image_size, " is not a multiple of patch_size ", patch);
  c.grid = c.image_size / patch;
  c.roi_bins = geometry.find_size("roi_size", kCount).value_or(7);
  c.num_queries = decoder.find_size("num_queries", kCount).value_or(200);
  c.geometry = read_layers(geometry, 3);
  c.fusion = read_layers(sam3_part(json, "detr_encoder_config"), 6);
  c.decoder = read_layers(decoder, 6);
  c.num_mask_heads =
      sam3_part(json, "mask_decoder_config").find_size("num_attention_heads", kCount).value_or(8);
  return c;
}

}  // namespace
}  // namespace hf_sam3_detector

Json sam3_part(const Json& config, const char* key) {
  const auto found = config.find(key);
  VIT_CHECK(!found || found->is_object(), hf_sam3_detector::kWhere.with(ErrorKind::format), found->where(),
            ": expected an object");
  return found ? *found : parse_json("{}", config.where());
}

void check_sam3_activation(const Json& part, const std::vector<std::string>& names) {
  const auto found = part.find("hidden_act");
  if (found && std::ranges::find(names, found->as_string()) == names.end()) refuse_choice(*found, names);
}

std::optional<ParsedPrompts> read_prompt_detector(const SourceFiles& files) {
  using namespace hf_sam3_detector;
  if (!has_model_type(files, {"sam3", "sam3_video", "sam3_tracker"})) return std::nullopt;
  VIT_CHECK(std::ranges::none_of(
                files.tensors.entries(),
                [](const TensorEntry& entry) { return entry.name.find("multiplex") != entry.name.npos; }),
            hf_sam3_detector::kWhere.with(ErrorKind::unsupported), files.weights_name,
            ": has a tracker of several objects at once, as SAM 3.1 has; SAM 3 is supported");
  const auto detector = match_anchor(files, kAnchor, kPrefixes);
  const auto found = detector ? detector : match_anchor(files, kTrackerAnchor, kTrackerPrefixes);
  if (!found) return std::nullopt;
  ParsedPrompts out{.config = read_config(nested_config(*files.config, {"detector_config"})),
                    .match = *found,
                    .layout = {},
                    .ignored = {}};
  if (detector) {
    out.ignored.push_back(kIgnored);
  } else {
    out.ignored.push_back(kTrackerIgnored);
  }
  out.config.has_detector = detector.has_value();
  const std::string prefix = found->prefix.substr(files.root.size());
  if (detector) out.named.push_back({"", prefix, kRows});
  if (detector) out.named.push_back({"neck.", prefix + "vision_encoder.neck.fpn_layers.", kSam3Neck});
  add_sam3_tracker(files, out);
  return out;
}

}  // namespace vit::internal
