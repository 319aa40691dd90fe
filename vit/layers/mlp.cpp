#include "vit/layers/mlp.h"

namespace vit {
namespace {

std::optional<LayerNorm> build_norm(std::span<const float> gamma, std::span<const float> beta,
                                    std::size_t hidden_dim, float eps, const kernels::KernelTable& kernels) {
  if (gamma.empty()) return std::nullopt;
  VIT_CHECK(gamma.size() == hidden_dim, "Mlp", "inner norm over ", gamma.size(), " of ", hidden_dim,
            " channels");
  return std::optional<LayerNorm>(std::in_place, gamma, beta, eps, kernels);
}

}  // namespace

Mlp::Mlp(const MlpWeights& weights, Activation activation, float norm_eps,
         const kernels::KernelTable& kernels, Dtype dtype)
    : fc1_(weights.fc1_weight, weights.fc1_bias, kernels, dtype),
      norm_(build_norm(weights.norm_gamma, weights.norm_beta, fc1_.out_features(), norm_eps, kernels)),
      fc2_(weights.fc2_weight, weights.fc2_bias, kernels, dtype),
      activation_(activation) {
  VIT_CHECK(fc2_.in_features() == fc1_.out_features(), "Mlp", "fc1 ", weights.fc1_weight.shape().to_string(),
            " and fc2 ", weights.fc2_weight.shape().to_string(), " do not fit together");
}

void Mlp::forward(TensorView<const float> normed, std::span<const float> scale, TensorView<float> out,
                  Workspace& workspace, int threads) const {
  const TensorView<float> hidden = Workspace::view_rows(workspace.hidden, normed.num_rows(), hidden_dim());
  fc1_.forward(normed, hidden, threads, {.activation = activation_}, workspace.quantised);
  if (norm_) norm_->forward(hidden, hidden, threads);
  fc2_.forward(hidden, out, threads, {.scale = scale, .residual = out}, workspace.quantised);
}

std::size_t Mlp::weight_bytes() const {
  return fc1_.weight_bytes() + fc2_.weight_bytes() + (norm_ ? norm_->weight_bytes() : 0);
}

GatedMlp::GatedMlp(const GatedMlpWeights& weights, Activation activation, float norm_eps,
                   const kernels::KernelTable& kernels, Dtype dtype)
    : gate_(weights.gate_weight, weights.gate_bias, kernels, dtype),
      value_(weights.value_weight, weights.value_bias, kernels, dtype),
      norm_(build_norm(weights.norm_gamma, weights.norm_beta, gate_.out_features(), norm_eps, kernels)),
      fc2_(weights.fc2_weight, weights.fc2_bias, kernels, dtype),
      activation_(activation) {
  VIT_CHECK(gate_.in_features() == value_.in_features() && gate_.out_features() == value_.out_features() &&
                fc2_.in_features() == gate_.out_features(),
            "GatedMlp", "gate ", weights.gate_weight.shape().to_string(), ", value ",
            weights.value_weight.shape().to_string(), " and fc2 ", weights.fc2_weight.shape().to_string(),
            " do not fit together");
}

void GatedMlp::forward(TensorView<const float> normed, std::span<const float> scale, TensorView<float> out,
                       Workspace& workspace, int threads) const {
  const TensorView<float> hidden = Workspace::view_rows(workspace.hidden, normed.num_rows(), hidden_dim());
  gate_.forward(normed, hidden, threads, {.activation = activation_}, workspace.quantised);
  value_.forward(normed, hidden, threads, {.multiplier = hidden},
                 workspace.quantised);  // hidden = act(gate x) * value x
  if (norm_) norm_->forward(hidden, hidden, threads);
  fc2_.forward(hidden, out, threads, {.scale = scale, .residual = out}, workspace.quantised);
}

std::size_t GatedMlp::weight_bytes() const {
  return gate_.weight_bytes() + value_.weight_bytes() + fc2_.weight_bytes() +
         (norm_ ? norm_->weight_bytes() : 0);
}

}  // namespace vit
