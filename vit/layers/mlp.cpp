#include "vit/layers/mlp.h"

#include <utility>

namespace vit {
namespace {

void check_norm(const std::optional<LayerNorm>& norm, std::size_t hidden_dim) {
  VIT_CHECK(!norm || norm->num_features() == hidden_dim, "Mlp", "inner norm over ",
            norm ? norm->num_features() : 0, " of ", hidden_dim, " channels");
}

}  // namespace

Mlp::Mlp(Linear fc1, std::optional<LayerNorm> norm, Linear fc2, Activation activation)
    : fc1_(std::move(fc1)), norm_(std::move(norm)), fc2_(std::move(fc2)), activation_(activation) {
  VIT_CHECK(fc2_.in_features() == hidden_dim() && fc2_.out_features() == fc1_.in_features(), "Mlp", "fc1 ",
            fc1_.describe(), " and fc2 ", fc2_.describe(), " do not fit together");
  check_norm(norm_, hidden_dim());
}

PreparedRows Mlp::prepare(const LayerNorm& norm, TensorView<const float> in, TensorView<float> normed,
                          const Workspace& workspace, int threads) const {
  return fc1_.prepare_normed(norm, in, normed, threads, workspace.quantised);
}

void Mlp::forward(const PreparedRows& normed, std::span<const float> scale, TensorView<float> out,
                  Workspace& workspace, int threads) const {
  const TensorView<float> hidden = Workspace::view_rows(workspace.hidden, out.num_rows(), hidden_dim());
  fc1_.multiply(normed, hidden, threads, {.activation = activation_});
  fc2_.add_to(out, scale, norm_, hidden, threads, workspace.quantised);
}

std::size_t Mlp::weight_bytes() const {
  return fc1_.weight_bytes() + fc2_.weight_bytes() + (norm_ ? norm_->weight_bytes() : 0);
}

GatedMlp::GatedMlp(Linear gate, Linear value, std::optional<LayerNorm> norm, Linear fc2,
                   Activation activation)
    : gate_(std::move(gate)),
      value_(std::move(value)),
      norm_(std::move(norm)),
      fc2_(std::move(fc2)),
      activation_(activation) {
  VIT_CHECK(gate_.in_features() == value_.in_features() && gate_.out_features() == value_.out_features() &&
                fc2_.in_features() == hidden_dim() && fc2_.out_features() == gate_.in_features(),
            "GatedMlp", "gate ", gate_.describe(), ", value ", value_.describe(), " and fc2 ",
            fc2_.describe(), " do not fit together");
  check_norm(norm_, hidden_dim());
}

PreparedRows GatedMlp::prepare(const LayerNorm& norm, TensorView<const float> in, TensorView<float> normed,
                               const Workspace& workspace, int threads) const {
  return gate_.prepare_normed(norm, in, normed, threads, workspace.quantised);
}

void GatedMlp::forward(const PreparedRows& normed, std::span<const float> scale, TensorView<float> out,
                       Workspace& workspace, int threads) const {
  const TensorView<float> hidden = Workspace::view_rows(workspace.hidden, out.num_rows(), hidden_dim());
  gate_.multiply(normed, hidden, threads, {.activation = activation_});
  value_.multiply(normed, hidden, threads, {.multiplier = hidden});  // hidden = act(gate x) * value x
  fc2_.add_to(out, scale, norm_, hidden, threads, workspace.quantised);
}

std::size_t GatedMlp::weight_bytes() const {
  return gate_.weight_bytes() + value_.weight_bytes() + fc2_.weight_bytes() +
         (norm_ ? norm_->weight_bytes() : 0);
}

}  // namespace vit
