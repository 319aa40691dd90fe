// Hugging Face's EoMT and EoMT-DINOv3: a plain encoder, before whose last blocks learned queries join the
// tokens, and a head that makes masks of both. Source: transformers, models/eomt and eomt_dinov3.
#include <array>
#include <numbers>
#include <utility>

#include "vit/base/check.h"
#include "vit/io/in_quotes.h"
#include "vit/weights/families/family.h"
#include "vit/weights/families/hf_backbone.h"
#include "vit/weights/families/hf_config.h"

namespace vit::internal {
namespace hf_eomt {
namespace {

constexpr Where kWhere{"hf_eomt", ErrorKind::format};

constexpr Row kRows[] = {
    {Part::class_token, "embeddings.cls_token"},
    {Part::register_tokens, "embeddings.register_tokens"},
    {Part::late_tokens, "query.weight"},
    {Part::norm1_gamma, "layers.{}.norm1.*"},
    joined(Part::qkv_weight, {0, 3}, "layers.{}.attention.q_proj.*"),
    joined(Part::qkv_weight, {1, 3}, "layers.{}.attention.k_proj.*"),
    joined(Part::qkv_weight, {2, 3}, "layers.{}.attention.v_proj.*"),
    {Part::scale1, "layers.{}.layer_scale1.lambda1"},
    {Part::norm2_gamma, "layers.{}.norm2.*"},
    {Part::scale2, "layers.{}.layer_scale2.lambda1"},
    {Part::norm_gamma, "layernorm.*"},
};
constexpr Row kDinov2[] = {
    {Part::patch_weight, "embeddings.patch_embeddings.projection.weight", Form::convolution},
    {Part::patch_bias, "embeddings.patch_embeddings.projection.bias"},
    {Part::position_table, "embeddings.position_embeddings.weight"},
    {Part::proj_weight, "layers.{}.attention.out_proj.*"},
    {Part::fc1_weight, "layers.{}.mlp.fc1.*"},
    {Part::fc2_weight, "layers.{}.mlp.fc2.*"},
};
constexpr Row kDinov2Gated[] = {
    cut(Part::gate_weight, "layers.{}.mlp.weights_in.*", {0, 2}),
    cut(Part::fc1_weight, "layers.{}.mlp.weights_in.*", {1, 2}),
    {Part::fc2_weight, "layers.{}.mlp.weights_out.*"},
};
constexpr Row kDinov3[] = {
    {Part::patch_weight, "embeddings.patch_embeddings.weight", Form::convolution},
    {Part::patch_bias, "embeddings.patch_embeddings.bias"},
    {Part::proj_weight, "layers.{}.attention.o_proj.*"},
};
/// Of DINOv3, and of a gated DINOv2 as release 5 writes it.
constexpr Row kProjections[] = {
    {Part::gate_weight, "layers.{}.mlp.gate_proj.*"},
    {Part::fc1_weight, "layers.{}.mlp.up_proj.*"},
    {Part::fc2_weight, "layers.{}.mlp.down_proj.*"},
};
static_assert(is_sound(kRows) && is_sound(kDinov2) && is_sound(kDinov2Gated) && is_sound(kDinov3) &&
              is_sound(kProjections));

constexpr HeadRow kHead[] = {
    {"class.*", "class_predictor.*"},
    {"mask.{}.*", "mask_head.fc{}.*"},
    {"double.{}.up.*", "upscale_block.block.{}.conv1.*"},
    {"double.{}.depthwise.*", "upscale_block.block.{}.conv2.*"},
    {"double.{}.norm.*", "upscale_block.block.{}.layernorm2d.*"},
};

constexpr Ignored kIgnored[] = {
    {"criterion.*", "used in training only"},
    {"embeddings.mask_token", "used in training only"},
    {"attn_mask_probs", "says before which blocks masks are made"},
};

bool is_dinov3(const SourceFiles& files) {
  return hf_model_type(files) == "eomt_dinov3";
}

/// The buffer of the file says how often a query was masked when training ended: never, or always.
std::vector<std::size_t> masked_blocks(const SourceFiles& files, std::size_t first, std::size_t depth) {
  std::vector<std::size_t> blocks;
  if (!files.has_weights) return blocks;
  const TensorEntry* const entry = files.find("attn_mask_probs", Place::outside);
  VIT_CHECK(entry == nullptr || entry->num_elements() == depth - first, kWhere, files.weights_name,
            ": attn_mask_probs holds ", entry == nullptr ? 0 : entry->num_elements(),
            " numbers for the last ", depth - first, " blocks");
  const Tensor<float> shares = entry != nullptr ? to_float(*entry) : Tensor<float>();
  for (std::size_t i = 0; i < depth - first; ++i) {
    const float share = shares.empty() ? 1.0f : shares.data()[i];  // the library's own value
    VIT_CHECK(
        share == 0.0f || share == 1.0f, kWhere.with(ErrorKind::unsupported), files.weights_name,
        ": attn_mask_probs[", i, "] is ", share,
        ": the queries of a checkpoint whose training is not over are masked at random; 0 (never) and 1 "
        "(always) are implemented");
    if (share == 1.0f) blocks.push_back(first + i);
  }
  return blocks;
}

ModelConfig read_backbone_config(const SourceFiles& files) {
  const Json& json = *files.config;
  const bool rotary = is_dinov3(files);
  ModelConfig c = read_hf_sizes(files, json,
                                {.hidden_size = 1024,
                                 .num_layers = 24,
                                 .num_heads = 16,
                                 .intermediate_size = 4096,
                                 .image_size = 640,
                                 .norm_eps = 1e-6,
                                 .activation = Activation::gelu});
  c.family = rotary ? "eomt_dinov3" : "eomt";
  c.image.fixed_size = true;  // its maps are of one size
  c.patch.drops_remainder = false;
  c.tokens.num_registers = json.find_size("num_register_tokens").value_or(4);
  c.encoder.layer_scale = true;
  c.head.pooling = Pooling::none;
  const std::size_t queries = json.find_size("num_queries").value_or(200);
  const std::size_t late = json.find_size("num_blocks").value_or(4);
  VIT_CHECK(queries >= 1 && late >= 1 && late <= c.encoder.depth, kWhere, json.where(), ": ", queries,
            " queries before the last ", late, " of ", c.encoder.depth, " blocks");
  c.tokens.late = {.count = queries, .block = c.encoder.depth - late};
  if (!rotary) {
    set_hf_mlp(json, c);
    add_hf_table(c, 0);
    return c;
  }
  c.attention.proj_bias = json.find_bool("proj_bias").value_or(true);
  c.mlp.bias = json.find_bool("mlp_bias").value_or(true);
  if (json.find_bool("use_gated_mlp").value_or(false)) c.mlp.kind = MlpKind::gated;
  set_dinov3_position(json, c);
  return c;
}

DenseConfig read_head(const Json& config, const ModelConfig& backbone) {
  const std::size_t classes = count_hf_labels(config);
  DenseBranch branch{
      .name = "",
      .taps = {backbone.encoder.depth - 1},
      .tap_norm = true,
      .tap_norm_eps = backbone.encoder.norm.eps,
      .layers = MaskConfig{.queries = backbone.num_late_tokens(),
                           .doublings = config.find_size("num_upscale_blocks").value_or(2),
                           // not that of a gated backbone, which is always SiLU
                           .activation = read_hf_activation(config, Activation::gelu)},
      .outputs = {
          {.meaning = Output::masks, .channels = backbone.num_late_tokens(), .finish = MapFinish::none},
          {.meaning = Output::mask_classes, .channels = classes + 1, .finish = MapFinish::none}}};
  return {.family = "eomt",
          .branches = {std::move(branch)},
          .to_image = ImageResize::bilinear,
          .labels = read_hf_labels(config, classes)};
}

ParsedModel read(const SourceFiles& files) {
  const Json& json = *files.config;
  ParsedModel out{.config = read_backbone_config(files), .layout = {kRows}, .ignored = {kIgnored}};
  if (is_dinov3(files)) {
    out.layout.add(kDinov3);
    out.layout.add(kProjections);
    constexpr const char* kBiases[] = {"query_bias", "key_bias", "value_bias"};
    std::array<bool, 3> has{};
    for (std::size_t i = 0; i < has.size(); ++i) {
      has[i] = json.find_bool(kBiases[i]).value_or(i != 1);
      if (!has[i]) out.layout.set_zeros(Part::qkv_bias, i);
    }
    out.config.attention.qkv_bias = has[0] || has[1] || has[2];
  } else {
    out.layout.add(kDinov2);
    const bool gated = out.config.mlp.kind == MlpKind::gated;
    if (gated && files.any_block_has("layers.{}.mlp.gate_proj.weight")) {
      out.layout.add(kProjections);
    } else if (gated) {
      out.layout.add(kDinov2Gated);
    }
  }
  LateTokenConfig& late = *out.config.tokens.late;
  late.masked_blocks = masked_blocks(files, late.block, out.config.encoder.depth);
  const DenseConfig head = read_head(json, out.config);
  out.dense = DenseReading{.config = head, .tables = {{"", "", kLayerNormTap}, {"", "", kHead}}};
  return out;
}

std::optional<Match> match(const SourceFiles& files) {
  const std::string type = hf_model_type(files);
  if (type != "eomt" && type != "eomt_dinov3") return std::nullopt;
  constexpr std::string_view kPrefixes[] = {""};
  const auto found = match_anchor(files, "query.weight", kPrefixes);
  VIT_CHECK(found, kWhere.with(ErrorKind::mismatch), files.weights_name, ": no tensor query.weight");
  return found;
}

}  // namespace
}  // namespace hf_eomt

constinit const Family kHfEomtFamily{.name = "hf_eomt",
                                     .anchor = "upscale_block.block.0.conv1.weight",
                                     .library = "",
                                     .match = hf_eomt::match,
                                     .read = hf_eomt::read,
                                     .is_dense = true};

}  // namespace vit::internal
