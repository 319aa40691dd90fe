// BAAI's EVA-02 and EVA02-CLIP files: timm's model under the names of the original code. Rotation tables
// stored with every block are recomputed. Source: baaivision/EVA, EVA-02/asuka/modeling_finetune.py and
// EVA-CLIP/rei/eva_clip.
#include <utility>

#include "vit/weights/families/timm_layout.h"

namespace vit::internal {
namespace {

std::string rename(const std::string& name) {
  static constexpr std::pair<std::string_view, std::string_view> kEndings[] = {
      {".mlp.fc1_g.weight", ".mlp.w1.weight"},
      {".mlp.fc1_g.bias", ".mlp.w1.bias"},
      {".mlp.fc1_x.weight", ".mlp.w2.weight"},
      {".mlp.fc1_x.bias", ".mlp.w2.bias"},
      {".mlp.fc1.weight", ".mlp.w12.weight"},
      {".mlp.fc1.bias", ".mlp.w12.bias"},
      {".mlp.fc2.weight", ".mlp.w3.weight"},
      {".mlp.fc2.bias", ".mlp.w3.bias"},
      {".mlp.norm.weight", ".mlp.ffn_ln.weight"},
      {".mlp.norm.bias", ".mlp.ffn_ln.bias"},
      {".attn.norm.weight", ".attn.inner_attn_ln.weight"},
      {".attn.norm.bias", ".attn.inner_attn_ln.bias"},
      {".attn.q_proj.bias", ".attn.q_bias"},
      {".attn.v_proj.bias", ".attn.v_bias"}};
  for (const auto& [timm, original] : kEndings) {
    if (name.starts_with("blocks.") && name.ends_with(timm)) {
      return name.substr(0, name.size() - timm.size()) + std::string(original);
    }
  }
  return name;
}

/// Files from masked image modelling alone end with `norm`; pooling by the mean applies it to the mean, as
/// timm does.
bool is_pretraining(const SourceFiles& files) {
  return files.find("fc_norm.weight") == nullptr && files.find("norm.weight") != nullptr;
}

std::vector<Piece> pieces(const SourceFiles& files, const ModelConfig&, const std::string& canonical,
                          const Shape& shape) {
  if (!canonical.starts_with("pooled_norm.") || !is_pretraining(files)) return {};
  return {{.source = "norm." + torch_ending(canonical).substr(12), .shape = sizes_of(shape)}};
}

constexpr TimmLayout kLayout{
    .library = "BAAI",
    .rename = rename,
    .apply_rules = [](const SourceFiles&,
                      ModelConfig& config) { config.position.resampling = TableResampling::bicubic; },
    .pieces = pieces,
    .ignore_reason = [](const std::string& name, bool) -> std::string {
      return name == "lm_head.weight" || name == "lm_head.bias" ? "head of masked image modelling" : "";
    },
    .notes =
        [](const SourceFiles& files, const ModelConfig& config) {
          std::vector<std::string> lines;
          if (!follows_timm(files)) {
            lines.push_back(
                "other sizes: the learned table is resampled as BAAI does (bicubic, no antialias); --set "
                "rules=timm chooses timm's way");
          }
          if (config.pooled_norm && is_pretraining(files)) {
            lines.push_back("pretraining weights: pooled is norm(mean of patches), as timm uses them");
          }
          return lines;
        }};

bool matches(SourceFiles& files) {
  if (!files.find_prefix("patch_embed.proj.weight", kTimmPrefixes)) return false;
  if (files.find("blocks.0.ls1.gamma") != nullptr)
    return false;  // Meta's models have the same names for their gates
  return any_block_has(files, "mlp.w12.weight") || any_block_has(files, "mlp.w1.weight") ||
         any_block_has(files, "attn.inner_attn_ln.weight");
}

}  // namespace

constinit const Family kBaaiFamily{
    "baai_eva02", "patch_embed.proj.weight", matches,
    [](const SourceFiles& files) { return adapt_timm_layout(files, kLayout); }};

}  // namespace vit::internal
