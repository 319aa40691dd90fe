// The rotary positions of a model, as a pipeline: coordinates -> frequencies -> angles -> factors. What the
// kinds of RopeKind have in common and what not is one table in the source. Letters: d = channels of a head,
// A = its angles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "vit/base/check.h"
#include "vit/position/config.h"
#include "vit/position/inputs.h"
#include "vit/position/rope.h"
#include "vit/position/windows.h"

namespace vit::internal {

/// Whether there is something to rotate. Throws Error for factors without data, as of a table that was moved
/// from.
template <typename T>
bool rotates(const position::BasicRopeFactors<T>& factors, const Where& where) {
  VIT_CHECK((factors.cos == nullptr) == (factors.sin == nullptr) &&
                (factors.cos != nullptr || factors.num_patches == 0),
            where, "factors of ", factors.num_patches, " patches without data; was their table moved from?");
  return factors.cos != nullptr;
}

/// Factors for q and k of one grid, patches in the order of the sequence.
struct RopeOfGrid {
  /// None, one for all layers, one per layer, or one of the whole grid and one of windows.
  std::vector<position::RopeTable<float>> tables;
  std::vector<std::uint8_t> table_of_block;                  // of whole grid and windows, else empty
  std::optional<position::RopeTable<float>> of_completed{};  // of windows with the tokens that complete them
  bool with_prefix = false;   // whether the tables begin with the prefix tokens
  double logit_factor = 1.0;  // on the logits of attention (rope_scaling.h)

  /// Factors of block `layer`; `cos` is null if nothing is rotated. Throws Error if a model with factors per
  /// layer has no such layer.
  position::RopeFactors of_block(std::size_t layer) const;
  std::size_t bytes() const;
};

/// Trained frequencies of a model: of each axis, or learned ones of both.
struct TrainedFrequencies {
  std::optional<position::RopeFrequencies> x;  // of columns; of all axes if there are three
  std::optional<position::RopeFrequencies> y;  // of rows
  std::optional<position::MixedFrequencies> mixed;
};

/// Immutable; safe to share between threads.
class RopeEncoding {
 public:
  /// Nothing is rotated.
  RopeEncoding() = default;
  /// Throws Error naming what was found and expected if the weights do not match the config, or are given
  /// although the config does not use them.
  RopeEncoding(const PositionConfig& config, const PositionShape& shape, const PositionWeights& weights);

  /// The factors for the patches of a sequence. Throws Error if a side of the grid is zero.
  RopeOfGrid of_grid(const position::PatchSequence& sequence) const;

  /// Whether time is an axis.
  bool has_time() const noexcept;

 private:
  PositionConfig config_;
  PositionShape shape_;                   // without its span of global blocks
  std::vector<std::uint8_t> in_windows_;  // of each block: whether coordinates count in windows; or empty
  TrainedFrequencies frequencies_;
  std::vector<double> class_angles_;  // (d / 2), or empty
};

}  // namespace vit::internal
