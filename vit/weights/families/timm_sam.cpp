// timm's samvit models: SAM's encoder, whose neck is a merger here, and the mean of what that gives. Source:
// timm, models/vision_transformer_sam.py.
#include <algorithm>

#include "vit/base/check.h"
#include "vit/weights/families/published.h"
#include "vit/weights/families/sam.h"

namespace vit::internal {
namespace timm_sam {
namespace {

constexpr Where kWhere{"timm_sam", ErrorKind::mismatch};

constexpr Row kOwnRows[] = {
    {Part::fc1_weight, "blocks.{}.mlp.fc1.*"},
    {Part::fc2_weight, "blocks.{}.mlp.fc2.*"},
    {Part::head_weight, "head.*"},
};
constexpr auto kRows = joined(kPublishedSamRows, kOwnRows);
static_assert(is_complete(kRows));

/// A published architecture.
struct SamArchitecture {
  std::string_view name;
  std::size_t embed_dim, depth, num_heads, image;
  std::vector<std::size_t> global_blocks;
};

const SamArchitecture* find(std::string_view name) {
  static const SamArchitecture kAll[] = {
      {"samvit_base_patch16", 768, 12, 12, 1024, {2, 5, 8, 11}},
      {"samvit_large_patch16", 1024, 24, 16, 1024, {5, 11, 17, 23}},
      {"samvit_huge_patch16", 1280, 32, 16, 1024, {7, 15, 23, 31}},
  };
  if (const std::size_t slash = name.rfind('/'); slash != name.npos) name.remove_prefix(slash + 1);
  name = name.substr(0, name.find('.'));
  const auto found = std::ranges::find(kAll, name, &SamArchitecture::name);
  return found == std::end(kAll) ? nullptr : found;
}

ParsedModel read(const SourceFiles& files) {
  const std::string name = architecture_name(files);
  const SamArchitecture& published = *find(name);
  Json args = parse_json("{}", files.config_name());
  if (files.config) args = files.config->find("model_args").value_or(args);
  for (const auto& [key, value] : files.options.overrides)
    fail(kWhere.with(ErrorKind::argument), override_name(key), " is no argument of ", name, " here");
  const TowerDefaults defaults{.embed_dim = published.embed_dim,
                               .depth = published.depth,
                               .num_heads = published.num_heads,
                               .patch_size = 16,
                               .image_size = published.image};
  ModelConfig c = sam_config(args, defaults, published.global_blocks, 256);
  c.architecture = name;
  c.library = "timm";
  c.encoder.norm.eps = 1e-5f;  // that of torch, not of the publisher
  c.head.pools_merged = c.merger.has_value();
  c.head.pooling = Pooling::patch_mean;
  c.head.num_classes = rows_of_tensor(files, "head.weight", Place::tower, 0);
  return {.config = std::move(c), .layout = {kRows}};
}

std::optional<Match> match(const SourceFiles& files) {
  if (find(architecture_name(files)) == nullptr) return std::nullopt;
  static constexpr std::string_view kPrefixes[] = {"", "module."};
  const auto found = match_anchor(files, kPublishedSamAnchor, kPrefixes);
  VIT_CHECK(found, kWhere, files.weights_name, ": no tensor ", kPublishedSamAnchor);
  return found;
}

}  // namespace
}  // namespace timm_sam

constinit const Family kTimmSamFamily{.name = "timm_sam",
                                      .anchor = "neck.2.weight",
                                      .library = "",
                                      .match = timm_sam::match,
                                      .read = timm_sam::read};

}  // namespace vit::internal
