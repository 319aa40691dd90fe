// The sizes to which processors of vision-language models resize images: the aspect ratio is kept, edges are
// whole cells of patches, and the number of tokens has limits. All in double, in the order of the libraries'
// operations.
#pragma once

#include "vit/image/image.h"
#include "vit/image/preprocess.h"

namespace vit::internal {

/// Each throws Error for an image that the processor refuses.
///
/// ResizeRule::area (Qwen-VL, GLM-4V, PaddleOCR-VL, ERNIE): edges to the nearest multiples, half to even;
/// then, if the area is out of its limits, both are scaled to fit.
ImageSize size_by_area(ImageSize in, const PreprocessConfig& config);
/// ResizeRule::longest (Pixtral, Mistral 3): no edge longer than longest_edge, then up to the next multiples.
ImageSize size_by_longest(ImageSize in, const PreprocessConfig& config);
/// ResizeRule::patch_limit (MoonViT): no more than max_patches patches, nor max_side on one edge; never
/// enlarged.
ImageSize size_by_patch_limit(ImageSize in, const PreprocessConfig& config);
/// ResizeRule::token_count (Gemma 4): as many patches as fit max_patches, edges down to multiples.
ImageSize size_by_token_count(ImageSize in, const PreprocessConfig& config);
/// ResizeRule::tiles: the canvas, whole tiles, by TileCanvas.
ImageSize canvas_of_tiles(ImageSize in, const PreprocessConfig& config);
/// The size of the image in its canvas.
ImageSize size_in_canvas(ImageSize in, ImageSize canvas, const PreprocessConfig& config);
/// The size that precedes the canvas: of TileCanvas::whole_edges the longest edge is longest_edge and the
/// other even (Idefics 3); that of the image for other rules.
ImageSize size_before_canvas(ImageSize in, const PreprocessConfig& config);

}  // namespace vit::internal
