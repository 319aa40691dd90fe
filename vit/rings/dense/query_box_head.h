// QueryBoxHead: boxes of queries that sample maps of the patches (LW-DETR, RF-DETR). Letters: T tokens of an
// image, C channels of a token, S pixels of all maps, Q queries, D channels of maps and queries, H heads.
//
//   taps -> maps (S, D) -> scores and boxes of each pixel -> the Q best boxes
//   queries (Q, D): attend to each other, sample the maps around their boxes, MLP; again -> boxes, classes
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "vit/dense_config.h"
#include "vit/layers/layer_norm.h"
#include "vit/layers/linear.h"
#include "vit/rings/dense/branch_head.h"
#include "vit/rings/dense/sampled_maps.h"

namespace vit::internal {

/// x = norm(x + attention), x = norm(x + what is sampled), x = norm(x + mlp).
struct QueryBoxLayer {
  Linear q, k, v, o;
  LayerNorm norm1;
  Linear offsets, weights, values, sampled;
  LayerNorm norm2;
  Linear fc1, fc2;
  LayerNorm norm3;
};

struct QueryBoxLayers {
  std::optional<LayerNorm> norm{};  // of all tokens of a tap
  std::vector<SampledMap> maps{};
  Tensor<float> queries, references;  // (Q, D), (Q, 4)
  Linear propose;
  LayerNorm propose_norm;
  Linear propose_classes;
  std::array<Linear, 3> propose_boxes;
  std::array<Linear, 2> position;
  std::vector<QueryBoxLayer> layers{};
  LayerNorm output_norm;
  Linear classes;
  std::array<Linear, 3> boxes;
};

class QueryBoxHead final : public BranchHead {
 public:
  QueryBoxHead(const QueryBoxConfig& config, QueryBoxLayers layers, std::size_t num_prefix,
               const kernels::KernelTable& kernels);

  /// (1, Q, 4) of output 0, the boxes, and (1, Q, classes) of output 1.
  Shape output_shape(std::size_t output, GridSize grid) const override;

  /// Boxes as center, width and height as parts of the image, which they may leave.
  void forward(std::span<const TensorView<const float>> taps, GridSize grid,
               std::span<const TensorView<float>> outputs, int threads, DenseMemory& memory) const override;

 private:
  std::size_t num_samples() const noexcept {
    return config_.sampling_heads * config_.levels.size() * config_.points;
  }
  std::size_t num_pixels(GridSize grid) const;
  void lay_out(TensorView<const float> tokens, GridSize grid, int threads, DenseMemory& memory) const;
  void make_maps(std::span<const TensorView<const float>> taps, GridSize grid, const QueryBoxMaps& maps,
                 int threads) const;
  void propose(GridSize grid, const QueryBoxMaps& maps, const Pass& pass) const;
  void run_layer(const QueryBoxLayer& layer, GridSize grid, const QueryBoxMaps& maps, const Pass& pass) const;
  void sample(GridSize grid, const QueryBoxMaps& maps, int threads) const;

  QueryBoxConfig config_;
  QueryBoxLayers layers_;
  std::size_t num_prefix_;
  const kernels::KernelTable* kernels_;
};

}  // namespace vit::internal
