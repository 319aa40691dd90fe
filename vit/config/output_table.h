// The table of outputs: one row gives the name of an output, the models that have it, its shape, and the
// tensor that stores it. All code that lists, parses, checks or stores outputs reads it; a new output is a
// row here, an enumerator of Output, and the layer that fills the tensor.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "vit/config.h"
#include "vit/outputs.h"

namespace vit::internal {

/// Sizes that determine shapes.
struct OutputSizes {
  const ModelConfig& config;
  std::size_t num_images = 0;  // steps that are apart count as images
  GridSize grid;
  std::size_t num_tokens = 0;  // of an image, prefix tokens included
};

/// The index that selects one of several outputs of a name.
enum class OutputIndex {
  none,             // "pooled"
  block,            // "block.K"
  merger,           // "deepstack.K"
  block_and_token,  // "rollout.K.T"
};

struct OutputRow {
  Output output;
  std::string_view name;
  std::string_view shape;  // for n images, as shown by --help
  std::string_view what;   // one line of help
  OutputIndex index = OutputIndex::none;
  bool is_vector = false;         // of the same length for all images: usable for heads and indexes
  bool needs_all_tokens = false;  // no block may skip some
  /// What a model lacks for it, and what to request instead; "" if it lacks nothing. Null = all models
  /// have it.
  std::string_view (*lack)(const ModelConfig&) = nullptr;
  /// (B, ...). Null for part of another output.
  Shape (*shape_of)(const OutputSizes&) = nullptr;
  Output stored_in = output;  // whose tensor stores the values
  /// The part of an image in that tensor; null = all.
  TensorView<const float> (*part_of)(TensorView<const float> stored, const Outputs& outputs) = nullptr;
};

std::span<const OutputRow> output_table();
const OutputRow& row_of(Output output);
/// "pooled", "block.K", "rollout.K.Q"
std::string pattern_of(const OutputRow& row);
/// Size of the vector of an image, for a vector output.
std::size_t vector_width(Output output, const ModelConfig& config);

/// Throws Error if the model does not have a requested output.
void check_request(const Request& request, const ModelConfig& config);
/// Whether no block can skip tokens.
bool needs_all_tokens(const Request& request);
/// The number of a block, or of a merger between blocks, that may count from the end. Throws Error if the
/// model has no such block or merger.
std::size_t resolve_block(Output output, long long number, const ModelConfig& config);

}  // namespace vit::internal
