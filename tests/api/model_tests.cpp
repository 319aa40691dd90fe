#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/allocation_count.h"
#include "tests/support/errors.h"
#include "tests/support/linear_product.h"
#include "tests/support/tiny_model.h"
#include "tests/support/tolerance.h"
#include "vit/base/dtype.h"
#include "vit/config/output_table.h"
#include "vit/kernels/kernels.h"
#include "vit/towers/vision_transformer.h"

namespace vit {
using namespace internal;
namespace {

VisionTransformer build(const LoadedTower<ModelConfig>& checkpoint,
                        Precision precision = Precision::float32) {
  return VisionTransformer(checkpoint.config, checkpoint.weights, kernels::default_kernels(), precision);
}

/// What the products of a model may compute in.
struct Variant {
  const char* architecture;
  Precision precision;
};

const Request kEverything{Output::logits,     Output::pooled,     Output::tokens,        Output::embedded,
                          {Output::block, 0}, {Output::block, 1}, {Output::attention, 1}};

Tensor<float> copy_of(TensorView<const float> values) {
  Tensor<float> copy(values.shape());
  std::ranges::copy(values.flat(), copy.data());
  return copy;
}

Tensor<float> logits_of(const VisionTransformer& model, TensorView<const float> pixels, int threads) {
  ForwardMemory memory;
  Outputs outputs;
  model.forward(pixels, {Output::logits}, threads, memory, outputs);
  return copy_of(outputs[Output::logits]);
}

/// |a - b| / |b|.
double distance(TensorView<const float> a, TensorView<const float> b) {
  double difference = 0.0, size = 0.0;
  for (std::size_t i = 0; i < a.num_elements(); ++i) {
    difference += std::pow(double{a.data()[i]} - b.data()[i], 2);
    size += std::pow(double{b.data()[i]}, 2);
  }
  return std::sqrt(difference / size);
}

/// One deviation of what float32 adds to a number at the end of a model. Roundings on the longest way to it:
/// one for every term of a sum, that is of the products, of scores and values, and of two norms of a block.
/// They go in random directions, so that their sum grows as its square root. Numbers on the way are of order
/// one, as is the result.
double rounding_of(const ModelConfig& c, std::size_t num_tokens) {
  const std::size_t patch_terms = 3 * c.patch.size * c.patch.size;
  const std::size_t attention_terms = 2 * c.attention_dim() + c.head_width() + num_tokens;
  const std::size_t block_terms = attention_terms + c.embed_dim + c.mlp.dim + 2 * c.embed_dim;
  return std::sqrt(static_cast<double>(patch_terms + c.encoder.depth * block_terms + c.embed_dim)) *
         test::kRoundoff;
}

WeightTensor rounded(const WeightTensor& weight) {
  if (!weight.present()) return {};
  return {weight.shape(), [weight] {
            Tensor<float> numbers = weight.load();
            for (float& number : numbers.flat()) number = bf16_to_float(float_to_bf16(number));
            return numbers;
          }};
}

/// A DINOv3 with a joint head of two blocks, whose layer scale is `scale`.
LoadedTower<ModelConfig> with_joint_head(float scale) {
  LoadedTower checkpoint = test::tiny_checkpoint("vit_small_patch16_dinov3", {{"num_classes", "0"}});
  ModelConfig& config = checkpoint.config;
  config.head.joint = {.depth = 2, .mlp_dim = 64};
  config.head.projection = {.dim = 2 * config.embed_dim};
  unsigned seed = 100;
  for_each_tensor(config, checkpoint.weights, [&](TensorId id, const Shape& shape, WeightTensor& tensor) {
    if (!id.joint_head) return;
    const bool is_scale = id.part == Part::scale1 || id.part == Part::scale2;
    const bool is_gamma = part_name(id.part).ends_with("gamma");
    tensor = WeightTensor(shape, [=, own = seed++]() -> Tensor<float> {
      Tensor<float> values(shape);
      std::mt19937 random(own);
      std::normal_distribution<float> normal(0.0f, 0.15f);
      for (float& value : values.flat())
        value = is_scale ? scale : is_gamma ? 1.0f : shape.rank() < 2 ? 0.0f : normal(random);
      return values;
    });
  });
  return checkpoint;
}

/// LayerNorm without weights, in double.
std::vector<double> normalized(std::span<const float> row, double epsilon) {
  double mean = 0.0, variance = 0.0;
  for (const float x : row) mean += double{x} / static_cast<double>(row.size());
  for (const float x : row) variance += (x - mean) * (x - mean) / static_cast<double>(row.size());
  std::vector<double> out;
  for (const float x : row) out.push_back((x - mean) / std::sqrt(variance + epsilon));
  return out;
}

}  // namespace

TEST_CASE("model: a joint head whose blocks add nothing gives the class token and the mean of the patches") {
  const VisionTransformer model = build(with_joint_head(0.0f));
  const ModelConfig& config = model.config();
  const std::size_t width = config.embed_dim, prefix = config.num_prefix_tokens();
  ForwardMemory memory;
  Outputs outputs;
  model.forward(test::random_pixels(2, 48, 64), {Output::projected, Output::tokens}, 2, memory, outputs);
  for (std::size_t image = 0; image < 2; ++image) {
    const TensorView<const float> tokens = outputs[image].tokens();
    std::vector<double> expected = normalized({tokens.row(0), width}, config.head.joint->norm_eps);
    std::vector<double> mean(width, 0.0);
    for (std::size_t t = prefix; t < tokens.dim(0); ++t) {
      const std::vector<double> patch = normalized({tokens.row(t), width}, config.head.joint->norm_eps);
      for (std::size_t i = 0; i < width; ++i)
        mean[i] += patch[i] / static_cast<double>(tokens.dim(0) - prefix);
    }
    expected.insert(expected.end(), mean.begin(), mean.end());
    for (std::size_t i = 0; i < 2 * width; ++i)
      CHECK(outputs[Output::projected].row(image)[i] == doctest::Approx(expected[i]).epsilon(1e-5));
  }
}

TEST_CASE("model: a joint head has the same bits in any batch, and changes only its vector") {
  const VisionTransformer model = build(with_joint_head(0.5f));
  const Tensor<float> pixels = test::random_pixels(5, 48, 48);
  ForwardMemory memory;
  Outputs together, alone, plain;
  model.forward(pixels, {Output::pooled, Output::projected}, 3, memory, together);
  model.forward(pixels, {Output::pooled}, 3, memory, plain);
  for (std::size_t image = 0; image < 5; ++image) {
    model.forward(pixels.view().part(image, 1), {Output::projected}, 1, memory, alone);
    CHECK(std::ranges::equal(
        alone[Output::projected].flat(),
        std::span(together[Output::projected].row(image), alone[Output::projected].dim(1))));
  }
  CHECK(std::ranges::equal(plain[Output::pooled].flat(), together[Output::pooled].flat()));
}

TEST_CASE("model: an image has the same bits in any batch, at any place, with any number of threads") {
  for (const auto& [architecture, precision] :
       {Variant{"vit_small_patch16_rope_224", Precision::float32},
        Variant{"vit_small_patch16_rope_mixed_ape_224", Precision::float32},
        Variant{"vit_tiny_patch16_224", Precision::float32},
        Variant{"vit_small_patch16_rope_224", Precision::bfloat16},
        Variant{"eva02_tiny_patch14_224", Precision::bfloat16},
        Variant{"deit_tiny_distilled_patch16_224", Precision::int8},
        Variant{"eva02_tiny_patch14_224", Precision::int8},
        Variant{"vit_base_patch16_siglip_224", Precision::int8}}) {
    const VisionTransformer model = build(test::tiny_checkpoint(architecture), precision);
    CAPTURE(model.config().architecture);
    const std::size_t height = 4 * model.config().patch.size, width = 5 * model.config().patch.size;
    const Tensor<float> pixels = test::random_pixels(41, height, width);
    ForwardMemory memory;
    Outputs whole;
    model.forward(pixels, kEverything, 1, memory, whole);
    // few images are shared by all threads, of 41 most are computed by one thread each
    for (const std::size_t batch : {1, 2, 3, 8, 13, 41}) {
      for (const int threads : {1, 2, 3}) {
        for (std::size_t first = 0; first + batch <= std::max<std::size_t>(batch, 13); first += 5) {
          CAPTURE(batch);
          CAPTURE(threads);
          const TensorView<const float> part(pixels.view()[first].data(), Shape{batch, 3, height, width});
          Outputs outputs;
          model.forward(part, kEverything, threads, memory, outputs);
          for (const OutputTensor& output : internal::OutputWriter(outputs).tensors()) {
            CAPTURE(to_string(output.key));
            const std::span<const float> found = output.values.flat();
            CHECK(std::equal(found.begin(), found.end(),
                             whole[output.key].data() + first * (found.size() / batch)));
          }
        }
      }
    }
  }
}

TEST_CASE("model: computing only the rows that the head reads changes no bit") {
  for (const auto& [architecture, precision] :
       {Variant{"vit_small_patch16_rope_ape_224", Precision::float32},
        Variant{"deit_tiny_distilled_patch16_224", Precision::float32},
        Variant{"vit_small_patch16_rope_ape_224", Precision::bfloat16},
        Variant{"vit_small_patch16_rope_ape_224", Precision::int8}}) {
    const VisionTransformer model = build(test::tiny_checkpoint(architecture), precision);
    const Tensor<float> pixels = test::random_pixels(3, 48, 48);
    ForwardMemory memory;
    Outputs outputs;
    model.forward(pixels, kEverything, 2, memory, outputs);
    CHECK(std::ranges::equal(logits_of(model, pixels, 2).flat(), outputs[Output::logits].flat()));
  }
}

TEST_CASE("model: a warm forward pass allocates nothing") {
  for (const auto& [architecture, precision] :
       {Variant{"vit_small_patch16_rope_mixed_ape_224", Precision::float32},
        Variant{"vit_tiny_patch16_224", Precision::bfloat16},
        Variant{"vit_tiny_patch16_224", Precision::int8},
        Variant{"vit_base_patch16_siglip_224", Precision::int8}}) {
    const VisionTransformer model = build(test::tiny_checkpoint(architecture), precision);
    for (const std::size_t batch : {2, 64}) {
      const Tensor<float> pixels = test::random_pixels(batch, 64, 48);
      ForwardMemory memory;
      Outputs outputs;
      const Request request{Output::logits, Output::pooled, Output::tokens};
      for (int pass = 0; pass < 2; ++pass) model.forward(pixels, request, 2, memory, outputs);
      const std::size_t before = test::allocation_count();
      for (int pass = 0; pass < 3; ++pass) model.forward(pixels, request, 2, memory, outputs);
      CHECK(test::allocation_count() == before);
    }
  }
}

TEST_CASE("model: one model serves many threads at once") {
  const VisionTransformer model = build(test::tiny_checkpoint("vit_small_patch16_rope_mixed_224"));
  const Tensor<float> pixels = test::random_pixels(1, 48, 48);
  const Tensor<float> expected = logits_of(model, pixels, 1);
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t round = 0; round < 10;
           ++round) {  // grids alternate, so that the kept positions are replaced
        const Tensor<float> other = test::random_pixels(1, 48 + 16 * (t + round % 5), 48);
        static_cast<void>(logits_of(model, other, 1));
        wrong[t] += std::ranges::equal(logits_of(model, pixels, 1).flat(), expected.flat()) ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int count : wrong) CHECK(count == 0);
}

TEST_CASE("model: fast kernels agree with the reference loops") {
  const LoadedTower checkpoint = test::tiny_checkpoint("vit_small_patch16_rope_mixed_ape_224");
  const VisionTransformer reference(checkpoint.config, checkpoint.weights,
                                    kernels::find_kernels("reference"));
  const Tensor<float> pixels = test::random_pixels(2, 48, 64);
  const Tensor<float> expected = logits_of(reference, pixels, 1);
  // No logit differs by eight deviations.
  const double epsilon = 8.0 * rounding_of(checkpoint.config, 1 + 3 * 4);
  for (const kernels::KernelTable* table : kernels::available_kernels()) {
    CAPTURE(table->name);
    const VisionTransformer model(checkpoint.config, checkpoint.weights, *table);
    const Tensor<float> found = logits_of(model, pixels, 2);
    for (std::size_t i = 0; i < expected.num_elements(); ++i) {
      CHECK(found.data()[i] == doctest::Approx(expected.data()[i]).epsilon(epsilon));
    }
  }
}

TEST_CASE(
    "model: bfloat16 is float32 with rounded weights, or close to it where inputs are rounded as well") {
  for (const char* architecture :
       {"vit_small_patch16_rope_224", "eva02_tiny_patch14_224", "vit_base_patch16_siglip_224"}) {
    const LoadedTower checkpoint = test::tiny_checkpoint(architecture);
    ModelWeights weights = checkpoint.weights;
    for (BlockWeights& block : weights.blocks) {
      for (LinearWeights* linear : {&block.qkv, &block.proj, &block.gate, &block.fc1, &block.fc2})
        linear->weight = rounded(linear->weight);
    }
    AttentionPoolWeights& pool = weights.pool;
    for (LinearWeights* linear : {&pool.kv, &pool.proj, &pool.fc1, &pool.fc2})
      linear->weight = rounded(linear->weight);
    const std::size_t edge = 4 * checkpoint.config.patch.size;
    const Tensor<float> pixels = test::random_pixels(4, edge, edge);
    const Tensor<float> exact = logits_of(build(checkpoint), pixels, 1);
    for (const kernels::KernelTable* table : kernels::available_kernels()) {
      CAPTURE(architecture);
      CAPTURE(table->name);
      const Tensor<float> logits =
          logits_of({checkpoint.config, checkpoint.weights, *table, Precision::bfloat16}, pixels, 1);
      const Tensor<float> expected = logits_of({checkpoint.config, weights, *table}, pixels, 1);
      if (table->bfloat16->linear->convert_rows != nullptr) {
        // A rounded number is off by at most 2^-9 of itself; ten products in a row, one after the other.
        CHECK(distance(logits, expected) < 10 * 0x1p-9);
      } else {
        CHECK(std::ranges::equal(logits.flat(), expected.flat()));
      }
      CHECK(distance(logits, exact) < 20 * 0x1p-9);  // weights and inputs
      CHECK(distance(logits, exact) > 1e-5);         // it did round
    }
  }
}

TEST_CASE("model: int8 is the same on every kernel table, and close to float32") {
  // A number rounded to multiples of a step is off by step / sqrt(12), as a root mean square. The largest of
  // a group of normal numbers is about 2.5 deviations, and the largest sum of two neighbors sqrt(2) times
  // that; steps divide the one by 127 and, where sums are limited, half the other by 63.5. So much, in
  // deviations, does a product lose in every weight and, where inputs are bytes, in every input; inputs of 16
  // bits are exact in comparison. The two blocks have four products each, attention pooling four more, whose
  // losses add up as squares; attention itself loses less, and so does a sum with what a branch does not
  // change. Patches and weights that are rounded to bfloat16 before they are embedded add 2^-9 of themselves
  // each. All this is of the root mean square of many independent numbers: those of the tokens, 3,000 and
  // more. Seven logits of a few images are not, nor is a mean over patches, which keeps less of the signal.
  const double step = 2.5 / 127.0;
  const auto limit_of = [&](const kernels::KernelTable& table, double num_products) {
    const auto [input_largest, pair_largest] = test::int8_steps(*table.int8->linear);
    const double loss = step / std::sqrt(12.0);
    const double of_weight = pair_largest > 128 ? loss : std::sqrt(2.0) * loss;
    const double of_input = input_largest > 127 ? 0.0 : loss;
    const double rounding = table.int8->fine->convert_rows != nullptr ? 2 * 0x1p-9 : 0.0;
    return rounding + std::sqrt(num_products) * std::hypot(of_weight, of_input);
  };
  // Tables with the same int8 numbers in linear layers, and none in attention: results differ by rounding in
  // float32 only.
  const auto have_same_numbers = [](const kernels::KernelTable& a, const kernels::KernelTable& b) {
    const auto attends_in_float32 = [](const kernels::KernelTable& table) {
      return table.int8->attention.attend == table.float32->attention.attend;
    };
    return test::int8_steps(*a.int8->linear) == test::int8_steps(*b.int8->linear) && attends_in_float32(a) &&
           attends_in_float32(b);
  };
  constexpr double kProducts = 8.0, kPooledProducts = 12.0;
  for (const char* architecture : {"vit_small_patch16_rope_224", "vit_base_patch16_siglip_224"}) {
    CAPTURE(architecture);
    const LoadedTower checkpoint = test::tiny_checkpoint(architecture);
    // A number that differs by d falls on another side of a step with probability d / step, and is then off
    // by one: sqrt(d step) as a root mean square, in the input of every product.
    const double same_limit = std::sqrt(kProducts * step * rounding_of(checkpoint.config, 1 + 4 * 4));
    for (const unsigned seed : {1, 2, 3}) {
      CAPTURE(seed);
      const Tensor<float> pixels = test::random_pixels(4, 64, 64, seed);
      const auto run = [&](const VisionTransformer& model) {
        ForwardMemory memory;
        Outputs outputs;
        model.forward(pixels, {Output::pooled, Output::tokens}, 1, memory, outputs);
        return outputs;
      };
      const Outputs exact = run(build(checkpoint));
      std::vector<std::pair<const kernels::KernelTable*, Outputs>> earlier;
      for (const kernels::KernelTable* table : kernels::available_kernels()) {
        CAPTURE(std::string(table->name));
        Outputs found = run({checkpoint.config, checkpoint.weights, *table, Precision::int8});
        const double limit = limit_of(*table, kProducts);
        CHECK(distance(found[Output::tokens], exact[Output::tokens]) < limit);
        CHECK(distance(found[Output::tokens], exact[Output::tokens]) >
              limit / 10.0);  // it did compute in int8
        if (checkpoint.config.head.pooling == Pooling::attention)
          CHECK(distance(found[Output::pooled], exact[Output::pooled]) < limit_of(*table, kPooledProducts));
        for (const auto& [other, its_outputs] : earlier) {
          const std::string other_name = other->name;
          CAPTURE(other_name);
          CHECK(distance(found[Output::tokens], its_outputs[Output::tokens]) <
                (have_same_numbers(*table, *other) ? same_limit : limit + limit_of(*other, kProducts)));
        }
        earlier.emplace_back(table, std::move(found));
      }
    }
  }
}

TEST_CASE("model: requests that a model cannot fulfil are errors that say why") {
  const VisionTransformer model =
      build(test::tiny_checkpoint("vit_tiny_patch16_224", {{"num_classes", "0"}}));
  const Tensor<float> pixels = test::random_pixels(1, 48, 48);
  ForwardMemory memory;
  Outputs outputs;
  const auto run = [&](const Request& request) { model.forward(pixels, request, 1, memory, outputs); };
  CHECK_ERROR(ErrorKind::argument, ("classifier"), run({Output::logits}));
  CHECK_ERROR(ErrorKind::argument, ("projection"), run({Output::projected}));
  CHECK_ERROR(ErrorKind::argument, ("block.2"), run({{Output::block, 2}}));
  const Tensor<float> small = test::random_pixels(1, 15, 48);
  CHECK_ERROR(ErrorKind::argument, ("15 x 48"), model.forward(small, {}, 1, memory, outputs));
  const TensorView<const float> planes(pixels.data(), Shape{3, 48, 48});
  CHECK_ERROR(ErrorKind::argument, ("(3, 48, 48)"), model.forward(planes, {}, 1, memory, outputs));
}

TEST_CASE("model: edges that the patch does not divide lose the remainder where the library drops it") {
  LoadedTower checkpoint = test::tiny_checkpoint("vit_small_patch16_rope_224");
  const Tensor<float> odd = test::random_pixels(1, 53, 48);
  CHECK_ERROR(ErrorKind::argument, ("53 x 48", "timm", "48 x 48"), logits_of(build(checkpoint), odd, 1));
  checkpoint.config.patch.drops_remainder = true;
  const VisionTransformer model = build(checkpoint);
  const Tensor<float> pixels = test::random_pixels(1, 53, 63);
  Tensor<float> cut(Shape{1, 3, 48, 48});
  for (std::size_t c = 0; c < 3; ++c) {
    for (std::size_t y = 0; y < 48; ++y) {
      std::copy_n(pixels.data() + (c * 53 + y) * 63, 48, cut.data() + (c * 48 + y) * 48);
    }
  }
  CHECK(std::ranges::equal(logits_of(model, pixels, 1).flat(), logits_of(model, cut, 1).flat()));
}

}  // namespace vit
