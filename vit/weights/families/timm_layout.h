// The layout that timm's VisionTransformer and Eva classes write, and the hooks through which a publisher's
// page says where its own files differ: other names, other shapes, other rules. timm_vit.cpp is the page
// without differences.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vit/weights/families/family.h"
#include "vit/weights/families/timm_args.h"

namespace vit::internal {

/// Prefixes that training scripts and wrappers put in front of timm's names.
inline constexpr std::string_view kTimmPrefixes[] = {"",
                                                     "module.",
                                                     "model.",
                                                     "timm_model.",
                                                     "visual.trunk.",
                                                     "visual.",
                                                     "module.visual.trunk.",
                                                     "module.visual.",
                                                     "module.model.",
                                                     "backbone.",
                                                     "module.backbone."};

/// How a publisher's file differs from timm's. Hooks may be null.
struct TimmLayout {
  const char* library = "timm";
  /// The file's name for the tensor that timm calls `name`.
  std::string (*rename)(const std::string& name) = nullptr;
  /// Whether a file without timm's config tells its sizes by its tensors; false where the architecture that
  /// is handed over holds them all.
  bool sizes_from_tensors = true;
  /// Arguments that follow from this layout's tensors, or from the publisher's way of using the model.
  /// `--set` comes later.
  void (*adjust_args)(const SourceFiles& files, const Architecture& architecture, TimmArgs& args) = nullptr;
  /// The publisher's rules where they are not timm's; skipped where timm's hold.
  void (*apply_rules)(const SourceFiles& files, ModelConfig& config) = nullptr;
  /// Facts of the file that hold under any rules.
  void (*adjust_config)(const SourceFiles& files, ModelConfig& config) = nullptr;
  /// Pieces of a tensor that renaming cannot express; empty where it can.
  std::vector<Piece> (*pieces)(const SourceFiles& files, const ModelConfig& config,
                               const std::string& canonical, const Shape& shape) = nullptr;
  /// Tensors that only this layout has and the model does not need.
  std::string (*ignore_reason)(const std::string& name, bool has_prefix) = nullptr;
  std::vector<std::string> (*notes)(const SourceFiles& files, const ModelConfig& config) = nullptr;
  /// --set keys of this layout alone, besides "rules".
  std::span<const std::string_view> own_keys{};
};

/// The adapter of a checkpoint in this layout. Throws Error where no architecture is known; the message names
/// those whose tensors these are.
std::unique_ptr<Adapter> adapt_timm_layout(const SourceFiles& files, const TimmLayout& layout);

/// The same for an architecture that need not be known by name.
std::unique_ptr<Adapter> adapt_timm_layout(const SourceFiles& files, const TimmLayout& layout,
                                           Architecture architecture);

/// --architecture, else the config's; "" where neither is given.
std::string architecture_name(const SourceFiles& files);
/// Whether the architecture was given by a name of this library: "Meta", and of this family where that is not
/// "".
bool is_named_by(const SourceFiles& files, std::string_view library, std::string_view family = "");
/// Sets the image to a square of that many patches; leaves it where it is one already, though it be larger by
/// a part of a patch, and where no square has so many.
void set_square_image(std::size_t num_patches, TimmArgs& args);
/// Whether timm saved the folder, with its name of the architecture and its preprocessing, and nobody asks
/// for other rules. Its tensors may have the publisher's names all the same: timm converts them.
bool is_saved_by_timm(const SourceFiles& files);
/// Whether timm's rules hold: those of a folder that timm saved, or --set rules=timm; the other value is
/// "publisher".
bool follows_timm(const SourceFiles& files);
/// Value of an option of the layout, the first of `allowed` where it is not set; throws Error where it is
/// none of `allowed`.
std::string layout_option(const SourceFiles& files, const std::string& key,
                          std::span<const std::string_view> allowed);

}  // namespace vit::internal
