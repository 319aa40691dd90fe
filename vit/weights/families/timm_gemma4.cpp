// Gemma 4's vision tower in timm's names: gemma4_vit_*_enc, whose cells are averaged as in transformers, and
// the same as a classifier on the mean of its tokens. Patches are read channel by channel, unlike in
// transformers. Source: timm, models/gemma4_vit.py.
#include <algorithm>
#include <cmath>

#include "vit/base/check.h"
#include "vit/weights/families/bounds.h"
#include "vit/weights/families/published.h"
#include "vit/weights/families/tower.h"

namespace vit::internal {
namespace timm_gemma4 {
namespace {

constexpr Where kWhere{"timm_gemma4", ErrorKind::mismatch};
constexpr std::string_view kAnchor = "patch_embed.input_proj.weight";

constexpr Row kRows[] = {
    {Part::patch_weight, kAnchor},
    {Part::position_table, "patch_embed.position_embedding_table"},
    {Part::norm1_gamma, "blocks.{}.norm1.*"},
    halved_by_axis(joined(Part::qkv_weight, {0, 3}, "blocks.{}.attn.q_proj.linear.*")),
    halved_by_axis(joined(Part::qkv_weight, {1, 3}, "blocks.{}.attn.k_proj.linear.*")),
    joined(Part::qkv_weight, {2, 3}, "blocks.{}.attn.v_proj.linear.*"),
    halved_by_axis({Part::q_norm_gamma, "blocks.{}.attn.q_norm.*"}),
    halved_by_axis({Part::k_norm_gamma, "blocks.{}.attn.k_norm.*"}),
    {Part::proj_weight, "blocks.{}.attn.o_proj.linear.*"},
    {Part::branch_norm1_gamma, "blocks.{}.norm2.*"},
    {Part::norm2_gamma, "blocks.{}.norm3.*"},
    {Part::gate_weight, "blocks.{}.mlp.gate_proj.linear.*"},
    {Part::fc1_weight, "blocks.{}.mlp.up_proj.linear.*"},
    {Part::fc2_weight, "blocks.{}.mlp.down_proj.linear.*"},
    {Part::branch_norm2_gamma, "blocks.{}.norm4.*"},
    {Part::merger_shift, "std_bias"},
    {Part::merger_scale, "std_scale"},
    {.part = Part::pooled_norm_gamma, .constant = 1.0f},
    at(Place::outside, {Part::head_weight, "head.*"}),
    VIT_BOUNDS(Part::q_clip, "blocks.{}.attn.q_proj"),
    VIT_BOUNDS(Part::k_clip, "blocks.{}.attn.k_proj"),
    VIT_BOUNDS(Part::v_clip, "blocks.{}.attn.v_proj"),
    VIT_BOUNDS(Part::proj_clip, "blocks.{}.attn.o_proj"),
    VIT_BOUNDS(Part::gate_clip, "blocks.{}.mlp.gate_proj"),
    VIT_BOUNDS(Part::fc1_clip, "blocks.{}.mlp.up_proj"),
    VIT_BOUNDS(Part::fc2_clip, "blocks.{}.mlp.down_proj"),
};
static_assert(is_complete(kRows));
constexpr Ignored kUnused[] = {{"std_bias", "of visual tokens, which a classifier does not read"},
                               {"std_scale", "of visual tokens, which a classifier does not read"}};

ParsedModel read(const SourceFiles& files) {
  const std::string name = architecture_name(files);
  const bool large = name.find("_570m") != name.npos;
  Json args = parse_json("{}", files.config_name());
  if (files.config) args = files.config->find("model_args").value_or(args);
  for (const auto& [key, value] : files.options.overrides)
    fail(kWhere.with(ErrorKind::argument), override_name(key), " is no argument of ", name, " here");
  ModelConfig c = gemma4_config(
      args, large ? TowerDefaults{1152, 27, 16, 4304, 16} : TowerDefaults{768, 16, 12, 3072, 16});
  c.architecture = name;
  c.library = "timm";
  c.attention.head_dim = find_tower_size(args, {"head_dim"}, large ? 72 : 64);
  c.encoder.clipped = args.find_bool("use_clipped_linears").value_or(!large);
  MergerConfig& merger = c.merger.emplace();
  merger.cells = {.size = find_tower_size(args, {"pooling_kernel_size"}, 3),
                  .rule = CellRule::mean,
                  .scale = static_cast<float>(std::sqrt(static_cast<double>(c.embed_dim)))};
  c.image.height = c.image.width = find_tower_size(args, {"img_size"}, 768);
  fit_to_cells(args, c);
  if (args.find_bool("standardize").value_or(large)) merger.add(MergerPlace::standardize, MergerAffine{});
  merger.tokens_after = merger.steps.size();
  ParsedModel out{.config = std::move(c), .layout = {kRows}};
  if (!out.config.encoder.clipped) out.ignored.push_back(kUnusedBounds);
  if (name.find("_enc") != name.npos) return out;
  out.config.merger.reset();
  out.config.head.pooling = Pooling::patch_mean;
  out.config.head.pooled_norm = true;
  out.config.head.num_classes = rows_of_tensor(files, "head.weight", Place::outside, 0);
  out.ignored.push_back(kUnused);
  return out;
}

std::optional<Match> match(const SourceFiles& files) {
  if (architecture_name(files).find("gemma4_vit_") == std::string::npos) return std::nullopt;
  static constexpr std::string_view kPrefixes[] = {"", "encoder."};
  std::optional<Match> found = match_anchor(files, kAnchor, kPrefixes);
  VIT_CHECK(found, kWhere, files.weights_name, ": no tensor ", kAnchor,
            ", with or without encoder. in front");
  found->outside = "";
  return found;
}

}  // namespace
}  // namespace timm_gemma4

constinit const Family kTimmGemma4Family{.name = "timm_gemma4",
                                         .anchor = timm_gemma4::kAnchor,
                                         .library = "",
                                         .match = timm_gemma4::match,
                                         .read = timm_gemma4::read};

}  // namespace vit::internal
