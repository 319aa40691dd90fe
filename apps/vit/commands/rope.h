// Parts of vit rope: options, tables of a convention, and identification of a file.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "apps/vit/ground/option_values.h"
#include "vit/position/conventions.h"

namespace vit::app {

struct RopeOptions {
  std::vector<std::string> words;  // identify FILE
  bool list = false;
  PrintFormat format = PrintFormat::text;

  std::string family;
  std::optional<GridSize> grid{};
  std::size_t head_dim = 0;  // 0: not given
  std::size_t num_frames = 1;
  std::optional<std::size_t> num_heads{};
  std::optional<std::size_t> num_prefix{};
  std::filesystem::path output, png;
  bool vectors = false;
  std::string against;

  // In place of the family. Nothing: the default.
  std::optional<position::PatchCoordinates> coordinates{};
  std::optional<double> offset{};
  std::optional<GridSize> reference{};
  std::optional<AxisOrder> order{};
  std::optional<position::PairLayout> channels{};
  std::optional<position::FrequencyRule> rule{};
  std::optional<double> theta{};
  std::optional<position::PeriodRange> periods{};
  std::optional<double> max_frequency{};
  std::optional<double> factor{};
};

/// The convention of the name. Throws UsageError with the known names.
const position::RopeConvention& known_convention(const char* option, const std::string& name);

/// Writes the tables of a family or of choices. Returns the exit code.
int write_rope_tables(const RopeOptions& options);
/// Prints which convention a file follows. Returns 0 for a name, 1 for none.
int identify_rope_tables(const RopeOptions& options);
/// Draws the cosines of all pairs over the grid, one square a pair.
void draw_rope_angles(const std::filesystem::path& path, TensorView<const double> angles, GridSize grid);

}  // namespace vit::app
