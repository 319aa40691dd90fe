// The names of OpenAI's CLIP code, which OpenCLIP's own image tower kept.
#pragma once

#include <string>
#include <vector>

#include "vit/weights/families/family.h"

namespace vit::internal {

/// The name in OpenAI's files of the tensor that timm calls `name`.
std::string openai_name(const std::string& name);

/// Pieces of the tensors that renaming cannot express: class token, position table, attention pooling and
/// the projection.
std::vector<Piece> openai_pieces(const SourceFiles& files, const ModelConfig& config,
                                 const std::string& canonical, const Shape& shape);

}  // namespace vit::internal
