// ByteDance's Depth Anything 3 for one image (mono and metric): Meta's DINOv2 below "backbone.pretrained."
// and a DPT head with a second result, the sky. The final norm has PyTorch's epsilon, not that of the blocks.
// Source: ByteDance-Seed/Depth-Anything-3, model/dpt.py, utils/io/input_processor.py.
#include <utility>

#include "vit/base/ascii.h"
#include "vit/base/check.h"
#include "vit/io/in_quotes.h"
#include "vit/weights/architectures/pixel_statistics.h"
#include "vit/weights/families/head_layout.h"
#include "vit/weights/families/published.h"

namespace vit::internal {
namespace depth_anything_3 {
namespace {

constexpr Where kWhere{"depth_anything_3", ErrorKind::mismatch};
constexpr std::string_view kWrappers[] = {"", "model.", "module.", "module.model."};
constexpr float kFinalNormEps = 1e-5f;

constexpr HeadRow kHead[] = {
    {"norm.*", "norm.*", 1, 0, Place::tower},
    {"project.{}.*", "head.projects.{}.*"},
    {"resize.{}.*", "head.resize_layers.{}.*"},
    {"neck.{}.*", "head.scratch.layer{}_rn.*", 1, 1},
    {"fusion.{}.lateral.conv1.*", "head.scratch.refinenet{}.resConfUnit1.conv1.*", -1, 4},
    {"fusion.{}.lateral.conv2.*", "head.scratch.refinenet{}.resConfUnit1.conv2.*", -1, 4},
    {"fusion.{}.unit.conv1.*", "head.scratch.refinenet{}.resConfUnit2.conv1.*", -1, 4},
    {"fusion.{}.unit.conv2.*", "head.scratch.refinenet{}.resConfUnit2.conv2.*", -1, 4},
    {"fusion.{}.project.*", "head.scratch.refinenet{}.out_conv.*", -1, 4},
    {"narrow.*", "head.scratch.output_conv1.*"},
    {"output.0.hidden.*", "head.scratch.output_conv2.0.*"},
    {"output.0.last.*", "head.scratch.output_conv2.2.*"},
    {"output.1.hidden.*", "head.scratch.sky_output_conv2.0.*"},
    {"output.1.last.*", "head.scratch.sky_output_conv2.2.*"},
};
constexpr Ignored kUnused[] = {{"head.scratch.refinenet4.resConfUnit1.*",
                                "the deepest fusion layer has no second map to join", Place::outside}};

std::size_t size_of(const SourceFiles& files, const std::string& name) {
  const TensorEntry* const entry = files.find(name, Place::outside);
  VIT_CHECK(entry != nullptr && !entry->shape.empty(), kWhere, files.weights_name,
            ": the head has no tensor ", name);
  return entry->shape.front();
}

void refuse_any_view(const SourceFiles& files) {
  for (const char* const name : {"camera_token", "blocks.4.attn.q_norm.weight"}) {
    VIT_CHECK(files.find(name) == nullptr, kWhere.with(ErrorKind::unsupported), files.weights_name, ": ",
              name,
              " belongs to a model of Depth Anything 3 for any number of views, which is not implemented; "
              "those for one image (mono, metric) are");
  }
}

/// A name that the caller gave is that of a model for one image, as the publisher writes it.
void check_name(const SourceFiles& files) {
  const std::string& name = files.options.architecture;
  const std::string lower = lower_ascii(name);
  VIT_CHECK(name.empty() || lower == "da3mono-large" || lower == "da3metric-large",
            kWhere.with(ErrorKind::argument), files.weights_name,
            ": its tensors are those of DA3MONO-LARGE and DA3METRIC-LARGE, not of ", in_quotes(name));
}

PreprocessConfig preprocess(std::size_t edge) {
  PreprocessConfig out;
  out.resize = ResizeRule::none;
  out.crop = false;
  out.opencv_longest_edge = edge;
  out.size_multiple = 14;
  out.mean.assign(kImageNetMean.begin(), kImageNetMean.end());
  out.std.assign(kImageNetStd.begin(), kImageNetStd.end());
  out.source = "Depth Anything 3, utils/io/input_processor.py";
  return out;
}

ParsedModel read(const SourceFiles& files) {
  constexpr std::size_t kLarge = 1024, kEdge = 504;
  refuse_any_view(files);
  check_name(files);
  ModelOptions options = files.options;
  options.architecture = "";  // that of the whole model
  const SourceFiles inner{.tensors = files.tensors,
                          .options = options,
                          .weights_name = files.weights_name,
                          .has_weights = files.has_weights,
                          .match = files.match};
  ParsedModel out = kMetaDinov2Family.read_as(inner, find_architecture("dinov2_vitl14"));
  VIT_CHECK(out.config.embed_dim == kLarge || options.overrides.contains("num_heads"),
            kWhere.with(ErrorKind::argument), files.weights_name, ": no published model has ",
            out.config.embed_dim,
            " channels, so the number of heads must be given: ", override_name("num_heads"));
  out.config.architecture = files.options.architecture;
  out.config.library = "Depth-Anything-3";
  out.config.position.resampling = TableResampling::bicubic_plus_tenth;  // with registers, too
  DptConfig dpt;
  for (const char* const tap : {"0", "1", "2", "3"})
    dpt.channels.push_back(size_of(files, text("head.projects.", tap, ".weight")));
  dpt.features = size_of(files, "head.scratch.layer1_rn.weight");
  dpt.hidden = size_of(files, "head.scratch.output_conv2.0.weight");
  std::vector<std::size_t> taps = options.dense.taps;
  VIT_CHECK(!taps.empty() || out.config.encoder.depth == 24, kWhere.with(ErrorKind::argument),
            files.weights_name, ": no published model has ", out.config.encoder.depth,
            " blocks; say which of them the head reads: ModelOptions::dense.taps");
  if (taps.empty()) taps = {4, 11, 17, 23};
  DenseConfig config{.family = "depth_anything_3",
                     .branches = {},
                     .depth_unit = DepthUnit::relative,
                     .to_image = ImageResize::bilinear,
                     .sky_is_farthest = true,
                     .labels = {}};
  config.branches.push_back({.name = "",
                             .taps = std::move(taps),
                             .tap_norm = true,
                             .tap_norm_eps = kFinalNormEps,
                             .layers = std::move(dpt),
                             .outputs = {{.meaning = Output::depth, .finish = MapFinish::exponential},
                                         {.meaning = Output::sky, .finish = MapFinish::relu}}});
  out.dense =
      DenseReading{.config = std::move(config), .tables = {{"", "", kHead}}, .preprocess = preprocess(kEdge)};
  out.ignored.push_back(kUnused);
  out.notes = {
      "of a metric model, metres are depth x focal length / 300, the focal length in pixels of the processed "
      "image"};
  return out;
}

std::optional<Match> match(const SourceFiles& files) {
  if (has_library_config(files) || !files.has_weights) return std::nullopt;
  for (const std::string_view wrapper : kWrappers) {
    const std::string front(wrapper);
    if (files.tensors.find(front + "head.projects.0.weight") == nullptr) continue;
    if (files.tensors.find(front + "backbone.pretrained.patch_embed.proj.weight") == nullptr) continue;
    return Match{.prefix = front + "backbone.pretrained.", .outside = front};
  }
  return std::nullopt;
}

}  // namespace
}  // namespace depth_anything_3

constinit const Family kDepthAnything3Family{.name = "depth_anything_3",
                                             .anchor = "head.projects.0.weight",
                                             .library = "",
                                             .match = depth_anything_3::match,
                                             .read = depth_anything_3::read,
                                             .is_dense = true};

}  // namespace vit::internal
