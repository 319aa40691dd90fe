// How rotary positions meet a grid other than the trained one: plain data of the configuration. What each
// rule computes is left to position/rope_scaling.h.
#pragma once

#include <optional>

namespace vit {

/// The names are those of `rope_scaling` in transformers; s is the length of an axis over its trained length.
enum class RopeScalingRule {
  none,    // patches are counted: coordinates beyond the trained grid are new to the model
  linear,  // coordinates are divided by s: the trained range, with smaller steps (Chen et al. 2023)
  ntk,     // low frequencies are divided by s, high ones less or not at all (bloc97 2023; per axis: FiT)
  yarn,    // by the turns that a pair makes over the trained grid (Peng et al. 2023; per axis: FiT)
};

/// What s is of the two axes of a grid.
enum class RopeScalingAxes {
  each,    // columns and rows by their own (VisionNTK, VisionYaRN of FiT, Lu et al. 2024)
  common,  // both by the larger of the two
};

/// A factor on the logits of attention that depends on the number of patches alone.
enum class RopeTemperature {
  none,
  log,  // max(1, ln N / ln N_trained): keeps attention from spreading over more tokens (Su 2021)
};

/// Rotary positions on grids other than the trained one; position/rope_scaling.h has the formulas.
struct RopeScaling {
  RopeScalingRule rule = RopeScalingRule::none;
  RopeScalingAxes axes = RopeScalingAxes::each;
  double factor = 0.0;  // s of both axes; 0 = the grid over the trained grid
  /// yarn: pairs of more turns over the trained length stay as they are, those of fewer than beta_slow are
  /// divided by s. The defaults are those of the paper, of sequences of thousands of tokens.
  double beta_fast = 32.0;
  double beta_slow = 1.0;
  /// yarn, axial: the ramp begins and ends at whole indices of the ladder, not before its first, as in the
  /// published code of YaRN and FiT and by default in transformers. The fastest pair then always stays.
  bool truncate = false;
  /// yarn: what queries and keys are multiplied by; nothing = max(1, 0.1 ln s + 1), s = sqrt(s_x s_y).
  std::optional<double> attention_factor{};
  RopeTemperature temperature = RopeTemperature::none;  // goes with every rule

  bool operator==(const RopeScaling&) const = default;
};

}  // namespace vit
