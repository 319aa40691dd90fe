// The image tower of BridgeTower inside the whole model: CLIP's by the names of OpenAI's files, whose shared
// norm comes after all tokens of the last block. The layers that join it with the text tower are not read.
// Source: transformers, models/bridgetower.
#include "vit/base/check.h"
#include "vit/weights/families/hf_config.h"
#include "vit/weights/families/tower.h"

namespace vit::internal {
namespace hf_bridgetower {
namespace {

constexpr Where kWhere{"hf_bridgetower", ErrorKind::unsupported};
constexpr std::string_view kAnchor = "embeddings.patch_embedding.weight";
constexpr std::string_view kPrefixes[] = {"vision_model.visual.", "bridgetower.vision_model.visual.",
                                          "visual."};
constexpr std::size_t kHeadWidth = 64;  // whatever num_attention_heads says

constexpr Row kRows[] = {
    {Part::patch_weight, kAnchor, Form::convolution},
    {Part::class_token, "embeddings.class_embedding"},
    {Part::position_table, "embeddings.position_embedding.weight"},
    {Part::norm_pre_gamma, "ln_pre.*"},
    {Part::norm1_gamma, "transformer.resblocks.{}.ln_1.*"},
    {Part::qkv_weight, "transformer.resblocks.{}.attn.in_proj_weight"},
    {Part::qkv_bias, "transformer.resblocks.{}.attn.in_proj_bias"},
    {Part::proj_weight, "transformer.resblocks.{}.attn.out_proj.*"},
    {Part::norm2_gamma, "transformer.resblocks.{}.ln_2.*"},
    {Part::fc1_weight, "transformer.resblocks.{}.mlp.c_fc.*"},
    {Part::fc2_weight, "transformer.resblocks.{}.mlp.c_proj.*"},
    {Part::norm_gamma, "ln_post.*"},
};
static_assert(is_complete(kRows));

constexpr Ignored kIgnored[] = {{"embeddings.position_ids", "row numbers of the position table"}};

ParsedModel read(const SourceFiles& files) {
  const Json json = tower_config(*files.config);
  ParsedModel out{.config = read_hf_sizes(files, json, {.image_size = 288, .norm_eps = 1e-5}),
                  .layout = {kRows},
                  .ignored = {kIgnored, kWholeModelIgnored}};
  ModelConfig& c = out.config;
  c.family = "bridgetower";
  VIT_CHECK(json.find_bool("share_layernorm").value_or(true), kWhere, json.where(),
            ".share_layernorm must be true: norms of each block are not implemented");
  VIT_CHECK(c.embed_dim % kHeadWidth == 0, kWhere, json.where(), ".hidden_size ", c.embed_dim,
            " is no multiple of the ", kHeadWidth, " channels of a head");
  c.attention.num_heads = c.embed_dim / kHeadWidth;
  c.mlp.dim = 4 * c.embed_dim;
  c.mlp.activation = Activation::quick_gelu;
  c.patch.bias = false;
  c.encoder.norm_pre = true;
  if (json.find_bool("remove_last_layer").value_or(false) && c.encoder.depth > 1) --c.encoder.depth;
  c.head.pooling = Pooling::none;
  add_hf_table(c, 1);
  add_whole_model_notes(files, out);
  return out;
}

std::optional<Match> match(const SourceFiles& files) {
  if (!has_model_type(files, {"bridgetower", "bridgetower_vision_model"})) return std::nullopt;
  return match_tower(files, kAnchor, kPrefixes);
}

}  // namespace
}  // namespace hf_bridgetower

constinit const Family kHfBridgeTowerFamily{.name = "hf_bridgetower",
                                            .anchor = hf_bridgetower::kAnchor,
                                            .prefixes = hf_bridgetower::kPrefixes,
                                            .library = "",
                                            .match = hf_bridgetower::match,
                                            .read = hf_bridgetower::read};

}  // namespace vit::internal
