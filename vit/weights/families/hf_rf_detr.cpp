// RF-DETR: boxes of queries on a DINOv2 that attends in windows, each with a class token of its own; the
// tower is read by the page of DINOv2. Source: transformers, models/rf_detr.
#include "vit/base/check.h"
#include "vit/weights/families/hf_backbone.h"
#include "vit/weights/families/hf_config.h"
#include "vit/weights/families/query_boxes.h"

namespace vit::internal {
namespace hf_rf_detr {
namespace {

#define PROJECTOR "backbone.0.projector.stages.0."
#define DECODER "transformer.decoder."
constexpr HeadRow kHead[] = {
    {"level.0.join.weight", PROJECTOR "0.cv1.conv.weight"},
    {"level.0.join_norm.*", PROJECTOR "0.cv1.bn.*"},
    {"level.0.pair.{}.conv1.weight", PROJECTOR "0.m.{}.cv1.conv.weight"},
    {"level.0.pair.{}.conv1_norm.*", PROJECTOR "0.m.{}.cv1.bn.*"},
    {"level.0.pair.{}.conv2.weight", PROJECTOR "0.m.{}.cv2.conv.weight"},
    {"level.0.pair.{}.conv2_norm.*", PROJECTOR "0.m.{}.cv2.bn.*"},
    {"level.0.merge.weight", PROJECTOR "0.cv2.conv.weight"},
    {"level.0.merge_norm.*", PROJECTOR "0.cv2.bn.*"},
    {"level.0.norm.*", PROJECTOR "1.*"},
    {"queries.weight", "query_feat.weight"},
    {"references.weight", "refpoint_embed.weight"},
    {"propose.*", "transformer.enc_output.0.*"},
    {"propose_norm.*", "transformer.enc_output_norm.0.*"},
    {"propose_classes.*", "transformer.enc_out_class_embed.0.*"},
    {"propose_boxes.{}.*", "transformer.enc_out_bbox_embed.0.layers.{}.*"},
    {"position.{}.*", DECODER "ref_point_head.layers.{}.*"},
    {"layer.{}.q.*", DECODER "layers.{}.self_attn.in_proj_*", 1, 0, Place::outside, {0, 3}},
    {"layer.{}.k.*", DECODER "layers.{}.self_attn.in_proj_*", 1, 0, Place::outside, {1, 3}},
    {"layer.{}.v.*", DECODER "layers.{}.self_attn.in_proj_*", 1, 0, Place::outside, {2, 3}},
    {"layer.{}.o.*", DECODER "layers.{}.self_attn.out_proj.*"},
    {"layer.{}.offsets.*", DECODER "layers.{}.cross_attn.sampling_offsets.*"},
    {"layer.{}.weights.*", DECODER "layers.{}.cross_attn.attention_weights.*"},
    {"layer.{}.values.*", DECODER "layers.{}.cross_attn.value_proj.*"},
    {"layer.{}.sampled.*", DECODER "layers.{}.cross_attn.output_proj.*"},
    {"layer.{}.norm1.*", DECODER "layers.{}.norm1.*"},
    {"layer.{}.norm2.*", DECODER "layers.{}.norm2.*"},
    {"layer.{}.norm3.*", DECODER "layers.{}.norm3.*"},
    {"layer.{}.fc1.*", DECODER "layers.{}.linear1.*"},
    {"layer.{}.fc2.*", DECODER "layers.{}.linear2.*"},
    {"output_norm.*", DECODER "norm.*"},
    {"classes.*", "class_embed.*"},
    {"boxes.{}.*", "bbox_embed.layers.{}.*"},
};
#undef PROJECTOR
#undef DECODER

constexpr Ignored kIgnored[] = {
    {"transformer.enc_out*", "of groups of queries that only training uses", Place::outside},
    {"segmentation_head.*", "masks of boxes, which are not computed", Place::outside},
};

ParsedModel read(const SourceFiles& files) {
  ParsedModel out = read_backbone(files);
  const Json backbone = files.config->at("backbone_config");
  QueryBoxConfig layers;
  layers.norm_eps = static_cast<float>(files.config->find_double("layer_norm_eps").value_or(1e-5));
  DenseConfig head = read_query_boxes(files, backbone, out.config.encoder.depth, layers);
  head.family = "rf_detr";
  head.best_boxes = std::get<QueryBoxConfig>(head.branches.front().layers).queries;
  head.branches.front().tap_norm = backbone.find_bool("apply_layernorm").value_or(true);
  head.branches.front().tap_norm_eps = out.config.encoder.norm.eps;
  out.dense = DenseReading{.config = std::move(head), .tables = {{"", "", kLayerNormTap}, {"", "", kHead}}};
  out.ignored.push_back(kIgnored);
  return out;
}

std::optional<Match> match(const SourceFiles& files) {
  if (hf_model_type(files) != "rf_detr") return std::nullopt;
  return match_backbone(files);
}

}  // namespace
}  // namespace hf_rf_detr

constinit const Family kHfRfDetrFamily{.name = "hf_rf_detr",
                                       .anchor = "transformer.enc_output.0.weight",
                                       .library = "",
                                       .match = hf_rf_detr::match,
                                       .read = hf_rf_detr::read,
                                       .is_dense = true};

}  // namespace vit::internal
