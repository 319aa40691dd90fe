// Naver's rope-vit files: timm's names, but the learned frequencies are called `freqs` and joined over heads,
// and a learned table is resampled without antialias. Source: naver-ai/rope-vit, models/vit_rope.py,
// deit/models_v2.py.
#include "vit/weights/families/published.h"

namespace vit::internal {
namespace naver_rope_vit {
namespace {

constexpr Row kRows[] = {
    {Part::patch_weight, "patch_embed.proj.weight", Form::convolution},
    {Part::patch_bias, "patch_embed.proj.bias"},
    {Part::class_token, "cls_token"},
    {Part::position_table, "pos_embed"},
    {Part::rope_frequencies, "freqs", Form::joined_heads},
    {Part::norm1_gamma, "blocks.{}.norm1.*"},
    {Part::qkv_weight, "blocks.{}.attn.qkv.*"},
    {Part::proj_weight, "blocks.{}.attn.proj.*"},
    {Part::scale1, "blocks.{}.gamma_1"},
    {Part::norm2_gamma, "blocks.{}.norm2.*"},
    {Part::fc1_weight, "blocks.{}.mlp.fc1.*"},
    {Part::fc2_weight, "blocks.{}.mlp.fc2.*"},
    {Part::scale2, "blocks.{}.gamma_2"},
    {Part::norm_gamma, "norm.*"},
    {Part::pooled_norm_gamma, "fc_norm.*"},
    {Part::head_weight, "head.*"},
};
static_assert(is_complete(kRows));

constexpr Ignored kIgnored[] = {{"freqs_t_x", "patch coordinates, recomputed"},
                                {"freqs_t_y", "patch coordinates, recomputed"}};
constexpr std::string_view kOwnKeys[] = {"rules"};

ParsedModel read_as(const SourceFiles& files, const Architecture& architecture) {
  Published model =
      read_published(files, architecture, stored_args(files, architecture, {kRows}), "Naver", kOwnKeys);
  std::vector<std::string> notes;
  if (!follows_timm(files)) {
    model.config.position.resampling = TableResampling::bicubic;
    if (model.config.position.added != AddedTable::none) {
      notes.push_back(
          "other sizes: the learned table is resampled as Naver does (bicubic, no antialias); "
          "overrides[\"rules\"] = \"timm\" chooses timm's way");
    }
  }
  return finish(files, architecture, std::move(model), {kRows}, {kIgnored}, std::move(notes));
}

std::optional<Match> match(const SourceFiles& files) {
  const auto found = match_anchor(files, "patch_embed.proj.weight", kTimmPrefixes);
  if (!found || !files.has_weights) return std::nullopt;
  const bool has_freqs = files.tensors.find(found->prefix + "freqs") != nullptr;
  return has_freqs || is_named_by(files, "Naver") ? found : std::nullopt;
}

}  // namespace
}  // namespace naver_rope_vit

constinit const Family kNaverFamily{.name = "naver_rope_vit",
                                    .anchor = "patch_embed.proj.weight",
                                    .prefixes = kTimmPrefixes,
                                    .library = "Naver",
                                    .head = "head",
                                    .match = naver_rope_vit::match,
                                    .read_as = naver_rope_vit::read_as};

}  // namespace vit::internal
