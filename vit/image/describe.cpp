// Human-readable description of the rules of a Preprocessor.
#include <cmath>

#include "vit/base/check.h"
#include "vit/image/preprocess.h"

namespace vit {

const char* filter_name(ResizeFilter filter) {
  switch (filter) {
    case ResizeFilter::nearest: return "nearest";
    case ResizeFilter::lanczos: return "lanczos";
    case ResizeFilter::bilinear: return "bilinear";
    case ResizeFilter::bicubic: return "bicubic";
    case ResizeFilter::box: return "box";
    case ResizeFilter::hamming: return "hamming";
    case ResizeFilter::opencv_cubic: return "cubic";
    case ResizeFilter::blurred_bilinear: return "bilinear after a Gaussian blur";
    case ResizeFilter::near_bilinear: return "bilinear without antialias";
  }
  return "unknown";
}

namespace {

std::string arithmetic(const PreprocessConfig& config) {
  if (config.resampler == Resampler::torchvision_uint8) return "as torchvision on 8-bit data";
  if (config.filter == ResizeFilter::opencv_cubic) return "as OpenCV on float data";
  if (config.resampler == Resampler::torchvision_float) return "as torchvision on float data";
  switch (config.pillow) {
    case PillowRelease::up_to_12_1: return "as Pillow up to 12.1";
    case PillowRelease::from_12_2: return "as Pillow 12.2";
    case PillowRelease::from_13_0: return "as Pillow 13";
  }
  return "";
}

std::string joined(const std::vector<double>& values) {
  std::string out;
  for (const double value : values) out += text(out.empty() ? "" : ", ", value);
  return out;
}

std::string tile_words(const PreprocessConfig& config, const std::string& size) {
  const std::string tiles = text("tiles of ", size);
  std::string out;
  switch (config.canvas) {
    case TileCanvas::least_change:
      out = text("resize, keeping the aspect ratio, into at most ", config.max_tiles, " ", tiles);
      break;
    case TileCanvas::nearest_ratio:
      out = text("resize to ", config.min_tiles, " to ", config.max_tiles, " ", tiles,
                 " of about the same aspect ratio");
      break;
    case TileCanvas::least_enlarged:
      out = text("resize to at most ", config.max_tiles, " ", tiles, ", enlarging as little as possible");
      break;
    case TileCanvas::listed:
      out = text("resize, keeping the aspect ratio, into one of ", config.canvases.size() / 2,
                 " canvases of ", tiles);
      break;
    case TileCanvas::whole_edges:
      out = text("resize the longest edge to ", config.longest_edge, ", then edges up to whole ", tiles);
      break;
  }
  return out + (config.overview == TileOverview::always_first
                    ? ", and the whole image into one more before them"
                    : ", and if there are several the whole image into one more");
}

std::string resize_words(const PreprocessConfig& config) {
  const std::string size = text(config.resize_height, " x ", config.resize_width);
  switch (config.resize) {
    case ResizeRule::none: return "no resize";
    case ResizeRule::squash: return "resize to " + size + " ignoring the aspect ratio";
    case ResizeRule::shortest_edge:
      return text("resize the shortest edge to ", config.resize_height,
                  config.longest_edge > 0 ? text(", the longest to ", config.longest_edge, " at most")
                                          : std::string());
    case ResizeRule::shortest_edge_floored:
      return text("resize the shortest edge to ", config.resize_height,
                  config.longest_edge > 0 ? text(", the longest to ", config.longest_edge, " at most")
                                          : std::string(),
                  ", edges down to multiples of ", config.size_multiple);
    case ResizeRule::box: return "warp a box, widened to the aspect ratio and by a quarter, to " + size;
    case ResizeRule::cover: return "resize, keeping the aspect ratio, to cover " + size;
    case ResizeRule::nearer_scale:
      return "resize, keeping the aspect ratio, by the scale to " + size + " that changes less";
    case ResizeRule::contain:
    case ResizeRule::contain_trunc: return "resize, keeping the aspect ratio, to fit into " + size;
    case ResizeRule::patches:
      return text("resize, keeping the aspect ratio, to at most ", config.max_patches, " patches of ",
                  config.patch_size, " x ", config.patch_size);
    case ResizeRule::area:
      return text("resize edges to multiples of ", config.edge_multiple, ", keeping the area between ",
                  config.min_area, " and ", config.max_area, " pixels",
                  config.area_frames > 1 ? text(" of ", config.area_frames, " frames") : std::string());
    case ResizeRule::longest:
      return text("resize the longest edge to ", config.longest_edge,
                  " at most, then edges up to multiples of ", config.edge_multiple);
    case ResizeRule::patch_limit:
      return text("shrink, keeping the aspect ratio, to at most ", config.max_patches, " patches of ",
                  config.patch_size, " x ", config.patch_size);
    case ResizeRule::token_count:
      return text("resize, keeping the aspect ratio, to about ", config.max_patches, " patches of ",
                  config.patch_size, " x ", config.patch_size, ", edges down to multiples of ",
                  config.edge_multiple);
    case ResizeRule::tiles: return tile_words(config, size);
  }
  return "";
}

}  // namespace

std::string Preprocessor::describe() const {
  const PreprocessConfig& config = config_;
  std::string out;
  out += text(config.apply_orientation ? "rotate upright by EXIF; " : "ignore EXIF orientation; ",
              config.alpha_on_white ? "transparency on white" : "drop transparency", "\n");
  if (config.pad_to_square) {
    out += text("pad ", config.square_at_corner ? "at the bottom and right " : "", "to a square with (",
                int{config.square_pad_color[0]}, ", ", int{config.square_pad_color[1]}, ", ",
                int{config.square_pad_color[2]}, ")\n");
  }
  if (config.opencv_longest_edge > 0) {
    out += text("resize the longest edge to ", config.opencv_longest_edge, ", then edges to multiples of ",
                config.size_multiple, ", as OpenCV by area or cubic\n");
  }
  out += resize_words(config);
  if (config.resize != ResizeRule::none && config.resize != ResizeRule::box)
    out += text(", ", filter_name(config.filter), ", ", arithmetic(config));
  if (config.size_multiple > 0 && config.resize != ResizeRule::shortest_edge_floored)
    out += text(", edges to multiples of ", config.size_multiple);
  out += "\n";
  if (config.resize == ResizeRule::tiles && config.canvas == TileCanvas::listed) {
    out += "pad around to whole tiles\n";
  } else if (config.resize == ResizeRule::tiles && config.canvas == TileCanvas::least_change) {
    out += "pad at the bottom and right to whole tiles\n";
  } else if (config.pad_multiple > 0) {
    out += text(config.pad_at_end ? "pad at the bottom and right to multiples of "
                                  : "pad in the middle to multiples of ",
                config.pad_multiple, "\n");
  } else if (!config.crop) {
    out += "no crop\n";
  } else if (config.crop_multiple > 0) {
    out += text("crop the center to multiples of ", config.crop_multiple, "\n");
  } else {
    out += text("crop the center ", config.crop_height, " x ", config.crop_width,
                " (rows x columns), pad with (", int{config.crop_pad_color[0]}, ", ",
                int{config.crop_pad_color[1]}, ", ", int{config.crop_pad_color[2]}, ") if smaller\n");
  }
  if (config.windows) out += "computed as overlapping squares along the longer edge\n";
  if (config.rescale) {
    if (std::abs(config.rescale_factor * 255.0 - 1.0) < 1e-12) {
      out += "divide by 255";
    } else {
      out += text("multiply by ", config.rescale_factor);
    }
  } else {
    out += "keep 0..255";
  }
  if (config.subtract_mean) {
    out += text(", subtract mean (", joined(config.mean), "), divide by (", joined(config.std), ")");
  }
  if (config.normalize == NormalizeRule::in_bfloat16) out += ", in bfloat16";
  if (num_channels() == 1) out += "; gray";
  if (num_channels() != 1 && num_channels() != 3) out += text("; ", num_channels(), " bands");
  if (config.channels == ChannelOrder::bgr && num_channels() == 3)
    out += "; planes in the order blue, green, red";
  return out;
}

}  // namespace vit
