// Image processors of transformers with sizes of their own: padding, windows, tiles, boxes. Source:
// transformers, models/*/image_processing_*.py.
#include <algorithm>
#include <iterator>

#include "vit/base/check.h"
#include "vit/weights/checkpoint/hf_processors.h"
#include "vit/weights/families/source_files.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"load_preprocess_config", ErrorKind::format};

/// OWLv2 pads to a square, blurs and resizes in float.
void read_owlv2_sizes(const Json& file, PreprocessConfig& config) {
  VIT_CHECK(config.resize == ResizeRule::squash && !config.crop, kWhere.with(ErrorKind::unsupported),
            file.file(), ": an Owlv2ImageProcessor resizes to a height and a width, without a crop");
  VIT_CHECK(config.filter == ResizeFilter::bilinear, kWhere.with(ErrorKind::unsupported), file.file(),
            ": an Owlv2ImageProcessor is implemented only with resample 2 (bilinear)");
  config.filter = ResizeFilter::blurred_bilinear;
  config.pad_to_square = config.square_at_corner = file.find_bool("do_pad").value_or(true);
}

/// YOLOS: the bound on the longest edge may be a key of its own, and edges are multiples of 16 whatever the
/// patch size. Images of a batch are padded to the largest: of a batch of one nothing.
void read_yolos_sizes(const Json& file, PreprocessConfig& config) {
  VIT_CHECK(!config.crop, kWhere.with(ErrorKind::unsupported), file.file(),
            ": do_center_crop of a YolosImageProcessor is not implemented");
  VIT_CHECK(!file.find("pad_size"), kWhere.with(ErrorKind::unsupported), file.file(),
            ": pad_size of a YolosImageProcessor is not implemented");
  if (config.resize != ResizeRule::shortest_edge) return;
  config.resize = ResizeRule::shortest_edge_floored;
  config.size_multiple = 16;
  if (config.longest_edge == 0) config.longest_edge = file.find_size("max_size", kEdgeRange).value_or(1333);
}

void read_vitpose_sizes(const Json& file, PreprocessConfig& config) {
  VIT_CHECK(config.resize == ResizeRule::squash && !config.crop &&
                file.find_bool("do_affine_transform").value_or(true),
            kWhere.with(ErrorKind::unsupported), file.file(),
            ": a VitPoseImageProcessor warps boxes (do_affine_transform) to a height and a width");
  if (!file.find("size")) config.resize_width = 192;
  config.resize = ResizeRule::box;
  config.box_unit = file.find_double("normalize_factor").value_or(200.0);
}

/// What DPTImageProcessor has beyond others: one scale for both edges, multiples, padding that is the mean
/// color.
void read_dpt_sizes(const Json& file, PreprocessConfig& config) {
  VIT_CHECK(!config.crop, kWhere.with(ErrorKind::unsupported), file.file(),
            ": do_center_crop of a DPTImageProcessor is not implemented");
  const std::size_t multiple = file.find_size("ensure_multiple_of", {1, 1024}).value_or(1);
  if (file.find_bool("keep_aspect_ratio").value_or(false)) config.resize = ResizeRule::nearer_scale;
  config.size_multiple = multiple;
  if (!file.find_bool("do_pad").value_or(false)) return;
  const auto divisor = file.find_size("size_divisor", {1, 1024});
  if (!divisor) return;
  config.pad_multiple = *divisor;
  config.pad_normalized = true;
}

/// What EomtImageProcessor has beyond others: squares that images are padded to, or cut into.
void read_eomt_sizes(const Json& file, PreprocessConfig& config) {
  if (!file.find("size")) config.longest_edge = config.resize_height;
  VIT_CHECK(config.resize == ResizeRule::shortest_edge && !config.crop, kWhere.with(ErrorKind::unsupported),
            file.file(), ": an EomtImageProcessor has a size with shortest_edge and no crop");
  const std::size_t edge = config.resize_height;
  config.windows = file.find_bool("do_split_image").value_or(false);
  // without a longest edge no edge is below the square
  if (!file.find_bool("do_pad").value_or(false) || config.longest_edge == 0) return;
  VIT_CHECK(config.longest_edge == edge, kWhere.with(ErrorKind::unsupported), file.file(),
            ": do_pad requires one size for shortest_edge and longest_edge, found ", edge, " and ",
            config.longest_edge);
  config.pad_multiple = edge;
  config.pad_at_end = true;
}

/// What Llama4ImageProcessor has beyond others: tiles, and float results rounded to bfloat16.
void read_tiles(const Json& file, PreprocessConfig& config) {
  VIT_CHECK(config.resize == ResizeRule::squash && config.resize_height == config.resize_width, kWhere,
            file.file(), ": size must be {height, width} of a square tile");
  config.resize = ResizeRule::tiles;
  config.max_tiles = file.find_size("max_patches", {1, 256}).value_or(16);
  config.fills_canvas = file.find_bool("resize_to_max_canvas").value_or(false);
  config.crop = false;
}

constexpr OwnSizes kOwnSizes[] = {
    {"DPT", read_dpt_sizes, true, true},
    {"CHMv2", read_dpt_sizes, true, true},
    {"Eomt", read_eomt_sizes, true},
    {kOwlv2, read_owlv2_sizes, true},
    {"Yolos", read_yolos_sizes, true},
    {kVitPose, read_vitpose_sizes},
    {kLlama4, read_tiles},
};

}  // namespace

const OwnSizes* find_own_sizes(std::string_view processor) {
  const auto* const found = std::ranges::find(kOwnSizes, processor, &OwnSizes::processor);
  return found == std::end(kOwnSizes) ? nullptr : found;
}

}  // namespace vit::internal
