// Published architectures by name: one row each, and the search in the table of rows. The arguments are
// interpreted by to_config().
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vit/image/preprocess.h"
#include "vit/weights/architectures/timm_args.h"

namespace vit::internal {

/// One published architecture: constructor arguments, and the preprocessing of its published weights.
struct Architecture {
  std::string_view name;
  std::string_view family;            // "rope-vit", "eva02", "vit", ...
  std::string_view library = "timm";  // library with this name: "timm", "Naver", "BAAI", "Meta"
  std::string_view timm_name{};       // timm's name for it, if the library is another
  TimmArgs args{};
  /// Width of the joint space to which towers of this name are published with a projection; 0 = they are not.
  std::size_t projection_dim = 0;
  std::array<double, 3> mean{0.485, 0.456, 0.406};
  std::array<double, 3> std{0.229, 0.224, 0.225};
  double crop_pct = 0.9;
  bool squash = false;
  ResizeFilter filter = ResizeFilter::bicubic;
  Resampler resampler = Resampler::pillow;
  std::size_t evaluated_at = 0;  // edge of the crop; 0 = native size
};

/// All architectures known by name, sorted by it.
std::span<const Architecture> architectures();

/// The architecture of that name, or null: timm's, the publishers', OpenCLIP's and torchvision's. An owner
/// before a slash is dropped, and so is a tag after a dot unless a deprecated name of timm refers to
/// it. Such names are accepted here, but not listed above.
const Architecture* find_known_architecture(std::string_view name);

/// The architecture of that name, found as find_known_architecture() finds it. Throws Error with the nearest
/// names for an unknown one.
const Architecture& find_architecture(std::string_view name);

/// The row under which `library` published the model that timm calls `timm_name`, or null; the first by name
/// if that is several files. Files of BAAI that differ in preprocessing start with those fine-tuned directly
/// from pretraining.
const Architecture* find_published(std::string_view library, std::string_view timm_name);

/// At most `count` names close to `name`: those that start with it, then by edit distance; none that differ
/// in more than a third of its letters.
std::vector<std::string> nearest_architectures(std::string_view name, std::size_t count);
/// The same for the end of a message: "; the nearest known names are ...", "" if none is similar.
std::string near_architectures(std::string_view name, std::size_t count);

}  // namespace vit::internal
