#include "vit/position/rope_placements.h"

#include <algorithm>
#include <cmath>

namespace vit::internal {
namespace {

constexpr std::size_t kMaxFrames = 64;

bool is_rotated_token(const RopeReading& reading, std::size_t token) {
  for (std::size_t head = 0; head < reading.num_heads; ++head) {
    for (std::size_t column = 0; column < reading.num_columns; ++column) {
      const std::complex<double> factor = reading.at(head, token, column);
      const auto [of_cos, of_sin] = reading.allowed(head, token, column, 0.0);
      if (std::abs(factor.real() - 1.0) > of_cos || std::abs(factor.imag()) > of_sin) return true;
    }
  }
  return false;
}

/// The first token from `start` on that has a factor other than 1.
std::size_t first_rotated(const RopeReading& reading, std::size_t start) {
  while (start < reading.num_tokens && !is_rotated_token(reading, start)) ++start;
  return start;
}

/// Grids of so many patches, square ones first.
std::vector<GridSize> grids_of(std::size_t patches) {
  std::vector<GridSize> out;
  for (std::size_t rows = 1; rows * rows <= patches; ++rows) {
    if (patches % rows != 0) continue;
    out.push_back({rows, patches / rows});
    if (rows * rows != patches) out.push_back({patches / rows, rows});
  }
  std::ranges::stable_sort(out, {}, [](GridSize grid) {
    return std::abs(std::log(static_cast<double>(grid.rows) / static_cast<double>(grid.columns)));
  });
  return out;
}

}  // namespace

std::vector<Placement> placements_after(std::size_t num_prefix, std::size_t num_patches, bool has_time,
                                        const IdentifyOptions& options) {
  std::vector<Placement> out;
  if (num_patches == 0) return out;
  if (options.grid) {
    const std::size_t in_grid = options.grid->rows * options.grid->columns;
    if (num_patches % in_grid == 0 && (has_time || num_patches == in_grid))
      out.push_back({*options.grid, num_patches / in_grid, num_prefix});
    return out;
  }
  for (std::size_t frames = 1; frames <= (has_time ? std::min(kMaxFrames, num_patches) : 1); ++frames) {
    if (num_patches % frames != 0) continue;
    for (const GridSize grid : grids_of(num_patches / frames)) out.push_back({grid, frames, num_prefix});
  }
  return out;
}

std::vector<Placement> placements_of(const RopeReading& reading, const IdentifyOptions& options) {
  std::vector<Placement> out;
  const std::size_t unrotated = first_rotated(reading, 0);
  if (unrotated == reading.num_tokens) return out;
  std::size_t suffix = 0;
  while (!is_rotated_token(reading, reading.num_tokens - 1 - suffix)) ++suffix;
  std::vector<std::size_t> prefixes{0};
  if (unrotated > 0) {
    prefixes = {unrotated - 1, unrotated};
  } else {  // or the first one is a class token that is rotated by angles of its own
    const std::size_t second = first_rotated(reading, 1);
    if (second > 1) prefixes.push_back(second - 1);
    prefixes.push_back(second);
  }
  if (options.num_prefix) prefixes = {*options.num_prefix};
  for (const std::size_t prefix : prefixes) {
    if (prefix + suffix >= reading.num_tokens) continue;
    for (Placement& each : placements_after(prefix, reading.num_tokens - prefix - suffix, true, options)) {
      each.num_suffix = suffix;
      out.push_back(each);
    }
  }
  const std::size_t num_by_rows = out.size();
  for (std::size_t i = 0; i < num_by_rows; ++i) {
    Placement merged = out[i];
    merged.merge = 2;
    const auto [rows, columns] = merged.grid;
    if (rows % 2 == 0 && columns % 2 == 0 && columns > 2) out.push_back(merged);
  }
  return out;
}

}  // namespace vit::internal
