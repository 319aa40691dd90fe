// Configuration of a merger: from patch tokens to the visual tokens for a language model, as a list of steps
// in the order of the data. Letters: C = embed_dim, m x m tokens a cell, W = channels of a cell's vector, E =
// channels of a visual token.
#pragma once

#include <cstddef>
#include <optional>
#include <variant>
#include <vector>

#include "vit/base/choices.h"
#include "vit/base/error.h"
#include "vit/config/norm.h"

namespace vit {

/// How the tokens of a cell are combined into one vector.
enum class CellRule {
  side_by_side,  // m m C channels: the first row of the cell, then the next
  mean,          // C channels
};

/// The start of a merger: m x m neighbors -> one vector.
struct CellConfig {
  std::size_t size = 1;                    // m: edge of a cell, in tokens
  std::optional<NormConfig> token_norm{};  // of each token, before they are combined
  CellRule rule = CellRule::side_by_side;  // how they are combined
  bool pads = false;                       // incomplete cells at the grid's edge are padded with zeros
  float scale = 1.0f;                      // of the vector
  bool operator==(const CellConfig&) const = default;
};

/// (x - shift) * scale of stored vectors.
struct MergerAffine {
  bool operator==(const MergerAffine&) const = default;
};
/// A norm of the vector.
struct MergerNorm {
  NormConfig norm{};        // kind and epsilon
  bool has_weights = true;  // false: an RMSNorm without gamma
  bool operator==(const MergerNorm&) const = default;
};
/// A linear map.
struct MergerLinear {
  std::size_t dim = 0;  // channels of the output
  bool bias = false;    // of the map
  bool operator==(const MergerLinear&) const = default;
};
/// A convolution of 3 x 3 vectors with a padding of 1.
struct MergerConvolution {
  std::size_t dim = 0;     // channels of the output
  std::size_t stride = 1;  // in rows and columns
  bool bias = false;       // of those with stride 2
  bool operator==(const MergerConvolution&) const = default;
};
/// Cells of the vectors that earlier steps made of single tokens.
struct MergerCells {
  std::size_t size = 2;                    // edge of a cell, in vectors
  CellRule rule = CellRule::side_by_side;  // how they are combined
  bool operator==(const MergerCells&) const = default;
};
/// gelu(x), exact.
struct MergerGelu {
  bool operator==(const MergerGelu&) const = default;
};
/// softmax(x), followed by zeros.
struct MergerSoftmax {
  std::size_t dim = 0;  // channels of the output
  bool operator==(const MergerSoftmax&) const = default;
};
/// fc2(act(fc1 x)), or fc2(act(gate x) * fc1 x).
struct MergerMlp {
  std::size_t hidden_dim = 0;                    // channels of the hidden vector
  std::size_t out_dim = 0;                       // channels of the output
  bool gated = false;                            // with a third layer, the gate
  bool bias = true;                              // of both or all three layers
  Activation activation = Activation::gelu;      // of the hidden vector, or of its gate
  Activation out_activation = Activation::none;  // of the output
  bool operator==(const MergerMlp&) const = default;
};

/// The places of a merger's steps, in the order of the data. Tensors and the fields of files are named for
/// them.
enum class MergerPlace {
  cell_norm,           // a norm
  standardize,         // shift and scale (Gemma 4)
  reduce,              // a linear map of the cell (GLM-4V, Pixtral)
  middle,              // a linear map ...
  middle_norm,         // ... its norm ...
  middle_gelu,         // ... and activation (GLM-4V)
  middle_softmax,      // probabilities of a visual vocabulary (Ovis 2)
  neck_norm,           // a norm (SAM) ...
  convolution,         // ... a convolution ...
  convolution_norm,    // ... and a norm
  second_convolution,  // another convolution ...
  third_convolution,   // ... and another (GOT-OCR)
  mlp,                 // an MLP
  mlp_norm,            // a norm (ERNIE-4.5-VL)
  later_cells,         // cells of what the MLP made of each token (MiniMax-M3, Perception LM)
  second_mlp,          // another MLP ...
  second_norm,         // ... and its norm (ERNIE-4.5-VL)
  projection_norm,     // a norm (Gemma 4)
  projection,          // a linear map
  out_norm,            // a norm (ERNIE-4.5-VL)
};

/// One step of a merger, after the cells.
struct MergerStep {
  MergerPlace place = MergerPlace::mlp;  // in the order of the data
  /// What is applied.
  std::variant<MergerNorm, MergerAffine, MergerLinear, MergerGelu, MergerSoftmax, MergerMlp,
               MergerConvolution, MergerCells>
      layer{};

  /// Channels of its output, for an input of `width`.
  std::size_t width(std::size_t width) const {
    if (const auto* linear = std::get_if<MergerLinear>(&layer)) return linear->dim;
    if (const auto* mlp = std::get_if<MergerMlp>(&layer)) return mlp->out_dim;
    if (const auto* softmax = std::get_if<MergerSoftmax>(&layer)) return softmax->dim;
    if (const auto* convolution = std::get_if<MergerConvolution>(&layer)) return convolution->dim;
    if (const auto* cells = std::get_if<MergerCells>(&layer))
      return cells->rule == CellRule::mean ? width : width * cells->size * cells->size;
    return width;
  }
  bool operator==(const MergerStep&) const = default;
};

/// From patch tokens to the visual tokens for a language model.
struct VIT_API MergerConfig {
  /// The blocks whose outputs are read, before any norm, side by side if there are several (LLaVA,
  /// ViP-LLaVA); empty = the tokens after the final norm.
  std::vector<std::size_t> blocks{};
  CellConfig cells{};               // m x m tokens -> a vector
  std::vector<MergerStep> steps{};  // vector -> visual token; places ascend
  /// Steps before the output that the library calls last_hidden_state; nothing = the patch tokens after the
  /// final norm of the encoder are.
  std::optional<std::size_t> tokens_after{};
  std::vector<std::size_t> deepstack{};  // blocks after which a separate merger reads the tokens (Qwen3-VL)

  /// W: channels of a cell's vector, for tokens of C channels.
  std::size_t cell_width(std::size_t embed_dim) const {
    const std::size_t token = embed_dim * (blocks.empty() ? 1 : blocks.size());
    return cells.rule == CellRule::mean ? token : token * cells.size * cells.size;
  }
  /// Channels after the first `count` steps.
  std::size_t width_after(std::size_t count, std::size_t embed_dim) const {
    std::size_t width = cell_width(embed_dim);
    for (std::size_t i = 0; i < count && i < steps.size(); ++i) width = steps[i].width(width);
    return width;
  }
  /// E: channels of a visual token.
  std::size_t width(std::size_t embed_dim) const { return width_after(steps.size(), embed_dim); }
  /// Edge of the square of tokens that make one vector, without convolutions.
  std::size_t cell_edge() const {
    const auto* const later = find<MergerCells>(MergerPlace::later_cells);
    return cells.size * (later != nullptr ? later->size : 1);
  }
  /// Rows, or columns, of visual tokens of a grid with `length` cells along them.
  std::size_t out_length(std::size_t length) const {
    for (const MergerStep& step : steps) {
      if (const auto* convolution = std::get_if<MergerConvolution>(&step.layer))
        length = (length + convolution->stride - 1) / convolution->stride;
      if (const auto* later = std::get_if<MergerCells>(&step.layer)) length /= later->size;
    }
    return length;
  }
  /// The step of a place, null if there is none.
  template <typename Layer>
  const Layer* find(MergerPlace place) const {
    for (const MergerStep& step : steps)
      if (step.place == place) return std::get_if<Layer>(&step.layer);
    return nullptr;
  }
  /// Appends a step.
  template <typename Layer>
  void add(MergerPlace place, Layer layer) {
    steps.push_back({place, std::move(layer)});
  }
  bool operator==(const MergerConfig&) const = default;
};

/// The merger after a block of MergerConfig::deepstack: a norm of cells and the MLP of `config`.
VIT_API MergerConfig deepstack_merger(const MergerConfig& config);

}  // namespace vit
