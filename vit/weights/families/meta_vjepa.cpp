// V-JEPA 2.1 in Meta's own files: patches of an image have a layer of their own, next to that of pairs of
// frames, and each kind a vector that is added to them. A third of the channels, as far as they form pairs,
// is rotated by time, row and column, which reach from corner to corner of the trained grid of 256 pixels.
// Source: facebookresearch/vjepa2, app/vjepa_2_1/models/vision_transformer.py, utils/modules.py; src/hub.
#include <algorithm>

#include "vit/base/check.h"
#include "vit/weights/families/tower.h"

namespace vit::internal {
namespace meta_vjepa {
namespace {

constexpr Where kWhere{"meta_vjepa", ErrorKind::mismatch};
constexpr std::string_view kAnchor = "patch_embed_img.proj.weight";
constexpr std::string_view kPrefixes[] = {"", "backbone.", "module.backbone."};

constexpr Row kRows[] = {
    {Part::patch_weight, kAnchor, Form::one_frame},
    {Part::patch_bias, "patch_embed_img.proj.bias"},
    {Part::clip_weight, "patch_embed.proj.weight", Form::frames_apart},
    {Part::clip_bias, "patch_embed.proj.bias"},
    {Part::image_shift, "img_mod_embed"},
    {Part::clip_shift, "video_mod_embed"},
    {Part::norm1_gamma, "blocks.{}.norm1.*"},
    {Part::qkv_weight, "blocks.{}.attn.qkv.*"},
    {Part::proj_weight, "blocks.{}.attn.proj.*"},
    {Part::norm2_gamma, "blocks.{}.norm2.*"},
    {Part::fc1_weight, "blocks.{}.mlp.fc1.*"},
    {Part::fc2_weight, "blocks.{}.mlp.fc2.*"},
    {Part::norm_gamma, "norms_block.3.*"},
};
static_assert(is_complete(kRows));

constexpr Ignored kIgnored[] = {
    {"norms_block.*", "of an earlier block's tokens, which only training reads"},
};

ParsedModel read(const SourceFiles& files) {
  for (const auto& [key, value] : files.options.overrides)
    fail(kWhere.with(ErrorKind::argument), override_name(key), " is no argument of V-JEPA 2.1's encoder");
  const TensorEntry* const patch = files.find("patch_embed.proj.weight");
  const TensorEntry* const fc1 = files.find("blocks.0.mlp.fc1.weight");
  VIT_CHECK(patch != nullptr && patch->shape.size() == 5 && fc1 != nullptr && fc1->shape.size() == 2, kWhere,
            files.weights_name,
            ": patch_embed.proj.weight (C, 3, frames, P, P) and blocks.0.mlp.fc1.weight (h, C) are expected");
  ParsedModel out{.config = {}, .layout = {kRows}, .ignored = {kIgnored}};
  ModelConfig& c = out.config;
  c.family = "vjepa2_1";
  c.library = "Meta";
  c.embed_dim = patch->shape[0];
  c.patch.frames = patch->shape[2];
  c.patch.size = patch->shape[4];
  c.patch.own_clips = true;
  c.patch.drops_remainder = true;
  c.encoder.depth = files.count_blocks("blocks.");
  c.encoder.norm.eps = 1e-6f;
  c.mlp.dim = fc1->shape[0];
  c.attention.num_heads = std::max<std::size_t>(c.embed_dim / 64, 1);  // of all published sizes
  c.image.height = c.image.width = 384;
  c.image.stack = StackRule::together;
  c.tokens.class_token = false;
  c.head.pooling = Pooling::none;
  PositionConfig& position = c.position;
  position.rope = RopeKind::volume_pairs;
  position.pairing = RopePairing::neighbors;
  position.theta = 10000.0;
  position.coordinates = CoordinateRule::corners;
  position.reference_grid.rows = position.reference_grid.columns =
      256 / std::max<std::size_t>(c.patch.size, 1);
  out.notes.push_back("heads of " + std::to_string(c.head_width()) +
                      " channels, as in all published sizes; the tensors do not say");
  return out;
}

std::optional<Match> match(const SourceFiles& files) {
  if (!files.has_weights || files.tensors.entries().empty()) return std::nullopt;
  return match_anchor(files, kAnchor, kPrefixes);
}

}  // namespace
}  // namespace meta_vjepa

constinit const Family kMetaVjepaFamily{.name = "meta_vjepa",
                                        .anchor = meta_vjepa::kAnchor,
                                        .library = "",
                                        .match = meta_vjepa::match,
                                        .read = meta_vjepa::read};

}  // namespace vit::internal
