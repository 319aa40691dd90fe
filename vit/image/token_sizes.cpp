#include "vit/image/token_sizes.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "vit/base/check.h"
#include "vit/base/checked.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"preprocess", ErrorKind::argument};
constexpr double kMostEdge = 1e9;  // of an intermediate edge, before limits of memory

std::size_t whole(double edge) {
  return static_cast<std::size_t>(std::clamp(edge, 0.0, kMostEdge));
}

struct Edges {
  double height, width;
};

/// First step for edges shorter than `factor`.
Edges enlarge_short(Edges in, double factor, ShortEdges rule) {
  if (rule == ShortEdges::both && (in.height < factor || in.width < factor)) {
    const double scale = std::max(factor / in.height, factor / in.width);
    return {std::trunc(in.height * scale), std::trunc(in.width * scale)};
  }
  if (rule == ShortEdges::each) {
    if (in.height < factor) in = {factor, std::nearbyint(in.width * factor / in.height)};
    if (in.width < factor) in = {std::nearbyint(in.height * factor / in.width), factor};
  }
  return in;
}

/// That changes the image least without making it smaller, or that shrinks it least; of several the smallest.
/// Scales are float32, as in the library.
ImageSize least_changed_canvas(ImageSize in, const PreprocessConfig& config) {
  const auto height = static_cast<float>(in.height), width = static_cast<float>(in.width);
  struct Canvas {
    ImageSize size;
    float scale = 0.0f;
  } best;
  const auto is_better = [&](const Canvas& canvas) {
    if (best.scale == 0.0f) return true;
    if (canvas.scale == best.scale)
      return canvas.size.height * canvas.size.width < best.size.height * best.size.width;
    const bool enlarges = canvas.scale >= 1.0f;
    if (enlarges != (best.scale >= 1.0f)) return enlarges;
    return enlarges && !config.fills_canvas ? canvas.scale < best.scale : canvas.scale > best.scale;
  };
  for (std::size_t count = config.max_tiles; count >= 1; --count) {
    for (std::size_t rows = 1; rows <= count; ++rows) {
      if (count % rows != 0) continue;
      const ImageSize size{rows * config.resize_height, count / rows * config.resize_width};
      const Canvas canvas{
          size, std::min(static_cast<float>(size.height) / height, static_cast<float>(size.width) / width)};
      if (is_better(canvas)) best = canvas;
    }
  }
  return best.size;
}

/// Calls visit(rows, columns) for all canvases of `least` to `most` tiles, by their number, then columns.
template <typename Visit>
void for_each_canvas(std::size_t least, std::size_t most, const Visit& visit) {
  for (std::size_t count = std::max<std::size_t>(least, 1); count <= most; ++count) {
    for (std::size_t columns = 1; columns <= count; ++columns)
      if (count % columns == 0) visit(count / columns, columns);
  }
}

/// The aspect ratio nearest to that of the image; of equals the largest of which the image fills more than
/// half.
ImageSize nearest_canvas(ImageSize in, const PreprocessConfig& config) {
  const double ratio = static_cast<double>(in.width) / static_cast<double>(in.height);
  const double area = static_cast<double>(in.width) * static_cast<double>(in.height);
  const double tile = static_cast<double>(config.resize_height) * static_cast<double>(config.resize_width);
  ImageSize best{config.resize_height, config.resize_width};
  double least = std::numeric_limits<double>::infinity();
  for_each_canvas(config.min_tiles, config.max_tiles, [&](std::size_t rows, std::size_t columns) {
    const double change = std::abs(ratio - static_cast<double>(columns) / static_cast<double>(rows));
    const bool fills = area > 0.5 * tile * static_cast<double>(columns) * static_cast<double>(rows);
    if (change > least || (change == least && !fills)) return;
    least = change;
    best = {rows * config.resize_height, columns * config.resize_width};
  });
  return best;
}

/// That enlarges the image least, or, if all shrink it, that which shrinks it least.
ImageSize least_enlarged_canvas(ImageSize in, const PreprocessConfig& config) {
  ImageSize best{};
  double scale = 0.0;
  for_each_canvas(1, config.max_tiles, [&](std::size_t rows, std::size_t columns) {
    const ImageSize size{rows * config.resize_height, columns * config.resize_width};
    const double by = std::min(static_cast<double>(size.width) / static_cast<double>(in.width),
                               static_cast<double>(size.height) / static_cast<double>(in.height));
    const bool is_better =
        scale == 0.0 || (by >= 1.0 ? scale < 1.0 || by < scale : by > scale && scale < 1.0);
    if (!is_better) return;
    scale = by;
    best = size;
  });
  return best;
}

/// That which keeps most of the image's pixels, of equals that which wastes least.
ImageSize listed_canvas(ImageSize in, const PreprocessConfig& config) {
  const auto height = static_cast<double>(in.height), width = static_cast<double>(in.width);
  ImageSize best{};
  std::size_t most = 0, least_wasted = 0;
  for (std::size_t i = 0; i + 1 < config.canvases.size(); i += 2) {
    const ImageSize size{config.canvases[i], config.canvases[i + 1]};
    const double scale =
        std::min(static_cast<double>(size.width) / width, static_cast<double>(size.height) / height);
    const std::size_t kept =
        std::min(whole(std::trunc(width * scale)) * whole(std::trunc(height * scale)), in.width * in.height);
    const std::size_t wasted = size.height * size.width - kept;
    if (kept < most || (kept == most && best.height != 0 && wasted >= least_wasted)) continue;
    best = size;
    most = kept;
    least_wasted = wasted;
  }
  return best;
}

/// Both edges up to whole tiles, the longer first.
ImageSize whole_edges(ImageSize in, const PreprocessConfig& config) {
  const double ratio = static_cast<double>(in.width) / static_cast<double>(in.height);
  ImageSize out{};
  if (in.width >= in.height) {
    out.width = round_up(in.width, config.resize_width);
    out.height = round_up(whole(std::trunc(static_cast<double>(out.width) / ratio)), config.resize_height);
  } else {
    out.height = round_up(in.height, config.resize_height);
    out.width = round_up(whole(std::trunc(static_cast<double>(out.height) * ratio)), config.resize_width);
  }
  return {std::max(out.height, config.resize_height), std::max(out.width, config.resize_width)};
}

}  // namespace

ImageSize size_by_area(ImageSize image, const PreprocessConfig& config) {
  constexpr double kMostRatio = 200.0;
  const auto factor = static_cast<double>(config.edge_multiple);
  const auto most = static_cast<double>(config.max_area), least = static_cast<double>(config.min_area);
  const auto frames = static_cast<double>(config.area_frames);
  const auto of_patch = static_cast<double>(config.frames_of_patch);
  const double filled = frames > 1.0 ? std::nearbyint(frames / of_patch) * of_patch : 1.0;
  const Edges in = enlarge_short({static_cast<double>(image.height), static_cast<double>(image.width)},
                                 factor, config.short_edges);
  const double ratio = std::max(in.height, in.width) / std::min(in.height, in.width);
  VIT_CHECK(ratio <= kMostRatio, kWhere, "an image of ", image.width, " x ", image.height,
            " is more than 200 times as long as it is wide; the rules of ", config.source, " refuse it");
  double height = std::nearbyint(in.height / factor) * factor;
  double width = std::nearbyint(in.width / factor) * factor;
  if (filled * height * width > most) {
    const double shrink = std::sqrt(frames * in.height * in.width / most);
    height = std::max(factor, std::floor(in.height / shrink / factor) * factor);
    width = std::max(factor, std::floor(in.width / shrink / factor) * factor);
  } else if (filled * height * width < least) {
    const double enlarge = std::sqrt(least / (frames * in.height * in.width));
    height = std::ceil(in.height * enlarge / factor) * factor;
    width = std::ceil(in.width * enlarge / factor) * factor;
  }
  return {whole(height), whole(width)};
}

ImageSize size_by_longest(ImageSize image, const PreprocessConfig& config) {
  const auto factor = static_cast<double>(config.edge_multiple),
             longest = static_cast<double>(config.longest_edge);
  Edges in{static_cast<double>(image.height), static_cast<double>(image.width)};
  const double ratio = std::max(in.height / longest, in.width / longest);
  if (ratio > 1.0) in = {std::floor(in.height / ratio), std::floor(in.width / ratio)};
  const auto up = [&](double edge) { return (std::floor((edge - 1.0) / factor) + 1.0) * factor; };
  return {whole(up(in.height)), whole(up(in.width))};
}

ImageSize size_by_patch_limit(ImageSize image, const PreprocessConfig& config) {
  const auto patch = static_cast<double>(config.patch_size);
  const auto height = static_cast<double>(image.height), width = static_cast<double>(image.width);
  const double patches = std::max(1.0, std::floor(height / patch)) * std::max(1.0, std::floor(width / patch));
  double scale = std::min(1.0, std::sqrt(static_cast<double>(config.max_patches) / patches));
  double side = kMostEdge;
  if (config.max_side != 0) {
    side = static_cast<double>(config.max_side) * patch;
    scale = std::min({scale, side / height, side / width});
  }
  const auto scaled = [&](double edge) { return std::min(std::max(1.0, std::trunc(edge * scale)), side); };
  return {whole(scaled(height)), whole(scaled(width))};
}

ImageSize size_by_token_count(ImageSize image, const PreprocessConfig& config) {
  const auto patch = static_cast<double>(config.patch_size), cell = static_cast<double>(config.edge_multiple);
  const auto height = static_cast<double>(image.height), width = static_cast<double>(image.width);
  const auto patches = static_cast<double>(config.max_patches);
  const double cells_of_side = cell / patch;
  const double longest = std::floor(patches / (cells_of_side * cells_of_side)) * cell;
  const double scale = std::sqrt(patches * (patch * patch) / (height * width));
  double new_height = std::floor(scale * height / cell) * cell;
  double new_width = std::floor(scale * width / cell) * cell;
  VIT_CHECK(new_height > 0 || new_width > 0, kWhere, "an image of ", image.width, " x ", image.height,
            " is too small for a token of ", config.edge_multiple, " pixels");
  if (new_height == 0) {
    new_height = cell;
    new_width = std::min(std::floor(width / height) * cell, longest);
  } else if (new_width == 0) {
    new_width = cell;
    new_height = std::min(std::floor(height / width) * cell, longest);
  }
  return {whole(new_height), whole(new_width)};
}

ImageSize canvas_of_tiles(ImageSize in, const PreprocessConfig& config) {
  switch (config.canvas) {
    case TileCanvas::least_change: break;
    case TileCanvas::nearest_ratio: return nearest_canvas(in, config);
    case TileCanvas::least_enlarged: return least_enlarged_canvas(in, config);
    case TileCanvas::listed: return listed_canvas(in, config);
    case TileCanvas::whole_edges: return whole_edges(size_before_canvas(in, config), config);
  }
  return least_changed_canvas(in, config);
}

ImageSize size_before_canvas(ImageSize in, const PreprocessConfig& config) {
  if (config.canvas != TileCanvas::whole_edges) return in;
  constexpr std::size_t kLongest = 4096;  // of the library
  const auto scaled = [](ImageSize from, std::size_t longest) {
    const double ratio = static_cast<double>(from.width) / static_cast<double>(from.height);
    const auto edge = static_cast<double>(longest);
    return from.width >= from.height ? ImageSize{whole(std::trunc(edge / ratio)), longest}
                                     : ImageSize{longest, whole(std::trunc(edge * ratio))};
  };
  ImageSize out = scaled(in, config.longest_edge);
  std::size_t& shorter = in.width >= in.height ? out.height : out.width;
  shorter = std::max<std::size_t>(shorter + shorter % 2, 1);
  if (std::max(out.height, out.width) > kLongest) out = scaled(out, kLongest);
  return {std::max<std::size_t>(out.height, 1), std::max<std::size_t>(out.width, 1)};
}

ImageSize size_in_canvas(ImageSize in, ImageSize canvas, const PreprocessConfig& config) {
  if (config.canvas == TileCanvas::listed) {
    const double by_width = static_cast<double>(canvas.width) / static_cast<double>(in.width);
    const double by_height = static_cast<double>(canvas.height) / static_cast<double>(in.height);
    const auto other = [](std::size_t edge, double scale, std::size_t most) {
      return std::min(whole(std::ceil(static_cast<double>(edge) * scale)), most);
    };
    if (by_width < by_height) return {other(in.height, by_width, canvas.height), canvas.width};
    return {canvas.height, other(in.width, by_height, canvas.width)};
  }
  if (config.canvas != TileCanvas::least_change) return canvas;
  // The library computes with an edge of the canvas in float32, with others in double.
  struct Bound {
    std::size_t most;
    bool in_float32;
    double scale;
  };
  const auto bound = [&](std::size_t edge, std::size_t of_canvas) {
    const std::size_t enlarged = std::max(edge, config.resize_height);
    const bool is_of_canvas = config.fills_canvas || of_canvas < enlarged;
    const std::size_t most = is_of_canvas ? of_canvas : enlarged;
    const double scale = is_of_canvas ? static_cast<float>(most) / static_cast<float>(edge)
                                      : static_cast<double>(most) / static_cast<double>(edge);
    return Bound{most, is_of_canvas, scale};
  };
  const Bound rows = bound(in.height, canvas.height), columns = bound(in.width, canvas.width);
  const auto scaled = [](std::size_t edge, const Bound& by, std::size_t most) {
    const double product = by.in_float32 ? static_cast<float>(edge) * static_cast<float>(by.scale)
                                         : static_cast<double>(edge) * by.scale;
    return std::clamp<std::size_t>(whole(std::floor(product)), 1, most);
  };
  const bool by_columns = rows.in_float32 || columns.in_float32
                              ? static_cast<float>(columns.scale) < static_cast<float>(rows.scale)
                              : columns.scale < rows.scale;
  if (by_columns) return {scaled(in.height, columns, rows.most), columns.most};
  return {rows.most, scaled(in.width, rows, columns.most)};
}

}  // namespace vit::internal
