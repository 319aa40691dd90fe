// Configuration of a detector of what prompts name or show, on top of an image tower (SAM 3): plain data,
// filled by an adapter of weights/families, checked once by validate().
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace vit::internal {

/// Layers of one kind: attention of D channels, an MLP with ReLU.
struct PromptLayersConfig {
  std::size_t depth = 6;
  std::size_t num_heads = 8;
  std::size_t mlp_dim = 2048;
};

/// The part that points, boxes and masks control, one object at a time.
struct ClickConfig {
  PromptLayersConfig layers{.depth = 2, .num_heads = 8, .mlp_dim = 2048};
  std::size_t downsample = 2;      // D over the channels of attention between tokens and map
  std::size_t mask_channels = 16;  // of a mask that is given, before the last convolution
  std::size_t num_masks = 3;       // besides the one for prompts that are not ambiguous
  std::size_t iou_depth = 3;       // layers of the head that estimates the quality of masks
  std::size_t iou_dim = 256;       // their hidden width
  float mask_norm_eps = 1e-6f;     // of the norms over channels of a mask that is given
  bool prefers_stable = true;      // where one mask is asked for; false: always the first
  double stable_margin = 0.05;     // logits around 0 between which a stable mask has few pixels
  double stable_share = 0.98;      // pixels above the upper over those above the lower margin
};

struct PromptConfig {
  std::string family;               // "sam3"
  std::size_t dim = 256;            // D: channels of everything after the neck
  std::size_t backbone_dim = 1024;  // of the tokens of the image tower
  std::size_t grid = 72;            // G: rows and columns of patches
  std::size_t image_size = 1008;    // edge of the preprocessed pixels
  std::size_t roi_bins = 7;         // rows and columns into which the map under a box is divided
  std::size_t num_queries = 200;    // Q
  PromptLayersConfig geometry{.depth = 3}, fusion{}, decoder{};
  std::size_t num_mask_heads = 8;  // of attention to the prompt before the masks
  bool has_detector = true;        // what phrases and boxes name; false: only what points at one object
  std::optional<ClickConfig> clicks{};
};

/// Throws Error naming the first field that is out of range or contradicts another.
void validate(const PromptConfig& config);

}  // namespace vit::internal
