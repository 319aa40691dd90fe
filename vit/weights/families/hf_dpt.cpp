// Hugging Face's DPT on a backbone of its own family (DINOv2) or on its own ViT, for depth and for classes.
// Source: transformers, models/dpt.
#include <algorithm>
#include <utility>

#include "vit/base/check.h"
#include "vit/weights/families/dpt_tables.h"
#include "vit/weights/families/hf_backbone.h"
#include "vit/weights/families/hf_config.h"

namespace vit::internal {
namespace hf_dpt {
namespace {

constexpr Where kWhere{"hf_dpt", ErrorKind::unsupported};
constexpr std::string_view kOwnPrefixes[] = {"dpt.", ""};

constexpr HeadRow kDepth[] = {
    {"extra.*", "head.projection.*"},
    {"narrow.*", "head.head.0.*"},
    {"output.0.hidden.*", "head.head.2.*"},
    {"output.0.last.*", "head.head.4.*"},
};
constexpr HeadRow kClasses[] = {
    {"narrow.*", "head.head.0.*"},
    {"narrow_norm.*", "head.head.1.*"},
    {"output.0.last.*", "head.head.4.*"},
};
constexpr Ignored kNotRead[] = {
    {"*.num_batches_tracked", "counts the batches of the training", Place::outside},
    {"neck.fusion_stage.layers.0.residual_layer1.*", "the deepest fusion layer has no second map to join",
     Place::outside},
    {"auxiliary_head.*", "used in training only", Place::outside},
};

bool has_own_vit(const Json& config) {
  return !config.find("backbone_config") && !config.find("backbone");
}

/// A config.json that was saved without a model names no class; the head of classes is the only one with a
/// batch norm.
bool gives_classes(const SourceFiles& files) {
  return hf_class_contains(*files.config, "ForSemanticSegmentation") ||
         files.find("head.head.1.running_mean", Place::outside) != nullptr;
}

/// The first size of a tensor of the head, or what the library has fixed.
std::size_t stored_channels(const SourceFiles& files, const char* name, std::size_t fallback) {
  const TensorEntry* const entry = files.find(name, Place::outside);
  return entry != nullptr && !entry->shape.empty() ? entry->shape.front() : fallback;
}

std::vector<std::size_t> read_own_taps(const Json& config) {
  const auto list = config.find("backbone_out_indices");
  if (!list) return {2, 5, 8, 11};
  list->expect_array(4, "four blocks");
  std::vector<std::size_t> taps;
  for (std::size_t i = 0; i < 4; ++i) taps.push_back((*list)[i].as_size());
  std::ranges::sort(taps);  // the library collects them in the order of the blocks
  VIT_CHECK(std::ranges::adjacent_find(taps) == taps.end(), kWhere, list->where(),
            " names a block twice; four are needed");
  return taps;
}

ClassReadout read_readout(const Json& config) {
  const auto type = config.find("readout_type");
  if (!type) return ClassReadout::projected;
  return read_choice<ClassReadout>(*type, {{"ignore", ClassReadout::dropped},
                                           {"add", ClassReadout::added},
                                           {"project", ClassReadout::projected}});
}

void refuse_variants(const Json& config) {
  VIT_CHECK(!config.find_bool("is_hybrid").value_or(false), kWhere, config.where(),
            ": is_hybrid: DPT on BiT, a convolutional network, is not implemented");
  const double index = config.find_double("head_in_index").value_or(-1.0);
  VIT_CHECK(index == -1.0 || index == 3.0, kWhere, config.where(),
            ": head_in_index must be -1, the last fused map, got ", index);
}

DenseConfig read_head(const SourceFiles& files, const ModelConfig& backbone) {
  const Json& config = *files.config;
  refuse_variants(config);
  check_dpt_factors(config);
  const bool own = has_own_vit(config), classes = gives_classes(files);
  DptConfig dpt;
  dpt.readout = read_readout(config);
  dpt.readout_activation = read_hf_activation(config, Activation::gelu);
  dpt.channels = read_dpt_channels(config, "neck_hidden_sizes", {96, 192, 384, 768});
  dpt.features = config.find_size("fusion_hidden_size").value_or(256);
  dpt.residual_batch_norm = config.find_bool("use_batch_norm_in_fusion_residual").value_or(false);
  dpt.residual_bias = config.find_bool("use_bias_in_fusion_residual").value_or(!dpt.residual_batch_norm);
  dpt.fusion_size = FusionSize::doubled;
  dpt.head_size = HeadSize::doubled;
  if (classes) {
    dpt.layers = HeadLayersKind::classes;
  } else {
    dpt.hidden = stored_channels(files, "head.head.2.weight", 32);
    if (config.find_bool("add_projection").value_or(false))
      dpt.extra_channels = stored_channels(files, "head.projection.weight", 256);
  }
  DenseBranch branch{.name = "",
                     .taps = own ? read_own_taps(config)
                                 : read_hf_taps(config.at("backbone_config"), backbone.encoder.depth),
                     .tap_norm = false,
                     .layers = std::move(dpt),
                     .outputs = {}};
  if (!own) {
    branch.tap_norm = config.at("backbone_config").find_bool("apply_layernorm").value_or(true);
    branch.tap_norm_eps = backbone.encoder.norm.eps;
  }
  DenseConfig out{.family = "dpt", .branches = {}, .depth_unit = DepthUnit::inverse, .labels = {}};
  if (classes) {
    const auto names = find_hf_labels(config);
    const std::size_t count = names ? names->size() : stored_channels(files, "head.head.4.weight", 2);
    branch.outputs = {{.meaning = Output::classes, .channels = count, .finish = MapFinish::none}};
    out.labels = read_hf_labels(config, count);
    out.to_image = ImageResize::bilinear;
  } else {
    branch.outputs = {{.meaning = Output::depth, .channels = 1, .finish = MapFinish::relu}};
    // those on DINOv2 were trained on metres of NYU and KITTI, dpt-large on inverse depth of many sources
    if (!own) out.depth_unit = DepthUnit::meter;
  }
  out.branches.push_back(std::move(branch));
  return out;
}

ParsedModel read(const SourceFiles& files) {
  const Json& config = *files.config;
  const bool own = has_own_vit(config), classes = gives_classes(files);
  ParsedModel out = own ? kHfVitFamily.read(files) : read_backbone(files);
  if (own) {
    out.config.position.resampling = TableResampling::bilinear;
    if (config.has_null("qkv_bias")) out.config.attention.qkv_bias = false;  // which PyTorch takes for false
  }
  if (own && files.has_weights && !files.match.prefix.ends_with("dpt.")) return out;  // a DPTModel
  out.dense = DenseReading{.config = read_head(files, out.config), .tables = {}};
  if (!own) out.dense->tables.push_back({"", "", tap_norm_rows(out.config)});
  out.dense->tables.push_back({"", "", kHfDptNeck});
  out.dense->tables.push_back({"", "", classes ? std::span<const HeadRow>(kClasses) : kDepth});
  out.ignored.push_back(kNotRead);
  return out;
}

std::optional<Match> match(const SourceFiles& files) {
  if (hf_model_type(files) != "dpt") return std::nullopt;
  if (!has_own_vit(*files.config)) return match_backbone(files);
  const auto found = match_anchor(files, "embeddings.patch_embeddings.projection.weight", kOwnPrefixes);
  VIT_CHECK(found, kWhere.with(ErrorKind::mismatch), files.weights_name,
            ": no tensor dpt.embeddings.patch_embeddings.projection.weight");
  return found;
}

}  // namespace
}  // namespace hf_dpt

constinit const Family kHfDptFamily{.name = "hf_dpt",
                                    .anchor = "neck.reassemble_stage.layers.0.projection.weight",
                                    .other_anchor = "embeddings.patch_embeddings.projection.weight",
                                    .prefixes = hf_dpt::kOwnPrefixes,
                                    .library = "",
                                    .match = hf_dpt::match,
                                    .read = hf_dpt::read,
                                    .is_dense = true};

}  // namespace vit::internal
