// Google's .npz as big_vision writes them: attention pooling, blocks stored as one, positions that are not
// stored.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/support/archive_writer.h"
#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/tiny_model.h"
#include "vit/config/output_table.h"
#include "vit/kernels/kernels.h"
#include "vit/towers/vision_transformer.h"
#include "vit/weights/checkpoint/loader.h"

namespace vit {
using namespace internal;
namespace {

constexpr std::size_t kWidth = 16, kHeads = 2, kHidden = 24, kPoolHidden = 40, kDepth = 3, kPatch = 4;
constexpr std::size_t kRows = 2, kColumns = 3;
constexpr const char* kPrefix = "params/img/";

struct Array {
  std::vector<std::size_t> shape;
  std::vector<float> values;
};
using Arrays = std::map<std::string, Array>;

std::string npy(const Array& array) {
  std::string shape;
  for (const std::size_t size : array.shape) shape += std::to_string(size) + ", ";
  const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + shape + "), }\n";
  std::string out = std::string("\x93NUMPY\x01\0", 8) + test::raw(static_cast<std::uint16_t>(header.size()));
  out += header;
  for (const float value : array.values) out += test::raw(value);
  return out;
}

std::string npz(const Arrays& arrays) {
  std::vector<test::ZipRecordToWrite> records;
  for (const auto& [name, array] : arrays) records.push_back({.name = name + ".npy", .data = npy(array)});
  return test::zip(records);
}

void add(Arrays& arrays, std::mt19937& random, const std::string& name, std::vector<std::size_t> shape) {
  std::normal_distribution<float> normal(0.0f, 0.3f);
  std::size_t size = 1;
  for (const std::size_t edge : shape) size *= edge;
  std::vector<float> values(size);
  for (float& value : values) value = normal(random);
  arrays[kPrefix + name] = {std::move(shape), std::move(values)};
}

void add_dense(Arrays& arrays, std::mt19937& random, const std::string& name, std::vector<std::size_t> kernel,
               std::vector<std::size_t> bias) {
  add(arrays, random, name + "/kernel", std::move(kernel));
  add(arrays, random, name + "/bias", std::move(bias));
}

void add_attention(Arrays& arrays, std::mt19937& random, const std::string& name) {
  constexpr std::size_t kHead = kWidth / kHeads;
  for (const char* part : {"/query", "/key", "/value"})
    add_dense(arrays, random, name + part, {kWidth, kHeads, kHead}, {kHeads, kHead});
  add_dense(arrays, random, name + "/out", {kHeads, kHead, kWidth}, {kWidth});
}

void add_mlp(Arrays& arrays, std::mt19937& random, const std::string& name, std::size_t hidden) {
  add_dense(arrays, random, name + "/Dense_0", {kWidth, hidden}, {hidden});
  add_dense(arrays, random, name + "/Dense_1", {hidden, kWidth}, {kWidth});
}

void add_norm(Arrays& arrays, std::mt19937& random, const std::string& name) {
  add(arrays, random, name + "/scale", {kWidth});
  add(arrays, random, name + "/bias", {kWidth});
}

/// SigLIP's image tower: pool_type="map", no classifier, an MLP of the pooling as wide as no other matrix.
Arrays siglip(bool stores_positions) {
  Arrays arrays;
  std::mt19937 random(3);
  add_dense(arrays, random, "embedding", {kPatch, kPatch, 3, kWidth}, {kWidth});
  if (stores_positions) add(arrays, random, "pos_embedding", {1, kRows * kColumns, kWidth});
  for (std::size_t i = 0; i < kDepth; ++i) {
    const std::string block = "Transformer/encoderblock_" + std::to_string(i);
    add_norm(arrays, random, block + "/LayerNorm_0");
    add_norm(arrays, random, block + "/LayerNorm_1");
    add_attention(arrays, random, block + "/MultiHeadDotProductAttention_0");
    add_mlp(arrays, random, block + "/MlpBlock_0", kHidden);
  }
  add_norm(arrays, random, "Transformer/encoder_norm");
  add(arrays, random, "MAPHead_0/probe", {1, 1, kWidth});
  add_attention(arrays, random, "MAPHead_0/MultiHeadDotProductAttention_0");
  add_norm(arrays, random, "MAPHead_0/LayerNorm_0");
  add_mlp(arrays, random, "MAPHead_0/MlpBlock_0", kPoolHidden);
  return arrays;
}

/// The same as scan=True stores it: one array of each kind, all blocks in its first dimension.
Arrays with_blocks_as_one(const Arrays& arrays) {
  const std::string stem = "encoderblock_";
  Arrays out;
  for (const auto& [name, array] : arrays) {
    const std::size_t at = name.find(stem);
    if (at == name.npos) {
      out[name] = array;
      continue;
    }
    Array& stack = out[name.substr(0, at + stem.size() - 1) + name.substr(at + stem.size() + 1)];
    if (stack.shape.empty()) {
      stack.shape = array.shape;
      stack.shape.insert(stack.shape.begin(), 0);
    }
    ++stack.shape.front();
    stack.values.insert(stack.values.end(), array.values.begin(), array.values.end());
  }
  return out;
}

ModelOptions options(std::size_t rows = kRows, std::size_t columns = kColumns) {
  return {.architecture = "vit_base_patch16_siglip_224",
          .overrides = {{"img_size", std::to_string(rows * kPatch) + "x" + std::to_string(columns * kPatch)},
                        {"patch_size", std::to_string(kPatch)}}};
}

std::vector<float> pooled(const Arrays& arrays, std::size_t rows = kRows, std::size_t columns = kColumns) {
  const test::TemporaryFolder folder;
  const LoadedTower<ModelConfig> checkpoint =
      load_checkpoint(folder.write("model.npz", npz(arrays)), options(rows, columns));
  const VisionTransformer model(checkpoint.config, checkpoint.weights, kernels::default_kernels());
  ForwardMemory memory;
  Outputs outputs;
  model.forward(test::random_pixels(1, rows * kPatch, columns * kPatch), {Output::pooled}, /*threads=*/1,
                memory, outputs);
  const TensorView<const float> values = internal::OutputWriter(outputs).find(Output::pooled);
  return {values.data(), values.data() + values.num_elements()};
}

}  // namespace

TEST_CASE("google: the MLP of attention pooling has the width of its own tensors") {
  const test::TemporaryFolder folder;
  const LoadedTower<ModelConfig> checkpoint =
      load_checkpoint(folder.write("model.npz", npz(siglip(true))), options());
  REQUIRE(checkpoint.config.head.attention_pool.has_value());
  CHECK(checkpoint.config.head.attention_pool->mlp_dim == kPoolHidden);
  CHECK(checkpoint.config.mlp.dim == kHidden);
}

TEST_CASE("google: blocks that are stored as one give the bits of those stored apart") {
  const Arrays apart = siglip(true), as_one = with_blocks_as_one(apart);
  REQUIRE(as_one.size() < apart.size());
  CHECK(pooled(as_one) == pooled(apart));
}

TEST_CASE("google: blocks that are stored as one and differ in number are an Error") {
  Arrays arrays = with_blocks_as_one(siglip(true));
  Array& norm = arrays.at(std::string(kPrefix) + "Transformer/encoderblock/LayerNorm_1/bias");
  norm.shape.front() -= 1;
  norm.values.resize(norm.values.size() - kWidth);
  const test::TemporaryFolder folder;
  CHECK_ERROR(ErrorKind::mismatch, ("model.npz", "encoderblock_2/LayerNorm_1/bias"),
              load_checkpoint(folder.write("model.npz", npz(arrays)), options()));
}

TEST_CASE("google: positions that are not stored are sines and cosines of columns, then of rows") {
  constexpr std::size_t kQuarter = kWidth / 4;
  Arrays stored = siglip(false);
  Array& table = stored[std::string(kPrefix) + "pos_embedding"];
  table.shape = {1, kRows * kColumns, kWidth};
  for (std::size_t y = 0; y < kRows; ++y) {
    for (std::size_t x = 0; x < kColumns; ++x) {
      for (std::size_t c = 0; c < kWidth; ++c) {
        const double share = static_cast<double>(c % kQuarter) / static_cast<double>(kQuarter - 1);
        const double angle = static_cast<double>(c < 2 * kQuarter ? x : y) / std::pow(10000.0, share);
        const bool is_sine = c / kQuarter % 2 == 0;
        table.values.push_back(static_cast<float>(is_sine ? std::sin(angle) : std::cos(angle)));
      }
    }
  }
  const std::vector<float> expected = pooled(stored), computed = pooled(siglip(false));
  REQUIRE(computed.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    CHECK(computed[i] == doctest::Approx(expected[i]).epsilon(1e-4));
}

TEST_CASE("google: FlexiViT's patches of another size than timm's are an Error that names the option") {
  ModelOptions asked = options();
  asked.architecture = "flexivit_base";
  asked.overrides.erase("patch_size");
  const test::TemporaryFolder folder;
  const auto path = folder.write("model.npz", npz(siglip(true)));
  CHECK_ERROR(ErrorKind::unsupported, ("model.npz", "patches of 4, ", "timm resizes to 16", "patch_size"),
              load_checkpoint(path, asked));
  asked.overrides["patch_size"] = "8";
  CHECK_ERROR(ErrorKind::unsupported, ("patches of 4, ", "resizes to 8"), load_checkpoint(path, asked));
}

TEST_CASE("google: a table is resampled bilinearly for another img_size, as timm does while loading") {
  constexpr std::size_t kEdge = 2, kWide = 4;
  Arrays square = siglip(false), wide = square;
  Array& small = square[std::string(kPrefix) + "pos_embedding"];
  Array& large = wide[std::string(kPrefix) + "pos_embedding"];
  small.shape = {1, kEdge * kEdge, kWidth};
  large.shape = {1, kEdge * kWide, kWidth};
  for (std::size_t i = 0; i < kEdge * kEdge * kWidth; ++i)
    small.values.push_back(std::sin(static_cast<float>(i * i)));
  for (std::size_t y = 0; y < kEdge; ++y) {
    for (const float share : {0.0f, 0.25f, 0.75f, 1.0f}) {
      for (std::size_t c = 0; c < kWidth; ++c) {
        const float left = small.values[y * kEdge * kWidth + c];
        const float right = small.values[(y * kEdge + 1) * kWidth + c];
        large.values.push_back(left + share * (right - left));
      }
    }
  }
  const std::vector<float> expected = pooled(wide, kEdge, kWide), computed = pooled(square, kEdge, kWide);
  REQUIRE(computed.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    CHECK(computed[i] == doctest::Approx(expected[i]).epsilon(1e-4));
}

}  // namespace vit
