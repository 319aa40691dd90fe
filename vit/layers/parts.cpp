// Layers for models that are put together by hand: vit/linear.h, vit/layer_norm.h and vit/attention.h, on the
// layers of the models.
#include "vit/layers/parts.h"

#include <cmath>
#include <functional>
#include <utility>

#include "vit/base/check.h"
#include "vit/layers/attention_pass.h"
#include "vit/position/rope_encoding.h"

namespace vit {
namespace {

constexpr Where kLinear{"Linear", ErrorKind::argument};
constexpr Where kNorm{"LayerNorm", ErrorKind::argument};
constexpr Where kAttention{"attention", ErrorKind::argument};

const internal::kernels::Arithmetic& arithmetic() {
  return *internal::kernels::default_kernels().float32;
}

TensorView<const float> as_matrix(const TensorView<const float>& weight) {
  VIT_CHECK(weight.rank() >= 2 && !weight.empty() && weight.num_elements() != 0, kLinear,
            "a weight (N, K) expected, got ", weight.describe());
  if (weight.rank() == 2) return weight;
  return {weight.flat().data(), Shape{weight.dim(0), weight.num_elements() / weight.dim(0)}};
}

TensorView<const float> as_rows(const TensorView<const float>& tokens) {
  return {tokens.data(), Shape{tokens.num_rows(), tokens.num_columns()}, tokens.row_stride()};
}

void check_memory(const TensorView<const float>& x, const TensorView<float>& out,
                  const internal::Where& where) {
  VIT_CHECK(!x.empty() && !out.empty(), where, "no memory of ",
            (x.empty() ? x.shape() : out.shape()).to_string());
  internal::check_rows_apart(out, where);
}

/// Whether both share a number: columns of one matrix may lie next to each other.
bool overlap(const TensorView<const float>& a, const TensorView<const float>& b) {
  const auto end = [](const TensorView<const float>& view) {
    return view.row(view.num_rows() - 1) + view.num_columns();
  };
  if (a.num_elements() == 0 || b.num_elements() == 0) return false;
  const std::less_equal<const float*> is_at_most;
  if (is_at_most(end(a), b.data()) || is_at_most(end(b), a.data())) return false;
  if (a.row_stride() != b.row_stride() || a.row_stride() == 0) return true;
  const bool a_is_first = is_at_most(a.data(), b.data());
  const TensorView<const float>&first = a_is_first ? a : b, &second = a_is_first ? b : a;
  const std::size_t gap = static_cast<std::size_t>(second.data() - first.data()) % a.row_stride();
  return gap < first.num_columns() || gap + second.num_columns() > a.row_stride();
}

/// The sequences of q: images, or those of the options.
internal::Sequences sequences_of(const TensorView<const float>& q, const AttentionOptions& options) {
  if (options.sequences.empty()) return {q.dim(0), q.dim(1)};
  VIT_CHECK(options.sequences.front() == 0 && options.sequences.back() == q.num_rows(), kAttention,
            "sequences from row ", options.sequences.front(), " to ", options.sequences.back(), " of ",
            q.num_rows());
  return internal::Sequences(options.sequences);
}

void check_attention(const TensorView<const float>& q, const TensorView<const float>& k,
                     const TensorView<const float>& v, const AttentionOptions& options) {
  VIT_CHECK(q.rank() == 3 && k.rank() == 3 && v.rank() == 3 && q.num_rows() != 0 && !q.empty() &&
                !k.empty() && !v.empty(),
            kAttention, "q, k and v must have shape (B, T, heads * width) with B > 0, got ", q.describe(),
            ", ", k.describe(), " and ", v.describe());
  for (const TensorView<const float>& keys : {k, v}) {
    VIT_CHECK(keys.dim(0) == q.dim(0) && keys.dim(1) == q.dim(1), kAttention, "keys or values ",
              keys.shape().to_string(), " for queries ", q.shape().to_string());
  }
  VIT_CHECK(options.num_heads != 0 && q.dim(2) % options.num_heads == 0, kAttention, q.dim(2),
            " channels cannot be divided into ", options.num_heads, " heads");
  internal::check_threads(options.threads, kAttention);
  VIT_CHECK(std::isfinite(options.scale) && options.scale >= 0.0, kAttention, "a scale of ", options.scale);
}

}  // namespace

namespace internal {

void check_threads(int threads, const Where& where) {
  VIT_CHECK(threads >= 0, where, "threads is ", threads, "; 0 = all cores");
}

void check_factors(const position::RopeFactors& factors, std::size_t num_prefix, std::size_t num_tokens,
                   const Heads& heads, const Where& where) {
  if (!rotates(factors, where)) return;
  check_choice(where, "pairing", factors.pairing, RopePairing::halves);
  check_choice(where, "angles", factors.angles, RopeAngles::per_channel);
  VIT_CHECK(
      2 * factors.pairs == heads.width && (factors.head_stride == 0 || factors.num_heads == heads.count),
      where, "factors for ", factors.num_heads, " heads of ", factors.pairs, " pairs, attention has ",
      heads.count, " heads of ", heads.width, " channels");
  VIT_CHECK(checked_add(num_prefix, factors.num_patches, where) == num_tokens, where, "factors for ",
            factors.num_patches, " patches and ", num_prefix, " prefix tokens, images have ", num_tokens,
            " tokens");
}

std::optional<LayerNorm> optional_norm(const NormTensors& tensors, std::size_t width, std::string_view name,
                                       const Where& where) {
  VIT_CHECK(!tensors.gamma.empty() || tensors.beta.empty(), where, name, ": beta without gamma");
  if (tensors.gamma.empty()) return std::nullopt;
  return norm_of(tensors, width, name, where);
}

LayerNorm norm_of(const NormTensors& tensors, std::size_t width, std::string_view name, const Where& where) {
  VIT_CHECK(tensors.gamma.size() == width && width != 0, where, name, " over ", tensors.gamma.size(), " of ",
            width, " channels");
  VIT_CHECK(std::isfinite(tensors.eps) && tensors.eps >= 0.0f, where, name, ": eps is ", tensors.eps);
  return LayerNorm(tensors.gamma, tensors.beta, tensors.eps);
}

void check_weight(const LinearTensors& tensors, std::string_view name, const Where& where) {
  VIT_CHECK(tensors.weight.rank() == 2 && !tensors.weight.empty(), where, name,
            ": a weight (out, in) is expected, got ", tensors.weight.describe());
}

Linear linear_of(const LinearTensors& tensors, std::size_t in, std::string_view name, const Where& where,
                 const kernels::LinearKernels& kernels) {
  check_weight(tensors, name, where);
  VIT_CHECK(tensors.weight.dim(1) == in, where, name, " ", tensors.weight.shape().to_string(), " reads ",
            tensors.weight.dim(1), " of ", in, " features");
  return Linear(tensors.weight, tensors.bias, kernels);
}

}  // namespace internal

// ---------------------------------------------------------------------------------------------------- linear

struct Linear::Parts {
  internal::Linear layer;
};

Linear::Linear(TensorView<const float> weight, std::span<const float> bias)
    : parts_(std::make_unique<const Parts>(
          Parts{internal::Linear(as_matrix(weight), bias, *arithmetic().linear)})) {}
Linear::~Linear() = default;
Linear::Linear(Linear&&) noexcept = default;
Linear& Linear::operator=(Linear&&) noexcept = default;

std::size_t Linear::in_features() const noexcept {
  return parts_ ? parts_->layer.in_features() : 0;
}

std::size_t Linear::out_features() const noexcept {
  return parts_ ? parts_->layer.out_features() : 0;
}

void Linear::forward(TensorView<const float> x, TensorView<float> out, const LinearOptions& options) const {
  internal::check_threads(options.threads, kLinear);
  check_choice(kLinear, "activation", options.activation, Activation::relu);
  check_memory(x, out, kLinear);
  VIT_CHECK(!overlap(x, out), kLinear, "out shares memory with x");
  VIT_CHECK(
      options.residual.empty() || options.residual.data() == out.data() || !overlap(options.residual, out),
      kLinear, "out shares memory with a part of the residual");
  internal::Activations none;  // float32 converts no rows
  internal::parts_of(parts_, kLinear)
      .layer.forward(
          x, out, {.activations = none, .threads = options.threads},
          {.activation = options.activation, .scale = options.scale, .residual = options.residual});
}

// ------------------------------------------------------------------------------------------------------ norm

struct LayerNorm::Parts {
  internal::LayerNorm layer;
};

LayerNorm::LayerNorm(std::span<const float> gamma, std::span<const float> beta, float eps)
    : parts_(std::make_unique<const Parts>(
          Parts{internal::norm_of({gamma, beta, eps}, gamma.size(), "norm", kNorm)})) {}
LayerNorm::~LayerNorm() = default;
LayerNorm::LayerNorm(LayerNorm&&) noexcept = default;
LayerNorm& LayerNorm::operator=(LayerNorm&&) noexcept = default;

void LayerNorm::forward(TensorView<const float> x, TensorView<float> out, int threads) const {
  internal::check_threads(threads, kNorm);
  check_memory(x, out, kNorm);
  internal::parts_of(parts_, kNorm).layer.forward(x, out, threads);
}

// ------------------------------------------------------------------------------------------------- attention

Workspace::Workspace() : parts_(std::make_unique<Parts>()) {}
Workspace::~Workspace() = default;
Workspace::Workspace(Workspace&&) noexcept = default;
Workspace& Workspace::operator=(Workspace&&) noexcept = default;

Workspace::Parts& Workspace::parts() {
  return internal::parts_of(parts_, Where{"Workspace", ErrorKind::argument});
}

void attention(TensorView<const float> q, TensorView<const float> k, TensorView<const float> v,
               const position::RopeFactors& factors, std::size_t num_prefix, TensorView<float> out,
               Workspace& memory, const AttentionOptions& options) {
  check_attention(q, k, v, options);
  VIT_CHECK(out.shape() == q.shape() && !out.empty(), kAttention, "out must have shape ",
            q.shape().to_string(), ", got ", out.describe());
  check_memory(q, out, kAttention);
  internal::check_factors(factors, num_prefix, q.dim(1),
                          {.count = options.num_heads, .width = q.dim(2) / options.num_heads}, kAttention);
  const internal::Sequences sequences = sequences_of(q, options);
  internal::Activations& activations = memory.parts().activations;
  activations.reserve({.num_images = sequences.size(),
                       .num_tokens = sequences.longest(),
                       .num_rows = 1,  // none of the intermediate results of a block
                       .embed_dim = 1,
                       .attention_dim = q.dim(2),
                       .num_heads = options.num_heads,
                       .threads = options.threads},
                      arithmetic());
  const double head_dim = static_cast<double>(q.dim(2) / options.num_heads);
  internal::attend(
      {.queries = as_rows(q), .query_tokens = sequences, .keys = as_rows(k), .values = as_rows(v)},
      {.sequences = sequences,
       .causal = options.causal,
       .rope = factors,
       .num_prefix = num_prefix,
       .logit_factor = options.scale != 0.0 ? options.scale * std::sqrt(head_dim) : 1.0},
      options.num_heads, {out.data(), Shape{out.num_rows(), out.num_columns()}, out.row_stride()},
      arithmetic().attention, {.activations = activations, .threads = options.threads});
}

Tensor<float> attention(TensorView<const float> q, TensorView<const float> k, TensorView<const float> v,
                        const position::RopeFactors& factors, std::size_t num_prefix,
                        const AttentionOptions& options) {
  Tensor<float> out(q.shape());
  Workspace memory;
  attention(q, k, v, factors, num_prefix, out, memory, options);
  return out;
}

}  // namespace vit
