#include "vit/rings/pages/page_transformer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "vit/base/check.h"
#include "vit/base/parallel.h"
#include "vit/towers/layer_builder.h"

namespace vit::internal {
namespace {

constexpr Where kPageTower{"PageEncoder", ErrorKind::mismatch};
constexpr std::size_t kMaxTokens = std::size_t{1} << 16;
/// Added to scores of tokens that are out of reach: their probability is 0.
constexpr float kOutOfReach = -1e30f;

/// Angles of halves of a head, (length, d / 2). In float32 as the library computes them in any precision:
/// those of distant tokens are off by more than the rounding of their cosines.
Tensor<double> float_angles(std::size_t length, std::size_t head_dim, double theta) {
  const std::size_t pairs = head_dim / 2;
  Tensor<double> out(Shape{length, pairs});
  for (std::size_t k = 0; k < pairs; ++k) {
    const float exponent = static_cast<float>(2 * k) / static_cast<float>(head_dim);
    const auto power = static_cast<float>(std::pow(double{static_cast<float>(theta)}, double{exponent}));
    const float frequency = 1.0f / power;
    for (std::size_t place = 0; place < length; ++place)
      out.view().row(place)[k] = double{static_cast<float>(place) * frequency};
  }
  return out;
}

void grow_positions(const PageConfig& c, std::size_t length, PagePositions& out) {
  if (out.length >= length) return;
  length = std::min(std::max(length, 2 * out.length), kMaxTokens);
  const std::size_t head_dim = c.width / c.num_heads;
  out.global.emplace(float_angles(length, head_dim, c.global_theta), RopePairing::halves);
  out.local.emplace(float_angles(length, head_dim, c.local_theta), RopePairing::halves);
  out.bias.assign(2 * length - 1, kOutOfReach);
  const std::size_t reach = std::min(c.reach, length - 1);
  std::fill_n(out.bias.begin() + static_cast<std::ptrdiff_t>(length - 1 - reach), 2 * reach + 1, 0.0f);
  out.query_places.resize(length);
  out.key_places.resize(length);
  for (std::size_t i = 0; i < length; ++i) {
    out.query_places[i] = static_cast<std::int32_t>(i + length - 1);
    out.key_places[i] = static_cast<std::int32_t>(i);
  }
  out.length = length;
}

void scale_to_length_one(TensorView<float> rows) {
  for (std::size_t i = 0; i < rows.num_rows(); ++i) {
    float* const row = rows.row(i);
    double square = 0;
    for (std::size_t c = 0; c < rows.num_columns(); ++c) square += double{row[c]} * double{row[c]};
    const double length = std::sqrt(square);
    for (std::size_t c = 0; c < rows.num_columns(); ++c) row[c] = static_cast<float>(double{row[c]} / length);
  }
}

}  // namespace

PageTransformer::PageTransformer(PageConfig config, const PageWeights& weights,
                                 const kernels::KernelTable& kernels, Precision precision)
    : config_((validate(config), std::move(config))),
      blocks_config_(block_config(config_)),
      kernels_(&kernels),
      precision_(precision) {
  const TensorEntry* const table = weights.token_table.stored();
  VIT_CHECK(table != nullptr && table->shape.size() == 2, kPageTower,
            "the token table is not stored as one matrix");
  token_table_ = *table;
  with_team(/*threads=*/0, [&] {
    const LayerBuilder layers(blocks_config_, kernels, precision);
    embed_norm_.emplace(layers.norm(weights.embed_norm));
    blocks_ = layers.blocks(weights.blocks);
    norm_.emplace(layers.norm(weights.norm));
    projection_.emplace(layers.linear(weights.projection, layers.float32()));
  });
}

void PageTransformer::embed(std::span<const std::int32_t> ids, TensorView<const float> visual,
                            TensorView<float> rows) const {
  std::size_t taken = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    VIT_CHECK(ids[i] >= 0 && static_cast<std::size_t>(ids[i]) < config_.vocabulary_size, kPageTower,
              "the token id ", ids[i], " is beyond the token table of ", config_.vocabulary_size,
              " rows; do tokenizer and weights match?");
    const std::span<float> row(rows.row(i), config_.width);
    if (visual.empty() || ids[i] != config_.image_token) {
      convert_row(token_table_, static_cast<std::size_t>(ids[i]), row);
    } else {
      VIT_CHECK(taken < visual.num_rows(), kPageTower, "more than ", visual.num_rows(),
                " image tokens in the text for as many visual tokens");
      std::copy_n(visual.row(taken++), row.size(), row.begin());
    }
  }
  VIT_CHECK(visual.empty() || taken == visual.num_rows(), kPageTower, taken, " image tokens in the text for ",
            visual.num_rows(),
            " visual tokens; does image_seq_len of processor_config.json match the model?");
}

AttentionInput PageTransformer::attention_of(std::size_t block, std::size_t length,
                                             const PagePositions& positions) const {
  const bool is_local = config_.is_local[block] != 0;
  AttentionInput out{.sequences = Sequences(1, length)};
  out.rope = (is_local ? positions.local : positions.global)->factors();
  out.rope.num_patches = length;  // the first of the table
  if (is_local && length > config_.reach + 1) {
    out.relative = {.table = positions.bias.data(),
                    .head_stride = 0,
                    .query_places = positions.query_places.data(),
                    .key_places = positions.key_places.data()};
    out.image_tokens = length;
  }
  return out;
}

void PageTransformer::forward(std::span<const std::int32_t> ids, TensorView<const float> visual,
                              TensorView<float> out, int threads, const RunLimits& limits,
                              PageMemory& memory) const {
  const std::size_t length = ids.size(), width = config_.width;
  VIT_CHECK(length > 0 && length <= kMaxTokens, kPageTower.with(ErrorKind::argument), "a text of ", length,
            " tokens; 1 to ", kMaxTokens, " are possible");
  VIT_CHECK(out.num_rows() == length && out.num_columns() == config_.dim, kPageTower, "room for ",
            out.shape().to_string(), ", expected (", length, ", ", config_.dim, ")");
  VIT_CHECK(visual.empty() || visual.num_columns() == width, kPageTower, "visual tokens of ",
            visual.num_columns(), " numbers for an encoder of ", width);
  grow_positions(config_, length, memory.positions);
  memory.activations.reserve({.num_images = 1,
                              .num_tokens = length,
                              .embed_dim = width,
                              .attention_dim = width,
                              .num_heads = config_.num_heads,
                              .hidden_dim = config_.mlp_dim,
                              .threads = threads},
                             arithmetic_of(*kernels_, precision_));
  const Pass pass{.activations = memory.activations, .threads = threads};
  const TensorView<float> rows(memory.activations.tokens.data(), Shape{length, width});
  with_team(threads, [&] {
    embed(ids, visual, rows);
    embed_norm_->forward(rows, rows, threads);
    for (std::size_t block = 0; block < blocks_.size(); ++block) {
      limits.check();
      blocks_[block].forward(rows, attention_of(block, length, memory.positions), pass);
    }
    norm_->forward(rows, rows, threads);
    projection_->forward(rows, out, pass);
  });
  scale_to_length_one(out);
}

}  // namespace vit::internal
