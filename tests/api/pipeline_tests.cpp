// From a image file to a label and to patch features, through the public API.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "tests/support/checkpoint_files.h"
#include "tests/support/numbers.h"
#include "tests/support/shared_data.h"
#include "tests/support/tiny_model.h"
#include "vit/io/json.h"
#include "vit/io/safetensors.h"
#include "vit/kernels/kernels.h"
#include "vit/vit.h"

namespace vit {

using namespace internal;

namespace {

namespace fs = std::filesystem;

constexpr const char* kModel = "models/deit-tiny-patch16-224";  // of the shared folder
constexpr const char* kPhotographs = "images/imagenet-sample";  // as well

/// Top five of 60 photographs by PyTorch in float64 after one of the two preprocessors of transformers 5.23.
void check_imagenet_sample(const char* backend, ResamplerChoice resampler) {
  const fs::path model_path = test::shared_path(kModel), images = test::shared_path(kPhotographs);
  const Json expected = load_json(test::data_path("golden/deit_tiny_imagenet_sample.json")).at(backend);
  const Classifier classifier(model_path, {.resampler = resampler});
  Session session(classifier.model());
  double largest = 0.0;
  for (std::size_t item = 0; item < expected.size(); ++item) {
    const Json reference = expected[item];
    const std::string name(reference.key());
    CAPTURE(name);
    const Image image = session.decode(images / name);
    const auto top = classifier.classify(session, image, 5);
    REQUIRE(top.size() == 5);
    for (std::size_t i = 0; i < 5; ++i) {
      CHECK(top[i].index == reference.at("top5")[i].as_size());
      largest = std::max(largest,
                         std::abs(static_cast<double>(top[i].logit) - reference.at("logits")[i].as_double()));
    }
  }
  CHECK(expected.size() == 60);
  CHECK(largest < 1e-3);
}

/// Best classes of the same photographs in fewer bits.
void check_classes_kept(const char* backend, ResamplerChoice resampler) {
  const fs::path model_path = test::shared_path(kModel), images = test::shared_path(kPhotographs);
  CAPTURE(backend);
  const Json expected = load_json(test::data_path("golden/deit_tiny_imagenet_sample.json")).at(backend);
  const auto count_same = [&](Precision precision) {
    const Classifier classifier(model_path, {.resampler = resampler, .precision = precision});
    Session session(classifier.model());
    std::size_t same = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const auto top = classifier.classify(session, images / expected[i].key(), 1);
      same += top.at(0).index == expected[i].at("top5")[0].as_size();
    }
    return same;
  };
  CHECK(expected.size() == 60);
  CHECK(count_same(Precision::bfloat16) == 60);
  CHECK(count_same(Precision::int8) >= 59);  // the two best logits of one photograph are 0.01 apart
}

}  // namespace

TEST_CASE("pipeline: real photographs get PyTorch's labels, torchvision's resampling") {
  SKIP_WITHOUT_SHARED(kModel);
  SKIP_WITHOUT_SHARED(kPhotographs);
  check_imagenet_sample("torchvision", ResamplerChoice::automatic);
}

TEST_CASE("pipeline: real photographs get PyTorch's labels, Pillow's resampling") {
  SKIP_WITHOUT_SHARED(kModel);
  SKIP_WITHOUT_SHARED(kPhotographs);
  check_imagenet_sample("pil", ResamplerChoice::pillow);
}

TEST_CASE("pipeline: bfloat16 and int8 keep the best class of real photographs") {
  SKIP_WITHOUT_SHARED(kModel);
  SKIP_WITHOUT_SHARED(kPhotographs);
  check_classes_kept("torchvision", ResamplerChoice::automatic);
  check_classes_kept("pil", ResamplerChoice::pillow);
}

TEST_CASE("pipeline: images of different sizes run in one call, each as if run separately") {
  const auto model = Model::load(test::data_path("model"));
  Session session(model, {.threads = 2, .input_size = {.kind = InputSize::Kind::native}});
  const Image wide(32, 64), square(48, 48), small(32, 32);
  const std::vector<ImageView> images{wide, square, small, wide};
  const Request request{Output::pooled, Output::tokens};
  const auto together = session.run(images, request);
  REQUIRE(together.size() == 4);
  for (std::size_t i = 0; i < images.size(); ++i) {
    const auto alone = session.run(std::span(&images[i], 1), request);
    CHECK(together[i].grid() == alone[0].grid());
    CHECK(std::ranges::equal(together[i].pooled(), alone[0].pooled()));
    CHECK(std::ranges::equal(together[i].tokens().flat(), alone[0].tokens().flat()));
    CHECK(together[i].patches().dim(0) == images[i].height() / model->config().patch.size);
    CHECK(together[i].patches().dim(1) == images[i].width() / model->config().patch.size);
  }
}

TEST_CASE("pipeline: NaFlex gives every image the grid of its own shape") {
  Session session(Model::load(test::data_path("golden/models/hf-siglip2-naflex")), {.threads = 1});
  const Image wide(60, 90), tall(100, 41), square(30, 30);
  const ImageView images[] = {wide, tall, square, tall};
  const Request request{Output::pooled, Output::tokens};
  const BatchOutputs together = session.run(images, request);
  const GridSize grids[] = {{3, 5}, {5, 3}, {4, 4}, {5, 3}};
  for (std::size_t i = 0; i < std::size(images); ++i) {
    CHECK(together[i].grid() == grids[i]);
    const BatchOutputs alone = session.run(std::span(&images[i], 1), request);
    CHECK(std::ranges::equal(together[i].pooled(), alone[0].pooled()));
  }
}

TEST_CASE("pipeline: NaFlex gives transformers' vectors for images of different shape") {
  SKIP_WITHOUT_SHARED("fixtures/text/hf-siglip2-naflex");
  const fs::path folder = test::shared_path("fixtures/text/hf-siglip2-naflex");
  const TensorFile expected = open_safetensors(folder / "expected.safetensors");
  Session session(Model::load(folder), {.threads = 2});
  std::vector<Image> pictures;
  for (const char* const name : {"0.png", "1.png"}) {
    pictures.push_back(session.decode(folder / "pictures" / name));
    const Tensor<float> pixels = session.preprocessor().run(pictures.back());
    const Tensor<float> wanted = to_float(expected.at("picture." + std::string(name).substr(0, 1)));
    CHECK(std::ranges::equal(pixels.flat(), wanted.flat()));
  }
  const ImageView images[] = {pictures[0], pictures[1]};
  const BatchOutputs found = session.run(images, {Output::pooled});
  const Tensor<float> single = to_float(expected.at("image"));
  const TensorEntry& exact = expected.at("image.f64");
  const std::vector<double> values = to_double(exact);
  double scale = 1.0;
  for (const double value : values) scale = std::max(scale, std::abs(value));
  const double own = test::largest_difference(single.flat(), values);
  for (std::size_t i = 0; i < 2; ++i) {
    const std::span<const double> row(values.data() + i * exact.shape[1], exact.shape[1]);
    CHECK(test::largest_difference(found[i].pooled(), row) <= std::max(2.0 * own, 3e-6 * scale));
  }
}

TEST_CASE("pipeline: a missing model, a missing file and a wrong kernel name are errors that name them") {
  CHECK_THROWS_WITH_AS(Model::load("/no/such/model"), doctest::Contains("/no/such/model"), Error);
  CHECK_THROWS_WITH_AS(Model::load(test::data_path("model"), {.kernels = "abacus"}),
                       doctest::Contains("abacus"), Error);
  CHECK_THROWS_WITH_AS(decode_file("/no/such.png"), doctest::Contains("/no/such.png"), Error);
}

TEST_CASE("pipeline: without rules for images a model runs preprocessed pixels, and a image is an Error") {
  const fs::path whole = test::data_path("golden/models/hf-vit");
  test::ScratchFolder folder("no_rules");
  test::FileCopy(whole).write_to(folder.path());
  Session session(Model::load(folder.path()), {.threads = 1});
  Session reference(Model::load(whole), {.threads = 1});
  const std::string cause = folder.path().string() + ": no file defines the preprocessing";

  const ModelConfig& config = session.model().config();
  const Tensor<float> pixels = test::random_pixels(1, config.image.height, config.image.width);
  const TensorView<const float> views[] = {pixels.view()[0]};
  const BatchOutputs without_rules = session.run_pixels(views, {Output::logits});
  const BatchOutputs with_rules = reference.run_pixels(views, {Output::logits});
  CHECK(std::ranges::equal(without_rules[0].logits(), with_rules[0].logits()));

  const Image picture(40, 40);
  const ImageView images[] = {picture};
  CHECK_THROWS_WITH_AS(session.run(images, {Output::logits}), doctest::Contains(cause.c_str()), Error);
  CHECK_THROWS_WITH_AS(session.preprocessor(), doctest::Contains(cause.c_str()), Error);
  CHECK_THROWS_WITH_AS(session.model().preprocess_config(), doctest::Contains(cause.c_str()), Error);
  CHECK(!session.model().has_preprocess_config());
  CHECK(reference.model().has_preprocess_config());

  test::write_text(folder.path() / "preprocessor_config.json", "{");
  CHECK_THROWS_WITH_AS(Model::load(folder.path()), doctest::Contains("preprocessor_config.json"), Error);
}

TEST_CASE("pipeline: results that were not requested are errors, not empty views") {
  Outputs outputs;
  CHECK_THROWS_AS(static_cast<void>(outputs[0]), Error);
  const ImageOutputs empty(outputs, 0);
  CHECK_THROWS_AS(static_cast<void>(empty.logits()), Error);
  CHECK_THROWS_AS(static_cast<void>(empty.patches()), Error);
  CHECK_THROWS_AS(static_cast<void>(empty.class_token()), Error);
  CHECK_THROWS_AS(static_cast<void>(empty.block(0)), Error);
  const BatchOutputs none;
  CHECK_THROWS_AS(static_cast<void>(none[0]), Error);
}

TEST_CASE("pipeline: a register is not a class token") {
  const auto first_token = [](std::shared_ptr<const Model> model) {
    FeatureExtractor extractor(std::move(model), {.threads = 1});
    const Image image(64, 64);
    const ImageOutputs outputs = extractor.extract(image.view());
    CHECK(outputs.num_prefix_tokens() == 1);
    return outputs.class_token().size();
  };
  const ModelOptions small{.overrides = {{"depth", "1"}, {"embed_dim", "48"}, {"num_heads", "2"}}};
  CHECK(first_token(Model::random("vit_small_patch16_rope_224", small)) == 48);
  CHECK_THROWS_WITH_AS(first_token(Model::random("vit_medium_patch16_rope_reg1_gap_256", small)),
                       doctest::Contains("no class token"), Error);
}

TEST_CASE("pipeline: the convenience classes take options of the model") {
  const std::string path = test::data_path("golden/models/rope-axial").string();
  const Classifier classifier(path, {.precision = Precision::bfloat16});
  CHECK(classifier.model()->precision() == Precision::bfloat16);
  FeatureExtractor extractor(path, {.threads = 1}, {.precision = Precision::int8});
  CHECK(extractor.session().model().precision() == Precision::int8);
}

}  // namespace vit
