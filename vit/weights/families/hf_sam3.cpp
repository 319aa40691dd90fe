// SAM 3's image encoder, by itself or inside the model: a Perception Encoder whose blocks attend in windows,
// but for some. Rows and columns are counted in the window, or scaled to one where a block is global; the
// learned table is repeated over the grid. What detects and segments is left unread. Source: transformers,
// models/sam3.
#include <algorithm>

#include "vit/base/check.h"
#include "vit/weights/families/hf_config.h"
#include "vit/weights/families/tower.h"

namespace vit::internal {
namespace hf_sam3 {
namespace {

constexpr Where kWhere{"hf_sam3", ErrorKind::format};

constexpr std::string_view kPrefixes[] = {"", "backbone.", "vision_encoder.backbone.",
                                          "detector_model.vision_encoder.backbone.",
                                          "tracker_model.detector_model.vision_encoder.backbone."};
constexpr std::string_view kAnchor = "embeddings.patch_embeddings.projection.weight";

constexpr Row kRows[] = {
    {Part::patch_weight, kAnchor, Form::convolution},
    {Part::position_table, "embeddings.position_embeddings"},
    {Part::norm_pre_gamma, "layer_norm.*"},
    {Part::norm1_gamma, "layers.{}.layer_norm1.*"},
    joined(Part::qkv_weight, {0, 3}, "layers.{}.attention.q_proj.*"),
    joined(Part::qkv_weight, {1, 3}, "layers.{}.attention.k_proj.*"),
    joined(Part::qkv_weight, {2, 3}, "layers.{}.attention.v_proj.*"),
    {Part::proj_weight, "layers.{}.attention.o_proj.*"},
    {Part::norm2_gamma, "layers.{}.layer_norm2.*"},
    {Part::fc1_weight, "layers.{}.mlp.fc1.*"},
    {Part::fc2_weight, "layers.{}.mlp.fc2.*"},
};
static_assert(is_complete(kRows));

constexpr Ignored kIgnored[] = {
    {"*", "of the detector around the encoder, which vit segment and vit detect read (vit/prompts.h)",
     Place::outside}};

/// The configuration of the encoder in that of a model.
Json encoder_config(const Json& config) {
  Json found = config;
  for (const char* key : {"detector_config", "vision_config", "backbone_config"})
    found = nested_config(found, {key});
  return found;
}

void set_positions(const Json& json, ModelConfig& c) {
  const std::size_t trained = find_tower_size(json, {"pretrain_image_size"}, 336) / c.patch.size;
  PositionConfig& position = c.position;
  position.added = AddedTable::patches;
  position.added_grid = {trained, trained};
  position.resampling = TableResampling::tiled;
  add_tower_rope(json, c);
  position.axis_order = AxisOrder::x_then_y;
  position.pairing = RopePairing::neighbors;
  position.coordinates = CoordinateRule::scaled_to_reference;
  position.reference_grid = {c.attention.windows->size, c.attention.windows->size};
  position.per_window = true;
}

ModelConfig read_config(const SourceFiles& files, const Json& json) {
  ModelConfig c = read_tower(files, json,
                             {.embed_dim = 1024,
                              .depth = 32,
                              .num_heads = 16,
                              .mlp_dim = 4736,
                              .image_size = 1008,
                              .norm_eps = json.find_double("layer_norm_eps").value_or(1e-6),
                              .activation = Activation::gelu});
  c.family = "sam3";
  c.image.fixed_size = true;
  c.patch.bias = false;
  c.encoder.norm_pre = true;
  WindowConfig& windows = c.attention.windows.emplace();
  windows.size = find_tower_size(json, {"window_size"}, 24);
  VIT_CHECK(windows.size != 0 && c.patch.size != 0, kWhere, json.where(),
            ": window_size and patch_size must not be 0");
  const GridSize grid = c.native_grid();
  windows.pads = grid.rows % windows.size != 0 || grid.columns % windows.size != 0;
  windows.global_blocks = read_blocks(json, "global_attn_indexes", {7, 15, 23, 31});
  std::erase_if(windows.global_blocks, [&](std::size_t block) { return block >= c.encoder.depth; });
  set_positions(json, c);
  return c;
}

ParsedModel read(const SourceFiles& files) {
  return {
      .config = read_config(files, encoder_config(*files.config)), .layout = {kRows}, .ignored = {kIgnored}};
}

std::optional<Match> match(const SourceFiles& files) {
  if (!has_model_type(files, {"sam3_vit_model", "sam3_vision_model", "sam3", "sam3_video", "sam3_tracker"}))
    return std::nullopt;
  const auto found = match_anchor(files, kAnchor, kPrefixes);
  VIT_CHECK(found, kWhere.with(ErrorKind::mismatch), files.weights_name, ": no tensor ", kAnchor,
            ", with or without vision_encoder.backbone. in front");
  return found;
}

}  // namespace
}  // namespace hf_sam3

constinit const Family kHfSam3Family{.name = "hf_sam3",
                                     .anchor = hf_sam3::kAnchor,
                                     .prefixes = hf_sam3::kPrefixes,
                                     .library = "",
                                     .match = hf_sam3::match,
                                     .read = hf_sam3::read};

}  // namespace vit::internal
