#include "vit/rings/prompts/rows_attention.h"

#include <utility>

#include "vit/base/check.h"
#include "vit/layers/attention_pass.h"

namespace vit::internal {
namespace {

constexpr Where kRowsWhere{"RowsAttention", ErrorKind::mismatch};

}  // namespace

std::size_t PromptMemory::bytes() const {
  std::size_t sum = activations.capacity_bytes();
  for (const RowBuffer* const buffer :
       {&normed,    &coded,    &key_rows, &packed_keys, &packed_values, &scores,     &turned_values,
        &prompt,    &geometry, &encoded,  &tokens,      &positions,     &references, &hidden,
        &bias_x,    &bias_y,   &states,   &vectors,     &small,         &boxes,      &enlarged,
        &convolved, &finer,    &weights,  &products,    &convolution})
    sum += buffer->bytes();
  return sum;
}

void add_rows(TensorView<const float> a, TensorView<const float> b, TensorView<float> out, int threads) {
  const std::size_t columns = out.num_columns();
  parallel_for_parts(out.num_rows(), /*part_size=*/64, threads, [&](std::size_t first, std::size_t count) {
    for (std::size_t i = first; i < first + count; ++i) {
      const float *const left = a.row(i), *const right = b.row(i);
      float* const to = out.row(i);
      for (std::size_t c = 0; c < columns; ++c) to[c] = left[c] + right[c];
    }
  });
}

RowsAttention::RowsAttention(Linear q, Linear k, Linear v, Linear o, std::size_t num_heads,
                             const kernels::Arithmetic& arithmetic, const kernels::LinearKernels& float32)
    : q_(std::move(q)),
      k_(std::move(k)),
      v_(std::move(v)),
      o_(std::move(o)),
      num_heads_(num_heads),
      arithmetic_(&arithmetic),
      float32_(&float32) {
  VIT_CHECK(num_heads != 0 && q_.out_features() % num_heads == 0, kRowsWhere, q_.out_features(),
            " channels cannot be divided into ", num_heads, " heads");
}

TensorView<float> RowsAttention::heads(const AttentionSources& sources, PromptMemory& memory,
                                       const GridBias* bias) const {
  const std::size_t num_queries = sources.queries.num_rows(), num_keys = sources.keys.num_rows();
  const std::size_t inner = q_.out_features(), dim = o_.out_features();
  memory.reserve(std::max(num_queries, num_keys),
                 {.dim = dim, .inner = inner, .heads = num_heads_, .hidden = dim}, *arithmetic_);
  const Pass pass = memory.pass();
  const TensorView<float>& qkv = pass.activations.qkv;
  const auto columns = [&](std::size_t index, std::size_t rows) -> TensorView<float> {
    return {qkv.data() + index * inner, Shape{rows, inner}, qkv.row_stride()};
  };
  const TensorView<float> q = columns(0, num_queries), k = columns(1, num_keys), v = columns(2, num_keys);
  q_.forward(sources.queries, q, pass);
  k_.forward(sources.keys, k, pass);
  v_.forward(sources.values, v, pass);
  const TensorView<float> out = Activations::view_rows(pass.activations.heads, num_queries, inner);
  if (bias != nullptr) {
    attend_with_bias(q, k, v, num_heads_, *bias, out, *float32_, memory);
    return out;
  }
  const Sequences queries(1, num_queries);
  attend({.queries = q, .query_tokens = queries, .keys = k, .values = v},
         {.sequences = Sequences(1, num_keys), .queries = queries}, num_heads_, out, arithmetic_->attention,
         pass);
  return out;
}

void RowsAttention::forward(const AttentionSources& sources, TensorView<float> add_to, PromptMemory& memory,
                            const GridBias* bias) const {
  o_.forward(heads(sources, memory, bias), add_to, memory.pass(), {.residual = add_to});
}

void RowsAttention::replace(const AttentionSources& sources, TensorView<float> out,
                            PromptMemory& memory) const {
  o_.forward(heads(sources, memory, nullptr), out, memory.pass());
}

void RowsMlp::forward(TensorView<const float> x, TensorView<float> add_to, PromptMemory& memory,
                      const kernels::Arithmetic& arithmetic) const {
  const std::size_t dim = fc2.out_features(), width = fc1.out_features();
  memory.reserve(x.num_rows(), {.dim = dim, .inner = dim, .heads = 1, .hidden = width}, arithmetic);
  const Pass pass = memory.pass();
  const TensorView<float> rows = Activations::view_rows(pass.activations.hidden, x.num_rows(), width);
  fc1.forward(x, rows, pass, {.activation = activation});
  fc2.forward(rows, add_to, pass, {.residual = add_to});
}

PreNormLayer::PreNormLayer(RowsAttention self, RowsAttention cross, RowsMlp mlp, LayerNorm norm1,
                           LayerNorm norm2, LayerNorm norm3, const kernels::Arithmetic& arithmetic)
    : self_(std::move(self)),
      cross_(std::move(cross)),
      mlp_(std::move(mlp)),
      norm1_(std::move(norm1)),
      norm2_(std::move(norm2)),
      norm3_(std::move(norm3)),
      arithmetic_(&arithmetic) {}

void PreNormLayer::forward(TensorView<float> x, TensorView<const float> code, TensorView<const float> keys,
                           TensorView<const float> values, PromptMemory& memory) const {
  attend_to_itself(x, code, memory);
  attend_to_others(x, keys, values, memory);
}

void PreNormLayer::attend_to_itself(TensorView<float> x, TensorView<const float> code,
                                    PromptMemory& memory) const {
  const TensorView<float> normed = memory.normed.rows(x.num_rows(), x.num_columns());
  norm1_.forward(x, normed, memory.threads);
  if (code.empty()) {
    self_.forward({normed, normed, normed}, x, memory);
  } else {
    const TensorView<float> coded = memory.coded.rows(x.num_rows(), x.num_columns());
    add_rows(normed, code, coded, memory.threads);
    self_.forward({coded, coded, normed}, x, memory);
  }
}

void PreNormLayer::attend_to_others(TensorView<float> x, TensorView<const float> keys,
                                    TensorView<const float> values, PromptMemory& memory) const {
  const TensorView<float> normed = memory.normed.rows(x.num_rows(), x.num_columns());
  norm2_.forward(x, normed, memory.threads);
  cross_.forward({normed, keys, values}, x, memory);
  norm3_.forward(x, normed, memory.threads);
  mlp_.forward(normed, x, memory, *arithmetic_);
}

}  // namespace vit::internal
