// AIMv2, by itself or next to its text tower, and Ovis 2's tower, which is one, by itself or in the whole
// model. Ovis 2's visual tokens are means of the rows of a table, weighted by probabilities. Source:
// transformers, models/aimv2 and ovis2.
#include "vit/base/check.h"
#include "vit/weights/families/hf_config.h"
#include "vit/weights/families/tower.h"

namespace vit::internal {
namespace hf_aimv2 {
namespace {

constexpr Where kWhere{"hf_aimv2", ErrorKind::unsupported};

constexpr Row kRows[] = {
    {Part::patch_weight, "embeddings.patch_embed.weight", Form::convolution},
    {Part::patch_bias, "embeddings.patch_embed.bias"},
    {Part::embed_norm_gamma, "embeddings.rms_norm.*"},
    {Part::position_table, "embeddings.position_embedding.weight"},
    {Part::norm1_gamma, "encoder.layers.{}.rms_norm1.*"},
    joined(Part::qkv_weight, {0, 3}, "encoder.layers.{}.attention.q_proj.*"),
    joined(Part::qkv_weight, {1, 3}, "encoder.layers.{}.attention.k_proj.*"),
    joined(Part::qkv_weight, {2, 3}, "encoder.layers.{}.attention.v_proj.*"),
    {Part::proj_weight, "encoder.layers.{}.attention.out_proj.*"},
    {Part::norm2_gamma, "encoder.layers.{}.rms_norm2.*"},
    {Part::gate_weight, "encoder.layers.{}.ffn.gate_proj.*"},
    {Part::fc1_weight, "encoder.layers.{}.ffn.up_proj.*"},
    {Part::fc2_weight, "encoder.layers.{}.ffn.down_proj.*"},
    {Part::norm_gamma, "rms_norm.*"},
};
constexpr Row kOvis[] = {
    {Part::patch_weight, "embeddings.patch_embedding.weight", Form::convolution},
    {Part::patch_bias, "embeddings.patch_embedding.bias"},
    at(Place::outside, {Part::merger_reduce_weight, "vision_tower.head_linear.weight"}),
    at(Place::outside, {Part::merger_middle_norm_gamma, "vision_tower.head_norm.*"}),
    at(Place::outside, {Part::merger_projection_weight, "visual_embeddings_table.weight", Form::transposed}),
};
static_assert(is_complete(kRows) && is_sound(kOvis));

constexpr std::string_view kPrefixes[] = {"transformer."};

constexpr Ignored kIgnored[] = {{"head.*", "pooling by attention, which is not implemented"},
                                {"head_*", "probabilities, which only the whole model reads"}};

bool is_ovis(const SourceFiles& files) {
  return has_model_type(files, {"ovis2", "ovis2_vision"});
}

void set_merger(const SourceFiles& files, const Json& json, ModelConfig& c) {
  const std::string rule = json.find_string("tokenize_function").value_or("softmax");
  VIT_CHECK(rule == "softmax", kWhere, json.where(), ".tokenize_function ", rule,
            " is not implemented; softmax is");
  MergerConfig& merger = c.merger.emplace();
  merger.cells = {.size = find_tower_size(json, {"hidden_stride"}, 1), .pads = true};
  const std::size_t words = find_tower_size(json, {"vocab_size"}, 16384);
  const std::size_t indicators = find_tower_size(json, {"num_visual_indicator_tokens"}, 5);
  VIT_CHECK(indicators < words, kWhere.with(ErrorKind::format), json.where(),
            ".num_visual_indicator_tokens must be less than vocab_size");
  merger.add(MergerPlace::reduce, MergerLinear{.dim = words - indicators});
  merger.add(MergerPlace::middle_norm, MergerNorm{.norm = {.eps = 1e-5f}});
  merger.add(MergerPlace::middle_softmax, MergerSoftmax{.dim = words});
  const TensorEntry* const table = files.find("visual_embeddings_table.weight", Place::outside);
  merger.add(MergerPlace::projection,
             MergerLinear{.dim = table != nullptr && table->shape.size() == 2 ? table->shape[1]
                                                                              : text_width(files)});
}

ParsedModel read(const SourceFiles& files) {
  const Json json = tower_config(*files.config);
  ModelConfig c = read_hf_sizes(files, json,
                                {.hidden_size = 1024,
                                 .num_layers = 24,
                                 .num_heads = 8,
                                 .intermediate_size = 2816,
                                 .patch_size = 14,
                                 .activation = Activation::silu});
  VIT_CHECK(!json.find_bool("is_native").value_or(false), kWhere, json.where(),
            ".is_native (sines and cosines instead of a table) is not implemented");
  c.family = "aimv2";
  c.encoder.norm = {.kind = NormKind::rms,
                    .eps = static_cast<float>(json.find_double("rms_norm_eps").value_or(1e-5))};
  c.patch.embed_norm = true;
  c.tokens.class_token = false;
  c.image.fixed_size = true;
  c.attention.qkv_bias = c.attention.proj_bias = json.find_bool("qkv_bias").value_or(false);
  c.mlp.kind = MlpKind::gated;
  c.mlp.bias = json.find_bool("mlp_bias").value_or(false);
  c.head.pooling = Pooling::none;
  add_hf_table(c, 0);
  if (is_ovis(files) && is_whole_model(*files.config)) set_merger(files, json, c);
  ParsedModel out{.config = std::move(c), .layout = {kRows}, .ignored = {kIgnored, kWholeModelIgnored}};
  if (is_ovis(files)) out.layout.add(kOvis);
  add_whole_model_notes(files, out);
  return out;
}

std::optional<Match> match(const SourceFiles& files) {
  if (is_ovis(files)) {
    constexpr std::string_view kTowers[] = {"model.vision_tower.transformer.", "vision_tower.transformer.",
                                            "transformer."};
    return match_tower(files, "embeddings.patch_embedding.weight", kTowers);
  }
  if (!has_model_type(files, {"aimv2", "aimv2_vision_model"})) return std::nullopt;
  return match_tower(files, "embeddings.patch_embed.weight");
}

}  // namespace
}  // namespace hf_aimv2

constinit const Family kHfAimv2Family{.name = "hf_aimv2",
                                      .anchor = "embeddings.patch_embed.weight",
                                      .other_anchor = "embeddings.patch_embedding.weight",
                                      .prefixes = hf_aimv2::kPrefixes,
                                      .library = "",
                                      .match = hf_aimv2::match,
                                      .read = hf_aimv2::read};

}  // namespace vit::internal
