#include "vit/position/coordinates.h"

#include <algorithm>
#include <cmath>

#include "vit/base/check.h"
#include "vit/base/checked.h"

namespace vit::position {
namespace {

struct Axis {
  std::size_t length = 0;
  std::size_t reference = 0;  // G_ref
  std::size_t divisor = 0;    // G of centered
};

// Divisions come before products, as in the reference libraries.
double coordinate(std::size_t index, const Axis& axis, const CoordinateOptions& options) {
  const double i = static_cast<double>(index);
  switch (options.rule) {
    case CoordinateRule::index: return i + options.offset;
    case CoordinateRule::scaled_to_reference:
      return (i + options.offset) / static_cast<double>(axis.length) * static_cast<double>(axis.reference);
    case CoordinateRule::corners:
      return axis.length < 2
                 ? 0.0
                 : i * (static_cast<double>(axis.reference) - 1.0) / (static_cast<double>(axis.length) - 1.0);
    case CoordinateRule::centered:
      return 2.0 * ((i + 0.5 + options.offset) / static_cast<double>(axis.divisor)) - 1.0;
  }
  fail("grid_coords", "unknown coordinate rule ", static_cast<int>(options.rule));
}

GridSize centered_divisors(GridSize grid, CenteredBy centered_by) {
  const std::size_t shorter = std::min(grid.rows, grid.columns);
  const std::size_t longer = std::max(grid.rows, grid.columns);
  switch (centered_by) {
    case CenteredBy::each_axis: return grid;
    case CenteredBy::shorter_side: return {shorter, shorter};
    case CenteredBy::longer_side: return {longer, longer};
  }
  fail("grid_coords", "unknown length for centered coordinates ", static_cast<int>(centered_by));
}

}  // namespace

std::size_t num_patches(GridSize grid) {
  VIT_CHECK(grid.rows > 0 && grid.columns > 0, "num_patches", "a grid has at least one patch, got ",
            to_string(grid));
  constexpr std::size_t kMost = std::size_t{1} << 42;  // whose coordinates no memory holds
  const std::size_t count = checked_mul(grid.rows, grid.columns, "num_patches");
  VIT_CHECK(count <= kMost, "num_patches", "a grid of ", to_string(grid), " patches, which no memory holds");
  return count;
}

std::string to_string(GridSize grid) {
  return text(grid.rows, " x ", grid.columns);
}

GridCoords grid_coords(GridSize grid, const CoordinateOptions& options) {
  const std::size_t count = num_patches(grid);
  VIT_CHECK(std::isfinite(options.offset), "grid_coords", "offset must be finite, got ", options.offset);
  const bool has_reference =
      options.rule == CoordinateRule::scaled_to_reference || options.rule == CoordinateRule::corners;
  VIT_CHECK(!has_reference || (options.reference.rows > 0 && options.reference.columns > 0), "grid_coords",
            "scaled coordinates need a reference grid, got ", to_string(options.reference));
  VIT_CHECK(options.rule != CoordinateRule::corners || options.offset == 0.0, "grid_coords",
            "coordinates from corner to corner have no offset, got ", options.offset);
  const GridSize divisors = centered_divisors(grid, options.centered_by);
  const Axis x_axis{grid.columns, options.reference.columns, divisors.columns};
  const Axis y_axis{grid.rows, options.reference.rows, divisors.rows};

  GridCoords coords;
  coords.t_x.reserve(count);
  coords.t_y.reserve(count);
  for (std::size_t row = 0; row < grid.rows; ++row) {
    for (std::size_t column = 0; column < grid.columns; ++column) {
      coords.t_x.push_back(coordinate(column, x_axis, options));
      coords.t_y.push_back(coordinate(row, y_axis, options));
    }
  }
  return coords;
}

GridCoords clip_coords(std::size_t num_frames, GridSize grid, const CoordinateOptions& options) {
  VIT_CHECK(num_frames > 0, "clip_coords", "a clip has at least one frame");
  const GridCoords frame = grid_coords(grid, options);
  const std::size_t count = checked_mul(num_frames, frame.size(), "clip_coords");
  GridCoords coords;
  coords.t_x.reserve(count);
  coords.t_y.reserve(count);
  coords.t_t.reserve(count);
  for (std::size_t t = 0; t < num_frames; ++t) {
    coords.t_x.insert(coords.t_x.end(), frame.t_x.begin(), frame.t_x.end());
    coords.t_y.insert(coords.t_y.end(), frame.t_y.begin(), frame.t_y.end());
    coords.t_t.insert(coords.t_t.end(), frame.size(), static_cast<double>(t));
  }
  return coords;
}

GridCoords window_coords(GridSize grid, std::size_t window, const CoordinateOptions& options) {
  VIT_CHECK(window != 0, "window_coords", "windows of 0 patches");
  const std::vector<double> x = grid_coords({1, window}, options).t_x;
  const std::vector<double> y = grid_coords({window, 1}, options).t_y;
  GridCoords coords;
  for (std::size_t patch = 0; patch < num_patches(grid); ++patch) {
    coords.t_x.push_back(x[patch % grid.columns % window]);
    coords.t_y.push_back(y[patch / grid.columns % window]);
  }
  return coords;
}

GridCoords reordered(const GridCoords& coords, std::span<const std::uint32_t> order) {
  const auto reorder = [&](const std::vector<double>& values) {
    if (values.empty()) return values;
    VIT_CHECK(values.size() == order.size(), "reordered", values.size(), " coordinates in an order of ",
              order.size());
    std::vector<double> out(values.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      VIT_CHECK(order[i] < values.size(), "reordered", "place ", order[i], " of ", values.size());
      out[i] = values[order[i]];
    }
    return out;
  };
  return {.t_x = reorder(coords.t_x), .t_y = reorder(coords.t_y), .t_t = reorder(coords.t_t)};
}

std::vector<double> coords_1d(std::size_t length, double offset) {
  VIT_CHECK(length > 0, "coords_1d", "a sequence has at least one token");
  VIT_CHECK(std::isfinite(offset), "coords_1d", "offset must be finite, got ", offset);
  std::vector<double> coords(length);
  for (std::size_t i = 0; i < length; ++i) coords[i] = static_cast<double>(i) + offset;
  return coords;
}

}  // namespace vit::position
