// Configuration of a tower's input: the images that it is made for, and how they become patches. Letters: C =
// embed_dim, P = patch size.
#pragma once

#include <cstddef>

#include "vit/position/config.h"

namespace vit {

/// Longest edge, in pixels, of a model input.
inline constexpr std::size_t kMaxInputEdge = 32768;
/// Largest number of channels of a model input.
inline constexpr std::size_t kMaxChannels = 1024;

/// What an input of several images is: the frames of a clip, or the tiles of an image. Each patch_frames of
/// them make a step.
enum class StackRule {
  none,      // there are none: an input is one image
  apart,     // each step is computed on its own (Qwen-VL, GLM-4V; the tiles of Llama 4)
  together,  // tokens attend to those of all steps, and have positions in time (V-JEPA 2)
};

/// The images that a model is made for.
struct ImageConfig {
  std::size_t height = 224;           // native input, pixels
  std::size_t width = 224;            // native input, pixels
  std::size_t num_channels = 3;       // planes of the input: red, green, blue, or bands
  StackRule stack = StackRule::none;  // inputs of several images
  bool fixed_size = false;            // the reference refuses any other input size
};

/// What a model does to its pixels before they are projected.
enum class PixelRule {
  unchanged,  // nothing
  centered,   // 2 x - 1 of pixels in [0, 1] (Gemma 4)
  stored,     // (x - mean) / std of stored numbers, one each for a channel (RADIO)
};

/// From pixels to patches, and their projection to C channels.
struct PatchConfig {
  std::size_t size = 16;    // P: edge of a patch, pixels
  std::size_t frames = 1;   // of a patch; an image is that many equal frames (Qwen-VL, GLM-4V)
  std::size_t padding = 0;  // zeros around the image before it is cut, of the same grid (ViTPose)
  GridSize step{};          // pixels from one row and column of patches to the next (AST); 0 = size
  /// The reference drops the remainder of edges that are not multiples of the patch size, as convolutions do;
  /// if false, such inputs are refused, except the native size.
  bool drops_remainder = false;
  PixelRule pixels = PixelRule::unchanged;  // what becomes of pixels first
  /// A patch of one image and one of `frames` have layers of their own, and each kind a vector that is added
  /// to what its layer gives (V-JEPA 2.1).
  bool own_clips = false;
  bool norm = false;        // LayerNorm on the pixels of a patch, before they are projected
  bool bias = true;         // of the projection
  bool embed_norm = false;  // LayerNorm on the projected patch, before positions are added
  /// Whether patches are cut at steps of their own.
  bool overlaps() const { return step != GridSize{}; }
  /// Pixels from one row and column of patches to the next.
  GridSize steps() const {
    return {step.rows != 0 ? step.rows : size, step.columns != 0 ? step.columns : size};
  }
  /// Patches of an image; none if an edge is shorter than a patch.
  GridSize grid(std::size_t height, std::size_t width) const {
    if (size == 0 || height < size || width < size) return {};
    return {(height - size) / steps().rows + 1, (width - size) / steps().columns + 1};
  }
};

}  // namespace vit
