// Configuration of the blocks of a tower. Letters: C = embed_dim, H = num_heads, d = channels of a head.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "vit/base/choices.h"
#include "vit/config/norm.h"

namespace vit {

/// The MLP of a block.
enum class MlpKind {
  plain,  // fc2(act(fc1 x))
  gated,  // fc2(act(gate x) * value x)
};

/// Attention within windows of the grid.
struct WindowConfig {
  std::size_t size = 0;                      // edge of a window, in patches
  std::size_t per_side = 0;                  // windows to a side of equal size instead; 0 = by size
  std::vector<std::size_t> global_blocks{};  // blocks with global attention nevertheless
  /// Each of the windows to a side has a class token of its own, which all start alike (RF-DETR). Grids are
  /// square.
  bool class_tokens = false;
  /// Windows at the edges of the grid are completed by tokens of zeros, which are attended to (ViTDet, SAM);
  /// false: they are smaller.
  bool pads = false;

  /// Whether tokens of a block attend to all.
  bool is_global(std::size_t block) const {
    return std::find(global_blocks.begin(), global_blocks.end(), block) != global_blocks.end();
  }
};

/// The attention of a block: norm -> q, k, v -> rotation of q and k (PositionConfig) -> heads -> proj.
struct AttentionConfig {
  std::size_t num_heads = 12;     // H
  std::size_t head_dim = 0;       // d; 0 = embed_dim / num_heads
  std::size_t num_key_heads = 0;  // of keys and values, each for several of queries (EXAONE-4.5); 0 = H
  std::vector<std::size_t> block_key_heads{};  // the same of each block, where they differ (Sapiens2)
  double scale = 0.0;                          // of the products of queries and keys; 0 = 1 / sqrt(d)
  std::optional<WindowConfig> windows{};       // nothing: each token attends to all
  bool qkv_bias = true;                        // a family whose k has none supplies zeros
  std::optional<NormKind> qk_norm{};           // on each head of q and k, before they are rotated
  bool value_norm = false;                     // RMSNorm without weight on each head of v (Gemma 4)
  /// Each head subtracts the probabilities of the second half of its queries and keys from those of the
  /// first, times a learned number, and normalizes what it reads (Ye et al. 2024).
  bool differential = false;
  bool norm = false;      // LayerNorm on the concatenated heads before proj (EVA-02 CLIP and base)
  bool proj_bias = true;  // of the projection after attention
};

/// The MLP of a block.
struct MlpConfig {
  MlpKind kind = MlpKind::plain;             // two or three matrices
  std::size_t dim = 3072;                    // hidden width; of one branch where gated
  Activation activation = Activation::gelu;  // of the hidden vector, or of its gate
  bool bias = true;                          // of both layers
  bool norm = false;                         // LayerNorm on the hidden vector (EVA-02 base, large)
  float limit = 0.0f;          // most of gates, and most and least of values (GLM-5.3); 0 = none
  std::size_t expert_dim = 0;  // last channels of the MLP, which a layer of their own makes (ViTPose+)
};

/// The norms of a block; both of its branches, f = attention and then f = mlp, are alike.
enum class BlockNorms {
  before,            // x + f(norm x)
  before_and_after,  // x + norm(f(norm x)) (Gemma 4)
  after,             // x + norm(f(x)) (timm's ResPostBlock)
  of_sums,           // norm(x + f(x)), as in Vaswani et al. 2017 (BERT)
};

/// The blocks: x + attention(norm x), then x + mlp(norm x); norms before, between and after.
struct EncoderConfig {
  std::size_t depth = 12;                       // blocks
  NormConfig norm;                              // of all norms but those of joint head and merger
  bool norm_pre = false;                        // norm before block 0
  BlockNorms block_norms = BlockNorms::before;  // where those of a block are
  bool parallel = false;     // x + attention(norm x) + mlp(norm x), with one norm (ViT-22B)
  bool clipped = false;      // linear layers of blocks clip inputs and outputs (Gemma 4)
  bool layer_scale = false;  // both branches of a block are multiplied by a vector (C)
  bool token_norm = true;    // final norm on all tokens
};

}  // namespace vit
