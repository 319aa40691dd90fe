// The publishers' own files of Depth Anything, with the config.json that huggingface_hub writes next to them:
// arguments of the publisher's class, which say nothing of a library.
#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "vit/base/error.h"
#include "vit/config.h"
#include "vit/dense_config.h"
#include "vit/io/safetensors.h"
#include "vit/model.h"

namespace vit {
using namespace internal;
namespace {

constexpr std::size_t kWidth = 16, kPatch = 14, kDepth = 4, kFeatures = 8, kHidden = 6;
constexpr std::size_t kChannels[] = {4, 6, 8, 10};
constexpr const char* kOfHub = R"({"encoder": "vits", "features": 8, "out_channels": [4, 6, 8, 10]})";

class Writer {
 public:
  void add(const std::string& name, std::vector<std::size_t> shape) {
    std::size_t size = 1;
    for (const std::size_t edge : shape) size *= edge;
    std::normal_distribution<float> normal(0.0f, 0.2f);
    std::vector<float> values(size);
    for (float& value : values) value = normal(random_);
    names_.push_back(name);
    shapes_.push_back(std::move(shape));
    values_.push_back(std::move(values));
  }
  void add_pair(const std::string& name, std::vector<std::size_t> shape, bool outputs_first = true) {
    const std::size_t outputs = outputs_first ? shape[0] : shape[1];
    add(name + ".weight", std::move(shape));
    add(name + ".bias", {outputs});
  }
  void write(const std::filesystem::path& path) const {
    std::vector<TensorToWrite> tensors;
    for (std::size_t i = 0; i < names_.size(); ++i)
      tensors.push_back({names_[i], Dtype::f32, shapes_[i], std::as_bytes(std::span(values_[i]))});
    write_safetensors(path, tensors);
  }

 private:
  std::mt19937 random_{5};
  std::vector<std::string> names_;
  std::vector<std::vector<std::size_t>> shapes_;
  std::vector<std::vector<float>> values_;
};

/// DINOv2 under `backbone` with a DPT head under `head`.
Writer depth_anything(const std::string& backbone, const std::string& head, bool has_sky,
                      bool gated = false) {
  Writer out;
  out.add(backbone + "cls_token", {1, 1, kWidth});
  out.add(backbone + "mask_token", {1, kWidth});
  out.add(backbone + "pos_embed", {1, 1 + 4, kWidth});
  out.add_pair(backbone + "patch_embed.proj", {kWidth, 3, kPatch, kPatch});
  for (std::size_t i = 0; i < kDepth; ++i) {
    const std::string block = backbone + "blocks." + std::to_string(i) + ".";
    out.add_pair(block + "norm1", {kWidth});
    out.add_pair(block + "attn.qkv", {3 * kWidth, kWidth});
    out.add_pair(block + "attn.proj", {kWidth, kWidth});
    out.add(block + "ls1.gamma", {kWidth});
    out.add_pair(block + "norm2", {kWidth});
    out.add_pair(block + (gated ? "mlp.w12" : "mlp.fc1"), {(gated ? 6 : 4) * kWidth, kWidth});
    out.add_pair(block + (gated ? "mlp.w3" : "mlp.fc2"), {kWidth, (gated ? 3 : 4) * kWidth});
    out.add(block + "ls2.gamma", {kWidth});
  }
  out.add_pair(backbone + "norm", {kWidth});
  for (std::size_t i = 0; i < 4; ++i) {
    const std::string number = std::to_string(i), layer = std::to_string(i + 1);
    out.add_pair(head + "projects." + number, {kChannels[i], kWidth, 1, 1});
    out.add(head + "scratch.layer" + layer + "_rn.weight", {kFeatures, kChannels[i], 3, 3});
    const std::string fusion = head + "scratch.refinenet" + layer + ".";
    for (const char* unit : {"resConfUnit1", "resConfUnit2"}) {
      for (const char* convolution : {".conv1", ".conv2"})
        out.add_pair(fusion + unit + convolution, {kFeatures, kFeatures, 3, 3});
    }
    out.add_pair(fusion + "out_conv", {kFeatures, kFeatures, 1, 1});
  }
  out.add_pair(head + "resize_layers.0", {kChannels[0], kChannels[0], 4, 4}, false);
  out.add_pair(head + "resize_layers.1", {kChannels[1], kChannels[1], 2, 2}, false);
  out.add_pair(head + "resize_layers.3", {kChannels[3], kChannels[3], 3, 3});
  out.add_pair(head + "scratch.output_conv1", {kFeatures / 2, kFeatures, 3, 3});
  out.add_pair(head + "scratch.output_conv2.0", {kHidden, kFeatures / 2, 3, 3});
  out.add_pair(head + "scratch.output_conv2.2", {1, kHidden, 1, 1});
  if (has_sky) {
    out.add_pair(head + "scratch.sky_output_conv2.0", {kHidden, kFeatures / 2, 3, 3});
    out.add_pair(head + "scratch.sky_output_conv2.2", {1, kHidden, 1, 1});
  }
  return out;
}

std::vector<std::size_t> taps_of(const Model& model) {
  REQUIRE(model.dense_config() != nullptr);
  return model.dense_config()->branches.front().taps;
}

}  // namespace

TEST_CASE("depth anything: V1's folder of the hub, whose config.json has the arguments of its class") {
  const test::TemporaryFolder folder;
  depth_anything("pretrained.", "depth_head.", false).write(folder / "model.safetensors");
  ModelOptions options{.overrides = {{"num_heads", "2"}}};
  // without its config.json the file does not say which release it is
  CHECK_ERROR(ErrorKind::argument, ("model.safetensors", "V1 and V2"), Model::load(folder.path(), options));
  folder.write("config.json", kOfHub);
  CHECK(taps_of(*Model::load(folder.path(), options)) == std::vector<std::size_t>{0, 1, 2, 3});
  // a library's config.json is not passed over
  folder.write("config.json", R"({"model_type": "zoedepth"})");
  CHECK_ERROR(ErrorKind::unsupported, ("model.safetensors", "zoedepth"), Model::load(folder.path(), options));
}

TEST_CASE("depth anything: the giant's gates and values are one matrix") {
  const test::TemporaryFolder folder;
  const std::filesystem::path file = folder / "depth_anything_v2_vitg.safetensors";
  depth_anything("pretrained.", "depth_head.", false, /*gated=*/true).write(file);
  ModelOptions options{.overrides = {{"num_heads", "2"}}};
  options.dense.taps = {0, 1, 2, 3};
  const auto model = Model::load(file, options);
  CHECK(model->config().mlp.kind == MlpKind::gated);
  CHECK(model->config().mlp.dim == 3 * kWidth);
}

TEST_CASE("depth anything: V3's folder of the hub, whose config.json has the name of a preset") {
  const test::TemporaryFolder folder;
  depth_anything("model.backbone.pretrained.", "model.head.", true).write(folder / "model.safetensors");
  folder.write("config.json", R"({"model_name": "da3mono-large", "config": {"head": {"output_dim": 1}}})");
  ModelOptions options{.overrides = {{"num_heads", "2"}}};
  options.dense.taps = {0, 1, 2, 3};
  const auto model = Model::load(folder.path(), options);
  CHECK(taps_of(*model) == options.dense.taps);
  CHECK(model->dense_config()->sky_is_farthest);
}

TEST_CASE("depth anything: registers do not change how the position table is resampled") {
  for (const bool third : {false, true}) {
    CAPTURE(third);
    const std::string backbone = third ? "model.backbone.pretrained." : "pretrained.";
    Writer model = depth_anything(backbone, third ? "model.head." : "depth_head.", third);
    model.add(backbone + "register_tokens", {1, 4, kWidth});
    const test::TemporaryFolder folder;
    const std::filesystem::path file = folder / "depth_anything_v2_vits.safetensors";
    model.write(file);
    ModelOptions options{.overrides = {{"num_heads", "2"}}};
    options.dense.taps = {0, 1, 2, 3};
    CHECK(Model::load(file, options)->config().position.resampling == TableResampling::bicubic_plus_tenth);
  }
}

}  // namespace vit
