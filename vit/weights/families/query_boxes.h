// What the pages of LW-DETR and RF-DETR share: one decoder and its configuration in config.json.
#pragma once

#include "vit/dense_config.h"
#include "vit/weights/families/source_files.h"

namespace vit::internal {

/// The head of a model of this config.json, for taps of stages that `backbone` lists; classes by the tensor
/// class_embed.bias, else by the names. `layers`: what the two do not share is read by their pages.
DenseConfig read_query_boxes(const SourceFiles& files, const Json& backbone, std::size_t depth,
                             QueryBoxConfig layers);

}  // namespace vit::internal
