// The table of outputs: one row says what an output is called, which models have it, its shape, and whose
// tensor holds it. Everything that lists, parses, checks or stores outputs reads it; a new output is a row
// here, an enumerator of Output, and the layer that fills the tensor.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "vit/config.h"
#include "vit/outputs.h"

namespace vit::internal {

/// What shapes depend on.
struct OutputSizes {
  const ModelConfig& config;
  std::size_t num_images = 0;
  GridSize grid;
  std::size_t num_tokens = 0;  // of an image, prefix tokens included
};

/// What chooses one of several outputs of a name.
enum class OutputIndex {
  none,             // "pooled"
  block,            // "block.K"
  merger,           // "deepstack.K"
  block_and_token,  // "rollout.K.T"
};

struct OutputRow {
  Output output;
  std::string_view name;
  std::string_view shape;  // of n images, as help shows it
  std::string_view what;   // one line of help
  OutputIndex index = OutputIndex::none;
  bool is_vector = false;         // whose length is the same for all images: what heads and indexes take
  bool needs_all_tokens = false;  // no block may leave some out
  /// What a model lacks to give it, and what to ask for instead; "" if it lacks nothing. Null = all models
  /// have it.
  std::string_view (*lack)(const ModelConfig&) = nullptr;
  /// (B, ...). Null for part of another output.
  Shape (*shape_of)(const OutputSizes&) = nullptr;
  Output stored_in = output;  // whose tensor holds the numbers
  /// The part, of one image of that tensor; null = all.
  TensorView<const float> (*part_of)(TensorView<const float> stored, const Outputs& outputs) = nullptr;
};

std::span<const OutputRow> output_table();
const OutputRow& row_of(Output output);
/// "pooled", "block.K", "rollout.K.Q"
std::string pattern_of(const OutputRow& row);
/// Numbers of an image's vector, of an output that is one.
std::size_t vector_width(Output output, const ModelConfig& config);

/// Throws Error if the model has not what is asked for.
void check_request(const Request& request, const ModelConfig& config);
/// Whether no block can leave tokens out.
bool needs_all_tokens(const Request& request);
/// The number of a block, or of a merger between blocks, that may count from the end. Throws Error if the
/// model has none of this number.
std::size_t resolve_block(Output output, long long number, const ModelConfig& config);

}  // namespace vit::internal
