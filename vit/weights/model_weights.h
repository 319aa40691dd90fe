// The tensors of a Vision Transformer under the project's own names, whatever the file calls them. A
// WeightTensor is a handle: its numbers are read when load() is called, so a model packs them one by one and
// never holds them twice. Letters: C = embed_dim, P = patch_size, M = mlp_dim, E = projection_dim, R =
// register tokens, H heads of width d, A = H d (C in most models).
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "vit/base/tensor.h"
#include "vit/io/tensor_file.h"
#include "vit/weights/tensor_id.h"

namespace vit {
struct ModelConfig;
}

namespace vit::internal {

/// Handle to one tensor; absent if the model has no such part.
class WeightTensor {
 public:
  using Loader = std::function<Tensor<float>()>;

  WeightTensor() = default;
  WeightTensor(Shape shape, Loader loader, const TensorEntry* stored = nullptr)
      : shape_(shape), loader_(std::move(loader)), stored_(stored) {}

  bool present() const noexcept { return static_cast<bool>(loader_); }
  const Shape& shape() const noexcept { return shape_; }
  /// The numbers as float32, C order. An absent tensor gives none.
  Tensor<float> load() const { return loader_ ? loader_() : Tensor<float>(); }
  /// The tensor of the file that holds these very rows, in whatever type; null if they are made of others.
  const TensorEntry* stored() const noexcept { return stored_; }

 private:
  Shape shape_;
  Loader loader_;
  const TensorEntry* stored_ = nullptr;
};

struct NormWeights {
  WeightTensor gamma, beta;  // (width); no beta in an RMSNorm
};

struct LinearWeights {
  WeightTensor weight;  // (out, in)
  WeightTensor bias;    // (out)
};

/// Relative positions: a table of U x V distances, or layers that compute it, or vectors of both axes.
struct RelativeWeights {
  WeightTensor table;          // ((2 U - 1) (2 V - 1) + those of the class token, H)
  LinearWeights fc1;           // (hidden, 2)
  LinearWeights fc2;           // (H, hidden)
  WeightTensor rows, columns;  // (2 U - 1, d), (2 V - 1, d)
};

struct BlockWeights {
  NormWeights norm1;           // (C)
  LinearWeights qkv;           // (3A, C), rows ordered q, k, v, heads inside
  NormWeights q_norm, k_norm;  // (d)
  RelativeWeights relative;    // of this block
  WeightTensor lambda;         // (4, d / 2) or (2)
  NormWeights sub_norm;        // (d)
  NormWeights attention_norm;  // (A)
  LinearWeights proj;          // (C, A)
  NormWeights branch_norm1;    // (C)
  WeightTensor scale1;         // (C)
  NormWeights norm2;           // (C)
  LinearWeights gate;          // (M, C), gated only
  LinearWeights fc1;           // (M, C); the value branch where gated
  NormWeights mlp_norm;        // (M)
  LinearWeights fc2;           // (C, M), of models with experts (C - E, M)
  LinearWeights fc2_expert;    // (E, M)
  WeightTensor q_clip, k_clip, v_clip, proj_clip, gate_clip, fc1_clip, fc2_clip;  // (4)
  NormWeights branch_norm2;                                                       // (C)
  WeightTensor scale2;                                                            // (C)
};

/// The tensors of a step of a merger, which reads vectors of I channels; those of its kind.
struct MergerStepWeights {
  NormWeights norm;           // (I)
  WeightTensor shift, scale;  // (I)
  LinearWeights gate;         // (hidden_dim, I)
  LinearWeights fc1;          // (hidden_dim, I); of a linear map (dim, I)
  LinearWeights fc2;          // (out_dim, hidden_dim)
};

struct MergerWeights {
  NormWeights token_norm;  // (C)
  std::vector<MergerStepWeights> steps;
};

struct AttentionPoolWeights {
  WeightTensor probe;  // (C), the learned query
  LinearWeights q;     // (C, C)
  LinearWeights kv;    // (2C, C), rows ordered k, v
  LinearWeights proj;  // (C, C)
  NormWeights norm;    // (C)
  LinearWeights fc1;   // (pool hidden, C)
  LinearWeights fc2;   // (C, pool hidden)
};

struct ModelWeights {
  LinearWeights patch;                   // (C, K P P), channel-major patch vector
  LinearWeights clip;                    // (C, frames K P P), of patches of several frames
  WeightTensor image_shift, clip_shift;  // (C), added to both
  WeightTensor pixel_mean;               // (K)
  WeightTensor pixel_std;                // (K)
  NormWeights patch_norm;                // (K P P)
  NormWeights embed_norm;                // (C)
  WeightTensor class_token;              // (C)
  WeightTensor distillation_token;       // (C)
  WeightTensor register_tokens;          // (R, C)
  WeightTensor late_tokens;              // (Q, C)
  WeightTensor position_table;           // (rows, C)
  WeightTensor between_tables;           // (depth - 1, 1, rows, C)
  WeightTensor class_angles;             // (d / 2)
  WeightTensor rope_frequencies;         // (2, depth, H, d / 2), x then y: mixed rope
  WeightTensor rope_periods;             // (d / 4): stored periods
  RelativeWeights relative;              // of all blocks
  NormWeights norm_pre;                  // (C)
  std::vector<BlockWeights> blocks;
  NormWeights norm;  // (C)
  AttentionPoolWeights pool;
  NormWeights pooled_norm;   // (C)
  LinearWeights pooler;      // (C, C)
  LinearWeights projection;  // (E, C)
  std::vector<BlockWeights> joint_blocks;
  NormWeights joint_norm;  // (C)
  MergerWeights merger;
  std::vector<MergerWeights> deepstack;  // of the mergers between blocks
  LinearWeights head;                    // (classes, C or 2C)
  LinearWeights head_distillation;       // (classes, C)
};

/// WeightsOf<Config>: the tensors of a tower of that configuration, which for_each_tensor() lists.
template <typename Config>
struct WeightsOfConfig;
template <>
struct WeightsOfConfig<ModelConfig> {
  using Weights = ModelWeights;
};
template <typename Config>
using WeightsOf = typename WeightsOfConfig<Config>::Weights;

using VisitTensor = std::function<void(TensorId id, const Shape& shape, WeightTensor& tensor)>;

/// Calls visit(id, shape, tensor) for every tensor that a model of this config has, in the order of the data.
/// The one list of all tensors: loading, checking, random weights and reports go through it. Resizes
/// weights.blocks.
void for_each_tensor(const ModelConfig& config, ModelWeights& weights, const VisitTensor& visit);
/// The blocks of the joint head, as if they were those of a model.
ModelConfig joint_head_blocks(const ModelConfig& config);
/// Calls visit(id, shape, tensor) for every tensor of the blocks only.
void for_each_block_tensor(const ModelConfig& config, std::vector<BlockWeights>& blocks,
                           const VisitTensor& visit);

}  // namespace vit::internal
