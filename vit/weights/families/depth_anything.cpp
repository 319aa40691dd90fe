// The publisher's own files of Depth Anything V1 and V2, relative and metric: Meta's DINOv2 below
// "pretrained." and a DPT head below "depth_head.". A file says neither which blocks are tapped nor whether
// depths are metric; its name, or that of the architecture, does, and V1's config.json of the hub. Source:
// DepthAnything/Depth-Anything-V2, depth_anything_v2/dpt.py and metric_depth; LiheYoung/Depth-Anything.
#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "vit/base/check.h"
#include "vit/io/in_quotes.h"
#include "vit/weights/families/dpt_tables.h"
#include "vit/weights/families/published.h"

namespace vit::internal {
namespace depth_anything {
namespace {

constexpr Where kWhere{"depth_anything", ErrorKind::mismatch};
constexpr std::string_view kPrefixes[] = {"pretrained."};

constexpr HeadRow kHead[] = {
    {"norm.*", "norm.*", 1, 0, Place::tower},
    {"project.{}.*", "depth_head.projects.{}.*"},
    {"resize.{}.*", "depth_head.resize_layers.{}.*"},
    {"neck.{}.*", "depth_head.scratch.layer{}_rn.*", 1, 1},
    {"fusion.{}.lateral.conv1.*", "depth_head.scratch.refinenet{}.resConfUnit1.conv1.*", -1, 4},
    {"fusion.{}.lateral.conv2.*", "depth_head.scratch.refinenet{}.resConfUnit1.conv2.*", -1, 4},
    {"fusion.{}.unit.conv1.*", "depth_head.scratch.refinenet{}.resConfUnit2.conv1.*", -1, 4},
    {"fusion.{}.unit.conv2.*", "depth_head.scratch.refinenet{}.resConfUnit2.conv2.*", -1, 4},
    {"fusion.{}.project.*", "depth_head.scratch.refinenet{}.out_conv.*", -1, 4},
    {"narrow.*", "depth_head.scratch.output_conv1.*"},
    {"output.0.hidden.*", "depth_head.scratch.output_conv2.0.*"},
    {"output.0.last.*", "depth_head.scratch.output_conv2.2.*"},
};
constexpr Ignored kUnused[] = {{"depth_head.scratch.refinenet4.resConfUnit1.*",
                                "the deepest fusion layer has no second map to join", Place::outside}};

/// What a name says: "depth_anything_v2_vits", "depth_anything_v2_metric_hypersim_vitl",
/// "depth_anything_vitb14".
struct Release {
  int version = 0;  // 0 = not said
  std::optional<float> max_depth{};
};

Release read_release(std::string_view name) {
  Release out;
  if (name.find("depth_anything_v2") != std::string_view::npos) out.version = 2;
  if (name.find("depth_anything_vit") != std::string_view::npos) out.version = 1;
  if (name.find("metric_hypersim") != std::string_view::npos) out.max_depth = 20.0f;
  if (name.find("metric_vkitti") != std::string_view::npos) out.max_depth = 80.0f;
  return out;
}

Release release_of(const SourceFiles& files) {
  const std::string& named = files.options.architecture;
  Release out =
      read_release(named.empty() ? std::filesystem::path(files.weights_name).stem().string() : named);
  // only V1's class is saved with its arguments, by huggingface_hub's mixin
  if (out.version == 0 && named.empty() && files.config && files.config->find("encoder")) out.version = 1;
  VIT_CHECK(named.empty() || out.version != 0, kWhere.with(ErrorKind::argument), files.weights_name,
            ": its tensors are those of Depth Anything, and ", in_quotes(named),
            " is none of it; depth_anything_v2_vits, depth_anything_v2_metric_hypersim_vitb, "
            "depth_anything_vitl14 and their like are");
  return out;
}

/// Heads of 64 channels, as all published models have; others are asked for.
std::size_t count_heads(const SourceFiles& files, std::size_t embed_dim) {
  constexpr std::size_t kHeadWidth = 64, kPublished[] = {384, 768, 1024, 1536};
  VIT_CHECK(std::ranges::find(kPublished, embed_dim) != std::end(kPublished),
            kWhere.with(ErrorKind::argument), files.weights_name, ": no published Depth Anything has ",
            embed_dim, " channels, so the number of heads must be given: ", override_name("num_heads"));
  return embed_dim / kHeadWidth;
}

std::vector<std::size_t> find_taps(const SourceFiles& files, int version, std::size_t depth) {
  if (!files.options.dense.taps.empty()) return files.options.dense.taps;
  VIT_CHECK(
      version != 0, kWhere.with(ErrorKind::argument), files.weights_name,
      ": V1 and V2 of Depth Anything have the same tensors and read other blocks, and the file does not say "
      "which it is; give ModelOptions::architecture (depth_anything_v2_vits, depth_anything_vits14, ...) or "
      "ModelOptions::dense.taps");
  if (version == 1 && depth >= 4) return {depth - 4, depth - 3, depth - 2, depth - 1};
  if (version == 2 && depth == 12) return {2, 5, 8, 11};
  if (version == 2 && depth == 24) return {4, 11, 17, 23};
  if (version == 2 && depth == 40) return {9, 19, 29, 39};
  fail(kWhere.with(ErrorKind::argument), files.weights_name, ": no published Depth Anything has ", depth,
       " blocks; say which of them the head reads: ModelOptions::dense.taps");
}

std::size_t size_of(const SourceFiles& files, const char* name, std::size_t dimension) {
  const TensorEntry* const entry = files.find(name, Place::outside);
  VIT_CHECK(entry != nullptr && dimension < entry->shape.size(), kWhere, files.weights_name,
            ": the head has no tensor ", name, " of four dimensions");
  return entry->shape[dimension];
}

DenseBranch read_branch(const SourceFiles& files, const ModelConfig& backbone, const Release& release) {
  DptConfig dpt;
  for (const char* const tap : {"0", "1", "2", "3"})
    dpt.channels.push_back(size_of(files, text("depth_head.projects.", tap, ".weight").c_str(), 0));
  dpt.features = size_of(files, "depth_head.scratch.layer1_rn.weight", 0);
  dpt.hidden = size_of(files, "depth_head.scratch.output_conv2.0.weight", 0);
  MapOutput depth{.meaning = Output::depth, .channels = 1, .finish = MapFinish::relu};
  const std::optional<float> given = files.options.dense.max_depth;
  if (const std::optional<float> largest = given ? given : release.max_depth) {
    depth.finish = MapFinish::sigmoid;
    depth.scale = *largest;
  }
  return {.name = "",
          .taps = find_taps(files, release.version, backbone.encoder.depth),
          .tap_norm = true,
          .tap_norm_eps = backbone.encoder.norm.eps,
          .layers = std::move(dpt),
          .outputs = {depth}};
}

ParsedModel read(const SourceFiles& files) {
  ModelOptions options = files.options;
  options.architecture = "";  // that of the whole model
  const bool by_library = options.dense.resize_rule == ResizeRuleChoice::library;
  const SourceFiles inner{.tensors = files.tensors,
                          .options = options,
                          .weights_name = files.weights_name,
                          .has_weights = files.has_weights,
                          .match = files.match};
  const bool gated = inner.find("blocks.0.mlp.w12.weight") != nullptr;  // the giant
  ParsedModel out =
      kMetaDinov2Family.read_as(inner, find_architecture(gated ? "dinov2_vitg14" : "dinov2_vits14"));
  const Release release = release_of(files);
  if (!options.overrides.contains("num_heads"))
    out.config.attention.num_heads = count_heads(files, out.config.embed_dim);
  out.config.architecture = files.options.architecture;
  out.config.library = "Depth-Anything";
  out.config.position.resampling =
      by_library ? TableResampling::bicubic : TableResampling::bicubic_plus_tenth;  // with registers, too
  DenseBranch branch = read_branch(files, out.config, release);
  const bool metric = branch.outputs.front().finish == MapFinish::sigmoid;
  out.dense = DenseReading{.config = {.family = "depth_anything",
                                      .branches = {std::move(branch)},
                                      .depth_unit = metric ? DepthUnit::meter : DepthUnit::inverse,
                                      .to_image = by_library             ? ImageResize::bicubic
                                                  : release.version == 1 ? ImageResize::bilinear
                                                                         : ImageResize::bilinear_corners,
                                      .labels = {}},
                           .tables = {{"", "", kHead}},
                           .preprocess = depth_anything_preprocess(out.config.image.height, !by_library)};
  out.ignored.push_back(kUnused);
  out.notes = {
      std::string("sizes, position table and maps are resized as ") +
      (by_library ? "transformers does" : "the publisher's code does; the other way is resize rule library")};
  return out;
}

std::optional<Match> match(const SourceFiles& files) {
  if (has_library_config(files) || !files.has_weights) return std::nullopt;
  if (files.tensors.find(files.root + "depth_head.projects.0.weight") == nullptr) return std::nullopt;
  return match_anchor(files, "patch_embed.proj.weight", kPrefixes);
}

}  // namespace
}  // namespace depth_anything

constinit const Family kDepthAnythingFamily{.name = "depth_anything",
                                            .anchor = "depth_head.projects.0.weight",
                                            .other_anchor = "patch_embed.proj.weight",
                                            .prefixes = depth_anything::kPrefixes,
                                            .library = "",
                                            .match = depth_anything::match,
                                            .read = depth_anything::read,
                                            .is_dense = true};

}  // namespace vit::internal
