// Where the patches of an image lie: the coordinates t_x, t_y that rotary and sinusoidal encodings measure.
// Turning coordinates into angles is left to rope_table.h.
// Letters: W = grid.columns, N = grid.rows * grid.columns patches in row-major order.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "vit/base/error.h"
#include "vit/config.h"

namespace vit::position {

/// Number of patches of a grid. Throws Error if a side is zero or the product overflows.
VIT_API std::size_t num_patches(GridSize grid);

/// "3 x 5" (rows x columns), for messages.
VIT_API std::string to_string(GridSize grid);

/// The length G that centered coordinates divide an axis by.
enum class CenteredBy {
  each_axis,     // x by columns, y by rows: every grid fills [-1, 1] x [-1, 1] (all published DINOv3 models)
  shorter_side,  // both by min(rows, columns)
  longer_side,   // both by max(rows, columns)
};

/// Coordinate of patch i of G along one axis, by rule:
///   index                i + offset                 rope-vit, SAM 2; with offset 1 Meta's Perception Encoder
///   scaled_to_reference  (i + offset) / G * G_ref   EVA-02, timm's Perception Encoder
///   centered              2 (i + 0.5 + offset) / G - 1   DINOv3, without an offset
struct CoordinateOptions {
  CoordinateRule rule = CoordinateRule::index;
  double offset = 0.0;
  GridSize reference{};                            // G_ref of scaled_to_reference, per axis
  CenteredBy centered_by = CenteredBy::each_axis;  // of centered
};

/// Two coordinates per patch, in double; patch t lies in column t mod W and row floor(t / W).
struct GridCoords {
  std::vector<double> t_x;  // (N), grows to the right
  std::vector<double> t_y;  // (N), grows downwards

  std::size_t size() const noexcept { return t_x.size(); }
};

/// Coordinates of all patches of a grid. Throws Error if a side of the grid is zero, a side of the
/// reference grid is zero and the rule needs it, or the offset is not finite.
VIT_API GridCoords grid_coords(GridSize grid, const CoordinateOptions& options = {});

/// Coordinates i + offset of a sequence of `length` tokens, for the one-dimensional encodings.
VIT_API std::vector<double> coords_1d(std::size_t length, double offset = 0.0);

}  // namespace vit::position
