// BAAI's EVA-02 and EVA02-CLIP files: timm's model under the names of the original code. Rotation tables
// stored with every block are recomputed. Source: baaivision/EVA, EVA-02/asuka/modeling_finetune.py and
// EVA-CLIP/rei/eva_clip.
#include <utility>

#include "vit/weights/families/published.h"

namespace vit::internal {
namespace baai_eva02 {
namespace {

constexpr Row kRows[] = {
    {Part::patch_weight, "patch_embed.proj.weight", Form::convolution},
    {Part::patch_bias, "patch_embed.proj.bias"},
    {Part::class_token, "cls_token"},
    {Part::position_table, "pos_embed"},
    {Part::norm1_gamma, "blocks.{}.norm1.*"},
    {Part::qkv_weight, "blocks.{}.attn.qkv.weight"},
    joined(Part::qkv_bias, {0, 3}, "blocks.{}.attn.q_bias"),  // k has none
    joined(Part::qkv_bias, {1, 3}, ""),
    joined(Part::qkv_bias, {2, 3}, "blocks.{}.attn.v_bias"),
    {Part::attention_norm_gamma, "blocks.{}.attn.inner_attn_ln.*"},
    {Part::proj_weight, "blocks.{}.attn.proj.*"},
    {Part::norm2_gamma, "blocks.{}.norm2.*"},
    {Part::gate_weight, "blocks.{}.mlp.w1.*"},
    {Part::fc1_weight, "blocks.{}.mlp.w2.*"},
    {Part::mlp_norm_gamma, "blocks.{}.mlp.ffn_ln.*"},
    {Part::fc2_weight, "blocks.{}.mlp.w3.*"},
    {Part::norm_gamma, "norm.*"},
    {Part::pooled_norm_gamma, "fc_norm.*"},
    {Part::head_weight, "head.*"},
};
static_assert(is_complete(kRows));

/// Models that keep three projections (base, large, CLIP).
constexpr Row kSeparate[] = {joined(Part::qkv_weight, {0, 3}, "blocks.{}.attn.q_proj.weight"),
                             joined(Part::qkv_weight, {1, 3}, "blocks.{}.attn.k_proj.weight"),
                             joined(Part::qkv_weight, {2, 3}, "blocks.{}.attn.v_proj.weight")};
/// Models that keep gate and value in one matrix (tiny, small).
constexpr Row kPackedGate[] = {cut(Part::gate_weight, "blocks.{}.mlp.w12.*", {0, 2}),
                               cut(Part::fc1_weight, "blocks.{}.mlp.w12.*", {1, 2})};
/// Files from masked image modelling end with `norm` and have no classifier; pooling by the mean applies it
/// to the mean, as timm does.
constexpr Row kPretraining[] = {{Part::pooled_norm_gamma, "norm.*"}};
static_assert(is_sound(kSeparate) && is_sound(kPackedGate) && is_sound(kPretraining));

constexpr std::string_view kOwnKeys[] = {"rules"};

bool is_pretraining(const SourceFiles& files) {
  return files.find("fc_norm.weight") == nullptr && files.find("norm.weight") != nullptr &&
         files.find("head.weight") == nullptr;
}

Layout layout_of(const SourceFiles& files, const TimmArgs& args) {
  Layout layout = {kRows};
  if (!args.qkv_fused) layout.add(kSeparate);
  if (!args.scale_mlp && args.swiglu_align_to == 0) layout.add(kPackedGate);
  if (is_pretraining(files)) layout.add(kPretraining);
  return layout;
}

ParsedModel read_as(const SourceFiles& files, const Architecture& architecture) {
  const TimmArgs stored = stored_args(files, architecture, layout_of(files, architecture.args));
  Published model = read_published(files, architecture, stored, "BAAI", kOwnKeys);
  std::vector<std::string> notes;
  if (!follows_timm(files)) {
    model.config.position.resampling = TableResampling::bicubic;
    notes.push_back(
        "other sizes: the learned table is resampled as BAAI does (bicubic, no antialias); "
        "overrides[\"rules\"] = \"timm\" chooses timm's way");
  }
  if (model.config.head.pooled_norm && is_pretraining(files))
    notes.push_back("pretraining weights: pooled is norm(mean of patches), as timm uses them");
  Layout layout = layout_of(files, model.args);
  return finish(files, architecture, std::move(model), std::move(layout), {}, std::move(notes));
}

std::optional<Match> match(const SourceFiles& files) {
  const auto found = match_anchor(files, "patch_embed.proj.weight", kTimmPrefixes);
  if (!found || !files.has_weights) return std::nullopt;
  const SourceFiles seen{.tensors = files.tensors, .options = files.options, .match = *found};
  // Meta's models have the same names for their gates
  if (seen.find("blocks.0.ls1.gamma") != nullptr) return std::nullopt;
  for (const char* own :
       {"blocks.{}.mlp.w12.weight", "blocks.{}.mlp.w1.weight", "blocks.{}.attn.inner_attn_ln.weight"}) {
    if (seen.any_block_has(own)) return found;
  }
  return std::nullopt;
}

}  // namespace
}  // namespace baai_eva02

constinit const Family kBaaiFamily{.name = "baai_eva02",
                                   .anchor = "patch_embed.proj.weight",
                                   .prefixes = kTimmPrefixes,
                                   .library = "BAAI",
                                   .head = "head",
                                   .match = baai_eva02::match,
                                   .read_as = baai_eva02::read_as};

}  // namespace vit::internal
