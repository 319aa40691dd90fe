// Meta's own DINOv2 and DINOv3 files. DINOv2 resamples its table with a scale shifted by a tenth; DINOv3
// stores its periods rounded to bfloat16 and masks the bias of k. Source: facebookresearch/dinov2 and dinov3,
// models/vision_transformer.py, layers/attention.py, layers/rope_position_encoding.py.
#include <optional>
#include <string>
#include <utility>

#include "vit/base/check.h"
#include "vit/weights/families/published.h"

namespace vit::internal {
namespace meta_dino {
namespace {

constexpr Where kWhere{"meta_dino", ErrorKind::mismatch};

/// Both releases call these alike.
constexpr Row kShared[] = {
    {Part::patch_weight, "patch_embed.proj.weight", Form::convolution},
    {Part::patch_bias, "patch_embed.proj.bias"},
    {Part::class_token, "cls_token"},
    {Part::norm1_gamma, "blocks.{}.norm1.*"},
    {Part::qkv_weight, "blocks.{}.attn.qkv.*"},
    {Part::proj_weight, "blocks.{}.attn.proj.*"},
    {Part::scale1, "blocks.{}.ls1.gamma"},
    {Part::norm2_gamma, "blocks.{}.norm2.*"},
    {Part::fc1_weight, "blocks.{}.mlp.fc1.*"},
    {Part::fc2_weight, "blocks.{}.mlp.fc2.*"},
    {Part::scale2, "blocks.{}.ls2.gamma"},
    {Part::norm_gamma, "norm.*"},
    {Part::pooled_norm_gamma, "fc_norm.*"},
    {Part::head_weight, "head.*"},
};
static_assert(is_complete(kShared));

// ------------------------------------------------------------------------- the classifiers of both hubs

/// hub/classifiers.py puts backbone and classifier next to each other.
constexpr std::string_view kBackbone = "backbone.";
constexpr Row kHubHead[] = {at(Place::outside, {Part::head_weight, "linear_head.*"})};
static_assert(is_sound(kHubHead));

/// What is in front of the names of both.
std::string front_of(const Match& match) {
  return match.prefix.substr(0, match.prefix.size() - kBackbone.size());
}

/// Whether there is a classifier that reads class token and mean of the patches; those that read the class
/// tokens of four blocks as well, or something else, are left out.
bool has_hub_head(const SourceFiles& files, const Match& match) {
  if (!match.prefix.ends_with(kBackbone)) return false;
  const TensorEntry* const head = files.tensors.find(front_of(match) + "linear_head.weight");
  const TensorEntry* const norm = files.tensors.find(match.prefix + "norm.weight");
  return head != nullptr && norm != nullptr && head->shape.size() == 2 &&
         head->shape[1] == 2 * norm->num_elements();
}

std::optional<Match> match_meta(const SourceFiles& files) {
  std::optional<Match> found = match_anchor(files, "patch_embed.proj.weight", kTimmPrefixes);
  if (found && has_hub_head(files, *found)) found->outside = front_of(*found);
  return found;
}

void add_hub_head(const SourceFiles& files, Layout& layout) {
  if (has_hub_head(files, files.match)) layout.add(kHubHead);
}

void set_hub_head(const SourceFiles& files, ModelConfig& config) {
  if (config.head.num_classes != 0 && has_hub_head(files, files.match))
    config.head.input = HeadInput::class_and_patch_mean;
}

/// The hidden width of a gated MLP, which no configuration says: by the first block, so that a tensor of
/// another width in a later one is the one that does not fit.
void set_gated_width(const SourceFiles& files, TimmArgs& args) {
  const TensorEntry* const out = files.find("blocks.0.mlp.w3.weight");
  if (out != nullptr && out->shape.size() == 2) args.mlp_dim = out->shape[1];
}

// ------------------------------------------------------------------------------------------------- DINOv3

constexpr Row kDinov3[] = {{Part::register_tokens, "storage_tokens"},
                           {Part::rope_periods, "rope_embed.periods"}};
/// timm gives k no bias, whatever the file has. Meta's code does so by a mask only, which its default
/// configuration leaves out.
constexpr Row kNoKeyBias[] = {joined(Part::qkv_bias, {0, 3}, "blocks.{}.attn.qkv.bias", {0, 3}),
                              joined(Part::qkv_bias, {1, 3}, ""),
                              joined(Part::qkv_bias, {2, 3}, "blocks.{}.attn.qkv.bias", {2, 3})};
/// Files as published multiply the bias by a mask of zeros and ones.
constexpr Row kMaskedBias[] = {
    masked(Part::qkv_bias, "blocks.{}.attn.qkv.bias", "blocks.{}.attn.qkv.bias_mask")};
constexpr Row kDinov3Gated[] = {{Part::gate_weight, "blocks.{}.mlp.w1.*"},
                                {Part::fc1_weight, "blocks.{}.mlp.w2.*"},
                                {Part::fc2_weight, "blocks.{}.mlp.w3.*"}};
/// What dino.txt puts on top, in a file of its own. Source: dinov3/eval/text/vision_tower.py.
constexpr Row kJointHead[] = {
    of_joint_head({Part::norm1_gamma, "visual_model.head.blocks.{}.norm1.*"}),
    of_joint_head({Part::qkv_weight, "visual_model.head.blocks.{}.attn.qkv.weight"}),
    of_joint_head({Part::proj_weight, "visual_model.head.blocks.{}.attn.proj.*"}),
    of_joint_head({Part::scale1, "visual_model.head.blocks.{}.ls1.gamma"}),
    of_joint_head({Part::norm2_gamma, "visual_model.head.blocks.{}.norm2.*"}),
    of_joint_head({Part::gate_weight, "visual_model.head.blocks.{}.mlp.w1.*"}),
    of_joint_head({Part::fc1_weight, "visual_model.head.blocks.{}.mlp.w2.*"}),
    of_joint_head({Part::fc2_weight, "visual_model.head.blocks.{}.mlp.w3.*"}),
    of_joint_head({Part::scale2, "visual_model.head.blocks.{}.ls2.gamma"}),
    of_joint_head({Part::norm_gamma, "visual_model.head.ln_final.*"}),
};
static_assert(is_sound(kDinov3) && is_sound(kNoKeyBias) && is_sound(kMaskedBias) && is_sound(kDinov3Gated) &&
              is_sound(kJointHead));

constexpr Ignored kDinov3Ignored[] = {{"rope_embed.periods", "recomputed in full precision, as asked"},
                                      {"local_cls_norm.*", "used in training only"},
                                      {"text_model.*", "text tower"},  // of dino.txt
                                      {"logit_scale", "compares images with texts"}};
constexpr float kRmsEps = 1e-5f;  // of Meta's "rmsnorm"; timm's has 1e-6
constexpr std::string_view kDinov3Keys[] = {"rules", "rope_periods"};
constexpr std::string_view kPeriodChoices[] = {"stored", "recomputed"};

Layout dinov3_layout(const SourceFiles& files, const TimmArgs& args) {
  Layout layout = {kShared, kDinov3};
  if (files.find("blocks.0.attn.qkv.bias_mask") != nullptr) {  // all blocks have one or none has
    layout.add(kMaskedBias);
  } else if (follows_timm(files)) {
    layout.add(kNoKeyBias);
  }
  if (args.swiglu) layout.add(kDinov3Gated);
  layout.add(kJointHead);
  add_hub_head(files, layout);
  return layout;
}

void add_joint_head(const SourceFiles& files, ModelConfig& config) {
  const std::size_t depth = files.count_blocks("visual_model.head.blocks.", Place::outside);
  if (depth == 0) return;
  const TensorEntry* const gate = files.find("visual_model.head.blocks.0.mlp.w1.weight", Place::outside);
  VIT_CHECK(gate != nullptr && !gate->shape.empty(), kWhere, files.weights_name,
            ": the joint head of dino.txt has no tensor visual_model.head.blocks.0.mlp.w1.weight");
  config.head.joint = {.depth = depth, .mlp_dim = gate->shape.front()};
  config.head.projection = {.dim = 2 * config.embed_dim};
}

bool uses_stored_periods(const SourceFiles& files) {
  const bool chosen = files.options.overrides.contains("rope_periods");
  const bool stored =
      (chosen || !follows_timm(files)) && own_option(files, "rope_periods", kPeriodChoices) == "stored";
  VIT_CHECK(!stored || files.find("rope_embed.periods") != nullptr, kWhere, files.weights_name,
            ": no tensor rope_embed.periods; overrides[\"rope_periods\"] = \"recomputed\" computes them");
  return stored;
}

ParsedModel read_dinov3_as(const SourceFiles& files, const Architecture& architecture) {
  TimmArgs stored = stored_args(files, architecture, dinov3_layout(files, architecture.args));
  if (!follows_timm(files)) stored.global_pool = TimmPool::token;
  set_gated_width(files, stored);
  Published model = read_published(files, architecture, stored, "Meta", kDinov3Keys);
  if (model.args.rms_norm && !follows_timm(files)) model.config.encoder.norm.eps = kRmsEps;
  const bool stored_periods = uses_stored_periods(files);
  if (stored_periods) model.config.position.frequencies = AxisFrequencies::stored;
  add_joint_head(files, model.config);
  set_hub_head(files, model.config);
  std::vector<std::string> notes = {
      stored_periods ? "rotation by the stored periods, as Meta's code does; overrides[\"rope_periods\"] = "
                       "\"recomputed\" gives timm's and transformers' numbers"
                     : "rotation by periods recomputed in full precision, as timm and transformers do"};
  Layout layout = dinov3_layout(files, model.args);
  return finish(files, architecture, std::move(model), std::move(layout), {kDinov3Ignored}, std::move(notes));
}

std::optional<Match> match_dinov3(const SourceFiles& files) {
  const auto found = match_meta(files);
  if (!found || !files.has_weights) return std::nullopt;
  for (const char* own : {"storage_tokens", "rope_embed.periods"}) {
    if (files.tensors.find(found->prefix + own) != nullptr) return found;
  }
  return std::nullopt;
}

// ------------------------------------------------------------------------------------------------- DINOv2

constexpr Row kDinov2[] = {{Part::register_tokens, "register_tokens"}, {Part::position_table, "pos_embed"}};
constexpr Row kDinov2Gated[] = {cut(Part::gate_weight, "blocks.{}.mlp.w12.*", {0, 2}),
                                cut(Part::fc1_weight, "blocks.{}.mlp.w12.*", {1, 2}),
                                {Part::fc2_weight, "blocks.{}.mlp.w3.*"}};
static_assert(is_sound(kDinov2) && is_sound(kDinov2Gated));

constexpr std::string_view kDinov2Keys[] = {"rules"};

Layout dinov2_layout(const SourceFiles& files, const TimmArgs& args) {
  Layout layout = {kShared, kDinov2};
  if (args.swiglu) layout.add(kDinov2Gated);
  add_hub_head(files, layout);
  return layout;
}

ParsedModel read_dinov2_as(const SourceFiles& files, const Architecture& architecture) {
  TimmArgs stored = stored_args(files, architecture, dinov2_layout(files, architecture.args));
  stored.no_embed_class = false;
  const TensorEntry* const table = files.find("pos_embed");
  if (table != nullptr && table->shape.size() == 3) {
    // one row for the class token, none for registers
    if (table->shape[1] > 1) set_square_image(table->shape[1] - 1, stored);
    set_gated_width(files, stored);
  }
  Published model = read_published(files, architecture, stored, "Meta", kDinov2Keys);
  set_hub_head(files, model.config);
  PositionConfig& position = model.config.position;
  position.added = AddedTable::prefix_and_patches;
  position.added_prefix_rows = 1;
  if (!follows_timm(files)) {
    position.resampling = model.config.tokens.num_registers != 0 ? TableResampling::bicubic_antialias
                                                                 : TableResampling::bicubic_plus_tenth;
    position.reuse = TableReuse::equal_count_and_square;
  }
  const bool tenth = position.resampling == TableResampling::bicubic_plus_tenth;
  std::vector<std::string> notes = {
      std::string("other sizes: the learned table is resampled ") +
      (tenth ? "as Meta does (bicubic, scale shifted by 0.1); overrides[\"rules\"] = \"timm\" chooses timm's "
               "way"
             : "bicubic with antialias")};
  Layout layout = dinov2_layout(files, model.args);
  return finish(files, architecture, std::move(model), std::move(layout), {}, std::move(notes));
}

std::optional<Match> match_dinov2(const SourceFiles& files) {
  const auto found = match_meta(files);
  if (!found || !files.has_weights) return std::nullopt;
  if (is_named_by(files, "Meta", "dinov2")) return found;
  const auto has = [&](const char* name) { return files.tensors.find(found->prefix + name) != nullptr; };
  if (!has("blocks.0.ls1.gamma") || !has("mask_token") || !has("pos_embed")) return std::nullopt;
  // timm's own names with timm's config.json: mask_token is merely left over
  const bool is_meta = !is_saved_by_timm(files) || has("register_tokens") || has("blocks.0.mlp.w12.weight");
  return is_meta ? found : std::nullopt;
}

}  // namespace
}  // namespace meta_dino

constinit const Family kMetaDinov3Family{.name = "meta_dinov3",
                                         .anchor = "patch_embed.proj.weight",
                                         .prefixes = kTimmPrefixes,
                                         .library = "Meta",
                                         .head = "head",
                                         .match = meta_dino::match_dinov3,
                                         .read_as = meta_dino::read_dinov3_as};
constinit const Family kMetaDinov2Family{.name = "meta_dinov2",
                                         .anchor = "patch_embed.proj.weight",
                                         .prefixes = kTimmPrefixes,
                                         .library = "Meta",
                                         .head = "head",
                                         .match = meta_dino::match_dinov2,
                                         .read_as = meta_dino::read_dinov2_as};

}  // namespace vit::internal
