// The encoder of a model that is put together by hand, vit/encoder.h, on the blocks of the models.
#include <algorithm>
#include <optional>
#include <utility>

#include "vit/base/check.h"
#include "vit/encoder.h"
#include "vit/encoder/block.h"

namespace vit {
namespace {

constexpr Where kEncoder{"Encoder", ErrorKind::argument};

internal::LayerNorm norm_of(const NormTensors& tensors) {
  return internal::LayerNorm(tensors.gamma, tensors.beta, tensors.eps);
}

internal::BranchEnd end_of(std::span<const float> scale, std::size_t width) {
  VIT_CHECK(scale.empty() || scale.size() == width, kEncoder, "a layer scale of ", scale.size(),
            " numbers for ", width, " channels");
  internal::BranchEnd end;
  if (scale.empty()) return end;
  end.scale = Tensor<float>(Shape{width});
  std::ranges::copy(scale, end.scale.data());
  return end;
}

internal::Block block_of(const BlockTensors& tensors, const BlockOptions& options,
                         const internal::kernels::Arithmetic& arithmetic) {
  const auto linear = [&](const LinearTensors& layer) {
    VIT_CHECK(layer.weight.rank() == 2, kEncoder, "a weight (out, in) expected, got ",
              layer.weight.shape().to_string());
    return internal::Linear(layer.weight, layer.bias, *arithmetic.linear);
  };
  internal::MlpInput in{.fc1 = linear(tensors.fc1)};
  if (!tensors.gate.weight.empty()) in.gate.emplace(linear(tensors.gate));
  internal::Mlp mlp(std::move(in), std::nullopt, linear(tensors.fc2), options.activation);
  internal::Attention attention(linear(tensors.qkv), {}, std::nullopt, linear(tensors.proj),
                                options.num_heads, arithmetic.attention);
  const std::size_t width = attention.embed_dim();
  VIT_CHECK(tensors.fc1.weight.dim(1) == width && tensors.norm1.gamma.size() == width &&
                tensors.norm2.gamma.size() == width,
            kEncoder, "norms and MLP of ", tensors.norm1.gamma.size(), ", ", tensors.norm2.gamma.size(),
            " and ", tensors.fc1.weight.dim(1), " channels in a block of ", width);
  return internal::Block(norm_of(tensors.norm1), std::move(attention), end_of(tensors.scale1, width),
                         norm_of(tensors.norm2), std::move(mlp), end_of(tensors.scale2, width));
}

}  // namespace

struct EncoderMemory::Parts {
  internal::Activations activations;
};

EncoderMemory::EncoderMemory() : parts_(std::make_unique<Parts>()) {}
EncoderMemory::~EncoderMemory() = default;
EncoderMemory::EncoderMemory(EncoderMemory&&) noexcept = default;
EncoderMemory& EncoderMemory::operator=(EncoderMemory&&) noexcept = default;

struct Encoder::Parts {
  const internal::kernels::Arithmetic* arithmetic;
  std::size_t num_heads;
  std::size_t embed_dim = 0, attention_dim = 0, hidden_dim = 0;
  std::vector<internal::Block> blocks{};
};

Encoder::Encoder(std::span<const BlockTensors> blocks, const BlockOptions& options) {
  VIT_CHECK(!blocks.empty(), kEncoder, "no blocks");
  Parts parts{.arithmetic =
                  &internal::kernels::arithmetic_of(internal::kernels::default_kernels(), options.precision),
              .num_heads = options.num_heads};
  for (const BlockTensors& tensors : blocks) {
    parts.blocks.push_back(block_of(tensors, options, *parts.arithmetic));
    const std::size_t width = tensors.proj.weight.dim(0);
    VIT_CHECK(parts.embed_dim == 0 || parts.embed_dim == width, kEncoder, "blocks of ", parts.embed_dim,
              " and ", width, " channels");
    parts.embed_dim = width;
    parts.attention_dim = std::max(parts.attention_dim, tensors.proj.weight.dim(1));
    parts.hidden_dim = std::max(parts.hidden_dim, tensors.fc1.weight.dim(0));
  }
  parts_ = std::make_unique<const Parts>(std::move(parts));
}
Encoder::~Encoder() = default;
Encoder::Encoder(Encoder&&) noexcept = default;
Encoder& Encoder::operator=(Encoder&&) noexcept = default;

std::size_t Encoder::depth() const noexcept {
  return parts_->blocks.size();
}

void Encoder::forward(TensorView<float> x, std::span<const position::RopeFactors> factors,
                      std::size_t num_prefix, EncoderMemory& memory, int threads) const {
  VIT_CHECK(x.rank() == 3 && x.dim(2) == parts_->embed_dim && x.is_contiguous() && x.num_rows() != 0,
            kEncoder, "tokens must have shape (B, T, ", parts_->embed_dim, ") without gaps, got ",
            x.shape().to_string());
  VIT_CHECK(factors.size() <= 1 || factors.size() == depth(), kEncoder, factors.size(), " factors for ",
            depth(), " blocks");
  internal::Activations& activations = memory.parts_->activations;
  activations.reserve({.num_images = x.dim(0),
                       .num_tokens = x.dim(1),
                       .embed_dim = parts_->embed_dim,
                       .attention_dim = parts_->attention_dim,
                       .num_heads = parts_->num_heads,
                       .hidden_dim = parts_->hidden_dim,
                       .threads = threads},
                      *parts_->arithmetic);
  const TensorView<float> rows(x.data(), Shape{x.num_rows(), x.num_columns()});
  internal::AttentionInput input{.sequences = internal::Sequences(x.dim(0), x.dim(1)),
                                 .num_prefix = num_prefix};
  for (std::size_t layer = 0; layer < depth(); ++layer) {
    if (!factors.empty()) input.rope = factors[factors.size() == 1 ? 0 : layer];
    parts_->blocks[layer].forward(rows, input, {.activations = activations, .threads = threads});
  }
}

}  // namespace vit
