// The steps of a merger as the fields by which files and `vit info --json` name them.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "vit/config/merger.h"

namespace vit::internal {

/// The normalization at the start of a merger.
enum class FirstNorm { none, token, cell };
/// The step of a merger whose output a library calls last_hidden_state: none, that of `reduced_dim`, fc2.
enum class TokenStage { encoder, reduced, merged };

/// Steps that are 0 or false are absent; the order of the others is that of the fields.
struct MergerFields {
  std::size_t size = 0;  // CellConfig; 0 = no merger
  FirstNorm norm = FirstNorm::none;
  NormKind norm_kind = NormKind::layer;
  float norm_eps = 1e-6f;
  CellRule cells = CellRule::side_by_side;
  bool pads = false;
  float cell_scale = 1.0f;
  bool standardize = false;
  std::size_t reduced_dim = 0;
  bool reduced_bias = false;
  bool middle = false;  // linear without bias, LayerNorm, gelu; as wide as reduced_dim
  float middle_norm_eps = 1e-5f;
  std::size_t softmax_dim = 0;      // LayerNorm and softmax, as wide as reduced_dim, with zeros up to this
  std::size_t convolution_dim = 0;  // 3 x 3
  bool convolution_norms = false;   // LayerNorms before and after it
  float convolution_norm_eps = 1e-6f;
  std::vector<std::size_t> strided_dims{};  // of one or two further ones, with stride 2
  bool strided_bias = false;
  std::size_t hidden_dim = 0;
  std::size_t out_dim = 0;
  bool gated = false;
  bool mlp_bias = true;
  Activation activation = Activation::gelu;
  Activation out_activation = Activation::none;
  bool mlp_norm = false;
  std::size_t later_size = 0;  // cells of what the MLP makes of each token
  CellRule later_cells = CellRule::side_by_side;
  bool second_mlp = false;            // an MLP without gate
  std::size_t second_hidden_dim = 0;  // 0 = out_dim
  std::size_t second_out_dim = 0;     // 0 = out_dim
  bool second_norm_missing = false;   // no norm after it
  float mlp_norm_eps = 1e-6f;
  std::size_t projection_dim = 0;
  bool projection_bias = false;
  bool projection_norm = false;  // RMSNorm without weight
  float projection_norm_eps = 1e-6f;
  bool out_norm = false;        // RMSNorm
  bool out_norm_plain = false;  // without weights
  float out_norm_eps = 1e-5f;
  TokenStage tokens = TokenStage::encoder;
  std::vector<std::size_t> deepstack{};
  std::vector<std::size_t> blocks{};

  bool operator==(const MergerFields&) const = default;
};

MergerFields merger_fields(const std::optional<MergerConfig>& merger);
/// The inverse; nothing without cells and layers.
std::optional<MergerConfig> merger_of(const MergerFields& fields);

}  // namespace vit::internal
