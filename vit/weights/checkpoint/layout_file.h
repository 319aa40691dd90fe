// A layout that comes from the caller: a JSON file that says what the model is, where its tensors lie and how
// images are preprocessed (weights/layouts.md). What it leaves out is inferred from the tensors, or asked for
// by name.
#pragma once

#include <deque>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "vit/config/load_options.h"
#include "vit/io/json.h"
#include "vit/weights/checkpoint/find_model.h"
#include "vit/weights/families/family.h"
#include "vit/weights/families/layout.h"

namespace vit::internal {

/// The file, with limits fit for a layout. Throws Error if it is none.
Json load_layout(const std::filesystem::path& path);

/// The names by which the model of this layout file is found.
OwnNames layout_names(const Json& layout);

/// Reads a checkpoint as `layout` says; sets files.match. Throws Error naming file and key for what is not
/// known, out of range, or missing.
ParsedModel read_by_layout(SourceFiles& files, const Json& layout);

/// The member `preprocess` of a layout, for the native size of the model.
PreprocessConfig read_layout_preprocess(const Json& layout, const ModelConfig& config,
                                        const ModelOptions& options);

// the parts of read_by_layout()

/// Fills the fields of reading.config that are not `given`. Biases that the file does not have become zeros
/// if the model needs some. Throws Error naming every field that is missing.
void infer_sizes(const SourceFiles& files, const std::string& layout_name, const std::set<std::string>& given,
                 ParsedModel& reading);

/// Rows and reasons, with the texts that they point into.
struct LayoutTables {
  std::vector<Row> rows;
  std::vector<Ignored> ignored;
  std::deque<std::string> texts;
};

/// Throws Error naming file and key for a tensor that no model has, a name without the number of its block,
/// and pieces that do not fill a tensor.
std::shared_ptr<LayoutTables> read_layout_tables(const Json& layout);

}  // namespace vit::internal
