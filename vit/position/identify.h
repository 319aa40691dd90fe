// Finds which convention rotary factors follow: a published one, or what can be said of its choices. A name
// is given only if all that was measured agrees with it within rounding.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vit/position/conventions.h"
#include "vit/position/rope_evidence.h"
#include "vit/position/rope_placements.h"

namespace vit::internal {

/// Which choices the factors determine.
struct KnownChoices {
  bool coordinates = false;  // with offset and reference
  bool order = false;
  bool pairing = false;
  bool frequencies = false;
  bool theta = false;  // not with a single frequency an axis
};

/// What was found.
struct RopeIdentity {
  const position::RopeConvention* convention = nullptr;  // the published one that agrees; null if none does
  /// All that agree: on some grids, and without a pairing, several cannot be distinguished.
  std::vector<const position::RopeConvention*> agreeing{};
  /// The choices as measured, or those of the convention; nothing if the factors are none of patches on a
  /// grid.
  std::optional<position::RopeConvention> choices{};
  KnownChoices known{};
  std::optional<GridSize> grid{};
  std::size_t num_frames = 1;
  std::size_t num_prefix = 0;
  std::size_t num_suffix = 0;
  std::size_t merge = 1;  // patches in blocks of merge x merge
  std::optional<double>
      error{};  // largest difference from the choices, or from the nearest convention, of a factor
  const position::RopeConvention* nearest = nullptr;
  std::vector<std::string> notes{};  // what else can be said, in sentences
};

/// The vectors of read_rotated(), for conventions that are not rotations; may be empty.
struct RotatedVectors {
  const RopeNumbers* before = nullptr;
  const RopeNumbers* after = nullptr;
};

/// Identifies the factors of one file, in whichever of the readings one fits.
RopeIdentity identify_rope(std::span<const RopeReading> readings, const RotatedVectors& vectors,
                           const IdentifyOptions& options);

/// Sets the convention to the only one that agrees, or of several with the same frequencies to `preferred` if
/// it is one of them, else to the first.
void choose_convention(RopeIdentity& identity, const position::RopeConvention* preferred);
/// Families of all conventions that agree.
std::vector<std::string> families_of(const RopeIdentity& identity);

/// Names of the choices that differ: "coordinates", "offset", "reference", "order", "pairing", "frequencies"
/// and of these "rule", "theta", "factor", and "basis".
std::vector<std::string> differing_choices(const position::RopeConvention& choices, const KnownChoices& known,
                                           const position::RopeConvention& other);

}  // namespace vit::internal
