// Checkpoints of published architectures, whose names imply the arguments of timm's models: what the
// pages of timm, Naver, BAAI, Meta, OpenAI and OpenCLIP share. The configuration's own arguments count where
// timm saved the folder, the tensors' sizes if the file is bare, and the caller's overrides in either
// case.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vit/weights/families/family.h"

namespace vit::internal {

/// Where OpenCLIP's models keep a tower of timm's.
inline constexpr std::string_view kTimmPrefixes[] = {"", "visual.trunk.", "visual."};

/// The architecture's arguments with those of timm's config.json, if there is one.
TimmArgs declared_args(const SourceFiles& files, const Architecture& architecture);

/// The arguments of the model as the file has it, before the caller's overrides: those of timm's config.json,
/// else the architecture's with the sizes of the tensors, which `layout` finds.
TimmArgs stored_args(const SourceFiles& files, const Architecture& architecture, const Layout& layout);

/// A published model: its arguments with the caller's overrides, and what these mean.
struct Published {
  TimmArgs stored;  // before the overrides
  TimmArgs args;
  ModelConfig config;
};
/// `own_keys` are the overrides that are no arguments of timm's.
Published read_published(const SourceFiles& files, const Architecture& architecture, const TimmArgs& stored,
                         const char* library, std::span<const std::string_view> own_keys = {});

/// The end of a page: the grid of the stored position table, and what the reader should know.
ParsedModel finish(const SourceFiles& files, const Architecture& architecture, Published published,
                   Layout layout, std::vector<std::span<const Ignored>> ignored,
                   std::vector<std::string> notes = {});

/// ModelOptions::architecture, else the config's; "" if neither is given.
std::string architecture_name(const SourceFiles& files);
/// Whether the architecture was given by a name of this library, and of this family where that is not "".
bool is_named_by(const SourceFiles& files, std::string_view library, std::string_view family = "");
/// Sets the image to a square of that many patches; leaves it where it is one already, though it be larger by
/// a part of a patch, or if no square has so many.
void set_square_image(std::size_t num_patches, TimmArgs& args);
/// Whether timm saved the folder, with its name of the architecture and its preprocessing, and no option asks
/// for other rules. Its tensors may have the publisher's names all the same: timm converts them.
bool is_saved_by_timm(const SourceFiles& files);
/// Whether config.json is transformers' or timm's. Publishers that write one for the hub put only the
/// arguments of their own class in it.
bool has_library_config(const SourceFiles& files);
/// Whether timm's rules hold: those of a folder that timm saved, or overrides["rules"] = "timm"; the other
/// value is "publisher".
bool follows_timm(const SourceFiles& files);
/// Value of an override of the page's own, the first of `allowed` if it is not set; throws Error if it
/// is none of `allowed`.
std::string own_option(const SourceFiles& files, const std::string& key,
                       std::span<const std::string_view> allowed);

}  // namespace vit::internal
