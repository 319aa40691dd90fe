#include "vit/layers/mlp.h"

#include <utility>

#include "vit/base/check.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"Mlp", ErrorKind::argument};

}  // namespace

Mlp::Mlp(MlpInput in, std::optional<LayerNorm> norm, Linear fc2, Activation activation)
    : in_(std::move(in)), norm_(std::move(norm)), fc2_(std::move(fc2)), activation_(activation) {
  const Linear& fc1 = in_.fc1;
  const Linear& gate = in_.gate ? *in_.gate : fc1;
  VIT_CHECK(fc2_.in_features() == hidden_dim() && fc2_.out_features() == fc1.in_features(), kWhere, "fc1 ",
            fc1.describe(), " and fc2 ", fc2_.describe(), " do not match");
  VIT_CHECK(gate.in_features() == fc1.in_features() && gate.out_features() == fc1.out_features(), kWhere,
            "gate ", gate.describe(), " and fc1 ", fc1.describe(), " do not match");
  VIT_CHECK(!norm_ || norm_->num_features() == hidden_dim(), kWhere, "inner norm over ",
            norm_ ? norm_->num_features() : 0, " of ", hidden_dim(), " channels");
}

/// Gate and value read the normalized rows with separate bounds, so the rows are computed twice.
void Mlp::forward_clipped(const NormedRows& x, const Residual& out, const Pass& pass) const {
  Activations& a = pass.activations;
  const StageTimer timer(pass.times, Stage::mlp);
  const std::size_t num_rows = x.rows.num_rows();
  const TensorView<float> normed = Activations::view_rows(a.normed, num_rows, x.rows.num_columns());
  const TensorView<float> hidden = Activations::view_rows(a.hidden, num_rows, hidden_dim());
  const TensorView<float> gates = Activations::view_rows(a.gates, num_rows, hidden_dim());
  in_.gate->multiply(in_.gate->convert(x, normed, pass), gates, pass, {.activation = activation_});
  in_.fc1.multiply(in_.fc1.convert(x, normed, pass), hidden, pass, {.multiplier = gates});
  fc2_.add(norm_, hidden, out, pass);
}

void Mlp::forward(const NormedRows& x, const Residual& out, const Pass& pass) const {
  Activations& a = pass.activations;
  const std::size_t num_rows = x.rows.num_rows();
  if (in_.gate && in_.gate->clips()) return forward_clipped(x, out, pass);
  const LinearInput normed = [&] {
    const StageTimer timer(pass.times, Stage::norms);
    return in_.fc1.convert(x, Activations::view_rows(a.normed, num_rows, x.rows.num_columns()), pass);
  }();
  const StageTimer timer(pass.times, Stage::mlp);
  const TensorView<float> hidden = Activations::view_rows(a.hidden, num_rows, hidden_dim());
  if (in_.gate) {
    in_.fc1.multiply_gated(*in_.gate, normed, hidden, activation_, pass);  // hidden = act(gate x) * fc1 x
  } else {
    in_.fc1.multiply(normed, hidden, pass, {.activation = activation_});
  }
  fc2_.add(norm_, hidden, out, pass);
}

}  // namespace vit::internal
