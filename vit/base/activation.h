// The pointwise non-linearities of the published families; shared by config and kernels.
#pragma once

namespace vit {

/// Nonlinearity of an MLP.
enum class Activation {
  none,
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

/// From the logits of classes to probabilities: classes that exclude each other share a softmax, others have
/// a sigmoid each.
enum class ClassActivation { softmax, sigmoid };

}  // namespace vit
