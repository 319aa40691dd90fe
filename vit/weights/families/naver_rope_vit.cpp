// Naver's rope-vit files: timm's names, but the learned frequencies are called `freqs` and joined over heads,
// and a learned table is resampled without antialias. Source: naver-ai/rope-vit, models/vit_rope.py,
// deit/models_v2.py.
#include "vit/weights/families/timm_layout.h"

namespace vit::internal {
namespace {

std::vector<Piece> pieces(const SourceFiles&, const ModelConfig& config, const std::string& canonical,
                          const Shape& shape) {
  if (canonical != "rope_frequencies") return {};
  // (2, depth, H d / 2): the memory order of (2, depth, H, d / 2)
  return {{.source = "freqs", .shape = {2, config.depth, shape[2] * shape[3]}}};
}

constexpr TimmLayout kLayout{
    .library = "Naver",
    .apply_rules = [](const SourceFiles&,
                      ModelConfig& config) { config.position.resampling = TableResampling::bicubic; },
    .pieces = pieces,
    .ignore_reason = [](const std::string& name, bool) -> std::string {
      return name == "freqs_t_x" || name == "freqs_t_y" ? "patch coordinates, recomputed" : "";
    },
    .notes = [](const SourceFiles& files, const ModelConfig& config) -> std::vector<std::string> {
      if (config.position.added == AddedTable::none || follows_timm(files)) return {};
      return {
          "other sizes: the learned table is resampled as Naver does (bicubic, no antialias); --set "
          "rules=timm chooses timm's way"};
    }};

bool matches(SourceFiles& files) {
  if (!files.find_prefix("patch_embed.proj.weight", kTimmPrefixes)) return false;
  return files.find("freqs") != nullptr || is_named_by(files, "Naver");
}

}  // namespace

constinit const Family kNaverFamily{
    "naver_rope_vit", "patch_embed.proj.weight", matches,
    [](const SourceFiles& files) { return adapt_timm_layout(files, kLayout); }};

}  // namespace vit::internal
