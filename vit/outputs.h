// What a forward pass is asked for and what it hands out, for one image, a batch, or images of several sizes;
// the named classes that logits stand for, and the time that its stages took.
// Letters: B images, h, w patches per column and row, T = prefix + h w tokens, C = embed_dim, E =
// projection_dim.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "vit/base/choices.h"
#include "vit/base/error.h"
#include "vit/base/tensor.h"
#include "vit/position/config.h"

namespace vit {

/// One token as a query of the attention of a block.
struct AttentionQuery {
  std::size_t block = 0;  // 0 .. depth - 1
  std::size_t token = 0;  // 0 .. T - 1, prefix tokens first
};

/// What a forward pass should hand out. Everything is off by default. A request for what the model does not
/// have is an Error that names it.
struct Request {
  bool logits = false;                   // (B, num_classes)
  bool pooled = false;                   // (B, C), as the library of the checkpoint defines it
  bool projected = false;                // (B, E), joint image-text space, not normalized
  bool tokens = false;                   // (B, T, C), after the final norm, prefix first
  std::vector<std::size_t> blocks{};     // tokens leaving these blocks, before the final norm; 0 .. depth - 1
  std::vector<std::size_t> attention{};  // softmax probabilities of these blocks, all heads and queries
  /// Softmax probabilities of single queries: memory stays linear in the number of tokens.
  std::vector<AttentionQuery> attention_queries{};
  /// Attention rollout (Abnar and Zuidema 2020) from these tokens, of what leaves their blocks, back to the
  /// tokens that enter block 0: products of (mean over the heads + identity) / 2. Costs about as much again
  /// as the query, key and softmax parts of the blocks in front; memory is linear in T and in the blocks.
  std::vector<AttentionQuery> rollout{};
  bool embedded = false;  // (B, T, C), tokens entering block 0
};

class ImageOutputs;

/// Results of one forward pass over B images of one size; empty where not requested. Reusing the object for
/// the same shapes allocates nothing.
struct VIT_API Outputs {
  Tensor<float> logits;                          // (B, num_classes)
  Tensor<float> pooled;                          // (B, C)
  Tensor<float> projected;                       // (B, E), not normalized
  Tensor<float> tokens;                          // (B, T, C), after the final norm, prefix first
  Tensor<float> embedded;                        // (B, T, C), entering block 0
  std::vector<Tensor<float>> blocks;             // (B, T, C) each, in the order of the request
  std::vector<Tensor<float>> attention;          // (B, heads, T, T) each, in the order of the request
  std::vector<Tensor<float>> attention_queries;  // (B, heads, T) each, in the order of the request
  std::vector<Tensor<float>> rollout;            // (B, T) each, in the order of the request
  GridSize grid;                                 // patches per column and row of the images
  std::size_t num_images = 0;                    // B: images of the pass
  std::size_t num_prefix_tokens = 0;             // class, distillation and register tokens
  bool has_class_token = false;  // the first of the prefix tokens; models with registers alone have none

  /// The part of image `index`, below num_images.
  ImageOutputs operator[](std::size_t index) const&;
  ImageOutputs operator[](std::size_t index) const&& = delete;  // it would point into outputs that are gone
};

/// What one image gave: a view into the Outputs of its pass, valid as long as these live and are not run into
/// again. Each function throws Error if its numbers were not requested.
class VIT_API ImageOutputs {
 public:
  /// The part of image `index`, below outputs.num_images; `outputs` must outlive it.
  ImageOutputs(const Outputs& outputs, std::size_t index) : outputs_(&outputs), index_(index) {}

  std::span<const float> logits() const;                         // (num_classes)
  std::span<const float> pooled() const;                         // (C)
  std::span<const float> projected() const;                      // (E)
  TensorView<const float> tokens() const;                        // (T, C) after the final norm
  TensorView<const float> embedded() const;                      // (T, C) entering block 0
  TensorView<const float> block(std::size_t i) const;            // (T, C) of Request::blocks[i]
  TensorView<const float> attention(std::size_t i) const;        // (heads, T, T) of Request::attention[i]
  TensorView<const float> attention_query(std::size_t i) const;  // (heads, T), Request::attention_queries[i]
  std::span<const float> rollout(std::size_t i) const;           // (T) of Request::rollout[i]
  /// Patch tokens after the final norm as a feature map (h, w, C). Needs Request::tokens.
  TensorView<const float> patches() const;
  /// Class token after the final norm (C). Needs Request::tokens; throws Error for a model that has none.
  std::span<const float> class_token() const;

  /// h x w.
  GridSize grid() const noexcept { return outputs_->grid; }
  /// Class, distillation and register tokens, which come before the patches.
  std::size_t num_prefix_tokens() const noexcept { return outputs_->num_prefix_tokens; }

 private:
  const Outputs* outputs_;
  std::size_t index_;
};

/// Results of images of any sizes, in their order. Reusing the object for images of the same sizes allocates
/// nothing.
class VIT_API Results {
 public:
  std::size_t size() const noexcept { return places_.size(); }  // images
  bool empty() const noexcept { return places_.empty(); }       // nothing was run
  /// The outputs of input `index`, valid as long as these results are not run into again.
  ImageOutputs operator[](std::size_t index) const&;
  ImageOutputs operator[](std::size_t index) const&& = delete;  // it would point into results that are gone

 private:
  friend class Session;
  struct Place {
    std::size_t pass = 0;
    std::size_t index = 0;
  };
  std::vector<Outputs> passes_;  // images of one size each; those behind the last one used keep their memory
  std::vector<Place> places_;    // where each image lies
};

/// Cosine of the angle between two vectors of one length, in double; 0 if one of them is zero.
VIT_API double cosine_similarity(std::span<const float> a, std::span<const float> b);

/// Scales a vector to length 1; a zero vector stays zero.
VIT_API void normalize(std::span<float> vector);

// --------------------------------------------------------------------------------------------------- classes

/// A class and how probable it is.
struct Prediction {
  std::size_t index;  // class
  std::string label;  // name, or the number where there is none
  float probability;  // softmax over all classes, or sigmoid of this one; of a regression, the logit
  float logit;        // as the model gives it
};

/// The `top` most probable classes of a row of logits (classes), best first; equal logits in index order. A
/// class without a name in `labels` is called by its number.
VIT_API std::vector<Prediction> top_predictions(std::span<const float> logits, std::size_t top,
                                                std::span<const std::string> labels = {},
                                                ClassActivation activation = ClassActivation::softmax);

/// The classes whose probability is at least their threshold, best first; equal logits in index order.
/// `thresholds` (classes): an infinite one leaves its class out. Throws Error for another number of them.
VIT_API std::vector<Prediction> predictions_above(std::span<const float> logits,
                                                  std::span<const float> thresholds,
                                                  std::span<const std::string> labels = {},
                                                  ClassActivation activation = ClassActivation::softmax);

// ------------------------------------------------------------------------------------------------------ time

/// Parts of a forward pass.
enum class Stage {
  patchify,   // pixels to rows of patches
  embed,      // their projection, positions and prefix tokens
  norms,      // those before attention and MLP, with the rounding of their rows for bfloat16 and int8
  qkv,        // projection to queries, keys and values
  attention,  // rotation, products, softmax
  proj,       // projection behind attention
  mlp,        // of the blocks
  head,       // final norm, pooling, projection and classifier
};

/// Names of the stages, in the order of Stage.
inline constexpr std::array<const char*, 8> kStageNames{"patchify",  "embed", "norms", "qkv",
                                                        "attention", "proj",  "mlp",   "head"};

/// Seconds of wall clock per stage, summed over passes.
struct StageTimes {
  std::array<double, kStageNames.size()> seconds{};  // in the order of Stage
};

}  // namespace vit
