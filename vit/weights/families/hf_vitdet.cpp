// ViTDet's backbone in transformers: a plain ViT some of whose blocks attend in windows, completed by zeros,
// with relative positions on both axes; no norm after the blocks. Its table has a row for a class token that
// is not there. Source: transformers, models/vitdet.

#include "vit/base/check.h"
#include "vit/weights/families/hf_config.h"
#include "vit/weights/families/tower.h"

namespace vit::internal {
namespace hf_vitdet {
namespace {

constexpr Where kWhere{"hf_vitdet", ErrorKind::mismatch};
constexpr std::string_view kPrefixes[] = {"", "vitdet.", "backbone."};
constexpr std::string_view kAnchor = "embeddings.projection.weight";

constexpr Row kRows[] = {
    {Part::patch_weight, kAnchor, Form::convolution},
    {Part::patch_bias, "embeddings.projection.bias"},
    {Part::position_table, "embeddings.position_embeddings", Form::first_dropped},
    {Part::norm1_gamma, "encoder.layer.{}.norm1.*"},
    {Part::qkv_weight, "encoder.layer.{}.attention.qkv.*"},
    {Part::relative_rows, "encoder.layer.{}.attention.rel_pos_h"},
    {Part::relative_columns, "encoder.layer.{}.attention.rel_pos_w"},
    {Part::proj_weight, "encoder.layer.{}.attention.proj.*"},
    {Part::norm2_gamma, "encoder.layer.{}.norm2.*"},
    {Part::fc1_weight, "encoder.layer.{}.mlp.fc1.*"},
    {Part::fc2_weight, "encoder.layer.{}.mlp.fc2.*"},
};
static_assert(is_complete(kRows));

ParsedModel read(const SourceFiles& files) {
  const Json& json = *files.config;
  ModelConfig c = read_tower(files, json,
                             {.embed_dim = 768,
                              .depth = 12,
                              .num_heads = 12,
                              .patch_size = 16,
                              .image_size = 224,
                              .norm_eps = 1e-6});
  c.family = "vitdet";
  c.patch.drops_remainder = true;  // by the stride of its convolution
  c.encoder.norm.eps = static_cast<float>(json.find_double("layer_norm_eps").value_or(1e-6));
  c.mlp.dim = static_cast<std::size_t>(static_cast<double>(c.embed_dim) *
                                       json.find_double("mlp_ratio").value_or(4.0));
  c.attention.qkv_bias = json.find_bool("qkv_bias").value_or(true);
  VIT_CHECK(read_blocks(json, "residual_block_indices", {}).empty(), kWhere.with(ErrorKind::unsupported),
            json.where(), ".residual_block_indices: convolutions between blocks are not implemented");
  const std::vector<std::size_t> windowed = read_blocks(json, "window_block_indices", {});
  WindowConfig windows{.size = json.find_size("window_size", {0, 4096}).value_or(0), .pads = true};
  windows.global_blocks = other_blocks(windowed, c.encoder.depth);
  if (windows.size != 0 && windows.global_blocks.size() != c.encoder.depth)
    c.attention.windows = std::move(windows);
  if (json.find_bool("use_absolute_position_embeddings").value_or(true)) {
    const std::size_t edge = find_tower_size(json, {"pretrain_image_size"}, 224) / c.patch.size;
    c.position.added = AddedTable::patches;
    c.position.added_grid = {edge, edge};
    c.position.resampling = TableResampling::bicubic;
  }
  if (json.find_bool("use_relative_position_embeddings").value_or(false))
    c.position.relative = RelativeConfig{.kind = RelativeKind::axes, .grid = c.native_grid()};
  return {.config = std::move(c), .layout = {kRows}};
}

std::optional<Match> match(const SourceFiles& files) {
  if (hf_model_type(files) != "vitdet") return std::nullopt;
  const auto found = match_anchor(files, kAnchor, kPrefixes);
  VIT_CHECK(found, kWhere, files.weights_name, ": no tensor ", kAnchor,
            ", with or without the prefix vitdet.");
  return found;
}

}  // namespace
}  // namespace hf_vitdet

constinit const Family kHfVitDetFamily{.name = "hf_vitdet",
                                       .anchor = hf_vitdet::kAnchor,
                                       .prefixes = hf_vitdet::kPrefixes,
                                       .library = "",
                                       .match = hf_vitdet::match,
                                       .read = hf_vitdet::read};

}  // namespace vit::internal
