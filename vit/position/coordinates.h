// First step of a rotary encoding: coordinates of the patches of a grid. Letters: N = patches of a grid,
// row-major, W = its columns, G = patches along one axis.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "vit/base/error.h"
#include "vit/position/config.h"

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
///   centered             2 (i + 0.5 + offset) / G - 1   DINOv3, without an offset
///   corners              i (G_ref - 1) / (G - 1), 0 for G = 1, without an offset   V-JEPA 2.1
struct CoordinateOptions {
  CoordinateRule rule = CoordinateRule::index;     // one of the above
  double offset = 0.0;                             // added to the index of a patch
  GridSize reference{};                            // G_ref of scaled_to_reference and corners, per axis
  CenteredBy centered_by = CenteredBy::each_axis;  // of centered
};

/// Two coordinates per patch, in double; patch t lies in column t mod W and row floor(t / W). A clip has a
/// third one, and its patches are counted frame by frame.
struct GridCoords {
  std::vector<double> t_x;    // (N), grows to the right
  std::vector<double> t_y;    // (N), grows downwards
  std::vector<double> t_t{};  // (N), grows with time; empty for an image

  std::size_t size() const noexcept { return t_x.size(); }  // N: patches of the grid, of all frames
};

/// Coordinates of all patches of a grid. Throws Error if a side of the grid is zero, a side of the
/// reference grid is zero and the rule needs it, or the offset is not finite.
VIT_API GridCoords grid_coords(GridSize grid, const CoordinateOptions& options = {});

/// Coordinates of all patches of a clip: those of its grid in every frame, and the index of the frame. Throws
/// Error as above, or if there is no frame.
VIT_API GridCoords clip_coords(std::size_t num_frames, GridSize grid, const CoordinateOptions& options = {});

/// Coordinates of the patches of a grid whose windows of w x w patches are grids of their own: they count
/// from the corner of the window (SAM 3). Throws Error as grid_coords().
VIT_API GridCoords window_coords(GridSize grid, std::size_t window, const CoordinateOptions& options = {});

/// The coordinates reordered: those of patch order[i] at place i, for all of N patches. Throws Error if the
/// lengths differ.
VIT_API GridCoords reordered(const GridCoords& coords, std::span<const std::uint32_t> order);

/// Coordinates i + offset of a sequence of `length` tokens, for the one-dimensional encodings. Throws
/// Error for no tokens, or an offset that is not finite.
VIT_API std::vector<double> coords_1d(std::size_t length, double offset = 0.0);

}  // namespace vit::position
