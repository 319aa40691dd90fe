// Enumerations shared by models and kernels.
#pragma once

#include <cstddef>

namespace vit {

/// Nonlinearity of an MLP.
enum class Activation {
  none,        // x
  gelu,        // 0.5 x (1 + erf(x / sqrt 2)), the exact form
  gelu_tanh,   // 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
  quick_gelu,  // x sigmoid(1.702 x), OpenAI CLIP
  silu,        // x sigmoid(x)
  relu,        // max(x, 0)
};

/// Name as printed by `vit info`.
constexpr const char* to_string(Activation activation) {
  switch (activation) {
    case Activation::none: return "none";
    case Activation::gelu: return "gelu";
    case Activation::gelu_tanh: return "gelu_tanh";
    case Activation::quick_gelu: return "quick_gelu";
    case Activation::silu: return "silu";
    case Activation::relu: return "relu";
  }
  return "unknown";
}

/// From the logits of classes to probabilities: mutually exclusive classes share a softmax, others have
/// a sigmoid each. Outputs of a regression, which are values and not classes, are unchanged.
enum class ClassActivation {
  softmax,  // over all classes; probabilities sum to 1
  sigmoid,  // of each class
  none,     // values are unchanged
};

/// Precision of the matrix products of the blocks.
enum class Precision {
  float32,   // weights, activations and sums
  bfloat16,  // weights rounded to bfloat16 while loading; also activations if the machine multiplies pairs
  int8,      // weights quantized to 8 bits for each output while loading, activations for each row
};

/// "float32", "bfloat16", "int8".
constexpr const char* to_string(Precision precision) {
  switch (precision) {
    case Precision::float32: return "float32";
    case Precision::bfloat16: return "bfloat16";
    case Precision::int8: return "int8";
  }
  return "";
}

/// Which two channels of a head an angle rotates.
enum class RopePairing {
  neighbors,               // (2i, 2i + 1)
  halves,                  // (i, i + d / 2)
  neighbours = neighbors,  // its name up to 0.2
};

/// How many angles a pair of channels has.
enum class RopeAngles {
  per_pair,     // one: a rotation
  per_channel,  // one for each of its two channels: not a rotation, but the published code of V-JEPA 2
};

/// Angles of a head of d channels.
constexpr std::size_t num_angles(RopeAngles angles, std::size_t head_dim) {
  return angles == RopeAngles::per_channel ? head_dim : head_dim / 2;
}

}  // namespace vit
