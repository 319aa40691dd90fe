// Configuration of an image tower: its architecture as plain data in the order of the data, filled by an
// adapter of weights/families, checked once by validate(). text_config.h has that of text towers. Letters: C
// = embed_dim, H = num_heads, d = head_width(), A = H d, P = patch size, N = patches, T = prefix tokens + N.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vit/base/choices.h"
#include "vit/base/error.h"
#include "vit/config/encoder.h"
#include "vit/config/head.h"
#include "vit/config/merger.h"
#include "vit/config/patch.h"
#include "vit/position/config.h"

namespace vit {

/// Learned queries that enter in front of all other tokens before a later block (EoMT).
struct LateTokenConfig {
  std::size_t count = 0;  // Q
  std::size_t block = 0;  // before this block
  /// Blocks, from `block` on, before which the masks that the dense head makes of the tokens so far determine
  /// which patches a late token reads, there and in later blocks.
  std::vector<std::size_t> masked_blocks{};
};

/// The tokens in front of the patches.
struct TokenConfig {
  bool class_token = true;          // first of the prefix tokens
  bool distillation_token = false;  // after the class token (DeiT)
  std::size_t num_registers = 0;    // register tokens: after class and distillation token, before patches
  std::optional<LateTokenConfig> late{};  // tokens of later blocks
};

/// Architecture of a model, in the order of the data: pixels are cut into patches and projected to tokens;
/// the patches' coordinates and frequencies make the factors that rotate queries and keys in the attention of
/// every block; the head reads the tokens of the last.
struct VIT_API ModelConfig {
  std::string architecture;  // name in the library that wrote the checkpoint, "" if it has none
  std::string family;        // adapter that read it: "rope-vit", "vit", ...
  std::string library;       // library that is reproduced: "timm", "transformers", "Meta", ...

  std::size_t embed_dim = 768;  // C: channels of a token, from the patches to the head
  ImageConfig image;            // pixels ...
  PatchConfig patch;            // ... -> patches -> rows of C channels
  TokenConfig tokens;           // class, distillation and register tokens in front of them
  PositionConfig position;      // coordinates -> frequencies of x and y -> complex factors; or rows to add
  AttentionConfig attention;    // rotates q and k by these factors
  MlpConfig mlp;                // of every block, after its attention
  EncoderConfig encoder;        // blocks of attention and MLP
  HeadConfig head;              // pooled vector, joint space, logits
  std::optional<MergerConfig> merger{};  // visual tokens of a language model

  /// d: channels of a head.
  std::size_t head_width() const {
    if (attention.head_dim != 0) return attention.head_dim;
    return attention.num_heads == 0 ? 0 : embed_dim / attention.num_heads;
  }
  /// A = H d: all heads concatenated; C in most models.
  std::size_t attention_dim() const { return attention.num_heads * head_width(); }
  /// Heads of keys and values in a block; H in most models.
  std::size_t key_heads(std::size_t block) const {
    if (block < attention.block_key_heads.size()) return attention.block_key_heads[block];
    return attention.num_key_heads != 0 ? attention.num_key_heads : attention.num_heads;
  }
  /// Channels of the keys of a token in a block; A in most models.
  std::size_t key_dim(std::size_t block) const { return key_heads(block) * head_width(); }
  /// Windows that each have a class token; 0 in most models.
  std::size_t num_window_tokens() const {
    const bool has_tokens = attention.windows && attention.windows->class_tokens;
    return has_tokens ? attention.windows->per_side * attention.windows->per_side : 0;
  }
  /// Class, distillation and register tokens, which come before the patches.
  std::size_t num_prefix_tokens() const {
    if (num_window_tokens() != 0) return num_window_tokens();
    return (tokens.class_token ? 1u : 0u) + (tokens.distillation_token ? 1u : 0u) + tokens.num_registers;
  }
  /// Whether the logits are those of classes.
  bool has_classes() const { return head.num_classes != 0 && head.logits != LogitKind::joint_space; }
  /// Q: tokens that enter before a later block, none in most models.
  std::size_t num_late_tokens() const { return tokens.late ? tokens.late->count : 0; }
  /// Blocks with masks of late tokens (LateTokenConfig::masked_blocks).
  std::span<const std::size_t> masked_blocks() const {
    return tokens.late ? std::span<const std::size_t>(tokens.late->masked_blocks)
                       : std::span<const std::size_t>();
  }
  /// Blocks whose tokens a merger of their own takes (MergerConfig::deepstack).
  std::span<const std::size_t> deepstack() const {
    return merger ? std::span<const std::size_t>(merger->deepstack) : std::span<const std::size_t>();
  }
  /// Whether the library's last_hidden_state has cells of the merger instead of tokens.
  bool has_cells_as_tokens() const { return merger && merger->tokens_after; }
  /// Tokens in front of the patches after block `block`.
  std::size_t num_prefix_after(std::size_t block) const {
    return num_prefix_tokens() + (tokens.late && block >= tokens.late->block ? tokens.late->count : 0);
  }
  /// Numbers of the pooled vector: C, or those of several tokens.
  std::size_t pooled_dim() const {
    if (head.pooling == Pooling::prefix_tokens) return head.pooled_tokens.size() * embed_dim;
    if (head.pools_merged && merger) return merger->width(embed_dim);
    return head.pooling == Pooling::class_and_patch_mean ? 2 * embed_dim : embed_dim;
  }
  /// E: dimensions of the joint space; 0 = the model does not project to one.
  std::size_t projection_dim() const { return head.projection ? head.projection->dim : 0; }
  /// Values of a patch: num_channels P P.
  std::size_t patch_dim() const { return image.num_channels * patch.size * patch.size; }
  /// The edges of an image must be multiples of this, in pixels: whole patches, and whole cells of the merger
  /// or windows of equal size.
  std::size_t edge_multiple() const {
    if (attention.windows && attention.windows->per_side != 0)
      return patch.size * attention.windows->per_side;
    return patch.size * (merger && !merger->cells.pads ? merger->cell_edge() : 1);
  }
  /// Whether a patch takes the planes of several frames, where an input has more than one image.
  bool has_clips() const { return image.stack != StackRule::none && patch.frames > 1; }
  /// Patches of the native input.
  GridSize native_grid() const { return patch.grid(image.height, image.width); }
};

/// The grid for which the vectors of relative positions of a block were trained: a window, or the image.
inline GridSize relative_grid(const ModelConfig& config, std::size_t block) {
  if (config.attention.windows && !config.attention.windows->is_global(block))
    return {config.attention.windows->size, config.attention.windows->size};
  return config.position.relative ? config.position.relative->grid : GridSize{};
}

/// How the model's logits are converted to probabilities.
constexpr ClassActivation class_activation(const ModelConfig& config) {
  if (config.head.logits == LogitKind::values) return ClassActivation::none;
  return config.head.logits == LogitKind::tags ? ClassActivation::sigmoid : ClassActivation::softmax;
}

/// Throws Error naming the first field that is out of range or contradicts another. Limits are generous
/// (width up to 65536, depth up to 1024, edges up to kMaxInputEdge, 2^20 patches, rotation factors of half a
/// GiB) and prevent a hostile file from requesting excessive memory.
VIT_API void validate(const ModelConfig& config);

}  // namespace vit
