// The towers of CLIP and SigLIP under the names that transformers gives them, which other models hold.
#pragma once

#include <span>
#include <string_view>

#include "vit/weights/families/hf_config.h"

namespace vit::internal {

/// How towers with the tensors of CLIP's differ.
enum class ClipKind {
  clip,      // class token, norm before the blocks; the class token is normalized
  git,       // the same, but all tokens are normalized, and none is pooled
  owl,       // CLIP whose first norm has another name
  mlcd,      // CLIP with rotary positions
  siglip,    // no class token; pooled by attention
  naflex,    // the same for patches that are cut already, of any grid
  bucketed,  // SigLIP whose table is read at the nearest position below
  janus,     // SigLIP that pools its first token
};

/// A tower by the model_type of its configuration, with the defaults of its class.
struct ClipType {
  std::string_view type;
  ClipKind kind;
  HfDefaults defaults;
};

/// Null if no tower of CLIP's kind has that model_type.
const ClipType* find_clip_type(std::string_view model_type);

/// Without projection and classifier. `json` is the tower's part of config.json.
ModelConfig read_clip_tower(const SourceFiles& files, const Json& json, const ClipType& type);

/// Where its tensors lie, of prefixed names.
Layout clip_layout(ClipKind kind);

/// Tensors of the tower that it does not read.
extern const std::span<const Ignored> kClipIgnored;
/// The norm and the head of a tower that a language model reads without them.
extern const std::span<const Ignored> kClipUnpooled;

}  // namespace vit::internal
