// V-JEPA 2's encoder in the files of transformers. A frame is repeated to the two of a patch. What the
// library calls a rotation rotates the two channels of a pair by different angles, of time, row and column.
// Rows and columns are counted for crop_size, so other sizes are refused. Source: transformers,
// models/vjepa2.
#include "vit/base/check.h"
#include "vit/weights/families/hf_config.h"
#include "vit/weights/families/tower.h"

namespace vit::internal {
namespace hf_vjepa2 {
namespace {

constexpr Row kRows[] = {
    {Part::patch_weight, "embeddings.patch_embeddings.proj.weight", Form::frames},
    {Part::clip_weight, "embeddings.patch_embeddings.proj.weight", Form::frames_apart},
    {Part::patch_bias, "embeddings.patch_embeddings.proj.bias"},
    {Part::norm1_gamma, "layer.{}.norm1.*"},
    joined(Part::qkv_weight, {0, 3}, "layer.{}.attention.query.*"),
    joined(Part::qkv_weight, {1, 3}, "layer.{}.attention.key.*"),
    joined(Part::qkv_weight, {2, 3}, "layer.{}.attention.value.*"),
    {Part::proj_weight, "layer.{}.attention.proj.*"},
    {Part::norm2_gamma, "layer.{}.norm2.*"},
    {Part::fc1_weight, "layer.{}.mlp.fc1.*"},
    {Part::fc2_weight, "layer.{}.mlp.fc2.*"},
    {Part::norm_gamma, "layernorm.*"},
};
static_assert(is_complete(kRows));

constexpr Ignored kIgnored[] = {
    {"predictor.*", "used in training only", Place::outside},
    {"pooler.*", "of the classifier of clips", Place::outside},
    {"classifier.*", "of the classifier of clips", Place::outside},
};

ParsedModel read(const SourceFiles& files) {
  const Json& json = *files.config;
  ParsedModel out{.config = read_tower(files, json,
                                       {.embed_dim = 1024,
                                        .depth = 24,
                                        .patch_size = 16,
                                        .norm_eps = json.find_double("layer_norm_eps").value_or(1e-6),
                                        .activation = Activation::gelu}),
                  .layout = {kRows},
                  .ignored = {kIgnored}};
  ModelConfig& c = out.config;
  c.family = "vjepa2";
  c.mlp.dim = static_cast<std::size_t>(static_cast<double>(c.embed_dim) *
                                       json.find_double("mlp_ratio").value_or(4.0));
  c.patch.frames = find_tower_size(json, {"tubelet_size"}, 2);
  c.image.stack = StackRule::together;
  c.image.height = c.image.width = find_tower_size(json, {"crop_size"}, 256);
  c.image.fixed_size = true;
  c.encoder.token_norm = true;
  c.attention.qkv_bias = json.find_bool("qkv_bias").value_or(true);
  c.position.rope = RopeKind::volume;
  c.position.pairing = RopePairing::neighbors;
  c.position.theta = 10000.0;
  out.notes.push_back("an image is a clip of one frame, which is repeated to those of a patch");
  return out;
}

std::optional<Match> match(const SourceFiles& files) {
  if (!has_model_type(files, {"vjepa2"})) return std::nullopt;
  static constexpr std::string_view kPrefixes[] = {"encoder.", "vjepa2.encoder.", ""};
  std::optional<Match> found = match_anchor(files, "embeddings.patch_embeddings.proj.weight", kPrefixes);
  VIT_CHECK(found, (Where{"hf_vjepa2", ErrorKind::mismatch}), files.weights_name,
            ": no tensor encoder.embeddings.patch_embeddings.proj.weight");
  if (found->prefix.starts_with("vjepa2.")) found->outside = "vjepa2.";
  return found;
}

}  // namespace
}  // namespace hf_vjepa2

constinit const Family kHfVjepa2Family{.name = "hf_vjepa2",
                                       .anchor = "embeddings.patch_embeddings.proj.weight",
                                       .library = "",
                                       .match = hf_vjepa2::match,
                                       .read = hf_vjepa2::read};

}  // namespace vit::internal
