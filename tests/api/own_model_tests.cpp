// Models of the caller's own: a configuration with random weights or tensors in memory, a checkpoint in
// memory, and the tensors of a model read back.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "tests/support/allocation_count.h"
#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/rng.h"
#include "tests/support/shared_data.h"
#include "vit/vit.h"

namespace vit {
namespace {

/// All tensors of a model by their names.
std::map<std::string, Tensor<float>> tensors_of(const Model& model) {
  std::map<std::string, Tensor<float>> out;
  for (const std::string& name : model.tensor_names()) out.emplace(name, model.tensor(name));
  return out;
}

TensorViews views_of(const std::map<std::string, Tensor<float>>& tensors) {
  return {tensors.begin(), tensors.end()};
}

std::vector<float> logits_of(const std::shared_ptr<const Model>& model) {
  const ModelConfig& config = model->config();
  test::Rng rng(4);
  const Tensor<float> pixels =
      rng.tensor({1, config.image.num_channels, config.image.height, config.image.width});
  Session session(model, {.threads = 1});
  Outputs outputs;
  session.forward(pixels, Output::logits, outputs);
  return {outputs[0].logits().begin(), outputs[0].logits().end()};
}

/// Axial RoPE, gated MLP, norms of heads and branches, attention pooling.
ModelConfig own_config() {
  ModelConfig config;
  config.embed_dim = 32;
  config.image = {.height = 24, .width = 16};
  config.patch.size = 8;
  config.tokens.num_registers = 2;
  config.position.rope = RopeKind::axial;
  config.attention.num_heads = 2;
  config.attention.qk_norm = NormKind::rms;
  config.mlp = {.kind = MlpKind::gated, .dim = 40, .activation = Activation::silu};
  config.encoder.depth = 2;
  config.encoder.block_norms = BlockNorms::before_and_after;
  config.encoder.layer_scale = true;
  config.head.pooling = Pooling::attention;
  config.head.attention_pool = AttentionPoolConfig{.num_heads = 4, .mlp_dim = 48};
  config.head.num_classes = 5;
  return config;
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

}  // namespace

TEST_CASE("own model: a configuration with random weights, and its tensors as another model") {
  const auto random = Model::random(own_config());
  CHECK(random->config().head.num_classes == 5);
  CHECK_FALSE(random->has_preprocess_config());
  const std::vector<float> expected = logits_of(random);
  CHECK(expected == logits_of(Model::random(own_config())));
  auto tensors = tensors_of(*random);
  CHECK(tensors.at("blocks.1.qkv.weight").shape() == Shape{96, 32});
  const auto copied = Model::from_tensors(own_config(), views_of(tensors));
  CHECK(logits_of(copied) == expected);
  CHECK(copied->report().num_parameters == random->report().num_parameters);
  CHECK(copied->tensor_names() == random->tensor_names());

  // as the weight of a convolution, and with gaps between rows
  TensorViews views = views_of(tensors);
  const Tensor<float>& patch = tensors.at("patch.weight");
  views["patch.weight"] = {patch.data(), Shape{32, 3, 8, 8}};
  const Tensor<float>& fc1 = tensors.at("blocks.0.fc1.weight");
  std::vector<float> wide(fc1.dim(0) * 37, 9.0f);
  for (std::size_t row = 0; row < fc1.dim(0); ++row)
    std::copy_n(fc1.view().row(row), 32, wide.data() + row * 37);
  views["blocks.0.fc1.weight"] = {wide.data(), fc1.shape(), 37};
  const auto strided = Model::from_tensors(own_config(), views);
  CHECK(logits_of(strided) == expected);

  // another number is another model
  tensors.at("head.bias").data()[0] += 1.0f;
  const auto other = Model::from_tensors(own_config(), views_of(tensors));
  CHECK(other->report().fingerprint != copied->report().fingerprint);
  CHECK(logits_of(other) != expected);
  ModelConfig wider = own_config();
  wider.mlp.dim = 48;
  CHECK(Model::random(wider)->report().fingerprint != random->report().fingerprint);
}

TEST_CASE("own model: random weights suit every configuration that is valid") {
  ModelConfig config = own_config();
  config.position.rope = RopeKind::axial;
  config.position.frequencies = AxisFrequencies::stored;
  CHECK(Model::random(config)->config().position.frequencies == AxisFrequencies::stored);
  config.position.rope_scaling = RopeScaling{.rule = RopeScalingRule::yarn, .factor = 2, .beta_fast = -1};
  CHECK_ERROR(ErrorKind::argument, ("beta_fast"), Model::random(config));
}

TEST_CASE("own model: its parts have the bits of a Session") {
  for (const bool parallel : {false, true}) {
    ModelConfig config = own_config();
    config.encoder.parallel = parallel;
    config.attention.norm = config.mlp.norm = parallel;
    const auto model = Model::random(config);
    const auto tensors = tensors_of(*model);
    const auto linear = [&](const std::string& name) {
      return LinearTensors{tensors.at(name + ".weight"), tensors.at(name + ".bias").flat()};
    };
    const auto norm = [&](const std::string& name) {
      const auto gamma = tensors.find(name + ".gamma"), beta = tensors.find(name + ".beta");
      if (gamma == tensors.end()) return NormTensors{};
      return NormTensors{gamma->second.flat(),
                         beta == tensors.end() ? std::span<const float>() : beta->second.flat(), 1e-6f};
    };
    std::vector<BlockTensors> blocks;
    for (std::size_t i = 0; i < config.encoder.depth; ++i) {
      const std::string b = "blocks." + std::to_string(i) + ".";
      blocks.push_back({.norm1 = norm(b + "norm1"),
                        .qkv = linear(b + "qkv"),
                        .q_norm = norm(b + "q_norm"),
                        .k_norm = norm(b + "k_norm"),
                        .heads_norm = norm(b + "attention_norm"),
                        .proj = linear(b + "proj"),
                        .end1 = norm(b + "branch_norm1"),
                        .scale1 = tensors.at(b + "scale1").flat(),
                        .norm2 = norm(b + "norm2"),
                        .gate = linear(b + "gate"),
                        .fc1 = linear(b + "fc1"),
                        .hidden_norm = norm(b + "mlp_norm"),
                        .fc2 = linear(b + "fc2"),
                        .end2 = norm(b + "branch_norm2"),
                        .scale2 = tensors.at(b + "scale2").flat()});
    }
    const Encoder encoder(blocks, {.num_heads = 2, .activation = Activation::silu});
    HeadTensors of_head{.norm = norm("norm"),
                        .probe = tensors.at("pool.probe").flat(),
                        .q = linear("pool.q"),
                        .kv = linear("pool.kv"),
                        .proj = linear("pool.proj"),
                        .pool_norm = norm("pool.norm"),
                        .fc1 = linear("pool.fc1"),
                        .fc2 = linear("pool.fc2"),
                        .classifier = linear("head")};
    const HeadOptions options{
        .embed_dim = 32, .pooling = Pooling::attention, .num_prefix = 3, .num_heads = 4};
    const Head head(of_head, options);
    CHECK(head.pooled_dim() == 32);
    CHECK(head.num_classes() == 5);

    test::Rng rng(6);
    const Tensor<float> pixels = rng.tensor({2, 3, 24, 16}), patches = patchify(pixels, 8);
    const Linear embed(tensors.at("patch.weight"), tensors.at("patch.bias").flat());
    Tensor<float> x(Shape{2, 9, 32}), pooled(Shape{2, 32}), logits(Shape{2, 5});
    const auto table = position::build_axial_table<float>(
        position::grid_coords({3, 2}),
        position::RopeFrequencies::from_theta(position::num_axial_frequencies(16), config.position.theta));
    Workspace memory;
    const auto run = [&](int threads) {
      for (std::size_t image = 0; image < 2; ++image) {
        std::ranges::copy(tensors.at("class_token").flat(), x.view()[image].data());
        std::ranges::copy(tensors.at("register_tokens").flat(), x.view()[image].row(1));
        embed.forward(patches.view()[image], x.view()[image].part(3, 6), {.threads = threads});
      }
      encoder.forward(x, table, 3, memory, threads);
      head.forward(x, pooled, logits, memory, threads);
    };
    Session session(model);
    Outputs outputs;
    session.forward(pixels, {Output::logits, Output::pooled, Output::tokens}, outputs);
    for (const int threads : {1, 2}) {
      run(threads);
      for (std::size_t image = 0; image < 2; ++image) {
        CHECK(std::ranges::equal(x.view()[image].flat(), outputs[image].tokens().flat()));
        CHECK(std::ranges::equal(pooled.view()[image].flat(), outputs[image].pooled()));
        CHECK(std::ranges::equal(logits.view()[image].flat(), outputs[image].logits()));
      }
      const std::size_t before = test::allocation_count();
      run(threads);
      // an encoder and a head of other shapes take turns in the memory
      CHECK(test::allocation_count() == before);
    }
  }
}

TEST_CASE("own model: a head pools as its rule says") {
  test::Rng rng(9);
  const Tensor<float> weight = rng.tensor({3, 4}), wide = rng.tensor({3, 8});
  const Tensor<float> tokens = rng.tensor({2, 5, 4});
  Workspace memory;
  const auto pooled_by = [&](Pooling pooling) {
    const bool both = pooling == Pooling::class_and_patch_mean;
    const Head head({.classifier = {.weight = both ? wide : weight}},
                    {.embed_dim = 4, .pooling = pooling, .num_prefix = 2});
    Tensor<float> x(tokens.shape()), pooled(Shape{2, head.pooled_dim()}), logits(Shape{2, 3});
    std::ranges::copy(tokens.flat(), x.data());
    head.forward(x, pooled, logits, memory);
    Tensor<float> expected(Shape{2, 3});
    Linear(both ? wide : weight).forward(pooled, expected);
    CHECK(std::ranges::equal(logits.flat(), expected.flat()));
    return std::vector<float>(pooled.view()[1].flat().begin(), pooled.view()[1].flat().end());
  };
  const TensorView<const float> second = tokens.view()[1];
  const auto mean = [&](std::size_t first, std::size_t last) {
    std::vector<float> out;
    for (std::size_t c = 0; c < 4; ++c) {
      double sum = 0;
      for (std::size_t t = first; t < last; ++t) sum += static_cast<double>(second.row(t)[c]);
      out.push_back(static_cast<float>(sum / static_cast<double>(last - first)));
    }
    return out;
  };
  CHECK(pooled_by(Pooling::class_token) == mean(0, 1));
  CHECK(pooled_by(Pooling::first_token) == mean(0, 1));
  CHECK(pooled_by(Pooling::class_and_distillation) == mean(0, 2));
  CHECK(pooled_by(Pooling::prefix_mean) == mean(0, 2));
  CHECK(pooled_by(Pooling::patch_mean) == mean(2, 5));
  std::vector<float> both = mean(0, 1);
  for (const float value : mean(2, 5)) both.push_back(value);
  CHECK(pooled_by(Pooling::class_and_patch_mean) == both);
}

TEST_CASE("own model: preprocessing is the caller's, or that of the architecture") {
  PreprocessConfig rules;
  rules.mean = rules.std = {0.5, 0.5, 0.5};
  rules.resize = ResizeRule::squash;
  rules.resize_height = rules.crop_height = 24;
  rules.resize_width = rules.crop_width = 16;
  const auto model = Model::random(own_config(), {}, rules);
  Session session(model);
  Outputs outputs;
  const Image image(30, 30);
  session.run(image.view(), Output::logits, outputs);
  CHECK(outputs[0].logits().size() == 5);
  CHECK_THROWS_AS(Session(Model::random(own_config())).run(image.view(), Output::logits, outputs),
                  const Error&);
  rules.mean = {0.5, 0.5};
  CHECK(test::message_of([&] {
          Model::random(own_config(), {}, rules);
        }).find("mean and standard deviation have 2 and 3 numbers") != std::string::npos);
  ModelConfig named = own_config();
  named.architecture = "vit_tiny_patch16_224";
  CHECK(Model::random(named)->has_preprocess_config());
}

TEST_CASE("own model: what is missing, misshaped or left over is named") {
  const auto tensors = tensors_of(*Model::random(own_config()));
  TensorViews views = views_of(tensors);
  const Tensor<float> small(Shape{3});
  const auto message = [&] { return test::message_of([&] { Model::from_tensors(own_config(), views); }); };
  views.erase("norm.gamma");
  CHECK(message().find("missing: \"norm.gamma\" (32)") != std::string::npos);
  views = views_of(tensors);
  views["norm.gamma"] = small;
  CHECK(message().find("wrong: \"norm.gamma\" has shape (3), expected (32)") != std::string::npos);
  views["norm.gamma"] = {};
  CHECK(message().find("wrong: \"norm.gamma\"") != std::string::npos);
  views = views_of(tensors);
  views["norm.delta"] = small;
  CHECK(message().find("unexpected: \"norm.delta\"") != std::string::npos);
  CHECK_THROWS_AS(Model::from_tensors(own_config(), {}), const Error&);
  ModelConfig wrong = own_config();
  wrong.attention.num_heads = 0;
  CHECK_THROWS_AS(Model::random(wrong), const Error&);
  CHECK_THROWS_AS(Model::from_tensors(wrong, views), const Error&);

  const auto model = Model::from_tensors(own_config(), views_of(tensors));
  CHECK(test::message_of([&] { model->tensor("norm.gamma"); }).find("does not keep them") !=
        std::string::npos);
  CHECK(test::message_of([&] { model->tensor("norm"); }).find("has no tensor \"norm\"") != std::string::npos);
}

TEST_CASE("own model: a checkpoint in memory is the one of its folder") {
  const std::filesystem::path folder = test::source_path("data/model");
  std::string weights = test::read_text(folder / "model.safetensors");
  const std::map<std::string, std::string> files{{"config.json", test::read_text(folder / "config.json")}};
  const auto stored = Model::load(folder);
  auto model = Model::load({.weights = bytes_of(weights), .files = files});
  std::ranges::fill(weights, 'x');  // no longer needed
  CHECK(model->report().fingerprint == stored->report().fingerprint);
  CHECK(logits_of(model) == logits_of(stored));
  CHECK(model->has_preprocess_config());
  CHECK(model->label(0) == stored->label(0));
  CHECK_THROWS_AS(model->tensor("norm1.gamma"), const Error&);

  weights = test::read_text(folder / "model.safetensors");
  CHECK_THROWS_AS(Model::load({.weights = bytes_of(weights)}), const Error&);  // nothing describes it
  CHECK_THROWS_AS(Model::load(ModelBytes{}), const Error&);
  CHECK_THROWS_AS(Model::load({.weights = bytes_of(weights), .files = {{"config.json", "{"}}}), const Error&);
  CHECK_THROWS_AS(Model::load({.weights = bytes_of(weights), .files = {{"config.json", "[]"}}}),
                  const Error&);
  for (const std::size_t size : {std::size_t{1}, std::size_t{8}, std::size_t{5000}, weights.size() - 1}) {
    const std::string message =
        test::message_of([&] { Model::load({.weights = bytes_of(weights).first(size), .files = files}); });
    CHECK(message.find("model.safetensors") != std::string::npos);
  }
}

TEST_CASE("own model: tensors are read from the file that was loaded") {
  const test::TemporaryFolder folder;
  for (const char* const name : {"model.safetensors", "config.json"})
    std::filesystem::copy_file(test::source_path(std::string("data/model/") + name), folder / name);
  const auto model = Model::load(folder.path());
  const Tensor<float> qkv = model->tensor("blocks.0.qkv.weight");
  const auto file = read_safetensors(folder / "model.safetensors");
  CHECK(std::ranges::equal(qkv.flat(), file.at("blocks.0.attn.qkv.weight").flat()));
  CHECK(logits_of(Model::from_tensors(model->config(), views_of(tensors_of(*model)))) == logits_of(model));

  const auto late = Model::load(folder.path());
  std::string changed = test::read_text(folder / "model.safetensors");
  changed.back() = static_cast<char>(changed.back() + 1);
  test::write_text(folder / "model.safetensors", changed);
  CHECK(test::message_of([&] { late->tensor("head.weight"); }).find("another model") != std::string::npos);
}

}  // namespace vit
