// mmcv's checkpoints: {"meta", "state_dict"} with names below "decode_head.". What they do not say is known
// of the published ones: the taps, and by the name of the file the range of depths. Source:
// facebookresearch/dinov2, eval/depth and eval/segmentation, hub/depthers.py.
#include "vit/weights/families/dino_head.h"

#include <algorithm>
#include <array>
#include <utility>

#include "vit/base/check.h"
#include "vit/io/in_quotes.h"
#include "vit/weights/families/hf_backbone.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"join_head", ErrorKind::mismatch};
constexpr float kNearest = 0.001f;

constexpr HeadRow kClasses[] = {
    {"norm_map.*", "decode_head.bn.*"},
    {"output.0.last.*", "decode_head.conv_seg.*"},
};
constexpr HeadRow kBins[] = {{"output.0.last.*", "decode_head.conv_depth.*"}};
constexpr HeadRow kDpt[] = {
    {"readout.{}.*", "decode_head.reassemble_blocks.readout_projects.{}.0.*"},
    {"project.{}.*", "decode_head.reassemble_blocks.projects.{}.conv.*"},
    {"resize.{}.*", "decode_head.reassemble_blocks.resize_layers.{}.*"},
    {"neck.{}.*", "decode_head.convs.{}.conv.*"},
    {"fusion.{}.lateral.conv1.*", "decode_head.fusion_blocks.{}.res_conv_unit1.conv1.conv.*"},
    {"fusion.{}.lateral.conv2.*", "decode_head.fusion_blocks.{}.res_conv_unit1.conv2.conv.*"},
    {"fusion.{}.unit.conv1.*", "decode_head.fusion_blocks.{}.res_conv_unit2.conv1.conv.*"},
    {"fusion.{}.unit.conv2.*", "decode_head.fusion_blocks.{}.res_conv_unit2.conv2.conv.*"},
    {"fusion.{}.project.*", "decode_head.fusion_blocks.{}.project.conv.*"},
    {"extra.*", "decode_head.project.conv.*"},
    {"narrow.*", "decode_head.conv_depth.head.0.*"},
    {"output.0.hidden.*", "decode_head.conv_depth.head.2.*"},
    {"output.0.last.*", "decode_head.conv_depth.head.4.*"},
};
/// The names of the backbone and those of the head begin alike where neither has a prefix.
constexpr Ignored kNotRead[] = {
    {"*.num_batches_tracked", "counts the batches of the training"},
    {"*.num_batches_tracked", "counts the batches of the training", Place::outside},
    {"decode_head.fusion_blocks.0.res_conv_unit1.*", "the deepest fusion layer has no second map to join"},
    {"decode_head.fusion_blocks.0.res_conv_unit1.*", "the deepest fusion layer has no second map to join",
     Place::outside},
    {"auxiliary_head.*", "used in training only"},
    {"auxiliary_head.*", "used in training only", Place::outside},
};

const TensorEntry* find_head(const SourceFiles& files, std::string_view name) {
  return files.find(name, Place::outside);
}

std::size_t size_of(const SourceFiles& files, std::string_view name, std::size_t dimension) {
  const TensorEntry* const entry = find_head(files, name);
  VIT_CHECK(entry != nullptr && dimension < entry->shape.size(), kWhere, files.weights_name,
            ": the head has no tensor ", name, " of more than ", dimension, " dimensions");
  return entry->shape[dimension];
}

/// How many taps of `width` channels make `channels`.
std::size_t count_taps(std::size_t channels, std::size_t width, const std::string& where) {
  VIT_CHECK(channels % width == 0 && channels / width >= 1 && channels / width <= kMaxTaps, kWhere, where,
            ": the head reads ", channels, " channels, and a tap of this backbone has ", width,
            "; do head and backbone belong together?");
  return channels / width;
}

std::vector<std::size_t> last_blocks(std::size_t count, std::size_t depth) {
  std::vector<std::size_t> taps;
  for (std::size_t i = std::min(count, depth); i-- > 0;) taps.push_back(depth - 1 - i);
  return taps;
}

std::vector<std::size_t> spread_blocks(std::size_t depth) {
  if (depth == 12) return {2, 5, 8, 11};
  if (depth == 24) return {4, 11, 17, 23};
  if (depth == 40) return {9, 19, 29, 39};
  fail(kWhere.with(ErrorKind::argument), "no published head reads four of ", depth,
       " blocks; say which: ModelOptions::dense.taps");
}

/// The blocks that a head reads, as published: the last one, or four, of which those for depth are spread.
std::vector<std::size_t> taps_of(const SourceFiles& files, std::size_t count, std::size_t depth,
                                 Output meaning) {
  if (!files.options.dense.taps.empty()) return files.options.dense.taps;
  VIT_CHECK(count == 1 || count == 4, kWhere.with(ErrorKind::argument), files.options.dense.head.string(),
            ": no published head reads ", count, " blocks; say which: ModelOptions::dense.taps");
  return meaning == Output::depth && count == 4 ? spread_blocks(depth) : last_blocks(count, depth);
}

std::array<float, 2> depth_range(const SourceFiles& files) {
  if (files.options.dense.depth_range) return *files.options.dense.depth_range;
  const std::string name = files.options.dense.head.filename().string();
  if (name.find("nyu") != std::string::npos) return {kNearest, 10.0f};
  if (name.find("kitti") != std::string::npos) return {kNearest, 80.0f};
  fail(kWhere.with(ErrorKind::argument), files.options.dense.head.string(),
       ": neither the file nor its name (nyu, kitti) gives the range of depths; give "
       "ModelOptions::dense.depth_range");
}

DenseBranch read_classes(const SourceFiles& files, const ModelConfig& backbone) {
  const std::size_t taps =
      count_taps(size_of(files, "decode_head.bn.weight", 0), backbone.embed_dim, files.weights_name);
  return {.name = "",
          .taps = taps_of(files, taps, backbone.encoder.depth, Output::classes),
          .tap_norm = true,
          .tap_norm_eps = backbone.encoder.norm.eps,
          .layers = LinearMapConfig{.batch_norm = true},
          .outputs = {{.meaning = Output::classes,
                       .channels = size_of(files, "decode_head.conv_seg.weight", 0),
                       .finish = MapFinish::none}}};
}

DenseBranch read_bins(const SourceFiles& files, const ModelConfig& backbone) {
  const std::size_t taps = count_taps(size_of(files, "decode_head.conv_depth.weight", 1),
                                      2 * backbone.embed_dim, files.weights_name);
  const std::size_t bins = size_of(files, "decode_head.conv_depth.weight", 0);
  VIT_CHECK(bins != 1, kWhere.with(ErrorKind::unsupported), files.options.dense.head.string(),
            ": gives one number for each pixel, a depth without bins (classify = False), which is not read");
  const std::array<float, 2> range = depth_range(files);
  return {.name = "",
          .taps = taps_of(files, taps, backbone.encoder.depth, Output::depth),
          .tap_norm = false,
          .layers = LinearMapConfig{.readout = ClassReadout::concatenated, .enlarged = 4},
          .outputs = {{.meaning = Output::depth,
                       .channels = bins,
                       .finish = MapFinish::linear_bins,
                       .offset = 0.1f,
                       .lowest = range[0],
                       .highest = range[1]}}};
}

DenseBranch read_dpt(const SourceFiles& files, const ModelConfig& backbone) {
  const std::array<float, 2> range = depth_range(files);
  DptConfig dpt;
  dpt.readout = ClassReadout::projected;
  for (const char* const tap : {"0", "1", "2", "3"})
    dpt.channels.push_back(
        size_of(files, text("decode_head.reassemble_blocks.projects.", tap, ".conv.weight"), 0));
  dpt.features = size_of(files, "decode_head.convs.0.conv.weight", 0);
  dpt.residual_bias =
      find_head(files, "decode_head.fusion_blocks.1.res_conv_unit1.conv1.conv.bias") != nullptr;
  dpt.fusion_size = FusionSize::doubled;
  dpt.extra_channels = size_of(files, "decode_head.project.conv.weight", 0);
  dpt.head_size = HeadSize::doubled;
  dpt.hidden = size_of(files, "decode_head.conv_depth.head.2.weight", 0);
  return {.name = "",
          .taps = taps_of(files, 4, backbone.encoder.depth, Output::depth),
          .tap_norm = false,
          .layers = std::move(dpt),
          .outputs = {{.meaning = Output::depth,
                       .channels = 1,
                       .finish = MapFinish::relu,
                       .offset = range[0],
                       .lowest = range[0],
                       .highest = range[1]}}};
}

/// Images in their own size, normalized as bytes; the model pads them to whole patches.
PreprocessConfig meta_preprocess(std::size_t patch_size) {
  PreprocessConfig out;
  out.resampler = Resampler::pillow;
  out.resize = ResizeRule::none;
  out.crop = false;
  out.pad_multiple = patch_size;
  out.pad_normalized = true;
  out.normalize = NormalizeRule::divide_then_normalize;
  out.rescale = false;
  out.mean = {123.675, 116.28, 103.53};
  out.std = {58.395, 57.12, 57.375};
  out.source = "dinov2, hub/depthers.py";
  return out;
}

}  // namespace

bool has_dino_head(const SourceFiles& files) {
  for (const char* const name : {"decode_head.conv_seg.weight", "decode_head.conv_depth.weight",
                                 "decode_head.conv_depth.head.0.weight"}) {
    if (find_head(files, name) != nullptr) return true;
  }
  return false;
}

void join_dino_head(const SourceFiles& files, ParsedModel& backbone) {
  VIT_CHECK(has_dino_head(files), kWhere.with(ErrorKind::unsupported), files.options.dense.head.string(),
            ": no head that is known here: those of DINOv2 have decode_head.conv_seg.weight (classes), "
            "decode_head.conv_depth.weight or decode_head.conv_depth.head.0.weight (depth)");
  const bool is_dpt = find_head(files, "decode_head.conv_depth.head.0.weight") != nullptr;
  const bool is_classes = find_head(files, "decode_head.conv_seg.weight") != nullptr &&
                          find_head(files, "decode_head.bn.weight") != nullptr;
  DenseBranch branch = is_dpt       ? read_dpt(files, backbone.config)
                       : is_classes ? read_classes(files, backbone.config)
                                    : read_bins(files, backbone.config);
  std::span<const HeadRow> rows = kBins;
  if (is_classes) rows = kClasses;
  if (is_dpt) rows = kDpt;
  const bool is_hf = backbone.config.library == "transformers";
  backbone.dense = DenseReading{
      .config = {.family = "dinov2_head",
                 .branches = {std::move(branch)},
                 .depth_unit = DepthUnit::meter,
                 .to_image = ImageResize::bilinear,
                 .pads_pixels = true,
                 .labels = {}},
      .tables = {{"", "", is_hf ? tap_norm_rows(backbone.config) : std::span<const HeadRow>(kNormTap)},
                 {"", "", rows}},
      .preprocess = meta_preprocess(backbone.config.patch.size)};
  backbone.ignored.push_back(kNotRead);
}

}  // namespace vit::internal
