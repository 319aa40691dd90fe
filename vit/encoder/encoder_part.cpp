// The encoder of a model that is put together by hand, vit/encoder.h, on the blocks of the models.
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "vit/base/check.h"
#include "vit/encoder.h"
#include "vit/encoder/block.h"
#include "vit/layers/parts.h"

namespace vit {
namespace {

constexpr Where kEncoder{"Encoder", ErrorKind::argument};

internal::BranchEnd end_of(const NormTensors& norm, std::span<const float> scale, std::size_t width,
                           const char* name) {
  VIT_CHECK(scale.empty() || scale.size() == width, kEncoder, "a layer scale of ", scale.size(),
            " numbers for ", width, " channels");
  internal::BranchEnd end{.norm = internal::optional_norm(norm, width, name, kEncoder)};
  if (scale.empty()) return end;
  end.scale = Tensor<float>(Shape{width});
  std::ranges::copy(scale, end.scale.data());
  return end;
}

std::size_t height_of(const LinearTensors& layer) {
  return layer.weight.rank() == 2 ? layer.weight.dim(0) : 0;
}

internal::Block block_of(const BlockTensors& tensors, const BlockOptions& options,
                         const internal::kernels::Arithmetic& arithmetic) {
  for (const auto& [layer, name] : {std::pair(&tensors.qkv, "qkv"), std::pair(&tensors.proj, "proj"),
                                    std::pair(&tensors.fc1, "fc1"), std::pair(&tensors.fc2, "fc2")})
    internal::check_weight(*layer, name, kEncoder);
  const std::size_t width = height_of(tensors.proj), hidden = height_of(tensors.fc1);
  const std::size_t heads = tensors.proj.weight.rank() == 2 ? tensors.proj.weight.dim(1) : 0;
  VIT_CHECK(options.num_heads != 0 && heads % options.num_heads == 0, kEncoder, heads,
            " channels cannot be divided into ", options.num_heads, " heads");
  const std::size_t head_dim = heads / options.num_heads;
  const auto linear = [&](const LinearTensors& layer, std::size_t in, const char* name) {
    return internal::linear_of(layer, in, name, kEncoder, *arithmetic.linear);
  };
  const auto norm = [&](const NormTensors& of, std::size_t over, const char* name) {
    return internal::optional_norm(of, over, name, kEncoder);
  };
  internal::MlpInput in{.fc1 = linear(tensors.fc1, width, "fc1")};
  VIT_CHECK(!tensors.gate.weight.empty() || tensors.gate.bias.empty(), kEncoder,
            "gate: a bias without weight");
  if (!tensors.gate.weight.empty()) in.gate.emplace(linear(tensors.gate, width, "gate"));
  internal::Mlp mlp(std::move(in), norm(tensors.hidden_norm, hidden, "hidden_norm"),
                    linear(tensors.fc2, hidden, "fc2"), options.activation);
  VIT_CHECK(height_of(tensors.fc2) == width, kEncoder, "fc2 returns ", height_of(tensors.fc2), " of ", width,
            " channels");
  internal::Attention attention(
      linear(tensors.qkv, width, "qkv"),
      {.queries = norm(tensors.q_norm, head_dim, "q_norm"), .keys = norm(tensors.k_norm, head_dim, "k_norm")},
      norm(tensors.heads_norm, heads, "heads_norm"), linear(tensors.proj, heads, "proj"), options.num_heads,
      arithmetic.attention);
  return internal::Block(internal::norm_of(tensors.norm1, width, "norm1", kEncoder), std::move(attention),
                         end_of(tensors.end1, tensors.scale1, width, "end1"),
                         norm(tensors.norm2, width, "norm2"), std::move(mlp),
                         end_of(tensors.end2, tensors.scale2, width, "end2"));
}

}  // namespace

struct Encoder::Parts {
  const internal::kernels::Arithmetic* arithmetic;
  std::size_t num_heads;
  bool is_parallel = false;
  std::size_t embed_dim = 0, attention_dim = 0, hidden_dim = 0;
  std::vector<internal::Block> blocks{};
  std::vector<double> logit_factors{};   // of each block
  std::vector<std::size_t> head_dims{};  // of each block
};

Encoder::Encoder(std::span<const BlockTensors> blocks, const BlockOptions& options) {
  VIT_CHECK(!blocks.empty(), kEncoder, "no blocks");
  check_choice(kEncoder, "activation", options.activation, Activation::relu);
  check_choice(kEncoder, "precision", options.precision, Precision::int8);
  VIT_CHECK(std::isfinite(options.scale) && options.scale >= 0.0, kEncoder, "a scale of ", options.scale);
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
    parts.is_parallel = parts.is_parallel || tensors.norm2.gamma.empty();
    parts.head_dims.push_back(tensors.proj.weight.dim(1) / options.num_heads);
    const auto head_dim = static_cast<double>(parts.head_dims.back());
    parts.logit_factors.push_back(options.scale != 0.0 ? options.scale * std::sqrt(head_dim) : 1.0);
  }
  parts_ = std::make_unique<const Parts>(std::move(parts));
}
Encoder::~Encoder() = default;
Encoder::Encoder(Encoder&&) noexcept = default;
Encoder& Encoder::operator=(Encoder&&) noexcept = default;

std::size_t Encoder::depth() const noexcept {
  return parts_ ? parts_->blocks.size() : 0;
}

void Encoder::forward(TensorView<float> x, std::span<const position::RopeFactors> factors,
                      std::size_t num_prefix, Workspace& memory, int threads) const {
  const Parts& parts = internal::parts_of(parts_, kEncoder);
  internal::check_threads(threads, kEncoder);
  VIT_CHECK(x.rank() == 3 && x.dim(2) == parts.embed_dim && x.is_contiguous() && !x.empty() && x.dim(0) != 0,
            kEncoder, "tokens must have shape (B, T, ", parts.embed_dim, ") without gaps, B > 0, got ",
            x.describe());
  VIT_CHECK(factors.size() <= 1 || factors.size() == depth(), kEncoder, factors.size(), " factors for ",
            depth(), " blocks");
  for (std::size_t layer = 0; !factors.empty() && layer < depth(); ++layer)  // before x is changed
    internal::check_factors(factors[factors.size() == 1 ? 0 : layer], num_prefix, x.dim(1),
                            {.count = parts.num_heads, .width = parts.head_dims[layer]}, kEncoder);
  internal::Activations& activations = memory.parts().activations;
  activations.reserve({.num_images = x.dim(0),
                       .num_tokens = x.dim(1),
                       .embed_dim = parts.embed_dim,
                       .attention_dim = parts.attention_dim,
                       .num_heads = parts.num_heads,
                       .hidden_dim = parts.hidden_dim,
                       .is_parallel = parts.is_parallel,
                       .threads = threads},
                      *parts.arithmetic);
  const TensorView<float> rows(x.data(), Shape{x.num_rows(), x.num_columns()});
  internal::AttentionInput input{.sequences = internal::Sequences(x.dim(0), x.dim(1)),
                                 .num_prefix = num_prefix};
  for (std::size_t layer = 0; layer < depth(); ++layer) {
    if (!factors.empty()) input.rope = factors[factors.size() == 1 ? 0 : layer];
    input.logit_factor = parts.logit_factors[layer];
    parts.blocks[layer].forward(rows, input, {.activations = activations, .threads = threads});
  }
}

}  // namespace vit
