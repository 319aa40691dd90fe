// timm's own files: the names of its VisionTransformer, Eva and NaFlexVit classes, and its rules. OpenCLIP's
// files with a timm tower keep its names under visual.trunk. and the projection outside. Source:
// huggingface/pytorch-image-models, models/vision_transformer.py, models/eva.py, models/beit.py,
// models/vision_transformer_relpos.py and models/naflexvit.py.
#include "vit/weights/families/timm_vit.h"

#include <algorithm>

#include "vit/base/check.h"
#include "vit/io/in_quotes.h"
#include "vit/weights/families/published.h"

namespace vit::internal {
namespace {

constexpr std::string_view kParallelAnchor = "blocks.{}.in_proj.weight";

constexpr Row kRows[] = {
    {Part::patch_weight, "patch_embed.proj.weight", Form::convolution},
    {Part::patch_bias, "patch_embed.proj.bias"},
    {Part::embed_norm_gamma, "patch_embed.norm.*"},
    {Part::class_token, "cls_token"},
    {Part::distillation_token, "dist_token"},
    {Part::register_tokens, "reg_token"},
    {Part::position_table, "pos_embed"},
    {Part::rope_frequencies, "rope.freqs"},
    {Part::norm_pre_gamma, "norm_pre.*"},
    {Part::norm1_gamma, "blocks.{}.norm1.*"},
    {Part::qkv_weight, "blocks.{}.attn.qkv.*"},
    {Part::q_norm_gamma, "blocks.{}.attn.q_norm.*"},
    {Part::k_norm_gamma, "blocks.{}.attn.k_norm.*"},
    joined(Part::lambda, {0, 4}, "blocks.{}.attn.lambda_q1"),
    joined(Part::lambda, {1, 4}, "blocks.{}.attn.lambda_k1"),
    joined(Part::lambda, {2, 4}, "blocks.{}.attn.lambda_q2"),
    joined(Part::lambda, {3, 4}, "blocks.{}.attn.lambda_k2"),
    {Part::sub_norm_gamma, "blocks.{}.attn.sub_norm.weight"},
    {Part::attention_norm_gamma, "blocks.{}.attn.norm.*"},
    {Part::proj_weight, "blocks.{}.attn.proj.*"},
    {Part::scale1, "blocks.{}.ls1.gamma"},
    {Part::norm2_gamma, "blocks.{}.norm2.*"},
    {Part::fc1_weight, "blocks.{}.mlp.fc1.*"},
    {Part::mlp_norm_gamma, "blocks.{}.mlp.norm.*"},
    {Part::fc2_weight, "blocks.{}.mlp.fc2.*"},
    {Part::scale2, "blocks.{}.ls2.gamma"},
    {Part::norm_gamma, "norm.*"},
    {Part::pool_probe, "attn_pool.latent"},
    {Part::pool_q_weight, "attn_pool.q.*"},
    {Part::pool_kv_weight, "attn_pool.kv.*"},
    {Part::pool_proj_weight, "attn_pool.proj.*"},
    {Part::pool_norm_gamma, "attn_pool.norm.*"},
    {Part::pool_fc1_weight, "attn_pool.mlp.fc1.*"},
    {Part::pool_fc2_weight, "attn_pool.mlp.fc2.*"},
    {Part::pooled_norm_gamma, "fc_norm.*"},
    {Part::head_weight, "head.*"},
    {Part::head_distillation_weight, "head_dist.*"},
};
static_assert(is_complete(kRows));

/// Eva's name of the layer scales, and that of DeiT-III's own repository.
constexpr Row kGammas[] = {{Part::scale1, "blocks.{}.gamma_1"}, {Part::scale2, "blocks.{}.gamma_2"}};

constexpr Row kNoSecondScale[] = {{.part = Part::scale2, .constant = 1.0f}};

/// One matrix (2M, C) holds gate, then value.
constexpr Row kPackedGate[] = {cut(Part::gate_weight, "blocks.{}.mlp.fc1.*", {0, 2}),
                               cut(Part::fc1_weight, "blocks.{}.mlp.fc1.*", {1, 2})};
constexpr Row kSplitGate[] = {{Part::gate_weight, "blocks.{}.mlp.fc1_g.*"},
                              {Part::fc1_weight, "blocks.{}.mlp.fc1_x.*"}};

/// ViT-22B's blocks (ParallelScalingBlock). The bias of the first product is one of all its rows, or of the
/// MLP's only.
constexpr Row kParallel[] = {
    {Part::norm1_gamma, "blocks.{}.in_norm.*"},
    {Part::qkv_weight, kParallelAnchor, Form::mlp_and_qkv},
    {Part::qkv_bias, "blocks.{}.in_proj.bias", Form::mlp_and_qkv},
    {Part::fc1_weight, kParallelAnchor, Form::mlp_and_qkv},
    {Part::fc1_bias, "blocks.{}.in_proj.bias", Form::mlp_and_qkv},
    {Part::q_norm_gamma, "blocks.{}.q_norm.*"},
    {Part::k_norm_gamma, "blocks.{}.k_norm.*"},
    {Part::proj_weight, "blocks.{}.attn_out_proj.*"},
    {Part::scale1, "blocks.{}.ls.gamma"},
    {Part::fc2_weight, "blocks.{}.mlp_out_proj.*"},
    {Part::scale2, "blocks.{}.ls.gamma"},
};
/// The same with differential attention, and one layer after both branches.
constexpr Row kDifferentialParallel[] = {
    joined(Part::lambda, {0, 4}, "blocks.{}.lambda_q1"),
    joined(Part::lambda, {1, 4}, "blocks.{}.lambda_k1"),
    joined(Part::lambda, {2, 4}, "blocks.{}.lambda_q2"),
    joined(Part::lambda, {3, 4}, "blocks.{}.lambda_k2"),
    {Part::sub_norm_gamma, "blocks.{}.sub_norm.weight"},
    {Part::proj_weight, "blocks.{}.out_proj.weight", Form::joined_inputs},
    {Part::proj_bias, "blocks.{}.out_proj.bias"},
    {Part::fc2_weight, "blocks.{}.out_proj.weight", Form::joined_inputs},
    {.part = Part::fc2_bias},
};
constexpr Row kParallelMlpBias[] = {{Part::fc1_bias, "blocks.{}.mlp_bias"}};
static_assert(is_sound(kDifferentialParallel) && is_sound(kParallel) && is_sound(kParallelMlpBias));

/// Eva's own attention has no bias of k.
constexpr Row kOwnBias[] = {joined(Part::qkv_bias, {0, 3}, "blocks.{}.attn.q_bias"),
                            joined(Part::qkv_bias, {1, 3}, ""),
                            joined(Part::qkv_bias, {2, 3}, "blocks.{}.attn.v_bias")};
constexpr Row kSeparate[] = {joined(Part::qkv_weight, {0, 3}, "blocks.{}.attn.q_proj.*"),
                             joined(Part::qkv_weight, {1, 3}, "blocks.{}.attn.k_proj.*"),
                             joined(Part::qkv_weight, {2, 3}, "blocks.{}.attn.v_proj.*")};
constexpr Row kSeparateOwnBias[] = {joined(Part::qkv_bias, {0, 3}, "blocks.{}.attn.q_proj.bias"),
                                    joined(Part::qkv_bias, {1, 3}, ""),
                                    joined(Part::qkv_bias, {2, 3}, "blocks.{}.attn.v_proj.bias")};
static_assert(is_sound(kGammas) && is_sound(kPackedGate) && is_sound(kSplitGate) && is_sound(kOwnBias) &&
              is_sound(kSeparate) && is_sound(kSeparateOwnBias));

/// Norms on the outputs of the branches of a block.
constexpr Row kPostNorm[] = {{Part::branch_norm1_gamma, "blocks.{}.norm1.*"},
                             {Part::branch_norm2_gamma, "blocks.{}.norm2.*"}};

/// Relative positions of Beit and of VisionTransformerRelPos.
constexpr Row kRelativeTables[] = {
    {Part::block_relative_table, "blocks.{}.attn.relative_position_bias_table"},
    {Part::relative_table, "rel_pos_bias.relative_position_bias_table"}};
constexpr Row kRelPos[] = {
    {Part::block_relative_table, "blocks.{}.attn.rel_pos.relative_position_bias_table"},
    {Part::block_relative_fc1_weight, "blocks.{}.attn.rel_pos.mlp.fc1.*"},
    {Part::block_relative_fc2_weight, "blocks.{}.attn.rel_pos.mlp.fc2.*"},
    {Part::relative_table, "shared_rel_pos.relative_position_bias_table"},
    {Part::relative_fc1_weight, "shared_rel_pos.mlp.fc1.*"},
    {Part::relative_fc2_weight, "shared_rel_pos.mlp.fc2.*"}};
static_assert(is_sound(kPostNorm) && is_sound(kRelativeTables) && is_sound(kRelPos));

/// NaFlex takes patches that are cut already, pixel by pixel, and keeps its table as a map.
constexpr Row kNaFlexEmbeds[] = {{Part::patch_weight, "embeds.proj.weight", Form::pixels},
                                 {Part::patch_bias, "embeds.proj.bias"},
                                 {Part::class_token, "embeds.cls_token"},
                                 {Part::register_tokens, "embeds.reg_token"},
                                 {Part::position_table, "embeds.pos_embed", Form::grid}};
constexpr Row kFactorized[] = {joined(Part::position_table, {0, 2}, "embeds.pos_embed_x"),
                               joined(Part::position_table, {1, 2}, "embeds.pos_embed_y")};
static_assert(is_sound(kNaFlexEmbeds));

/// OpenCLIP's projection outside of the tower, where timm has a classifier.
constexpr Row kOuterProjection[] = {at(Place::outside, {Part::head_weight, "visual.head.proj.weight"}),
                                    {Part::head_bias, ""}};
static_assert(is_sound(kOuterProjection));

constexpr Ignored kOfDistilled[] = {{"fc_norm.*", "the head of a distilled model leaves it out"}};

const TensorEntry* outer_projection(const SourceFiles& files) {
  return files.match.prefix.ends_with("trunk.") ? files.find("visual.head.proj.weight", Place::outside)
                                                : nullptr;
}

/// Heads of keys in each block, as the rows of their projections show.
void set_stored_key_heads(const SourceFiles& files, ModelConfig& config) {
  std::vector<std::size_t> heads;
  const std::size_t width = config.head_width();
  for (std::size_t block = 0; width != 0 && block < config.encoder.depth; ++block) {
    const TensorEntry* const keys = files.find("blocks." + std::to_string(block) + ".attn.k_proj.weight");
    if (keys == nullptr || keys->shape.size() != 2 || keys->shape[0] < width) return;
    heads.push_back(keys->shape[0] / width);
  }
  const auto is_full = [&](std::size_t count) { return count == config.attention.num_heads; };
  if (std::ranges::all_of(heads, is_full)) heads.clear();
  config.attention.block_key_heads = std::move(heads);
}

ParsedModel read_as(const SourceFiles& files, const Architecture& architecture) {
  const TimmArgs declared = declared_args(files, architecture);
  TimmArgs stored = stored_args(files, architecture, timm_layout(files, architecture, declared));
  const TensorEntry* const projection = outer_projection(files);
  if (projection != nullptr && projection->shape.size() == 2) stored.num_classes = projection->shape[0];
  Published model = read_published(files, architecture, stored, "timm", naflex_overrides(architecture));
  Layout layout = timm_layout(files, architecture, model.args);
  if (projection != nullptr) layout.add(kOuterProjection);
  if (!model.args.qkv_fused) set_stored_key_heads(files, model.config);
  std::vector<std::span<const Ignored>> ignored;
  if (model.args.distilled) ignored.push_back(kOfDistilled);
  return finish(files, architecture, std::move(model), std::move(layout), std::move(ignored));
}

std::optional<Match> match(const SourceFiles& files) {
  const std::string name = architecture_name(files);
  const Architecture* const known = find_known_architecture(name);
  const bool naflex = known != nullptr && known->args.timm_class == TimmClass::naflex;
  const std::string_view anchor = naflex ? kNaFlexAnchor : "patch_embed.proj.weight";
  const auto found = match_anchor(files, anchor, kTimmPrefixes);
  const bool named = files.config && files.config->find("architecture");
  VIT_CHECK(found || !named || known != nullptr, Where("timm_vit", ErrorKind::unsupported),
            files.weights_name, ": config.json is one of timm's, and its architecture ", in_quotes(name),
            " is none of the Vision Transformers that are implemented", near_architectures(name, 3));
  VIT_CHECK(found || !named, Where("timm_vit", ErrorKind::mismatch), files.weights_name, ": no tensor ",
            anchor, ", with or without a known prefix, though config.json is one of timm's");
  return found;
}

}  // namespace

std::span<const std::string_view> naflex_overrides(const Architecture& architecture) {
  static constexpr std::string_view kKeys[] = {kMaxPatchesOverride};
  if (architecture.args.timm_class == TimmClass::naflex) return kKeys;
  return {};
}

Layout timm_layout(const SourceFiles& files, const Architecture& architecture, const TimmArgs& args) {
  Layout layout = {kRows};
  if (args.timm_class == TimmClass::naflex) layout.add(kNaFlexEmbeds);
  if (args.pos_embed_factorized) layout.add(kFactorized);
  if (args.parallel || files.any_block_has(kParallelAnchor)) {
    layout.add(kParallel);
    const bool differential = args.differential || files.any_block_has("blocks.{}.out_proj.weight");
    if (differential) layout.add(kDifferentialParallel);
    if (files.any_block_has(kParallelMlpBias[0].source)) layout.add(kParallelMlpBias);
    if (!differential && !files.any_block_has("blocks.{}.mlp_out_proj.bias"))
      layout.set_zeros(Part::fc2_bias, 0);
  }
  const bool eva = args.timm_class == TimmClass::eva;
  if (args.post_norm_blocks) layout.add(kPostNorm);
  if (args.rel_pos || args.shared_rel_pos) layout.add(eva ? std::span<const Row>(kRelativeTables) : kRelPos);
  if (eva && !args.qkv_fused) layout.add(kSeparate);
  if (eva && args.attn_type == TimmAttention::eva) {
    if (args.qkv_fused) {
      layout.add(kOwnBias);
    } else {
      layout.add(kSeparateOwnBias);
    }
  }
  const bool of_deit = architecture.family == "deit3" && files.any_block_has(kGammas[0].source);
  if (eva || of_deit) layout.add(kGammas);
  if (args.attn_only_layer_scale) layout.add(kNoSecondScale);
  const bool split = args.swiglu_split || (eva && (args.scale_mlp || args.swiglu_align_to != 0));
  if (args.swiglu && split) layout.add(kSplitGate);
  if (args.swiglu && !split) layout.add(kPackedGate);
  return layout;
}

constinit const Family kTimmFamily{.name = "timm",
                                   .anchor = "patch_embed.proj.weight",
                                   .other_anchor = kNaFlexAnchor,
                                   .prefixes = kTimmPrefixes,
                                   .library = "timm",
                                   .head = "head",
                                   .match = match,
                                   .read_as = read_as};

}  // namespace vit::internal
