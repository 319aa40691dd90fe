#include "vit/image/token_sizes.h"

#include <algorithm>
#include <cmath>

#include "vit/base/check.h"

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

ImageSize size_in_canvas(ImageSize in, ImageSize canvas, const PreprocessConfig& config) {
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
