// Where the patches of a grid may be among the tokens of a table.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "vit/position/config.h"
#include "vit/position/rope_evidence.h"

namespace vit::internal {

/// What the person knows.
struct IdentifyOptions {
  std::optional<GridSize> grid{};
  std::optional<std::size_t> num_prefix{};
  bool has_basis = false;  // the numbers are those after a change of basis of q and k
};

/// The patches among the tokens of a reading.
struct Placement {
  GridSize grid;
  std::size_t num_frames = 1;
  std::size_t num_prefix = 0;  // tokens before the patches
  std::size_t num_suffix = 0;  // tokens after them
  std::size_t merge = 1;       // patches follow each other in blocks of merge x merge (Qwen2-VL)

  std::size_t num_tokens() const { return num_prefix + num_frames * grid.rows * grid.columns + num_suffix; }
  /// The token of a patch.
  std::size_t token(std::size_t frame, std::size_t row, std::size_t column) const {
    const std::size_t above = row / merge * merge * grid.columns;
    const std::size_t before = above + column / merge * merge * merge;
    const std::size_t patch = before + row % merge * merge + column % merge;
    return num_prefix + frame * grid.rows * grid.columns + patch;
  }
};

/// Grids and frames of so many patches after the tokens of a prefix: the given grid, else all, square ones
/// first, and several frames only if `has_time`.
std::vector<Placement> placements_after(std::size_t num_prefix, std::size_t num_patches, bool has_time,
                                        const IdentifyOptions& options);

/// Where the patches may be: after the given prefix, or after leading tokens that are not rotated, and before
/// trailing ones. The first patch is not rotated either if coordinates count from 0, so it may be one of
/// them. Row by row come first, then in blocks of 2 x 2.
std::vector<Placement> placements_of(const RopeReading& reading, const IdentifyOptions& options);

}  // namespace vit::internal
