// Where the tensors of DPT heads lie in the layouts that several pages share.
#pragma once

#include <cstddef>
#include <vector>

#include "vit/image/preprocess.h"
#include "vit/io/json.h"
#include "vit/weights/families/head_layout.h"

namespace vit::internal {

/// The neck of transformers' DPT and Depth Anything.
inline constexpr HeadRow kHfDptNeck[] = {
    {"readout.{}.*", "neck.reassemble_stage.readout_projects.{}.0.*"},
    {"project.{}.*", "neck.reassemble_stage.layers.{}.projection.*"},
    {"resize.{}.*", "neck.reassemble_stage.layers.{}.resize.*"},
    {"neck.{}.*", "neck.convs.{}.*"},
    {"fusion.{}.lateral.conv1.*", "neck.fusion_stage.layers.{}.residual_layer1.convolution1.*"},
    {"fusion.{}.lateral.conv2.*", "neck.fusion_stage.layers.{}.residual_layer1.convolution2.*"},
    {"fusion.{}.lateral.norm1.*", "neck.fusion_stage.layers.{}.residual_layer1.batch_norm1.*"},
    {"fusion.{}.lateral.norm2.*", "neck.fusion_stage.layers.{}.residual_layer1.batch_norm2.*"},
    {"fusion.{}.unit.conv1.*", "neck.fusion_stage.layers.{}.residual_layer2.convolution1.*"},
    {"fusion.{}.unit.conv2.*", "neck.fusion_stage.layers.{}.residual_layer2.convolution2.*"},
    {"fusion.{}.unit.norm1.*", "neck.fusion_stage.layers.{}.residual_layer2.batch_norm1.*"},
    {"fusion.{}.unit.norm2.*", "neck.fusion_stage.layers.{}.residual_layer2.batch_norm2.*"},
    {"fusion.{}.project.*", "neck.fusion_stage.layers.{}.projection.*"},
};

/// Channels of the four maps under this key. Throws Error for another number of them.
std::vector<std::size_t> read_dpt_channels(const Json& config, const char* key,
                                           std::vector<std::size_t> fallback);
/// Throws Error for reassemble_factors other than [4, 2, 1, 0.5].
void check_dpt_factors(const Json& config);

/// How Depth Anything's own code (util/transform.py), or transformers, wants images for a square of `edge`.
PreprocessConfig depth_anything_preprocess(std::size_t edge, bool by_repository);

/// Tensors of that neck that nothing reads.
inline constexpr Ignored kHfDptUnused[] = {
    {"neck.fusion_stage.layers.0.residual_layer1.*", "the deepest fusion layer has no second map to join",
     Place::outside},
    {"auxiliary_head.*", "used in training only", Place::outside},
};

}  // namespace vit::internal
