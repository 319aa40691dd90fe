#include <algorithm>
#include <cmath>
#include <string>

#include "vit/base/check.h"
#include "vit/config/fields.h"
#include "vit/config/patch.h"
#include "vit/image/preprocess.h"

namespace vit {
namespace {

constexpr std::size_t kMostPatches = std::size_t{1} << 20;  // as in ModelConfig

/// The checks of a config; errors begin with the file that it comes from.
struct PreprocessChecks {
  const PreprocessConfig& c;
  const Where where{"validate_preprocess", c.source.empty() ? ErrorKind::argument : ErrorKind::format};
  const std::string of = c.source.empty() ? "" : c.source + ": ";

  void check_edge(const char* field, std::size_t value, std::size_t high) const {
    VIT_CHECK(value >= 1 && value <= high, where, of, field, " must be 1 to ", high, ", got ", value);
  }
  void check_tiles() const;
  void check_resize() const;
  void check_numbers() const;
  void check_multiples() const;
  void check_filter() const;
};

void PreprocessChecks::check_tiles() const {
  check_edge("the height of a tile", c.resize_height, 4096);
  check_edge("the width of a tile", c.resize_width, 4096);
  check_edge("the number of tiles", c.max_tiles, 256);
  VIT_CHECK(!c.crop && c.resize_height == c.resize_width, where, of, "tiles are squares and not cropped");
  VIT_CHECK(c.min_tiles <= c.max_tiles, where, of, "the least number of tiles, ", c.min_tiles,
            ", must be at most the largest, ", c.max_tiles);
  if (c.canvas == TileCanvas::whole_edges) check_edge("the longest edge", c.longest_edge, kMaxInputEdge);
  VIT_CHECK((c.canvas == TileCanvas::listed) == !c.canvases.empty() && c.canvases.size() % 2 == 0 &&
                c.canvases.size() <= 512,
            where, of, "canvases are listed by height and width, at most 256 of them, got ",
            c.canvases.size(), " numbers");
  for (const std::size_t edge : c.canvases)
    VIT_CHECK(edge >= 1 && edge <= kMaxInputEdge && edge % c.resize_height == 0, where, of,
              "the edges of canvases must be multiples of a tile's ", c.resize_height, " pixels, got ", edge);
}

void PreprocessChecks::check_resize() const {
  if (c.resize == ResizeRule::patches) {
    check_edge("the number of patches", c.max_patches, kMostPatches);
    check_edge("the patch size", c.patch_size, 1024);
    VIT_CHECK(!c.crop, where, of, "a resize to a number of patches cannot be followed by a crop");
  } else if (c.resize == ResizeRule::area) {
    check_edge("the multiple of the edges", c.edge_multiple, 16384);
    check_edge("the largest area", c.max_area, std::size_t{1} << 40);
    check_edge("the number of frames", c.area_frames, 4096);
    VIT_CHECK(c.min_area <= c.max_area, where, of, "the smallest area, ", c.min_area,
              " pixels, must be no more than the largest, ", c.max_area);
  } else if (c.resize == ResizeRule::longest) {
    check_edge("the multiple of the edges", c.edge_multiple, 16384);
    check_edge("the longest edge", c.longest_edge, kMaxInputEdge);
  } else if (c.resize == ResizeRule::patch_limit || c.resize == ResizeRule::token_count) {
    check_edge("the number of patches", c.max_patches, kMostPatches);
    check_edge("the patch size", c.patch_size, 1024);
    VIT_CHECK(c.resize == ResizeRule::patch_limit ||
                  (c.edge_multiple >= c.patch_size && c.edge_multiple % c.patch_size == 0 &&
                   c.edge_multiple <= 65536),
              where, of, "the multiple of the edges must be one of the patch size, got ", c.edge_multiple);
  } else if (c.resize == ResizeRule::tiles) {
    check_tiles();
  } else if (c.resize != ResizeRule::none) {
    check_edge("the height to resize to", c.resize_height, std::size_t{1} << 22);
    check_edge("the width to resize to", c.resize_width, std::size_t{1} << 22);
  }
  if (c.crop && c.crop_multiple == 0) {
    check_edge("the height to crop to", c.crop_height, kMaxInputEdge);
    check_edge("the width to crop to", c.crop_width, kMaxInputEdge);
  }
}

void PreprocessChecks::check_numbers() const {
  VIT_CHECK(c.mean.size() == c.std.size() && !c.mean.empty() && c.mean.size() <= kMaxChannels, where, of,
            "mean and std must have a number for each channel, 1 to ", kMaxChannels, ", got ", c.mean.size(),
            " and ", c.std.size());
  for (std::size_t i = 0; i < c.mean.size(); ++i) {
    VIT_CHECK(std::isfinite(c.mean[i]) && std::abs(c.mean[i]) <= 1e6, where, of,
              "mean must be finite and at most 1e6, got ", c.mean[i]);
    VIT_CHECK(c.std[i] >= 1e-6 && c.std[i] <= 1e6, where, of, "std must be 1e-6 to 1e6, got ", c.std[i]);
  }
  VIT_CHECK(c.crop_pct == 0.0 || (c.crop_pct >= 0.01 && c.crop_pct <= 10.0), where, of,
            "crop_pct must be 0 or 0.01 to 10, got ", c.crop_pct);
  VIT_CHECK(c.rescale_factor >= 1e-9 && c.rescale_factor <= 1e6, where, of,
            "rescale_factor must be 1e-9 to 1e6, got ", c.rescale_factor);
  check_edge("the frames of a patch", c.frames_of_patch, 16);
  VIT_CHECK(c.clip_frames <= 4096, where, of, "a clip has at most 4096 frames, got ", c.clip_frames);
}

void PreprocessChecks::check_multiples() const {
  VIT_CHECK(c.size_multiple <= 1024 && c.pad_multiple <= 1024, where, of,
            "multiples of edges must be at most 1024, got ", std::max(c.size_multiple, c.pad_multiple));
  VIT_CHECK(c.opencv_longest_edge <= kMaxInputEdge, where, of, "the longest edge must be at most ",
            kMaxInputEdge, ", got ", c.opencv_longest_edge);
  VIT_CHECK(c.pad_multiple == 0 || !c.crop, where, of, "padding to multiples goes without a crop");
}

void PreprocessChecks::check_filter() const {
  const bool in_float = c.resampler == Resampler::torchvision_float;
  VIT_CHECK(in_float == (c.normalize == NormalizeRule::rescale_first), where, of,
            "resizing in float requires rescaling before it, and vice versa");
  VIT_CHECK(!in_float || c.rescale, where, of, "resizing in float needs do_rescale");
  VIT_CHECK(c.filter != ResizeFilter::opencv_cubic || in_float, where, of,
            "OpenCV's cubic filter resizes in float");
  VIT_CHECK(c.filter != ResizeFilter::blurred_bilinear || in_float, where, of,
            "the blur in front of a bilinear resize is of float data");
  VIT_CHECK(c.filter != ResizeFilter::near_bilinear || in_float, where, of,
            "a bilinear resize without antialias is of float data");
  VIT_CHECK(c.resize != ResizeRule::box || (!in_float && !c.crop && !c.pad_to_square && c.box_unit >= 1e-3 &&
                                            c.box_unit <= 1e6 && c.resize_height > 1 && c.resize_width > 1),
            where, of, "boxes are warped as bytes, to at least 2 x 2 pixels, and in units from 1e-3 to 1e6");
  const bool weighted = c.filter == ResizeFilter::blurred_bilinear ||
                        c.filter == ResizeFilter::near_bilinear || c.filter == ResizeFilter::bilinear ||
                        c.filter == ResizeFilter::bicubic || c.filter == ResizeFilter::opencv_cubic;
  const bool has_filter = c.resampler == Resampler::pillow || weighted || c.filter == ResizeFilter::nearest ||
                          (c.filter == ResizeFilter::lanczos && !in_float);
  VIT_CHECK(has_filter || c.resize == ResizeRule::none, where, of,
            "torchvision has no such resampling filter for this data; the Pillow resampler has all");
}

}  // namespace

void validate(const PreprocessConfig& config) {
  const PreprocessChecks checks{config};
  const char* unknown = nullptr;
  internal::visit_preprocess(config, internal::ChoiceCheck{unknown});
  VIT_CHECK(unknown == nullptr, checks.where, checks.of, unknown, " is an undefined number");
  checks.check_resize();
  checks.check_numbers();
  checks.check_multiples();
  checks.check_filter();
}

}  // namespace vit
