// DptHead: a Dense Prediction Transformer's decoder, from the tokens of four blocks to maps. Every tap
// becomes a map of its own size; the maps are fused from the deepest. Letters: T tokens, C channels of a
// token, N patches, F = features, K taps.
//
//   tap 3   h x w  -> h/2 x w/2 -> fuse --> h x w
//   tap 2   h x w  -> h x w -----> fuse --> 2h x 2w
//   tap 1   h x w  -> 2h x 2w ---> fuse --> 4h x 4w
//   tap 0   h x w  -> 4h x 4w ---> fuse --> 8h x 8w -> last layers -> result
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "vit/dense_config.h"
#include "vit/layers/convolution.h"
#include "vit/layers/layer_norm.h"
#include "vit/rings/dense/branch_head.h"
#include "vit/rings/dense/map_finish.h"

namespace vit::internal {

/// x + conv2(relu(conv1(relu(x)))).
struct ResidualUnit {
  Convolution conv1, conv2;
};

struct DptFusion {
  std::optional<ResidualUnit> lateral;  // on the map that is added; the deepest has none
  ResidualUnit unit;
  Convolution projection;  // 1x1

  // all of a unit have F channels
  std::size_t scratch_floats() const {
    return std::max(largest_scratch(unit.conv1), largest_scratch(projection));
  }
};

struct DptTap {
  std::optional<Convolution> readout{};  // 1x1 on patches, (C, C)
  Tensor<float> class_readout{};         // (C, C), of the class token
  Tensor<float> class_bias{};            // (C)
  Convolution projection;                // 1x1, C -> c_K
  std::optional<TransposedConvolution> enlarge{};
  std::optional<Convolution> reduce{};  // 3x3 with stride 2
  Convolution neck;                     // 3x3, c_K -> F

  std::size_t scratch_floats() const {
    return std::max({largest_scratch(readout), largest_scratch(projection), largest_scratch(enlarge),
                     largest_scratch(reduce), largest_scratch(neck)});
  }
};

/// The layers of one result.
struct DptOutput {
  std::optional<Convolution> hidden;  // 3x3 or none
  Convolution last;                   // 1x1
  MapFinisher finish;

  std::size_t scratch_floats() const { return std::max(largest_scratch(hidden), largest_scratch(last)); }
};

struct DptLayers {
  std::optional<LayerNorm> norm{};      // of all tokens of a tap
  std::vector<DptTap> taps{};           // from shallow to deep
  std::vector<DptFusion> fusions{};     // from deep to shallow
  std::optional<Convolution> extra{};   // 3x3
  std::optional<Convolution> narrow{};  // 3x3, to half the channels; 3x3 of classes
  std::vector<DptOutput> outputs{};
};

class DptHead final : public BranchHead {
 public:
  DptHead(DptConfig config, DptLayers layers, std::size_t patch_size, std::size_t num_prefix,
          const kernels::KernelTable& kernels);

  Shape output_shape(std::size_t output, GridSize grid) const override;
  void forward(std::span<const TensorView<const float>> taps, GridSize grid,
               std::span<const TensorView<float>> outputs, int threads, DenseMemory& memory) const override;

 private:
  /// Of the results for images of this grid.
  MapSize output_size(GridSize grid) const;
  void lay_out(GridSize grid, int threads, DenseMemory& memory) const;
  void plan_fusions(Arena::Taker& arena, GridSize grid, std::size_t threads, DptMaps& maps) const;
  void take_fusions(Arena::Taker& arena, std::size_t first, DptMaps& maps) const;
  void take_taps(Arena::Taker& arena, GridSize grid, std::size_t first, DptMaps& maps) const;
  void take_results(Arena::Taker& arena, GridSize grid, std::size_t threads, DptMaps& maps) const;
  MapSize tap_size(std::size_t tap, GridSize grid) const;
  MapSize fused_size(GridSize grid) const;
  void run_tap(std::size_t index, TensorView<const float> tokens, const FeatureMap& out, int threads,
               const DptMaps& maps) const;
  FeatureMap read_out(const DptTap& tap, TensorView<float> tokens, MapSize grid, int threads,
                      const DptMaps& maps) const;
  void add_unit(const ResidualUnit& unit, const FeatureMap& x, const FeatureMap& added, int threads,
                const DptMaps& maps) const;
  FeatureMap fuse(std::size_t index, int threads, const DptMaps& maps) const;
  FeatureMap enlarged_rows(const FeatureMap& in, const MapResize* resize, MapSize size, RowRange rows,
                           std::size_t thread, const DptMaps& maps) const;
  void convolve_enlarged(const Convolution& convolution, const FeatureMap& in, const MapResize& enlarge,
                         const FeatureMap& out, Activation activation, int threads,
                         const DptMaps& maps) const;
  void finish(const FeatureMap& in, std::span<const TensorView<float>> outputs, int threads,
              const DptMaps& maps) const;
  void finish_strip(const FeatureMap& in, const MapResize* resize, RowRange rows,
                    std::span<const TensorView<float>> outputs, std::size_t thread,
                    const DptMaps& maps) const;

  DptConfig config_;
  DptLayers layers_;
  std::size_t patch_size_, num_prefix_;
  const kernels::KernelTable* kernels_;
};

}  // namespace vit::internal
