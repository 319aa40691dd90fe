// The table of outputs: one row gives the name of an output, the models that have it, its shape, and the
// tensor that stores it. All code that lists, parses, checks or stores outputs reads it; a new output is a
// row here, an enumerator of Output, and the layer that fills the tensor.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "vit/dense_config.h"
#include "vit/outputs.h"

namespace vit {
struct ModelConfig;
}

namespace vit::internal {

/// The shape of an output of a dense head: (planes, H, W) of an image or of each of its windows.
struct MapShape {
  Output output = Output::depth;
  Shape shape;
};

/// What a dense head adds to a pass.
struct HeadSizes {
  std::shared_ptr<const DenseConfig> config{};  // null for a model without a head
  std::span<const MapShape> maps{};             // of each output, if one is requested
  std::size_t num_windows = 1;                  // of each image
};

/// Sizes that determine shapes.
struct OutputSizes {
  const ModelConfig& config;
  std::size_t num_images = 0;  // steps that are apart count as images
  GridSize grid;
  std::size_t num_tokens = 0;  // of an image, prefix tokens included
  std::span<const MapShape> maps{};
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
  bool of_head = false;           // a dense head outputs it, if its DenseConfig has it
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

/// What is computed if nothing is requested: the visual tokens of a model for a language model, else
/// default_output(), else patches.
Output standard_output(const ModelConfig& config);

/// Throws Error if the model does not have a requested output. `head`: its dense head, or null.
void check_request(const Request& request, const ModelConfig& config, const DenseConfig* head);
/// Whether the dense head is needed.
bool needs_head(const Request& request);
/// Whether nothing but outputs of the dense head is requested.
bool is_of_head(const Request& request);
/// Whether no block can skip tokens.
bool needs_all_tokens(const Request& request);
/// The number of a block, or of a merger between blocks, that may count from the end. Throws Error if the
/// model has no such block or merger.
std::size_t resolve_block(Output output, long long number, const ModelConfig& config);

/// The inside of Outputs, for the layers.
class OutputWriter {
 public:
  explicit OutputWriter(Outputs& outputs) : to_(outputs) {}

  /// Sets the shapes of a request for `num_inputs` images, or windows of them; tensors that already have
  /// their shape keep their memory. Throws Error for a token that the images do not have, and for memory of
  /// the caller that is too small.
  void reserve(const Request& request, const ModelConfig& config, std::size_t num_inputs, GridSize grid,
               std::size_t num_steps = 1, const HeadSizes& head = {}) const;
  /// The destination of an output; empty if it was not requested.
  TensorView<float> find(const OutputKey& key) const noexcept;
  std::span<const OutputTensor> tensors() const noexcept { return to_.tensors_; }
  /// The image of each result; until then frames are empty.
  void set_frame(std::size_t image, const ImageFrame& frame) const { to_.frames_[image] = frame; }

 private:
  void reserve_tensor(std::size_t place, const OutputKey& key, const Shape& shape) const;

  Outputs& to_;
};

}  // namespace vit::internal
