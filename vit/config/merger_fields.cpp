#include "vit/config/merger_fields.h"

#include <algorithm>

namespace vit::internal {
namespace {

/// Writes a step into the fields of its place.
struct FieldsOfStep {
  MergerPlace place;
  MergerFields& f;

  void operator()(const MergerNorm& step) const {
    const NormConfig norm = step.norm;
    switch (place) {
      case MergerPlace::cell_norm:
        f.norm = FirstNorm::cell, f.norm_kind = norm.kind, f.norm_eps = norm.eps;
        return;
      case MergerPlace::neck_norm: f.convolution_norms = true, f.convolution_norm_eps = norm.eps; return;
      case MergerPlace::middle_norm: f.middle_norm_eps = norm.eps; return;
      case MergerPlace::mlp_norm: f.mlp_norm = true, f.mlp_norm_eps = norm.eps; return;
      case MergerPlace::projection_norm: f.projection_norm = true, f.projection_norm_eps = norm.eps; return;
      case MergerPlace::out_norm:
        f.out_norm = true, f.out_norm_eps = norm.eps, f.out_norm_plain = !step.has_weights;
        return;
      case MergerPlace::second_norm: f.second_norm_missing = false; return;
      default: return;
    }
  }
  void operator()(const MergerAffine&) const { f.standardize = true; }
  void operator()(const MergerCells& cells) const {
    f.later_size = cells.size;
    f.later_cells = cells.rule;
  }
  void operator()(const MergerGelu&) const {}
  void operator()(const MergerSoftmax& softmax) const { f.softmax_dim = softmax.dim; }
  void operator()(const MergerLinear& linear) const {
    if (place == MergerPlace::middle) f.middle = true;
    if (place == MergerPlace::reduce) f.reduced_dim = linear.dim, f.reduced_bias = linear.bias;
    if (place == MergerPlace::projection) f.projection_dim = linear.dim, f.projection_bias = linear.bias;
  }
  void operator()(const MergerConvolution& convolution) const {
    if (place == MergerPlace::convolution) {
      f.convolution_dim = convolution.dim;
    } else {
      f.strided_dims.push_back(convolution.dim);
      f.strided_bias = convolution.bias;
    }
  }
  void operator()(const MergerMlp& mlp) const {
    if (place == MergerPlace::second_mlp) {
      f.second_mlp = true;
      f.second_norm_missing = true;  // until its step is read
      f.second_hidden_dim = mlp.hidden_dim == f.out_dim ? 0 : mlp.hidden_dim;
      f.second_out_dim = mlp.out_dim == f.out_dim ? 0 : mlp.out_dim;
      return;
    }
    f.hidden_dim = mlp.hidden_dim;
    f.out_dim = mlp.out_dim;
    f.gated = mlp.gated;
    f.mlp_bias = mlp.bias;
    f.activation = mlp.activation;
    f.out_activation = mlp.out_activation;
  }
};

void add_mlps(const MergerFields& f, MergerConfig& out) {
  const bool follows = f.mlp_norm || f.second_mlp || f.later_size != 0;
  if (f.hidden_dim == 0 && !follows) return;
  const NormConfig norm{.kind = NormKind::layer, .eps = f.mlp_norm_eps};
  out.add(MergerPlace::mlp, MergerMlp{.hidden_dim = f.hidden_dim,
                                      .out_dim = f.out_dim,
                                      .gated = f.gated,
                                      .bias = f.mlp_bias,
                                      .activation = f.activation,
                                      .out_activation = f.out_activation});
  if (f.mlp_norm) out.add(MergerPlace::mlp_norm, MergerNorm{.norm = norm});
  if (f.later_size != 0)
    out.add(MergerPlace::later_cells, MergerCells{.size = f.later_size, .rule = f.later_cells});
  if (!f.second_mlp) return;
  out.add(MergerPlace::second_mlp,
          MergerMlp{.hidden_dim = f.second_hidden_dim != 0 ? f.second_hidden_dim : f.out_dim,
                    .out_dim = f.second_out_dim != 0 ? f.second_out_dim : f.out_dim,
                    .bias = f.mlp_bias,
                    .activation = f.activation});
  if (!f.second_norm_missing) out.add(MergerPlace::second_norm, MergerNorm{.norm = norm});
}

void add_convolutions(const MergerFields& f, MergerConfig& out) {
  const MergerNorm norm{.norm = {.eps = f.convolution_norm_eps}};
  if (f.convolution_norms) out.add(MergerPlace::neck_norm, norm);
  if (f.convolution_dim != 0 || f.convolution_norms)
    out.add(MergerPlace::convolution, MergerConvolution{.dim = f.convolution_dim});
  if (f.convolution_norms) out.add(MergerPlace::convolution_norm, norm);
  MergerPlace place = MergerPlace::second_convolution;
  for (const std::size_t dim : f.strided_dims) {  // validate() refuses more than two
    out.add(place, MergerConvolution{.dim = dim, .stride = 2, .bias = f.strided_bias});
    place = MergerPlace::third_convolution;
  }
}

}  // namespace

MergerFields merger_fields(const std::optional<MergerConfig>& merger) {
  MergerFields fields;
  if (!merger) return fields;
  const CellConfig& cells = merger->cells;
  fields.size = cells.size;
  if (cells.token_norm) {
    fields.norm = FirstNorm::token;
    fields.norm_kind = cells.token_norm->kind;
    fields.norm_eps = cells.token_norm->eps;
  }
  fields.cells = cells.rule;
  fields.pads = cells.pads;
  fields.cell_scale = cells.scale;
  for (const MergerStep& step : merger->steps) std::visit(FieldsOfStep{step.place, fields}, step.layer);
  fields.deepstack = merger->deepstack;
  fields.blocks = merger->blocks;
  if (merger->tokens_after) {
    const std::size_t count = std::min(*merger->tokens_after, merger->steps.size());  // not validated yet
    const bool merged = count != 0 && merger->steps[count - 1].place > MergerPlace::reduce;
    fields.tokens = merged ? TokenStage::merged : TokenStage::reduced;
  }
  return fields;
}

std::optional<MergerConfig> merger_of(const MergerFields& f) {
  if (f.size == 0 && f.reduced_dim == 0 && f.hidden_dim == 0 && f.projection_dim == 0 && f.deepstack.empty())
    return std::nullopt;
  const NormConfig first{.kind = f.norm_kind, .eps = f.norm_eps};
  MergerConfig out{.cells = {.size = f.size, .rule = f.cells, .pads = f.pads, .scale = f.cell_scale}};
  if (f.norm == FirstNorm::token) out.cells.token_norm = first;
  if (f.norm == FirstNorm::cell) out.add(MergerPlace::cell_norm, MergerNorm{.norm = first});
  if (f.standardize) out.add(MergerPlace::standardize, MergerAffine{});
  if (f.reduced_dim != 0 || f.middle)
    out.add(MergerPlace::reduce, MergerLinear{.dim = f.reduced_dim, .bias = f.reduced_bias});
  const std::size_t reduced = out.steps.size();
  if (f.softmax_dim != 0) {
    out.add(MergerPlace::middle_norm, MergerNorm{.norm = {.eps = f.middle_norm_eps}});
    out.add(MergerPlace::middle_softmax, MergerSoftmax{.dim = f.softmax_dim});
  }
  if (f.middle) {
    out.add(MergerPlace::middle, MergerLinear{.dim = f.reduced_dim});
    out.add(MergerPlace::middle_norm, MergerNorm{.norm = {.eps = f.middle_norm_eps}});
    out.add(MergerPlace::middle_gelu, MergerGelu{});
  }
  add_convolutions(f, out);
  add_mlps(f, out);
  const std::size_t merged = out.steps.size();
  if (f.projection_norm)
    out.add(MergerPlace::projection_norm,
            MergerNorm{.norm = {.kind = NormKind::rms, .eps = f.projection_norm_eps}, .has_weights = false});
  if (f.projection_dim != 0 || f.out_norm)
    out.add(MergerPlace::projection, MergerLinear{.dim = f.projection_dim, .bias = f.projection_bias});
  if (f.out_norm)
    out.add(MergerPlace::out_norm, MergerNorm{.norm = {.kind = NormKind::rms, .eps = f.out_norm_eps},
                                              .has_weights = !f.out_norm_plain});
  if (f.tokens != TokenStage::encoder) out.tokens_after = f.tokens == TokenStage::reduced ? reduced : merged;
  out.deepstack = f.deepstack;
  out.blocks = f.blocks;
  return out;
}

}  // namespace vit::internal
