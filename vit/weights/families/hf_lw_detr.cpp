// LW-DETR: boxes of queries that sample maps of a plain ViT in windows. Source: transformers, models/lw_detr.
#include "vit/base/check.h"
#include "vit/weights/dense_weights.h"
#include "vit/weights/families/hf_backbone.h"
#include "vit/weights/families/hf_config.h"
#include "vit/weights/families/query_boxes.h"

namespace vit::internal {
namespace hf_lw_detr {
namespace {

constexpr HeadRow kLevel[] = {
    {"narrow.{}.weight", "sampling_layers.{}.layers.0.conv.weight"},
    {"narrow_norm.{}.*", "sampling_layers.{}.layers.0.norm.*"},
    {"reduce.{}.weight", "sampling_layers.{}.layers.0.conv.weight"},
    {"reduce_norm.{}.*", "sampling_layers.{}.layers.0.norm.*"},
    {"enlarge.{}.*", "sampling_layers.{}.layers.0.*"},
    {"join.weight", "projector_layer.conv1.conv.weight"},
    {"join_norm.*", "projector_layer.conv1.norm.*"},
    {"pair.{}.conv1.weight", "projector_layer.bottlenecks.{}.conv1.conv.weight"},
    {"pair.{}.conv1_norm.*", "projector_layer.bottlenecks.{}.conv1.norm.*"},
    {"pair.{}.conv2.weight", "projector_layer.bottlenecks.{}.conv2.conv.weight"},
    {"pair.{}.conv2_norm.*", "projector_layer.bottlenecks.{}.conv2.norm.*"},
    {"merge.weight", "projector_layer.conv2.conv.weight"},
    {"merge_norm.*", "projector_layer.conv2.norm.*"},
    {"norm.*", "layer_norm.*"},
};
constexpr HeadRow kEnlargeNarrowed[] = {{"enlarge.{}.*", "sampling_layers.{}.layers.1.*"}};
#define LAYER "model.decoder.layers.{}."
constexpr HeadRow kHead[] = {
    {"queries.weight", "model.query_feat.weight"},
    {"references.weight", "model.reference_point_embed.weight"},
    {"propose.*", "model.enc_output.0.*"},
    {"propose_norm.*", "model.enc_output_norm.0.*"},
    {"propose_classes.*", "model.enc_out_class_embed.0.*"},
    {"propose_boxes.{}.*", "model.enc_out_bbox_embed.0.layers.{}.*"},
    {"position.{}.*", "model.decoder.ref_point_head.layers.{}.*"},
    {"layer.{}.q.*", LAYER "self_attn.q_proj.*"},
    {"layer.{}.k.*", LAYER "self_attn.k_proj.*"},
    {"layer.{}.v.*", LAYER "self_attn.v_proj.*"},
    {"layer.{}.o.*", LAYER "self_attn.o_proj.*"},
    {"layer.{}.norm1.*", LAYER "self_attn_layer_norm.*"},
    {"layer.{}.offsets.*", LAYER "cross_attn.sampling_offsets.*"},
    {"layer.{}.weights.*", LAYER "cross_attn.attention_weights.*"},
    {"layer.{}.values.*", LAYER "cross_attn.value_proj.*"},
    {"layer.{}.sampled.*", LAYER "cross_attn.output_proj.*"},
    {"layer.{}.norm2.*", LAYER "cross_attn_layer_norm.*"},
    {"layer.{}.fc1.*", LAYER "mlp.fc1.*"},
    {"layer.{}.fc2.*", LAYER "mlp.fc2.*"},
    {"layer.{}.norm3.*", LAYER "layer_norm.*"},
    {"output_norm.*", "model.decoder.layernorm.*"},
    {"classes.*", "class_embed.*"},
    {"boxes.{}.*", "bbox_embed.layers.{}.*"},
};
#undef LAYER
constexpr Ignored kIgnored[] = {
    {"model.enc_out*", "of groups of queries that only training uses", Place::outside},
    {"*.num_batches_tracked", "counts the batches of the training", Place::outside},
};

DenseReading read_head(const SourceFiles& files, const ModelConfig& config) {
  QueryBoxConfig layers{.levels = {}, .batch_norm = true};
  layers.norm_eps = static_cast<float>(files.config->find_double("batch_norm_eps").value_or(1e-5));
  const Json scales = files.config->at("projector_scale_factors");
  DenseReading out;
  for (std::size_t l = 0; l < scales.size() && l < 4; ++l) {
    const double scale = scales[l].as_double();
    VIT_CHECK(scale == 0.5 || scale == 1.0 || scale == 2.0, (Where{"hf_lw_detr", ErrorKind::format}),
              scales[l].where(), " must be 0.5, 1 or 2, got ", scale);
    layers.levels.push_back(scale == 0.5 ? MapScale::half : scale == 2.0 ? MapScale::twice : MapScale::same);
    const std::string number = std::to_string(l);
    const std::string own = "level." + number + ".",
                      source = "model.backbone.projector.scale_layers." + number + ".";
    out.tables.push_back({own, source, kLevel});
    if (narrows_taps(config.embed_dim)) out.tables.push_back({own, source, kEnlargeNarrowed});
  }
  out.tables.push_back({"", "", kHead});
  out.config =
      read_query_boxes(files, files.config->at("backbone_config"), config.encoder.depth, std::move(layers));
  out.config.family = "lw_detr";
  out.config.best_boxes = 100;  // of the library's post-processing
  return out;
}

ParsedModel read(const SourceFiles& files) {
  ParsedModel out = read_backbone(files);
  out.dense = read_head(files, out.config);
  out.ignored.push_back(kIgnored);
  return out;
}

std::optional<Match> match(const SourceFiles& files) {
  if (hf_model_type(files) != "lw_detr") return std::nullopt;
  return match_backbone(files);
}

}  // namespace
}  // namespace hf_lw_detr

constinit const Family kHfLwDetrFamily{.name = "hf_lw_detr",
                                       .anchor = "model.enc_output.0.weight",
                                       .library = "",
                                       .match = hf_lw_detr::match,
                                       .read = hf_lw_detr::read,
                                       .is_dense = true};

}  // namespace vit::internal
