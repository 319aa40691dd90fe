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
  config.pad_to_square = config.square_at_corner = read_switch(file, "do_pad", true);
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

/// LW-DETR and RF-DETR: images of one size. Those of a batch are padded to the largest: nothing.
void check_detr_size(const Json& file, PreprocessConfig& config) {
  VIT_CHECK(
      config.resize == ResizeRule::squash && !config.crop && !file.find("pad_size"),
      kWhere.with(ErrorKind::unsupported), file.file(),
      ": size must have a height and a width, without a crop and pad_size; others are not implemented for "
      "LW-DETR and RF-DETR, whose images are divided into windows");
}

void read_rf_detr_size(const Json& file, PreprocessConfig& config) {
  check_detr_size(file, config);
  VIT_CHECK(config.filter == ResizeFilter::bilinear, kWhere.with(ErrorKind::unsupported), file.file(),
            ": a RfDetrImageProcessor is implemented only with resample 2 (bilinear)");
  config.filter = ResizeFilter::near_bilinear;
}

void read_vitpose_sizes(const Json& file, PreprocessConfig& config) {
  VIT_CHECK(
      config.resize == ResizeRule::squash && !config.crop && read_switch(file, "do_affine_transform", true),
      kWhere.with(ErrorKind::unsupported), file.file(),
      ": a VitPoseImageProcessor warps boxes (do_affine_transform) to a height and a width");
  if (!file.find("size")) config.resize_width = 192;
  config.resize = ResizeRule::box;
  config.box_unit = file.find_double("normalize_factor").value_or(200.0);
}

/// What a class of DPT's kind says if the file is silent.
struct DptSizes {
  std::size_t multiple = 1;
  bool keeps_ratio = false;
  bool pads = false;
  std::size_t divisor = 0;  // 0: none, and no padding
};

/// What DPTImageProcessor has beyond others: one scale for both edges, multiples, padding that is the mean
/// color.
void read_dpt_sizes_of(const Json& file, const DptSizes& sizes, PreprocessConfig& config) {
  VIT_CHECK(!config.crop, kWhere.with(ErrorKind::unsupported), file.file(),
            ": do_center_crop of a DPTImageProcessor is not implemented");
  if (read_switch(file, "keep_aspect_ratio", sizes.keeps_ratio)) config.resize = ResizeRule::nearer_scale;
  config.size_multiple = file.find_size("ensure_multiple_of", {1, 1024}).value_or(sizes.multiple);
  if (!read_switch(file, "do_pad", sizes.pads)) return;
  const std::size_t divisor = file.find_size("size_divisor", {1, 1024}).value_or(sizes.divisor);
  if (divisor == 0) return;
  config.pad_multiple = divisor;
  config.pad_normalized = true;
}

void read_dpt_sizes(const Json& file, PreprocessConfig& config) {
  read_dpt_sizes_of(file, {}, config);
}

void read_chmv2_sizes(const Json& file, PreprocessConfig& config) {
  read_dpt_sizes_of(file, {.multiple = 16, .keeps_ratio = true, .pads = true, .divisor = 16}, config);
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

/// A square tile of the size for all images.
void set_tiles(const Json& file, TileCanvas canvas, PreprocessConfig& config) {
  VIT_CHECK(config.resize == ResizeRule::squash && config.resize_height == config.resize_width, kWhere,
            file.file(), ": size must be {height, width} of a square tile");
  VIT_CHECK(!config.crop, kWhere.with(ErrorKind::unsupported), file.file(),
            ": a crop of tiles is not implemented");
  config.resize = ResizeRule::tiles;
  config.canvas = canvas;
  config.crop = false;
}

/// One image unless the file says crop_to_patches.
void read_got_ocr_sizes(const Json& file, PreprocessConfig& config) {
  if (file.find_bool("crop_to_patches").value_or(false)) read_got_ocr_tiles(file, config);
}

void read_cohere2_tiles(const Json& file, PreprocessConfig& config) {
  if (!read_switch(file, "crop_to_patches", true)) return;
  set_tiles(file, TileCanvas::least_enlarged, config);
  config.max_tiles = file.find_size("max_patches", {1, 256}).value_or(12);
}

/// LLaVA-NeXT's and LLaVA-OneVision's: image_grid_pinpoints are the canvases.
void read_listed_tiles(const Json& file, PreprocessConfig& config, std::size_t most_tiles) {
  const bool crops_nothing = !config.crop || (config.crop_height == config.resize_height &&
                                              config.crop_width == config.resize_width);
  if (config.resize == ResizeRule::shortest_edge) {  // of squares
    VIT_CHECK(config.longest_edge == 0 && crops_nothing, kWhere.with(ErrorKind::unsupported), file.file(),
              ": size and crop_size must be those of the same square tile");
    config.resize = ResizeRule::squash;
  }
  if (crops_nothing) config.crop = false;
  set_tiles(file, TileCanvas::listed, config);
  config.overview = TileOverview::always_first;
  const std::size_t tile = config.resize_height;
  if (const auto listed = file.find("image_grid_pinpoints")) {
    VIT_CHECK(listed->is_array() && listed->size() >= 1 && listed->size() <= 256, kWhere, listed->where(),
              " must be 1 to 256 pairs of height and width");
    for (std::size_t i = 0; i < listed->size(); ++i) {
      const GridSize edges = read_edges((*listed)[i], {1, 1u << 15});
      config.canvases.insert(config.canvases.end(), {edges.rows, edges.columns});
    }
  } else if (most_tiles == 0) {  // the class' own list, for tiles of 336
    config.canvases = {336, 672, 672, 336, 672, 672, 1008, 336, 336, 1008};
  } else {
    for (std::size_t rows = 1; rows <= most_tiles; ++rows) {
      for (std::size_t columns = 1; columns <= most_tiles; ++columns)
        config.canvases.insert(config.canvases.end(), {384 * rows, 384 * columns});
    }
  }
  for (std::size_t i = 0; i + 1 < config.canvases.size(); i += 2) {
    VIT_CHECK(config.canvases[i] % tile == 0 && config.canvases[i + 1] % tile == 0,
              kWhere.with(ErrorKind::unsupported), file.file(), ": image_grid_pinpoints has a canvas of ",
              config.canvases[i], " x ", config.canvases[i + 1], " pixels, no whole tiles of ", tile);
    config.max_tiles =
        std::max(config.max_tiles, config.canvases[i] / tile * (config.canvases[i + 1] / tile));
  }
}
void read_llava_next_tiles(const Json& file, PreprocessConfig& config) {
  read_listed_tiles(file, config, 0);
}
void read_onevision_tiles(const Json& file, PreprocessConfig& config) {
  read_listed_tiles(file, config, 6);
}

/// Idefics 3's and SmolVLM's: size has the longest edge of the first resize, max_image_size the tile.
void read_idefics3_tiles(const Json& file, PreprocessConfig& config) {
  VIT_CHECK(read_switch(file, "do_image_splitting", true), kWhere.with(ErrorKind::unsupported), file.file(),
            ": do_image_splitting must not be false: one tile after another resize is not implemented");
  const auto edge_of = [&](const char* key, std::size_t fallback) {
    const auto value = file.find(key);
    return value ? value->at("longest_edge").as_size({1, 1u << 14}) : fallback;
  };
  config.crop = false;
  config.resize = ResizeRule::squash;
  config.longest_edge = edge_of("size", 4 * 364);
  config.resize_height = config.resize_width = edge_of("max_image_size", 364);
  set_tiles(file, TileCanvas::whole_edges, config);
  const std::size_t tiles = (config.longest_edge + config.resize_height - 1) / config.resize_height;
  config.max_tiles = (tiles + 1) * (tiles + 1);
}

constexpr OwnSizes kOwnSizes[] = {
    {.processor = "GotOcr2", .read = read_got_ocr_sizes, .splits = "crop_to_patches"},
    {.processor = "Cohere2Vision", .read = read_cohere2_tiles, .splits = "crop_to_patches"},
    {"LlavaNext", read_llava_next_tiles, true},
    {"LlavaOnevision", read_onevision_tiles, true},
    {.processor = "Idefics3",
     .read = read_idefics3_tiles,
     .pads = true,
     .splits = "do_image_splitting",
     .reads_size = true},
    {.processor = "SmolVLM",
     .read = read_idefics3_tiles,
     .pads = true,
     .splits = "do_image_splitting",
     .reads_size = true},
    {"DPT", read_dpt_sizes, true, true},
    {"PromptDepthAnything", read_dpt_sizes, true, true},
    {"CHMv2", read_chmv2_sizes, true, true},
    {"Eomt", read_eomt_sizes, true},
    {kOwlv2, read_owlv2_sizes, true},
    {"Yolos", read_yolos_sizes, true},
    {kRfDetr, read_rf_detr_size, true},
    {"DeformableDetr", check_detr_size, true},
    {kVitPose, read_vitpose_sizes},
    {kLlama4, read_tiles},
};

}  // namespace

void read_got_ocr_tiles(const Json& file, PreprocessConfig& config) {
  set_tiles(file, TileCanvas::nearest_ratio, config);
  config.min_tiles = file.find_size("min_patches", {1, 256}).value_or(1);
  config.max_tiles = file.find_size("max_patches", {1, 256}).value_or(12);
}

const OwnSizes* find_own_sizes(std::string_view processor) {
  const auto* const found = std::ranges::find(kOwnSizes, processor, &OwnSizes::processor);
  return found == std::end(kOwnSizes) ? nullptr : found;
}

}  // namespace vit::internal
