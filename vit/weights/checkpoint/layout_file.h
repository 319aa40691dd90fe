// A layout that comes from the caller: a JSON file that says what the model is, where its tensors lie and how
// images are preprocessed (weights/layouts.md). What it leaves out is inferred from the tensors, or asked for
// by name.
#pragma once

#include <filesystem>

#include "vit/config/load_options.h"
#include "vit/io/json.h"
#include "vit/weights/checkpoint/find_model.h"
#include "vit/weights/families/family.h"

namespace vit::internal {

/// The file, with limits fit for a layout. Throws Error if it is none.
Json load_layout(const std::filesystem::path& path);

/// What the layout calls the tensor that cuts patches, by which its model is found in a file; "" if it names
/// The names by which the model of this layout file is found.
OwnNames layout_names(const Json& layout);

/// Reads a checkpoint as `layout` says; sets files.match. Throws Error naming file and key for what is not
/// known, out of range, or missing.
ParsedModel read_by_layout(SourceFiles& files, const Json& layout);

/// The member `preprocess` of a layout, for the native size of the model.
PreprocessConfig read_layout_preprocess(const Json& layout, const ModelConfig& config,
                                        const ModelOptions& options);

}  // namespace vit::internal
