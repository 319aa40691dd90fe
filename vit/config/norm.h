// Norms over channels, as plain data.
#pragma once

namespace vit {

/// A norm over the channels of a token.
enum class NormKind {
  layer,  // (x - mean) / sqrt(variance + eps) * gamma + beta
  rms,    // x / sqrt(mean of squares + eps) * gamma
};

/// Kind and epsilon of norms.
struct NormConfig {
  NormKind kind = NormKind::layer;  // its formula
  float eps = 1e-6f;                // added to the variance or the mean of squares
  bool operator==(const NormConfig&) const = default;
};

}  // namespace vit
