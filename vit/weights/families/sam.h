// SAM's image encoder as several models have it: its names in transformers, and its configuration.
#pragma once

#include <vector>

#include "vit/weights/families/tower.h"

namespace vit::internal {

inline constexpr std::string_view kSamAnchor = "patch_embed.projection.weight";

inline constexpr Row kSamRows[] = {
    {Part::patch_weight, kSamAnchor, Form::convolution},
    {Part::patch_bias, "patch_embed.projection.bias"},
    {Part::position_table, "pos_embed", Form::grid},
    {Part::norm1_gamma, "layers.{}.layer_norm1.*"},
    {Part::qkv_weight, "layers.{}.attn.qkv.*"},
    {Part::relative_rows, "layers.{}.attn.rel_pos_h"},
    {Part::relative_columns, "layers.{}.attn.rel_pos_w"},
    {Part::proj_weight, "layers.{}.attn.proj.*"},
    {Part::norm2_gamma, "layers.{}.layer_norm2.*"},
    {Part::fc1_weight, "layers.{}.mlp.lin1.*"},
    {Part::fc2_weight, "layers.{}.mlp.lin2.*"},
    {Part::merger_reduce_weight, "neck.conv1.weight", Form::cell_kernel},
    {Part::merger_neck_norm_gamma, "neck.layer_norm1.*"},
    {Part::merger_convolution_weight, "neck.conv2.weight", Form::window_kernel},
    {Part::merger_convolution_norm_gamma, "neck.layer_norm2.*"},
};
static_assert(is_complete(kSamRows));

/// The publisher's own names, which timm keeps but for those of the MLP.
inline constexpr std::string_view kPublishedSamAnchor = "patch_embed.proj.weight";
inline constexpr Row kPublishedSamRows[] = {
    {Part::patch_weight, kPublishedSamAnchor, Form::convolution},
    {Part::patch_bias, "patch_embed.proj.bias"},
    {Part::position_table, "pos_embed", Form::grid},
    {Part::norm1_gamma, "blocks.{}.norm1.*"},
    {Part::qkv_weight, "blocks.{}.attn.qkv.*"},
    {Part::relative_rows, "blocks.{}.attn.rel_pos_h"},
    {Part::relative_columns, "blocks.{}.attn.rel_pos_w"},
    {Part::proj_weight, "blocks.{}.attn.proj.*"},
    {Part::norm2_gamma, "blocks.{}.norm2.*"},
    {Part::merger_reduce_weight, "neck.0.weight", Form::cell_kernel},
    {Part::merger_neck_norm_gamma, "neck.1.*"},
    {Part::merger_convolution_weight, "neck.2.weight", Form::window_kernel},
    {Part::merger_convolution_norm_gamma, "neck.3.*"},
};

/// SAM's encoder by the names of transformers or of timm: windows that zeros complete, relative positions on
/// both axes, and a neck `neck_dim` wide as a merger of single tokens; 0 = without, and without a table.
ModelConfig sam_config(const Json& json, const TowerDefaults& defaults,
                       std::vector<std::size_t> global_blocks, std::size_t neck_dim);

/// The same as transformers' configuration of it says, or of a model with it.
ModelConfig hf_sam_config(const SourceFiles& files, const Json& json);

/// Adds two convolutions of stride 2, so wide.
void add_strided_convolutions(MergerConfig& merger, std::size_t first, std::size_t second, bool bias = false);

}  // namespace vit::internal
