// What the files of SAM's encoder have in common: its configuration. Source:
// facebookresearch/segment-anything, modeling/image_encoder.py.
#include "vit/weights/families/sam.h"

#include <utility>

#include "vit/base/check.h"

namespace vit::internal {
namespace {

void add_neck(std::size_t width, ModelConfig& config) {
  MergerConfig& merger = config.merger.emplace();
  const MergerNorm norm{.norm = {.eps = 1e-6f}};
  merger.cells.size = 1;
  merger.add(MergerPlace::reduce, MergerLinear{.dim = width});
  merger.add(MergerPlace::neck_norm, norm);
  merger.add(MergerPlace::convolution, MergerConvolution{.dim = width});
  merger.add(MergerPlace::convolution_norm, norm);
}

}  // namespace

ModelConfig sam_config(const Json& json, const TowerDefaults& defaults,
                       std::vector<std::size_t> global_blocks, std::size_t neck_dim) {
  ModelConfig c;
  c.family = "sam";
  c.embed_dim = find_tower_size(json, {"hidden_size", "embed_dim"}, defaults.embed_dim);
  c.encoder.depth = find_tower_size(json, {"num_hidden_layers", "depth"}, defaults.depth);
  c.attention.num_heads = find_tower_size(json, {"num_attention_heads", "num_heads"}, defaults.num_heads);
  c.patch.size = find_tower_size(json, {"patch_size"}, defaults.patch_size);
  VIT_CHECK(c.patch.size != 0, (Where{"sam", ErrorKind::format}), json.where(), ".patch_size must not be 0");
  c.image.height = c.image.width = find_tower_size(json, {"image_size", "img_size"}, defaults.image_size);
  const double hidden = static_cast<double>(c.embed_dim) * json.find_double("mlp_ratio").value_or(4.0);
  c.mlp.dim =
      find_tower_size(json, {"mlp_dim"}, hidden >= 1 && hidden < 1e6 ? static_cast<std::size_t>(hidden) : 0);
  c.encoder.norm.eps = static_cast<float>(json.find_double("layer_norm_eps").value_or(1e-6));
  c.attention.qkv_bias = json.find_bool("qkv_bias").value_or(true);
  c.tokens.class_token = c.encoder.token_norm = false;
  c.head.pooling = Pooling::none;
  if (const std::size_t window = find_tower_size(json, {"window_size"}, 14); window != 0) {
    c.attention.windows = WindowConfig{.size = window, .pads = true};
    for (const std::size_t block : read_blocks(json, "global_attn_indexes", std::move(global_blocks))) {
      if (block < c.encoder.depth) c.attention.windows->global_blocks.push_back(block);
    }
  }
  if (json.find_bool("use_abs_pos").value_or(neck_dim != 0)) {
    c.position.added = AddedTable::patches;
    c.position.added_grid = c.native_grid();
  }
  if (json.find_bool("use_rel_pos").value_or(true))
    c.position.relative = RelativeConfig{.kind = RelativeKind::axes, .grid = c.native_grid()};
  if (const std::size_t width = find_tower_size(json, {"output_channels", "neck_chans"}, neck_dim);
      width != 0)
    add_neck(width, c);
  return c;
}

ModelConfig hf_sam_config(const SourceFiles& files, const Json& json) {
  const TowerDefaults defaults{
      .embed_dim = 768, .depth = 12, .num_heads = 12, .patch_size = 16, .image_size = 1024};
  const ModelConfig sizes = read_tower(files, json, defaults);  // refuses other channels and overrides
  ModelConfig c = sam_config(json, defaults, {2, 5, 8, 11}, 256);
  c.architecture = sizes.architecture;
  c.library = sizes.library;
  c.mlp.activation = sizes.mlp.activation;
  c.image.fixed_size = true;
  return c;
}

void add_strided_convolutions(MergerConfig& merger, std::size_t first, std::size_t second, bool bias) {
  merger.add(MergerPlace::second_convolution, MergerConvolution{.dim = first, .stride = 2, .bias = bias});
  merger.add(MergerPlace::third_convolution, MergerConvolution{.dim = second, .stride = 2, .bias = bias});
}

}  // namespace vit::internal
