// Configuration of a tower's head: from the tokens of the last block to the pooled vector, the joint space of
// images and texts, and the logits. Letters: C = embed_dim, E = dimensions of the joint space.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "vit/base/choices.h"

namespace vit {

/// How the image embedding `pooled` is computed.
enum class Pooling {
  none,                    // no pooled vector
  class_token,             // after the final norm
  class_and_distillation,  // mean of both tokens
  patch_mean,              // mean over patch tokens, prefix excluded
  attention,               // learned query over all tokens, then a residual MLP
  class_and_patch_mean,    // class token and patch mean side by side, 2 C wide (Virchow)
  first_token,             // the first patch of a model without class token, whose script reads token 0
  prefix_mean,             // mean over the prefix tokens, all of which are class tokens (Pixio)
  prefix_tokens,           // those of pooled_tokens side by side (RADIO)
};

/// The input of the classifier.
enum class HeadInput {
  pooled,                  // C wide
  class_and_patch_mean,    // concatenation, 2 C wide (DINOv2, Meta DINOv3)
  class_and_distillation,  // two classifiers, logits averaged (distilled DeiT)
};

/// What the rows of the classifier are.
enum class LogitKind {
  classes,      // they exclude each other: softmax
  tags,         // they do not: a sigmoid for each
  values,       // numbers, not classes (problem_type "regression" of transformers)
  joint_space,  // dimensions: what the library keeps as a classifier is a projection (timm's CLIP towers)
};

/// Attention pooling as a head (SigLIP, Perception Encoder): one learned query over all tokens, then an MLP.
struct AttentionPoolConfig {
  std::size_t num_heads = 0;                 // of the query, over C channels
  std::size_t mlp_dim = 0;                   // hidden width
  Activation activation = Activation::gelu;  // of the MLP
};

/// Linear map to a joint image-text space.
struct ProjectionConfig {
  std::size_t dim = 0;  // E
  bool bias = false;    // of the map
};

/// Blocks of a joint head, which computes the projected vector from the tokens after the final norm
/// (dino.txt): no rotation, q, k and v without bias, an MLP gated by SiLU, layer scale, a LayerNorm at the
/// end; then class token and mean of the patches concatenated, E = 2 C.
struct JointHeadConfig {
  std::size_t depth = 0;    // blocks
  std::size_t mlp_dim = 0;  // hidden width of one branch
  float norm_eps = 1e-5f;   // of its norms
};

/// From tokens to the pooled vector, the joint space and the logits.
struct HeadConfig {
  Pooling pooling = Pooling::class_token;  // what `pooled` is made of
  bool pools_merged = false;  // of the visual tokens of the merger: pooling patch_mean, without prefix
  std::vector<std::size_t> pooled_tokens{};             // of Pooling::prefix_tokens
  std::optional<AttentionPoolConfig> attention_pool{};  // of Pooling::attention
  bool pooled_norm = false;      // LayerNorm after pooling (timm fc_norm; Hugging Face CLIP)
  float pooled_norm_eps = 0.0f;  // of that; 0 = of the norms of the encoder
  bool pooler = false;           // pooled = tanh(W pooled + b) (Hugging Face ViT and DeiT without classifier)
  std::optional<ProjectionConfig> projection{};  // to the joint space
  std::optional<JointHeadConfig> joint{};        // blocks that compute the projected vector
  HeadInput input = HeadInput::pooled;           // what the classifier reads
  std::size_t num_classes = 0;                   // rows of the classifier; 0 = there is none
  LogitKind logits = LogitKind::classes;         // what they are
  std::vector<std::string> labels;               // one per class, or empty
  std::vector<std::string> label_categories;  // one per class, or empty: "0" for a tag, "9" for a rating, ...
};

}  // namespace vit
