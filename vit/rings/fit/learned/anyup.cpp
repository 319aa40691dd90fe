// AnyUp (Wimmer et al. 2025) and JAFAR (Couairon et al. 2025), on which it builds: encoders of 1x1 kernels
// for queries and keys, and weights that are the mean of all heads. JAFAR modulates keys by features of the
// one model that it was trained for, and attends to all patches; AnyUp knows features by the responses of
// their planes to a set of kernels, whatever their number, and attends to a window.
#include <algorithm>
#include <cmath>
#include <utility>

#include "vit/base/check.h"
#include "vit/base/parallel.h"
#include "vit/rings/fit/exp_of_negative.h"
#include "vit/rings/fit/learned/upsampler.h"

namespace vit::internal {
namespace {

constexpr Where kAttends{"pixel upsampler", ErrorKind::mismatch};
constexpr std::size_t kMeanHeads = 4, kEncoderLayers = 2;  // of the releases; their files do not say so
constexpr float kWindowRatio = 0.1f;                       // of AnyUp, of the edge of the image

/// Names of the parts of a residual block: two norms, and their convolutions.
struct BlockNames {
  const char *norm1, *convolution1, *norm2, *convolution2;
};
constexpr BlockNames kAnyUpNames{"block.0", "block.2", "block.3", "block.5"};
constexpr BlockNames kJafarNames{"norm1", "conv1", "norm2", "conv2"};

void add_blocks(UpsamplerTensors& tensors, const std::string& name, std::size_t dim, const BlockNames& names,
                std::vector<NetworkStage>& stages) {
  for (std::size_t block = 1; block <= kEncoderLayers; ++block) {
    const std::string of = name + "." + std::to_string(block) + ".";
    stages.push_back(convolution_stage(tensors, of + names.convolution1, dim, dim, 1, false));
    add_group_norm(tensors, of + names.norm1, stages.back());
    stages.back().keeps = true;
    stages.push_back(convolution_stage(tensors, of + names.convolution2, dim, dim, 1, false));
    add_group_norm(tensors, of + names.norm2, stages.back());
    stages.back().adds = true;
  }
}

void add_encoder(UpsamplerTensors& tensors, const std::string& name, std::size_t in, std::size_t dim,
                 std::size_t edge, const BlockNames& names, std::vector<NetworkStage>& stages) {
  stages.push_back(convolution_stage(tensors, name + ".0", dim, in, edge, false));
  add_blocks(tensors, name, dim, names, stages);
}

/// The image's encoder with its rotation, and another one after it.
std::vector<NetworkStage> image_stages(UpsamplerTensors& tensors, const std::string& second, std::size_t dim,
                                       const BlockNames& names) {
  std::vector<NetworkStage> stages;
  add_encoder(tensors, "image_encoder", 3, dim, tensors.dim("image_encoder.0.weight", 2), names, stages);
  const Tensor<float> frequencies = tensors.take("rope.freqs", {2, dim});
  for (std::size_t c = 0; c < dim; ++c) {
    stages.back().rotation.row_frequencies.push_back(static_cast<double>(frequencies.view().row(0)[c]));
    stages.back().rotation.column_frequencies.push_back(static_cast<double>(frequencies.view().row(1)[c]));
  }
  add_encoder(tensors, second, dim, dim, 1, names, stages);
  return stages;
}

/// Part 0 (queries) or 1 (keys) of the projections of PyTorch's attention, after an RMS norm.
NetworkStage projection(UpsamplerTensors& tensors, std::size_t dim, std::size_t part) {
  const std::string attention = "cross_decode.cross_attn.attention.";
  Tensor<float> weight(Shape{dim, dim, 1, 1});
  if (tensors.has(attention + "in_proj_weight")) {
    const Tensor<float> all = tensors.take(attention + "in_proj_weight", {3 * dim, dim});
    std::copy_n(all.data() + part * dim * dim, dim * dim, weight.data());
  } else {
    const std::string name = attention + (part == 0 ? "q_proj_weight" : "k_proj_weight");
    std::copy_n(tensors.take(name, {dim, dim}).data(), dim * dim, weight.data());
  }
  const Tensor<float> bias = tensors.take(attention + "in_proj_bias", {3 * dim});
  const Tensor<float> gamma =
      tensors.take(std::string("cross_decode.cross_attn.norm_") + (part == 0 ? "q" : "k") + ".weight", {dim});
  return {.convolution = Convolution(weight, {bias.data() + part * dim, dim}, 1, kernels::default_kernels()),
          .norm = StageNorm::rms,
          .gamma = {gamma.flat().begin(), gamma.flat().end()}};
}

MapSource source_of(const Tensor<float>& rows, MapSize size) {
  return {.size = size, .read = [&rows, size](const MapTile& tile, const FeatureMap& to) {
            for (std::size_t y = 0; y < tile.height; ++y)
              std::copy_n(rows.view().row((tile.y + y) * size.width + tile.x), tile.width * rows.dim(1),
                          to.row(static_cast<std::ptrdiff_t>(y)));
          }};
}

Tensor<float> rows_of_unit_length(TensorView<const float> rows, int threads) {
  Tensor<float> out(Shape{rows.num_rows(), rows.num_columns()});
  parallel_for_parts(rows.num_rows(), 64, threads, [&](std::size_t first, std::size_t count) {
    for (std::size_t i = first; i < first + count; ++i) {
      const std::span from(rows.row(i), rows.num_columns());
      double squares = 0;
      for (const float x : from) squares += static_cast<double>(x) * static_cast<double>(x);
      const double length = std::max(std::sqrt(squares), 1e-12);
      std::ranges::transform(from, out.view().row(i),
                             [&](float x) { return static_cast<float>(static_cast<double>(x) / length); });
    }
  });
  return out;
}

/// What both share.
struct Attending : PixelUpsampler::Network {
  std::unique_ptr<TiledNetwork> of_keys, of_features, projected;

  const TiledNetwork* key_network() const override { return of_keys.get(); }
  void check(MapSize image, const PatchMap&) const override {
    VIT_CHECK(image.height >= 2 && image.width >= 2, kAttends, "an image of ", image.height, " x ",
              image.width, " pixels has no neighbors to reflect");
  }
};

// ------------------------------------------------------------------------------------------------- AnyUp

struct AnyUp final : Attending {
  Tensor<float> basis;  // (k k, D): the kernels, transposed
  std::size_t edge = 0;

  void check(MapSize image, const PatchMap& patches) const override {
    Attending::check(image, patches);
    VIT_CHECK(patches.grid.height >= 2 && patches.grid.width >= 2, kAttends,
              "AnyUp needs two rows and columns of patches, found ", patches.grid.height, " x ",
              patches.grid.width, "; a larger --size gives more");
  }

  /// The responses of all planes of features to all kernels, plane by plane, are read as D rows of one number
  /// for each plane (so the published code views them); the softmax over the rows, and its mean over columns.
  void respond(const Tensor<float>& features, MapSize grid, std::size_t patch, std::span<float> out) const {
    const std::size_t dim = basis.dim(1), half = edge / 2, y = patch / grid.width, x = patch % grid.width;
    const std::size_t planes = features.dim(1);
    std::vector<float> responses(planes * dim), largest(planes), sums(planes);
    const std::size_t first_y = y - std::min(y, half), last_y = std::min(y + half + 1, grid.height);
    const std::size_t first_x = x - std::min(x, half), last_x = std::min(x + half + 1, grid.width);
    const auto taps = static_cast<float>((last_y - first_y) * (last_x - first_x));
    for (std::size_t v = first_y; v < last_y; ++v) {
      for (std::size_t u = first_x; u < last_x; ++u) {
        const float* const kernel = basis.view().row((v + half - y) * edge + (u + half - x));
        const float* const values = features.view().row(v * grid.width + u);
        for (std::size_t c = 0; c < planes; ++c) {
          float* const to = &responses[c * dim];
          for (std::size_t k = 0; k < dim; ++k) to[k] += kernel[k] * values[c];
        }
      }
    }
    for (float& r : responses) r /= taps;
    std::copy_n(responses.begin(), planes, largest.begin());
    for (std::size_t i = 0; i < responses.size(); ++i)
      largest[i % planes] = std::max(largest[i % planes], responses[i]);
    for (std::size_t i = 0; i < responses.size(); ++i) {
      float& r = responses[i];
      sums[i % planes] += r = exp_of_negative(std::max(r - largest[i % planes], -87.0f));
    }
    for (std::size_t k = 0; k < dim; ++k) {
      double sum = 0;
      for (std::size_t c = 0; c < planes; ++c)
        sum += static_cast<double>(responses[k * planes + c] / sums[c]);
      out[k] = static_cast<float>(sum / static_cast<double>(planes));
    }
  }

  Tensor<float> keys(Tensor<float> means, const PatchMap& patches, int threads) const override {
    const std::size_t count = means.dim(0), dim = means.dim(1);
    const Tensor<float> units = rows_of_unit_length(patches.features, threads);
    Tensor<float> responses(Shape{count, dim});
    parallel_for(count, threads, [&](std::size_t i, int) {
      respond(units, patches.grid, i, {responses.view().row(i), dim});
    });
    const Tensor<float> encoded = of_features->run_all(source_of(responses, patches.grid), threads);
    Tensor<float> joined(Shape{count, 2 * dim});
    for (std::size_t i = 0; i < count; ++i) {
      std::copy_n(means.view().row(i), dim, joined.view().row(i));
      std::copy_n(encoded.view().row(i), dim, joined.view().row(i) + dim);
    }
    return projected->run_all(source_of(joined, patches.grid), threads);
  }

  std::vector<AxisWindow> windows(std::size_t num_pixels, std::size_t num_patches) const override {
    std::vector<AxisWindow> out;
    const auto pixels = static_cast<float>(num_pixels), all = static_cast<float>(num_patches);
    for (std::size_t i = 0; i < num_pixels; ++i) {
      const float place = (static_cast<float>(i) + 0.5f) / pixels;
      const float low = std::clamp(place - kWindowRatio, 0.0f, 1.0f) * all;
      const float high = std::clamp(place + kWindowRatio, 0.0f, 1.0f) * all;
      std::vector<std::uint32_t> patches;
      const auto last = static_cast<std::uint32_t>(std::min(std::ceil(high), all));
      for (auto p = static_cast<std::uint32_t>(low); p < last; ++p) patches.push_back(p);
      add_pixel(std::move(patches), out);
    }
    return out;
  }
};

// ------------------------------------------------------------------------------------------------- JAFAR

struct Jafar final : Attending {
  std::unique_ptr<TiledNetwork> of_gamma, of_beta, of_means;  // the last one: an identity after a norm

  void check(MapSize image, const PatchMap& patches) const override {
    Attending::check(image, patches);
    VIT_CHECK(patches.features.num_columns() == of_features->in_channels(), kAttends,
              "JAFAR was trained for ", of_features->in_channels(),
              " features, those of one model; there are ", patches.features.num_columns(),
              "; NAF and AnyUp take any number");
  }

  Tensor<float> keys(Tensor<float> means, const PatchMap& patches, int threads) const override {
    const Tensor<float> units = rows_of_unit_length(patches.features, threads);
    const Tensor<float> encoded = of_features->run_all(source_of(units, patches.grid), threads);
    const Tensor<float> gamma = of_gamma->run_all(source_of(encoded, patches.grid), threads);
    const Tensor<float> beta = of_beta->run_all(source_of(encoded, patches.grid), threads);
    Tensor<float> out = of_means->run_all(source_of(means, patches.grid), threads);
    for (std::size_t i = 0; i < out.num_elements(); ++i)
      out.data()[i] = gamma.data()[i] * out.data()[i] + beta.data()[i];
    return projected->run_all(source_of(out, patches.grid), threads);
  }

  std::vector<AxisWindow> windows(std::size_t num_pixels, std::size_t num_patches) const override {
    AxisWindow all{.begin = 0, .end = num_pixels, .patches = {}};
    for (std::size_t p = 0; p < num_patches; ++p) all.patches.push_back(static_cast<std::uint32_t>(p));
    return {all};
  }
};

std::unique_ptr<TiledNetwork> single(NetworkStage stage) {
  std::vector<NetworkStage> stages;
  stages.push_back(std::move(stage));
  return std::make_unique<TiledNetwork>(std::move(stages));
}

NetworkStage identity_after_norm(std::size_t dim) {
  Tensor<float> weight(Shape{dim, dim, 1, 1});
  for (std::size_t c = 0; c < dim; ++c) weight.data()[c * dim + c] = 1;
  return {.convolution = Convolution(weight, {}, 1, kernels::default_kernels()), .norm = StageNorm::group};
}

std::size_t checked_dim(const UpsamplerTensors& tensors) {
  const std::size_t dim = tensors.dim("image_encoder.0.weight", 0);
  if (dim % 8 != 0) tensors.fail_format(std::to_string(dim) + " channels do not make eight groups");
  const std::size_t edge = tensors.dim("image_encoder.0.weight", 2);
  if (edge != 1 && edge != 3)
    tensors.fail_format("an encoder of the image with kernels of " + std::to_string(edge));
  return dim;
}

/// Queries, and the key network of the image.
void load_shared(UpsamplerTensors& tensors, std::size_t dim, const BlockNames& names, StageNorm norm,
                 Attending& out) {
  std::vector<NetworkStage> queries = image_stages(tensors, "query_encoder", dim, names);
  queries.push_back(convolution_stage(tensors, "cross_decode.conv2d", dim, dim, 3, false));
  queries.back().reflects = false;
  queries.back().norm = norm;
  queries.push_back(projection(tensors, dim, 0));
  out.queries.emplace_back(std::move(queries));
  out.of_keys = std::make_unique<TiledNetwork>(image_stages(tensors, "key_encoder", dim, names));
  out.num_heads = kMeanHeads;
}

}  // namespace

std::unique_ptr<PixelUpsampler::Network> load_anyup(UpsamplerTensors& tensors) {
  auto out = std::make_unique<AnyUp>();
  const std::size_t dim = checked_dim(tensors), edge = tensors.dim("key_features_encoder.0.basis", 2);
  if (edge % 2 == 0) tensors.fail_format("kernels for features must have an odd edge");
  load_shared(tensors, dim, kAnyUpNames, StageNorm::none, *out);
  const Tensor<float> basis = tensors.take("key_features_encoder.0.basis", {dim, 1, edge, edge});
  out->edge = edge;
  out->basis = Tensor<float>(Shape{edge * edge, dim});
  for (std::size_t k = 0; k < dim; ++k) {
    for (std::size_t i = 0; i < edge * edge; ++i)
      out->basis.view().row(i)[k] = basis.data()[k * edge * edge + i];
  }
  std::vector<NetworkStage> features, joined;
  add_blocks(tensors, "key_features_encoder", dim, kAnyUpNames, features);
  out->of_features = std::make_unique<TiledNetwork>(std::move(features));
  add_encoder(tensors, "aggregation", 2 * dim, dim, 3, kAnyUpNames, joined);
  joined.push_back(projection(tensors, dim, 1));
  out->projected = std::make_unique<TiledNetwork>(std::move(joined));
  return out;
}

std::unique_ptr<PixelUpsampler::Network> load_jafar(UpsamplerTensors& tensors) {
  auto out = std::make_unique<Jafar>();
  const std::size_t dim = checked_dim(tensors), features = tensors.dim("key_features_encoder.0.weight", 1);
  load_shared(tensors, dim, kJafarNames, StageNorm::group, *out);
  std::vector<NetworkStage> stages;
  add_encoder(tensors, "key_features_encoder", features, dim, 1, kJafarNames, stages);
  out->of_features = std::make_unique<TiledNetwork>(std::move(stages));
  out->of_gamma = single(convolution_stage(tensors, "sft_key.gamma", dim, dim, 1, false));
  out->of_beta = single(convolution_stage(tensors, "sft_key.beta", dim, dim, 1, false));
  out->of_means = single(identity_after_norm(dim));
  out->projected = single(projection(tensors, dim, 1));
  return out;
}

}  // namespace vit::internal
