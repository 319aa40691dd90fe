#include "vit/towers/text_transformer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "vit/base/check.h"
#include "vit/base/parallel.h"
#include "vit/base/rounded.h"
#include "vit/encoder/progress.h"
#include "vit/towers/batch_plan.h"
#include "vit/towers/layer_builder.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"TextTransformer", ErrorKind::mismatch};

/// (T, D): the sine half, then the cosine half. In float32, as the library computes them in any precision.
Tensor<float> sinusoids(std::size_t places, std::size_t width) {
  Tensor<float> table(Shape{places, width});
  const std::size_t half = width / 2;
  const auto step =
      static_cast<float>(-std::log(10000.0) / static_cast<double>(std::max<std::size_t>(half, 2) - 1));
  for (std::size_t k = 0; k < half; ++k) {
    const float frequency = rounded_exp(static_cast<float>(k) * step);
    for (std::size_t p = 0; p < places; ++p) {
      const float angle = static_cast<float>(p) * frequency;
      table.view().row(p)[k] = static_cast<float>(std::sin(double{angle}));
      table.view().row(p)[half + k] = static_cast<float>(std::cos(double{angle}));
    }
  }
  return table;
}

}  // namespace

struct TextTransformer::Texts {
  std::span<const TextIds> ids;
  std::span<const TextExtent> extents;
  std::span<const std::size_t> starts;
  TensorView<float> out;  // (texts, E); of a vector for each token (rows, E)

  std::size_t count() const { return ids.size(); }
  Texts part(std::size_t first, std::size_t count) const {
    return {ids.subspan(first, count), extents.subspan(first, count), starts.subspan(first, count + 1),
            out.part(first, count)};
  }
};

TextTransformer::TextTransformer(TextConfig config, const TextTowerWeights& weights,
                                 const kernels::KernelTable& kernels, Precision precision)
    : config_((validate(config), std::move(config))),
      blocks_(block_config(config_)),
      kernels_(&kernels),
      precision_(precision) {
  const TensorEntry* const table = weights.token_table.stored();
  VIT_CHECK(table != nullptr && table->shape.size() == 2, kWhere,
            "the token table is not stored as one matrix");
  token_table_ = *table;
  positions_ = config_.sinusoidal_positions ? sinusoids(config_.context_length, config_.width)
                                            : weights.position_table.load();
  if (config_.token_types != 0) {
    const Tensor<float> types = weights.token_types.load();
    added_ = Tensor<float>(Shape{config_.width});
    std::copy_n(types.data(), config_.width, added_.data());
  }
  with_team(/*threads=*/0, [&] {
    const LayerBuilder layers(blocks_, kernels, precision);
    token_norm_ = layers.optional_norm(weights.token_norm);
    encoder_.emplace(layers.blocks(weights.blocks));
    norm_ = layers.optional_norm(weights.norm);
    if (config_.pooler_dim != 0) pooler_.emplace(layers.linear(weights.pooler, layers.float32()));
    if (config_.projection_dim != 0) projection_.emplace(layers.linear(weights.projection, layers.float32()));
  });
}

bool TextTransformer::reads_one_row() const noexcept {
  if (config_.pooling == TextPooling::none) return false;
  return config_.mask == TextMask::causal || config_.pooling == TextPooling::last ||
         config_.pooling == TextPooling::first;
}

std::size_t TextTransformer::pooled_place(std::span<const std::int32_t> ids) const {
  switch (config_.pooling) {
    case TextPooling::largest_id:
      return static_cast<std::size_t>(std::ranges::max_element(ids) - ids.begin());
    case TextPooling::end_token: {
      const auto found = std::ranges::find(ids, config_.end_token);
      return found == ids.end() ? 0 : static_cast<std::size_t>(found - ids.begin());
    }
    case TextPooling::last: return ids.size() - 1;
    case TextPooling::first:
    case TextPooling::mean:
    case TextPooling::none: break;
  }
  return 0;
}

TextExtent TextTransformer::extent_of(const TextIds& text) const {
  VIT_CHECK(text.ids.size() == config_.context_length, kWhere, "a row of ", text.ids.size(),
            " ids for a text tower of ", config_.context_length, " positions");
  for (const std::int32_t id : text.ids) {
    VIT_CHECK(id >= 0 && static_cast<std::size_t>(id) < config_.vocabulary_size, kWhere, "the token id ", id,
              " is beyond the token table of ", config_.vocabulary_size,
              " rows; do tokenizer and weights match?");
  }
  const std::size_t pooled = pooled_place(text.ids);
  switch (config_.mask) {
    case TextMask::none: return {.begin = 0, .count = text.ids.size(), .pooled = pooled};
    case TextMask::causal: return {.begin = 0, .count = pooled + 1, .pooled = pooled};
    case TextMask::padding: break;
  }
  return {.begin = text.first, .count = std::max<std::size_t>(text.count, 1), .is_empty = text.count == 0};
}

ActivationShape TextTransformer::activation_shape(std::size_t num_texts, std::size_t num_rows,
                                                  int threads) const {
  return {.num_images = num_texts,
          .num_tokens = config_.context_length,
          .num_rows = num_rows,
          .num_leading = 1,
          .embed_dim = config_.width,
          .attention_dim = config_.width,
          .num_heads = config_.num_heads,
          .hidden_dim = std::max(config_.mlp_dim, config_.pooler_dim),
          .threads = threads};
}

void TextTransformer::embed(const Texts& texts, const Sequences& sequences, TensorView<float> rows,
                            int threads) const {
  const float factor = config_.scaled_tokens ? std::sqrt(static_cast<float>(config_.width)) : 1.0f;
  const std::size_t first = config_.first_position;
  const auto padding = static_cast<std::int32_t>(first) - 1;
  parallel_for(texts.count(), threads, [&](std::size_t text, int) {
    const TextExtent& extent = texts.extents[text];
    std::size_t counted = first + (first == 0 ? extent.begin : 0);
    for (std::size_t i = 0; i < extent.count; ++i) {
      const std::int32_t id = texts.ids[text].ids[extent.begin + i];
      const std::span<float> row(rows.row(sequences.first_row(text) + i), config_.width);
      convert_row(token_table_, static_cast<std::size_t>(id), row);
      const float* const position = positions_.view().row(id == padding ? first - 1 : counted++);
      for (std::size_t c = 0; c < row.size(); ++c) row[c] = row[c] * factor + position[c];
      for (std::size_t c = 0; !added_.empty() && c < row.size(); ++c) row[c] += added_.data()[c];
    }
  });
  if (token_norm_) token_norm_->forward(rows, rows, threads);
}

void TextTransformer::pool(const Texts& texts, const Sequences& sequences, TensorView<float> rows,
                           const Pass& pass) const {
  const std::size_t width = config_.width;
  if (config_.pooling == TextPooling::none) {
    norm_->forward(rows, rows, pass.threads);
    return projection_->forward(rows, texts.out, pass);
  }
  const TensorView<float> pooled(pass.activations.pooled.data(), Shape{texts.count(), width});
  if (config_.pooling == TextPooling::mean) {
    norm_->forward(rows, rows, pass.threads);
    for (std::size_t text = 0; text < texts.count(); ++text) {
      const TextExtent& extent = texts.extents[text];
      float* const out = pooled.row(text);
      std::fill_n(out, width, 0.0f);
      if (extent.is_empty) continue;
      for (std::size_t i = 0; i < extent.count; ++i) {
        const float* const row = rows.row(sequences.first_row(text) + i);
        for (std::size_t c = 0; c < width; ++c) out[c] += row[c];
      }
      for (std::size_t c = 0; c < width; ++c) out[c] /= static_cast<float>(extent.count);
    }
  } else {
    for (std::size_t text = 0; text < texts.count(); ++text) {
      const std::size_t row = reads_one_row() ? text : sequences.first_row(text) + texts.extents[text].pooled;
      std::copy_n(rows.row(row), width, pooled.row(text));
    }
    if (norm_) norm_->forward(pooled, pooled, pass.threads);
  }
  project(pooled, texts.out, pass);
}

void TextTransformer::project(TensorView<float> pooled, TensorView<float> out, const Pass& pass) const {
  TensorView<float> vectors = pooled;
  if (pooler_) {
    vectors = projection_
                  ? Activations::view_rows(pass.activations.hidden, pooled.num_rows(), config_.pooler_dim)
                  : out;
    pooler_->forward(pooled, vectors, pass);
  }
  if (projection_) return projection_->forward(vectors, out, pass);
  if (pooler_) return;
  for (std::size_t text = 0; text < out.num_rows(); ++text)
    std::copy_n(vectors.row(text), out.num_columns(), out.row(text));
}

// ids -> rows of the token table and positions -> blocks -> pooling -> projection
void TextTransformer::run(const Texts& texts, const Pass& pass) const {
  const Sequences sequences(texts.starts);
  Activations& a = pass.activations;
  a.reserve(activation_shape(texts.count(), sequences.rows(), pass.threads),
            arithmetic_of(*kernels_, precision_));
  const TensorView<float> tokens(a.tokens.data(), Shape{sequences.rows(), config_.width});
  Progress progress(pass.watch, pass.limits, encoder_->depth());
  BlockHook* const hooks[] = {&progress};

  embed(texts, sequences, tokens, pass.threads);
  const TensorView<float> rows =
      encoder_->forward(tokens,
                        {.sequences = sequences,
                         .wanted = reads_one_row() ? Sequences(texts.count(), 1) : sequences,
                         .wanted_last = config_.pooling != TextPooling::first,
                         .causal = config_.mask == TextMask::causal},
                        hooks, pass);
  pool(texts, sequences, rows, pass);
}

void TextTransformer::forward(std::span<const TextIds> texts, TensorView<float> out, int threads,
                              TextMemory& memory) const {
  VIT_CHECK(config_.pooling != TextPooling::none && out.num_rows() == texts.size() &&
                out.num_columns() == config_.embedding_dim(),
            kWhere, "room for ", out.shape().to_string(), ", expected (", texts.size(), ", ",
            config_.embedding_dim(), ")");
  memory.extents.clear();
  memory.starts.assign(1, 0);
  for (const TextIds& text : texts) {
    memory.extents.push_back(extent_of(text));
    memory.starts.push_back(memory.starts.back() + memory.extents.back().count);
  }
  const Texts all{texts, memory.extents, memory.starts, out};
  Lanes lanes(Sequences(memory.starts), threads, kRowsPerPass, memory.passes);
  lanes.run(
      activation_shape(kTokensPerTask, kTokensPerTask + config_.context_length, 1),
      arithmetic_of(*kernels_, precision_), [](ForwardMemory::Lane&) {},
      [&](std::size_t first, std::size_t count, const Pass& pass, ForwardMemory::Lane&) {
        run(all.part(first, count), pass);
      });
}

void TextTransformer::forward_tokens(const TextIds& text, TensorView<float> out, int threads,
                                     TextMemory& memory) const {
  VIT_CHECK(config_.pooling == TextPooling::none && config_.mask == TextMask::causal && text.first == 0 &&
                out.num_rows() == text.count && out.num_columns() == config_.embedding_dim(),
            kWhere, "room for ", out.shape().to_string(), ", expected (", text.count, ", ",
            config_.embedding_dim(), ")");
  memory.extents.assign(1, extent_of(text));
  memory.extents.front().count = text.count;  // padding comes last, where no token attends to it
  memory.starts = {0, text.count};
  const Texts all{std::span(&text, 1), memory.extents, memory.starts, out};
  Lanes lanes(Sequences(memory.starts), threads, kRowsPerPass, memory.passes);
  lanes.run(
      activation_shape(1, config_.context_length, 1), arithmetic_of(*kernels_, precision_),
      [](ForwardMemory::Lane&) {},
      [&](std::size_t, std::size_t, const Pass& pass, ForwardMemory::Lane&) { run(all, pass); });
}

std::size_t TextTransformer::count_group(std::span<const TextIds> texts, int threads) const {
  std::size_t tasks_left = tasks_of_group(static_cast<std::size_t>(resolve_threads(threads))), rows = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    rows += extent_of(texts[i]).count;
    if (rows < kTokensPerTask) continue;
    rows = 0;
    if (--tasks_left == 0) return i + 1;
  }
  return texts.size();
}

}  // namespace vit::internal
