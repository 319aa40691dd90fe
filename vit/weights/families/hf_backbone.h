// What the pages of transformers' models with a backbone share: the backbone is read by the page of its own
// family, from the part of config.json that describes it.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "vit/weights/families/family.h"

namespace vit::internal {

/// `files` as the page of the backbone sees them.
SourceFiles backbone_files(const SourceFiles& files);

/// How the backbone is found, by the page of its family. Throws Error for one that no page reads.
std::optional<Match> match_backbone(const SourceFiles& files);

/// The backbone as its page reads it; names of the whole model. Throws Error for one that no page reads.
ParsedModel read_backbone(const SourceFiles& files);

/// Blocks whose tokens the head reads: out_indices, where 0 is the embedding, or out_features
/// ("stage3"). Throws Error for others than blocks.
std::vector<std::size_t> read_hf_taps(const Json& config, std::size_t depth);

/// Rows for the norm of the taps, which is that of the backbone: of DINOv2's names and of DINOv3's.
inline constexpr HeadRow kLayerNormTap[] = {{"norm.*", "layernorm.*", 1, 0, Place::tower}};
inline constexpr HeadRow kNormTap[] = {{"norm.*", "norm.*", 1, 0, Place::tower}};
std::span<const HeadRow> tap_norm_rows(const ModelConfig& backbone);

}  // namespace vit::internal
