#include "vit/weights/model_weights.h"

#include "vit/config.h"

#include <algorithm>
#include <variant>

namespace vit::internal {
namespace {

struct Walker {
  const VisitTensor& visit;
  std::size_t block = 0;
  bool joint_head = false;

  void tensor(Part part, const Shape& shape, WeightTensor& weight) const {
    visit({.part = part, .block = block, .joint_head = joint_head}, shape, weight);
  }
  /// `gamma` is followed by its beta, which an RMSNorm lacks.
  void norm(Part gamma, std::size_t width, NormWeights& weights, NormKind kind = NormKind::layer) const {
    tensor(gamma, Shape{width}, weights.gamma);
    if (kind == NormKind::layer) tensor(next(gamma), Shape{width}, weights.beta);
  }
  /// `weight` is followed by its bias.
  void linear(Part weight, std::size_t out, std::size_t in, LinearWeights& weights, bool bias = true) const {
    tensor(weight, Shape{out, in}, weights.weight);
    if (bias) tensor(next(weight), Shape{out}, weights.bias);
  }
};

Shape position_table(const ModelConfig& config) {
  const PositionConfig& position = config.position;
  if (position.added == AddedTable::columns_and_rows)
    return Shape{2, position.added_grid.rows, config.embed_dim};
  const std::size_t patches = position.added_grid.rows * position.added_grid.columns;
  const std::size_t steps = std::max<std::size_t>(position.added_steps, 1);
  return Shape{steps * patches + position.added_prefix_rows, config.embed_dim};
}

/// What blocks, or all of them together, have of relative positions; `table` is the first part of theirs.
void visit_relative(const ModelConfig& c, Part table, RelativeWeights& weights, const Walker& walk) {
  const RelativeConfig& r = *c.position.relative;
  const bool of_block = is_of_block(table);
  if (r.kind == RelativeKind::axes) {
    if (!of_block) return;
    const GridSize grid = relative_grid(c, walk.block);
    walk.tensor(Part::relative_rows, Shape{2 * grid.rows - 1, c.head_width()}, weights.rows);
    walk.tensor(Part::relative_columns, Shape{2 * grid.columns - 1, c.head_width()}, weights.columns);
    return;
  }
  if (r.scope == (of_block ? RelativeScope::shared : RelativeScope::blocks)) return;
  if (r.kind == RelativeKind::mlp) {
    walk.linear(next(table), r.mlp_dim, 2, weights.fc1);
    walk.linear(next(next(next(table))), c.attention.num_heads, r.mlp_dim, weights.fc2);
    return;
  }
  const std::size_t of_prefix = c.num_prefix_tokens() != 0 ? 3 : 0;
  const std::size_t distances = (2 * r.grid.rows - 1) * (2 * r.grid.columns - 1);
  walk.tensor(table, Shape{distances + of_prefix, c.attention.num_heads}, weights.table);
}

void visit_embedding(const ModelConfig& c, ModelWeights& weights, const Walker& walk) {
  const std::size_t width = c.embed_dim, pixels = c.patch_dim();
  if (c.patch.pixels == PixelRule::stored) {
    walk.tensor(Part::pixel_mean, Shape{c.image.num_channels}, weights.pixel_mean);
    walk.tensor(Part::pixel_std, Shape{c.image.num_channels}, weights.pixel_std);
  }
  if (c.patch.norm) walk.norm(Part::patch_norm_gamma, pixels, weights.patch_norm, c.encoder.norm.kind);
  walk.linear(Part::patch_weight, width, pixels, weights.patch, c.patch.bias);
  if (c.has_clips())
    walk.linear(Part::clip_weight, width, c.patch.frames * pixels, weights.clip, c.patch.own_clips);
  if (c.patch.own_clips) {
    walk.tensor(Part::image_shift, Shape{width}, weights.image_shift);
    walk.tensor(Part::clip_shift, Shape{width}, weights.clip_shift);
  }
  if (c.patch.embed_norm) walk.norm(Part::embed_norm_gamma, width, weights.embed_norm, c.encoder.norm.kind);
  if (c.tokens.class_token) walk.tensor(Part::class_token, Shape{width}, weights.class_token);
  if (c.tokens.distillation_token)
    walk.tensor(Part::distillation_token, Shape{width}, weights.distillation_token);
  if (c.tokens.num_registers != 0) {
    walk.tensor(Part::register_tokens, Shape{c.tokens.num_registers, width}, weights.register_tokens);
  }
  if (c.tokens.late) walk.tensor(Part::late_tokens, Shape{c.tokens.late->count, width}, weights.late_tokens);
  if (c.position.added != AddedTable::none) {
    walk.tensor(Part::position_table, position_table(c), weights.position_table);
  }
  if (c.position.between_blocks) {
    const Shape rows = position_table(c);
    walk.tensor(Part::between_tables, Shape{c.encoder.depth - 1, 1, rows[0], rows[1]},
                weights.between_tables);
  }
  if (c.position.class_angles)
    walk.tensor(Part::class_angles, Shape{c.head_width() / 2}, weights.class_angles);
  if (c.position.rope == RopeKind::mixed) {
    walk.tensor(Part::rope_frequencies, Shape{2, c.encoder.depth, c.attention.num_heads, c.head_width() / 2},
                weights.rope_frequencies);
  }
  if (c.position.rope == RopeKind::axial && c.position.frequencies == AxisFrequencies::stored) {
    walk.tensor(Part::rope_periods, Shape{c.head_width() / 4}, weights.rope_periods);
  }
  if (c.position.relative) visit_relative(c, Part::relative_table, weights.relative, walk);
  if (c.encoder.norm_pre) walk.norm(Part::norm_pre_gamma, width, weights.norm_pre, c.encoder.norm.kind);
}

void visit_block(const ModelConfig& c, BlockWeights& block, const Walker& walk) {
  const std::size_t width = c.embed_dim, heads = c.attention_dim();
  const bool after_only = c.encoder.block_norms == BlockNorms::after;
  const bool branch_norm = after_only || c.encoder.block_norms == BlockNorms::before_and_after;
  if (!after_only) walk.norm(Part::norm1_gamma, width, block.norm1, c.encoder.norm.kind);
  walk.linear(Part::qkv_weight, heads + 2 * c.key_dim(walk.block), width, block.qkv, c.attention.qkv_bias);
  if (c.attention.qk_norm) {
    const std::size_t normed = c.attention.differential ? c.head_width() / 2 : c.head_width();
    walk.norm(Part::q_norm_gamma, normed, block.q_norm, *c.attention.qk_norm);
    walk.norm(Part::k_norm_gamma, normed, block.k_norm, *c.attention.qk_norm);
  }
  if (c.attention.differential) {
    walk.tensor(Part::lambda, Shape{2 * c.head_width()}, block.lambda);
    walk.tensor(Part::sub_norm_gamma, Shape{c.head_width()}, block.sub_norm.gamma);
  }
  if (c.position.relative) visit_relative(c, Part::block_relative_table, block.relative, walk);
  if (c.attention.norm)
    walk.norm(Part::attention_norm_gamma, heads, block.attention_norm, c.encoder.norm.kind);
  walk.linear(Part::proj_weight, width, heads, block.proj, c.attention.proj_bias);
  if (branch_norm) walk.norm(Part::branch_norm1_gamma, width, block.branch_norm1, c.encoder.norm.kind);
  if (c.encoder.layer_scale) walk.tensor(Part::scale1, Shape{width}, block.scale1);
  if (!c.encoder.parallel && !after_only)
    walk.norm(Part::norm2_gamma, width, block.norm2, c.encoder.norm.kind);
  if (c.mlp.kind == MlpKind::gated) walk.linear(Part::gate_weight, c.mlp.dim, width, block.gate, c.mlp.bias);
  walk.linear(Part::fc1_weight, c.mlp.dim, width, block.fc1, c.mlp.bias);
  if (c.mlp.norm) walk.norm(Part::mlp_norm_gamma, c.mlp.dim, block.mlp_norm, c.encoder.norm.kind);
  walk.linear(Part::fc2_weight, width - c.mlp.expert_dim, c.mlp.dim, block.fc2, c.mlp.bias);
  if (c.mlp.expert_dim != 0)
    walk.linear(Part::fc2_expert_weight, c.mlp.expert_dim, c.mlp.dim, block.fc2_expert, c.mlp.bias);
  if (c.encoder.clipped) {
    walk.tensor(Part::q_clip, Shape{4}, block.q_clip);
    walk.tensor(Part::k_clip, Shape{4}, block.k_clip);
    walk.tensor(Part::v_clip, Shape{4}, block.v_clip);
    walk.tensor(Part::proj_clip, Shape{4}, block.proj_clip);
    walk.tensor(Part::gate_clip, Shape{4}, block.gate_clip);
    walk.tensor(Part::fc1_clip, Shape{4}, block.fc1_clip);
    walk.tensor(Part::fc2_clip, Shape{4}, block.fc2_clip);
  }
  if (branch_norm) walk.norm(Part::branch_norm2_gamma, width, block.branch_norm2, c.encoder.norm.kind);
  if (c.encoder.layer_scale) walk.tensor(Part::scale2, Shape{width}, block.scale2);
}

void visit_head(const ModelConfig& c, ModelWeights& weights, const Walker& walk) {
  const std::size_t width = c.embed_dim;
  if (c.head.pooling == Pooling::attention) {
    const std::size_t hidden = c.head.attention_pool->mlp_dim;
    walk.tensor(Part::pool_probe, Shape{width}, weights.pool.probe);
    walk.linear(Part::pool_q_weight, width, width, weights.pool.q);
    walk.linear(Part::pool_kv_weight, 2 * width, width, weights.pool.kv);
    walk.linear(Part::pool_proj_weight, width, width, weights.pool.proj);
    walk.norm(Part::pool_norm_gamma, width, weights.pool.norm);
    walk.linear(Part::pool_fc1_weight, hidden, width, weights.pool.fc1);
    walk.linear(Part::pool_fc2_weight, width, hidden, weights.pool.fc2);
  }
  if (c.head.pooled_norm)
    walk.norm(Part::pooled_norm_gamma, c.pooled_dim(), weights.pooled_norm, c.encoder.norm.kind);
  if (c.head.pooler) walk.linear(Part::pooler_weight, width, width, weights.pooler);
  if (c.head.projection && !c.head.joint)
    walk.linear(Part::projection_weight, c.head.projection->dim, c.pooled_dim(), weights.projection,
                c.head.projection->bias);
  if (c.head.num_classes == 0) return;
  const std::size_t head_in = c.head.input == HeadInput::class_and_patch_mean ? 2 * width : c.pooled_dim();
  walk.linear(Part::head_weight, c.head.num_classes, head_in, weights.head);
  if (c.head.input == HeadInput::class_and_distillation) {
    walk.linear(Part::head_distillation_weight, c.head.num_classes, width, weights.head_distillation);
  }
}

/// The first tensor of a step.
Part part_of(MergerPlace place) {
  switch (place) {
    case MergerPlace::cell_norm: return Part::merger_norm_gamma;
    case MergerPlace::standardize: return Part::merger_shift;
    case MergerPlace::reduce: return Part::merger_reduce_weight;
    case MergerPlace::middle: return Part::merger_middle_weight;
    case MergerPlace::middle_norm: return Part::merger_middle_norm_gamma;
    case MergerPlace::neck_norm: return Part::merger_neck_norm_gamma;
    case MergerPlace::convolution: return Part::merger_convolution_weight;
    case MergerPlace::convolution_norm: return Part::merger_convolution_norm_gamma;
    case MergerPlace::second_convolution: return Part::merger_second_convolution_weight;
    case MergerPlace::third_convolution: return Part::merger_third_convolution_weight;
    case MergerPlace::mlp: return Part::merger_fc1_weight;
    case MergerPlace::mlp_norm: return Part::merger_mlp_norm_gamma;
    case MergerPlace::second_mlp: return Part::merger_second_fc1_weight;
    case MergerPlace::second_norm: return Part::merger_second_norm_gamma;
    case MergerPlace::projection: return Part::merger_projection_weight;
    case MergerPlace::out_norm: return Part::merger_out_norm_gamma;
    case MergerPlace::middle_gelu:
    case MergerPlace::middle_softmax:
    case MergerPlace::later_cells:
    case MergerPlace::projection_norm: break;  // without tensors
  }
  return Part::merger_norm_gamma;
}
/// The same of a merger between blocks.
Part deepstack_part_of(MergerPlace place) {
  return place == MergerPlace::mlp ? Part::deepstack_fc1_weight : Part::deepstack_norm_gamma;
}

/// Visits the tensors of a step whose input is `width` wide.
struct StepVisit {
  Part first;
  std::size_t width;
  MergerStepWeights& weights;
  const Walker& walk;

  void operator()(const MergerNorm& step) const {
    if (step.has_weights) walk.norm(first, width, weights.norm, step.norm.kind);
  }
  void operator()(const MergerAffine&) const {
    walk.tensor(first, Shape{width}, weights.shift);
    walk.tensor(next(first), Shape{width}, weights.scale);
  }
  void operator()(const MergerGelu&) const {}
  void operator()(const MergerSoftmax&) const {}
  void operator()(const MergerLinear& linear) const {
    walk.linear(first, linear.dim, width, weights.fc1, linear.bias);
  }
  void operator()(const MergerConvolution& convolution) const {
    walk.linear(first, convolution.dim, 9 * width, weights.fc1, convolution.bias);
  }
  void operator()(const MergerCells&) const {}
  void operator()(const MergerMlp& mlp) const {
    if (mlp.gated) walk.linear(Part::merger_gate_weight, mlp.hidden_dim, width, weights.gate, mlp.bias);
    walk.linear(first, mlp.hidden_dim, width, weights.fc1, mlp.bias);
    walk.linear(next(next(first)), mlp.out_dim, mlp.hidden_dim, weights.fc2, mlp.bias);
  }
};

void visit_merger(const MergerConfig& m, std::size_t embed_dim, Part (*first_part)(MergerPlace),
                  MergerWeights& weights, const Walker& walk) {
  if (m.cells.token_norm)
    walk.norm(Part::merger_norm_gamma, embed_dim, weights.token_norm, m.cells.token_norm->kind);
  weights.steps.resize(m.steps.size());
  std::size_t width = m.cell_width(embed_dim);
  for (std::size_t i = 0; i < m.steps.size(); ++i) {
    const MergerStep& step = m.steps[i];
    std::visit(StepVisit{first_part(step.place), width, weights.steps[i], walk}, step.layer);
    width = step.width(width);
  }
}

}  // namespace

ModelConfig joint_head_blocks(const ModelConfig& config) {
  ModelConfig joint;
  joint.embed_dim = config.embed_dim;
  joint.encoder.depth = config.head.joint->depth;
  joint.attention.num_heads = config.attention.num_heads;
  joint.attention.head_dim = config.attention.head_dim;
  joint.mlp.kind = MlpKind::gated;
  joint.mlp.dim = config.head.joint->mlp_dim;
  joint.mlp.activation = Activation::silu;
  joint.encoder.norm.eps = config.head.joint->norm_eps;
  joint.attention.qkv_bias = false;
  joint.encoder.layer_scale = true;
  return joint;
}

void for_each_block_tensor(const ModelConfig& c, std::vector<BlockWeights>& blocks,
                           const VisitTensor& visit) {
  blocks.resize(c.encoder.depth);
  for (std::size_t i = 0; i < c.encoder.depth; ++i) visit_block(c, blocks[i], {.visit = visit, .block = i});
}

void for_each_tensor(const ModelConfig& c, ModelWeights& weights, const VisitTensor& visit) {
  const Walker walk{visit};
  visit_embedding(c, weights, walk);
  for_each_block_tensor(c, weights.blocks, visit);
  if (c.encoder.token_norm) walk.norm(Part::norm_gamma, c.embed_dim, weights.norm, c.encoder.norm.kind);
  visit_head(c, weights, walk);
  if (c.merger) {
    visit_merger(*c.merger, c.embed_dim, part_of, weights.merger, walk);
    const MergerConfig between = deepstack_merger(*c.merger);
    weights.deepstack.resize(c.merger->deepstack.size());
    for (std::size_t i = 0; i < weights.deepstack.size(); ++i)
      visit_merger(between, c.embed_dim, deepstack_part_of, weights.deepstack[i],
                   {.visit = visit, .block = i});
  }
  if (!c.head.joint) return;
  const ModelConfig joint = joint_head_blocks(c);
  weights.joint_blocks.resize(joint.encoder.depth);
  for (std::size_t i = 0; i < joint.encoder.depth; ++i)
    visit_block(joint, weights.joint_blocks[i], {.visit = visit, .block = i, .joint_head = true});
  const Walker after{.visit = visit, .joint_head = true};
  after.norm(Part::norm_gamma, c.embed_dim, weights.joint_norm);
}

}  // namespace vit::internal
