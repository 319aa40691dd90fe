// Merger: from patch tokens to the visual tokens of a language model: neighbors are combined into one vector
// (a cell), which layers project to the width of that model. Letters: B images, T = prefix + N tokens, C =
// embed_dim, m x m tokens a cell, W = width of a cell's vector, E = channels of a visual token.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "vit/base/tensor.h"
#include "vit/config/merger.h"
#include "vit/layers/layer_norm.h"
#include "vit/layers/linear.h"
#include "vit/layers/pass.h"
#include "vit/position/config.h"

namespace vit::internal {

/// (x - shift) * scale.
struct AffineLayer {
  Tensor<float> shift;  // (W)
  Tensor<float> scale;  // (W)
};
/// The product of the 3 x 3 vectors around one, row by row, with zeros beyond the map.
struct ConvolutionLayer {
  Linear product;  // (O, 9 W)
  std::size_t stride = 1;
};
/// Squares of vectors that earlier steps made, side by side or their mean.
struct CellsLayer {
  std::size_t size = 1;
  bool is_mean = false;
};
/// gelu(x).
struct GeluLayer {};
/// softmax(x), and zeros up to `dim` channels.
struct SoftmaxLayer {
  std::size_t dim = 0;
};
/// fc2(act(fc1 x)), with a gate fc2(act(gate x) * fc1 x).
struct MlpLayer {
  std::optional<Linear> gate{};
  Linear fc1;
  Linear fc2;
  Activation activation = Activation::gelu;
  Activation out_activation = Activation::none;
};

using MergerLayer = std::variant<LayerNorm, AffineLayer, Linear, GeluLayer, SoftmaxLayer, MlpLayer,
                                 ConvolutionLayer, CellsLayer>;

/// The layers of a merger: one for each of MergerConfig::steps.
struct MergerLayers {
  std::optional<LayerNorm> token_norm{};  // (C)
  std::vector<MergerLayer> steps{};
};

/// Positions of the tokens of a grid in the rows of its images.
struct TokenGrid {
  GridSize grid{};
  std::size_t num_prefix = 0;               // rows of an image before them
  std::span<const std::uint32_t> places{};  // (N): the place of each patch; empty = they lie row by row

  std::size_t row(std::size_t patch) const { return num_prefix + (places.empty() ? patch : places[patch]); }
};

/// Destinations of results; empty if not requested.
struct MergerOutputs {
  TensorView<float> merged{};  // (B, cells, E)
  TensorView<float> stage{};   // (B, cells, width after MergerConfig::tokens_after steps)
};

class Merger {
 public:
  Merger(const MergerConfig& config, MergerLayers layers);

  /// Cells of a grid, including padded ones at its edge. Throws Error for a grid that cannot
  /// be divided into cells.
  static GridSize cells_of(const CellConfig& config, GridSize grid);
  /// Throws Error for a grid that cannot be divided into all cells on the way.
  static void check_grid(const MergerConfig& config, GridSize grid);
  /// Cells that forward() works on at a time, of `count` in all, and the widest vector on their way: what
  /// activations need.
  static std::size_t cells_at_once(std::size_t count);
  static std::size_t widest(const MergerConfig& config, std::size_t embed_dim);
  /// Channels of the widest map that a convolution or later cells read; 0 = there is none.
  static std::size_t widest_map(const MergerConfig& config, std::size_t embed_dim);

  /// tokens (B, T, C), which are only read, to the outputs in `out`, cells row by row. The bits of a cell
  /// depend only on its tokens. Uses activations.cells and .cell_steps.
  void forward(TensorView<const float> tokens, const TokenGrid& grid, const MergerOutputs& out,
               const Pass& pass) const;

 private:
  struct Part;
  struct Map;
  std::size_t embed_dim(TensorView<const float> tokens) const;
  void gather(const Part& part, TensorView<float> cells, const Pass& pass) const;
  void run_steps(Part part, std::size_t first, std::size_t last, const Map& in, const Map& out,
                 const MergerOutputs& outputs, const Pass& pass) const;
  void write_cell(const Part& part, std::size_t cell, float* out, float* token) const;

  MergerConfig config_;
  MergerLayers layers_;
};

}  // namespace vit::internal
