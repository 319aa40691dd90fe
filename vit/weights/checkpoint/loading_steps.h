// What CheckpointFolder does around the families, in this order: adapters, names of foreign layouts,
// quantized weights, rules of classes, stored rotary tables. Each step has a source of its own.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "vit/base/error.h"
#include "vit/config/load_report.h"
#include "vit/io/json.h"
#include "vit/io/tensor_file.h"
#include "vit/weights/families/family.h"

namespace vit::internal {

// LoRA adapters of PEFT, merged into the weights of their base while those are read, as in
// merge_and_unload(). Their bases are found by checkpoint_files.h.

/// The tensors of a model with an adapter: W + s B A, in float32 when they are read, and the tensors that the
/// adapter contains itself (biases, modules_to_save). `root` is the prefix of the model's names; a report
/// is added to `notes`. Throws Error (unsupported) naming kinds of adapters that are not implemented, Error
/// (mismatch) naming modules that are not in the model.
TensorFile join_adapter(const TensorFile& base, const std::string& root, const std::filesystem::path& adapter,
                        std::vector<std::string>& notes);

// Layouts of tensors that are recognized without being read: placeholders, other orders of axes, training
// files of repositories. Part of the message of whatever fails because of them.

/// One sentence on the layout of the tensors and what to do; "" if it is none of these.
std::string foreign_layout(const TensorFile& tensors);

/// The result of `work`. An Error that it throws has the sentence of foreign_layout() at its end.
template <typename Work>
auto naming_layout(const TensorFile& tensors, const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    const std::string layout = foreign_layout(tensors);
    if (layout.empty() || error.message().find(layout) != std::string_view::npos) throw;
    throw Error(error.where(), std::string(error.message()) + "; " + layout, error.kind());
  }
}

// Weights that are no longer floating-point numbers: which program made them so.

/// What quantized the weights and what to do about it, by config.json's quantization_config or by names and
/// types of tensors; "" for plain weights.
std::string describe_quantization(const TensorFile& tensors, const std::optional<Json>& config);

// Information about classes in the files next to the weights, for any family: whether several may be true of
// one image, and the names of taggers.

/// The file in which published taggers list their classes.
inline constexpr const char* kTagFile = "selected_tags.csv";

/// Fills HeadConfig::logits, and labels and categories if the configuration has none and `folder` contains a
/// kTagFile with a row for each class. Throws Error if such a file is not CSV.
void read_class_rules(const SourceFiles& files, const std::filesystem::path& folder, ParsedModel& reading);

// Rotary tables that a file stores and no model reads: cosines, sines and frequencies among the ignored
// tensors. They show a configuration that loads and computes other positions.

/// The start of the notes of a load report that these sentences become.
inline constexpr const char* kContradiction = "the file contradicts the configuration: ";

/// One sentence for each table or list of frequencies of the trained grid that contradicts the configuration.
/// Pairs of tensors that are ignored, with "cos" and "sin" in their names, are tables, lists with "freq" or
/// "period" frequencies. A layout file whose reason to ignore one starts with "not used" leaves it out.
std::vector<std::string> contradicting_rope_tables(const TensorFile& tensors, const ModelConfig& config,
                                                   const LoadReport& report);

}  // namespace vit::internal
