// Wrong calls of every part of the public interface, by kind: null, empty, moved from, of a wrong shape or
// rank, not finite, zero, negative, huge. Each is a vit::Error of the kind that its header states, and the
// next right call works.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/shared_data.h"
#include "vit/position/conventions.h"
#include "vit/position/normal_form.h"
#include "vit/position/tables.h"
#include "vit/vit.h"

namespace vit {
namespace {

using position::RopeFrequencies;

constexpr std::size_t kHuge = std::size_t{1} << 60;
constexpr std::size_t kWrapped = std::numeric_limits<std::size_t>::max();  // + 1 is 0
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// `call` throws an Error of this kind and nothing else.
template <typename Call>
void wrong(const std::string& what, const Call& call, ErrorKind kind = ErrorKind::argument) {
  CAPTURE(what);
  try {
    call();
    FAIL_CHECK("is accepted: " << what);
  } catch (const Error& error) {
    CAPTURE(std::string(error.what()));
    CHECK(error.kind() == kind);
    CHECK(error.message().size() > 5);
  } catch (const std::exception& error) {
    FAIL_CHECK("another exception: " << what << ": " << error.what());
  }
}

std::shared_ptr<const Model> tiny_model() {
  static const auto model = Model::load(test::data_path("golden/models/rope-axial"));
  return model;
}

/// An object that was moved from.
template <typename T>
T& emptied(T& object) {
  const T taken = std::move(object);
  return object;
}

}  // namespace

TEST_CASE("wrong calls: loading") {
  wrong(
      "load of no path", [] { Model::load(std::filesystem::path()); }, ErrorKind::io);
  wrong(
      "load of a missing file", [] { Model::load("absent"); }, ErrorKind::io);
  wrong("load of no bytes", [] { Model::load(ModelBytes{}); });
  wrong("random of no name", [] { Model::random(""); });
  wrong("random of an unknown name", [] { Model::random("vit_enormous"); });
  wrong("random of no blocks", [] {
    ModelConfig config;
    config.encoder.depth = 0;
    Model::random(config);
  });
  wrong("random of a huge width", [] {
    ModelConfig config;
    config.embed_dim = kHuge;
    Model::random(config);
  });
  wrong(
      "from_tensors of none", [] { Model::from_tensors(ModelConfig(), {}); }, ErrorKind::mismatch);
  wrong("unknown kernels", [] { Model::random("vit_tiny_patch16_224", {.kernels = "none"}); });
  wrong("tensor of no name", [] { tiny_model()->tensor(""); });
  wrong("a grid of nothing", [] { tiny_model()->grid_for(0, 0); });
  wrong("a huge grid", [] { tiny_model()->grid_for(kHuge, kHuge); });
  wrong("no planes", [] { tiny_model()->steps_for(0); });
  wrong("means of a wrong count", [] { Model::random("vit_tiny_patch16_224", {.mean = {0.5, 0.5}}); });
  wrong("a deviation of 0", [] { Session(Model::random("vit_tiny_patch16_224", {.std = {0.0}})); });
  wrong("a mean that is no number", [] { Session(Model::random("vit_tiny_patch16_224", {.mean = {NAN}})); });
  Checkpoint checkpoint(test::data_path("golden/models/rope-axial"));
  wrong(
      "text score without texts", [&] { static_cast<void>(checkpoint.text_score()); }, ErrorKind::mismatch);
  wrong("a moved checkpoint", [&] { static_cast<void>(emptied(checkpoint).describe()); });
  wrong(
      "an empty safetensors path", [] { read_safetensors(""); }, ErrorKind::io);
}

TEST_CASE("wrong calls: sessions") {
  const auto model = tiny_model();
  Session session(model, {.threads = 1});
  Outputs outputs;
  BatchOutputs results;
  const Image image(64, 64);
  const Tensor<float> pixels(Shape{1, 3, 64, 64});
  wrong("no model", [] { Session(nullptr); });
  wrong("negative threads", [&] { Session(model, {.threads = -1}); });
  wrong("huge threads", [&] { Session(model, {.threads = 1 << 30}); });
  wrong("an input size of 0",
        [&] { Session(model, {.input_size = {.kind = InputSize::Kind::fixed, .height = 0, .width = 9}}); });
  wrong("a huge input size", [&] {
    Session(model, {.input_size = {.kind = InputSize::Kind::fixed, .height = kHuge, .width = kHuge}});
  });
  wrong("an empty image", [&] { session.run(ImageView(), Output::logits, outputs); });
  wrong("a moved image", [&] {
    Image moved(64, 64);
    session.run(ImageView(emptied(moved)), Output::logits, outputs);
  });
  wrong("an image of no memory", [&] { session.run(ImageView(nullptr, 9, 9), Output::logits, outputs); });
  wrong(
      "no path", [&] { session.run(std::filesystem::path(), Output::logits, outputs); }, ErrorKind::io);
  wrong(
      "no bytes", [&] { session.run(std::span<const std::byte>(), Output::logits, outputs); },
      ErrorKind::format);
  const TensorView<const float> no_pixels(nullptr, Shape{3, 64, 64});
  wrong("pixels of no memory",
        [&] { session.run_pixels(std::span(&no_pixels, 1), Output::logits, results); });
  wrong("an empty LoadFile", [&] { session.run(LoadFile{}, Output::logits, outputs); });
  wrong("an empty LoadImage", [&] { session.run(LoadImage{}, Output::logits, outputs); });
  wrong("an empty LoadPixels", [&] { session.run(LoadPixels{}, Output::logits, outputs); });
  wrong(
      "a LoadFile of nothing",
      [&] {
        session.run(LoadFile{"x", [] { return std::vector<std::byte>(); }}, Output::logits, outputs);
      },
      ErrorKind::format);
  wrong("a LoadImage of nothing",
        [&] { session.run(LoadImage([] { return Image(); }), Output::logits, outputs); });
  wrong("a LoadPixels of nothing",
        [&] { session.run(LoadPixels([] { return Tensor<float>(); }), Output::logits, outputs); });
  wrong("an output that it lacks", [&] { session.run(image.view(), Output::merged, outputs); });
  wrong("a block that it lacks", [&] { session.run(image.view(), {{Output::block, 99}}, outputs); });
  wrong("a huge block", [&] { session.run(image.view(), {{Output::attention, kHuge}}, outputs); });
  wrong("a token that it lacks", [&] {
    session.run(image.view(), {{Output::attention_query, 0, kHuge}}, outputs);
  });
  wrong("pixels of no shape", [&] { session.forward({}, Output::logits, outputs); });
  wrong("pixels of rank 3", [&] { session.forward(pixels.view()[0], Output::logits, outputs); });
  wrong("pixels of a size that overflows", [&] {
    session.forward({pixels.data(), Shape{1, 3, kHuge, 64}}, Output::logits, outputs);
  });
  wrong("an image of a size that overflows", [&] {
    const TensorView<const float> view(pixels.data(), Shape{3, kHuge, 64});
    session.run_pixels(std::span(&view, 1), Output::logits, results);
  });
  wrong("pixels of 4 planes", [&] {
    session.forward(Tensor<float>(Shape{1, 4, 64, 64}), Output::logits, outputs);
  });
  wrong("no images", [&] { session.forward(Tensor<float>(Shape{0, 3, 64, 64}), Output::logits, outputs); });
  wrong("pixels of no memory", [&] {
    session.forward({nullptr, Shape{1, 3, 64, 64}}, Output::logits, outputs);
  });
  wrong("pixels that are not finite", [&] {
    Tensor<float> damaged(Shape{1, 3, 64, 64});
    damaged.data()[9] = kNan;
    session.forward(damaged, Output::logits, outputs);
  });
  wrong("an odd size", [&] { session.forward(Tensor<float>(Shape{1, 3, 65, 64}), Output::logits, outputs); });
  wrong("pixels of rank 4 for an image", [&] {
    const TensorView<const float> view = pixels;
    session.run_pixels(std::span(&view, 1), Output::logits, results);
  });
  wrong("empty pixels for an image", [&] {
    const TensorView<const float> view;
    session.run_pixels(std::span(&view, 1), Output::logits, results);
  });
  wrong("a plan of a huge size", [&] { static_cast<void>(session.plan(1, kHuge, 64)); });
  wrong("a stream of no function",
        [&] { for_each_image(session, 1, nullptr, Output::logits, [](const StreamedImage&) {}); });
  wrong("a stream of no consumer", [&] {
    for_each_image(session, 1, [&](std::size_t) { return ImageSource(image.view()); }, Output::logits, {});
  });
  session.run(image.view(), Output::logits, outputs);
  wrong("an image that is not there", [&] { static_cast<void>(outputs[1]); });
  wrong("an output that was not requested", [&] { static_cast<void>(outputs[Output::pooled]); });
  wrong("an output of an image", [&] { static_cast<void>(outputs[0].tokens()); });
  wrong("an image of a batch", [&] { static_cast<void>(results[5]); });
  wrong("no output of that name", [&] { parse_output("poled", model->config()); });
  wrong("an empty name of an output", [&] { parse_output("", model->config()); });
  wrong("a frame that is not there", [&] { static_cast<void>(ImageOutputs(outputs, 7).frame()); });
  wrong("values that are not there", [&] { static_cast<void>(ImageOutputs(outputs, 7).logits()); });
  wrong("a huge frame", [&] { static_cast<void>(outputs[0].of({.image = {kHuge, kHuge}})); });
  wrong("moved outputs", [&] { static_cast<void>(emptied(outputs)[0].logits()); });
  wrong("the frame of moved outputs", [&] { static_cast<void>(outputs[0].frame()); });

  Session other(model);
  Session& moved = emptied(other);
  wrong("moved: run", [&] { moved.run(image.view(), Output::logits, outputs); });
  wrong("moved: forward", [&] { moved.forward(pixels, Output::logits, outputs); });
  wrong("moved: forward of rank 3", [&] { moved.forward(pixels.view()[0], Output::logits, outputs); });
  wrong("moved: images", [&] { moved.run({}, Output::logits, results); });
  wrong("moved: pixels", [&] { moved.run_pixels({}, Output::logits, results); });
  wrong("moved: model", [&] { static_cast<void>(moved.model()); });
  wrong("moved: options", [&] { static_cast<void>(moved.options()); });
  wrong("moved: preprocessor", [&] { static_cast<void>(moved.preprocessor()); });
  wrong("moved: decode", [&] { moved.decode("absent"); });
  wrong("moved: plan", [&] { static_cast<void>(moved.plan(1, 64, 64)); });
  wrong("moved: size", [&] { static_cast<void>(moved.computed_size({64, 64})); });
  wrong("moved: reserve", [&] { moved.reserve({}, Output::logits); });
  wrong("moved: limits", [&] { moved.set_limits({}); });
  wrong("moved: measure", [&] { moved.measure(pixels, Output::logits, outputs); });
  wrong("moved: bytes", [&] { static_cast<void>(moved.workspace_bytes()); });
  wrong("moved: stream", [&] {
    for_each_image(
        moved, 0, [&](std::size_t) { return ImageSource(image.view()); }, Output::logits,
        [](const StreamedImage&) {});
  });

  FeatureExtractor extractor(model);
  wrong("extractor of no model", [] { FeatureExtractor(std::shared_ptr<const Model>()); });
  wrong("moved extractor", [&] { emptied(extractor).extract(image.view()); });
  std::vector<float> vector{1.0f, 2.0f}, three(3);
  wrong("cosine of other lengths", [&] { static_cast<void>(cosine_similarity(vector, three)); });
  session.run(image.view(), Output::logits, outputs);  // right again
}

TEST_CASE("wrong calls: classifiers and heads") {
  const auto model = tiny_model();
  Session session(model);
  const Image image(64, 64);
  wrong("classifier of no model", [] { Classifier::of_model(nullptr); });
  wrong("head of no model", [] { Classifier::of_head(nullptr, {}); });
  wrong("an empty head", [&] { Classifier::of_head(model, {}); });
  wrong("texts of no model", [] { Classifier::of_texts(nullptr, ClassVectors{}, {}); });
  wrong("texts of no towers", [] { Classifier::of_texts(ImageAndText{}, {"a cat"}); });
  wrong(
      "no path", [] { static_cast<void>(Classifier{std::filesystem::path()}); }, ErrorKind::io);
  const Classifier classifier = Classifier::of_model(model);
  wrong("logits of another count", [&] { classifier.predict(std::vector<float>(3)); });
  wrong("logits that are not finite",
        [&] { classifier.predict(std::vector<float>(classifier.size(), kNan)); });
  wrong("labels of another count", [&] { classifier.with_labels({"a"}); });
  wrong("thresholds of another count",
        [&] { classifier.predict(std::vector<float>(classifier.size()), ClassSelection::above({0.5f})); });
  wrong("values of another count", [&] {
    Outputs outputs;
    session.run(image.view(), classifier.request(), outputs);
    std::vector<float> few(1);
    classifier.values(outputs[0], few);
  });
  wrong("a session of another model", [&] {
    Session other(Model::random("vit_tiny_patch16_224", {.overrides = {{"depth", "1"}}}));
    classifier.classify(other, image.view());
  });
  wrong("a moved session", [&] {
    Session moved(model);
    classifier.classify(emptied(moved), image.view());
  });
  Classifier copy = classifier;
  CHECK(emptied(copy).size() == classifier.size());  // moving is copying
  wrong("an empty head saved", [] { save_head("unwritten.safetensors", {}); });
  wrong("an empty head applied", [] {
    std::vector<float> x(3), values(2);
    ClassifierHead().apply(x, values);
  });
  const auto apply = [](const ClassifierHead& head) {
    std::vector<float> x(3), values(2);
    head.apply(x, values);
  };
  const auto functions = [] {
    ClassifierHead head;
    head.labels = {"a", "b"};
    head.mean = Tensor<float>(Shape{3});
    head.scale = Tensor<float>(Shape{3});
    std::ranges::fill(head.scale.flat(), 1.0f);
    head.coefficients = Tensor<float>(Shape{2, 3});
    head.intercepts = Tensor<float>(Shape{2});
    return head;
  };
  apply(functions());
  wrong("a head without means", [&] {
    ClassifierHead head = functions();
    head.mean = {};
    apply(head);
  });
  wrong("a head with few scales", [&] {
    ClassifierHead head = functions();
    head.scale = Tensor<float>(Shape{2});
    apply(head);
  });
  wrong("a head with few intercepts", [&] {
    ClassifierHead head = functions();
    head.intercepts = Tensor<float>(Shape{1});
    apply(head);
  });
  wrong("a head with a class without a label", [&] {
    ClassifierHead head;
    head.method = FitMethod::knn;
    head.labels = {"a", "b"};
    head.vectors = Tensor<float>(Shape{1, 3});
    head.classes = {2};
    apply(head);
  });
  wrong(
      "vectors of no path", [] { load_class_vectors(""); }, ErrorKind::io);
  wrong(
      "empty vectors",
      [] {
        std::vector<float> x(3), logits(2);
        ClassVectors().compare(x, {}, logits);
      },
      ErrorKind::mismatch);
}

TEST_CASE("wrong calls: texts") {
  wrong("encoder of no tower", [] { TextEncoder(std::shared_ptr<const TextTower>()); });
  wrong(
      "tower of no path", [] { TextTower::load(""); }, ErrorKind::io);
  wrong(
      "tower of a model without texts", [] { TextTower::load(test::data_path("golden/models/rope-axial")); },
      ErrorKind::unsupported);
  wrong(
      "tokenizer of no path", [] { Tokenizer::load(""); }, ErrorKind::io);
  const auto tower = TextTower::load(test::data_path("golden/text/openclip-siglip"));
  wrong("negative threads", [&] { TextEncoder(tower, {.threads = -1}); });
  TextEncoder encoder(tower, {.threads = 1});
  wrong("no classes", [&] { encode_classes(encoder, {}); });
  wrong("a template without a place", [&] {
    const std::vector<std::string> templates{"a photo"};
    encode_classes(encoder, {"cat"}, templates);
  });
  wrong(
      "no rows of ids", [&] { encoder.encode_ids(std::vector<TokenRow>{{}}); }, ErrorKind::mismatch);
  wrong(
      "an id beyond the vocabulary",
      [&] {
        TokenRow row = tower->tokenize("a cat");
        row.ids[0] = 1 << 30;
        encoder.encode_ids(std::vector<TokenRow>{row});
      },
      ErrorKind::mismatch);
  wrong(
      "a negative id",
      [&] {
        TokenRow row = tower->tokenize("a cat");
        row.ids[0] = -1;
        encoder.encode_ids(std::vector<TokenRow>{row});
      },
      ErrorKind::mismatch);
  wrong("a moved encoder", [&] { emptied(encoder).encode("a cat"); });
  wrong("its classes", [&] { encode_classes(encoder, {"cat"}); });
  Tokenizer tokenizer = Tokenizer::load(test::data_path("golden/text/openclip-siglip"));
  wrong("a moved tokenizer", [&] { static_cast<void>(emptied(tokenizer).encode("a cat")); });
  wrong("its size", [&] { static_cast<void>(tokenizer.vocabulary_size()); });
}

TEST_CASE("wrong calls: images") {
  wrong("pixels of nothing", [] { ImageView(nullptr, 4, 4); });
  const std::vector<std::uint8_t> bytes(64);
  wrong("a huge image", [&] { ImageView(bytes.data(), kHuge, kHuge); });
  wrong("a format that is none",
        [&] { ImageView(bytes.data(), 2, 2, {.format = static_cast<PixelFormat>(99)}); });
  wrong("a stride below a row", [&] { ImageView(bytes.data(), 2, 4, {.row_stride = 3}); });
  wrong("a new huge image", [] { Image(kHuge, kHuge); });
  wrong(
      "a file of no bytes", [] { decode_bytes({}, {}, "nothing"); }, ErrorKind::format);
  wrong(
      "no file", [] { decode_file(""); }, ErrorKind::io);
  wrong(
      "a folder", [] { decode_file(test::data_path("images")); }, ErrorKind::io);
  PreprocessConfig rules;
  rules.std = {0.0, 1.0, 1.0};
  wrong("a deviation of 0", [&] { Preprocessor{rules}; });
  rules.std = {1.0, 1.0};
  wrong("a deviation too few", [&] { Preprocessor{rules}; });
  rules.std = {1.0, NAN, 1.0};
  wrong("a deviation that is no number", [&] { Preprocessor{rules}; });
  rules = {};
  rules.crop_height = 0;
  wrong("a crop of 0", [&] { Preprocessor{rules}; });
  rules = {};
  rules.resize_height = kHuge;
  wrong("a huge size", [&] { Preprocessor{rules}; });
  const Preprocessor preprocessor{PreprocessConfig()};
  wrong("an empty image", [&] { preprocessor.run(ImageView()); });
  wrong("a wrong place", [&] {
    Tensor<float> out(Shape{3, 2, 2});
    PreprocessMemory memory;
    const Image image(9, 9);
    preprocessor.run(image, out, memory);
  });
  const Image image(9, 9);
  const Tensor<float> right = preprocessor.run(image);
  wrong("a place without memory",
        [&] { preprocessor.run(image, TensorView<float>(nullptr, right.shape())); });
  wrong("a place whose rows overlap", [&] {
    Tensor<float> out(right.shape());
    preprocessor.run(image, TensorView<float>(out.data(), out.shape(), out.dim(2) / 2));
  });
  wrong("a size of 0", [&] { static_cast<void>(preprocessor.output_size({0, 9})); });
  wrong("no frames", [&] { preprocessor.run_clip({}); });
}

TEST_CASE("wrong calls: parts") {
  Tensor<float> x(Shape{1, 4, 8}), out(Shape{1, 4, 8}), matrix(Shape{8, 8});
  Workspace memory;
  const std::vector<float> eight(8, 1.0f), three(3, 1.0f);
  const TensorView<const float> null_rows(nullptr, Shape{1, 4, 8}), none;
  wrong("patchify of nothing", [] { patchify({}, 4); });
  wrong("patchify of rank 3", [&] { patchify(x, 4); });
  wrong("patches of 0", [] { patchify(Tensor<float>(Shape{1, 3, 8, 8}), 0); });
  wrong("huge patches", [] { patchify(Tensor<float>(Shape{1, 3, 8, 8}), kHuge); });
  wrong("patches into another shape", [&] { patchify(Tensor<float>(Shape{1, 3, 8, 8}), 4, out); });
  wrong("patches into nothing", [&] {
    patchify(Tensor<float>(Shape{1, 3, 8, 8}), 4, TensorView<float>(nullptr, Shape{1, 4, 48}));
  });
  wrong("patchify on -1 threads", [&] { patchify(Tensor<float>(Shape{1, 3, 8, 8}), 4, -1); });

  wrong("linear of nothing", [] { Linear(TensorView<const float>()); });
  wrong("linear of a vector", [] { Linear(Tensor<float>(Shape{3})); });
  wrong("linear of no rows", [&] { Linear(TensorView<const float>(eight.data(), Shape{0, 2, 2, 2})); });
  wrong("a bias too short", [&] { Linear(matrix, three); });
  Linear linear(matrix);
  wrong("linear into nothing", [&] { linear.forward(x, TensorView<float>()); });
  wrong("linear from nothing", [&] { linear.forward(null_rows, out); });
  wrong("linear of other features", [&] { linear.forward(Tensor<float>(Shape{4, 3}), out); });
  wrong("a scale too short", [&] { linear.forward(x, out, {.scale = three}); });
  wrong("a residual of another shape", [&] { linear.forward(x, out, {.residual = matrix}); });
  wrong("linear into its input", [&] { linear.forward(x, x); });
  wrong("linear of a row into itself, with steps of 0", [&] {
    const TensorView<float> row(x.data(), Shape{1, 8}, 0);
    linear.forward(row, row);
  });
  wrong("linear into a part of its input", [&] {
    Tensor<float> wide(Shape{2, 20});
    linear.forward(TensorView<float>(wide.data(), Shape{2, 8}, 20),
                   TensorView<float>(wide.data() + 7, Shape{2, 8}, 20));
  });
  wrong("linear into a part of its residual", [&] {
    Tensor<float> many(Shape{9, 8});
    linear.forward(x, many.view().part(1, 4), {.residual = many.view().part(0, 4)});
  });
  {
    Tensor<float> wide(Shape{4, 16});  // columns next to each other
    linear.forward(TensorView<float>(wide.data() + 8, Shape{4, 8}, 16),
                   TensorView<float>(wide.data(), Shape{4, 8}, 16));
    linear.forward(x, out, {.residual = out});
  }
  wrong("linear on -1 threads", [&] { linear.forward(x, out, {.threads = -1}); });
  wrong("a moved linear", [&] { emptied(linear).forward(x, out); });
  CHECK(linear.in_features() == 0);

  wrong("a norm of nothing", [] { LayerNorm({}, {}, 1e-6f); });
  wrong("a beta too short", [&] { LayerNorm(eight, three, 1e-6f); });
  wrong("an eps that is no number", [&] { LayerNorm(eight, {}, kNan); });
  wrong("a negative eps", [&] { LayerNorm(eight, {}, -1.0f); });
  LayerNorm norm(eight, {}, 1e-6f);
  wrong("a norm into nothing", [&] { norm.forward(x, TensorView<float>()); });
  wrong("a norm of nothing", [&] { norm.forward(null_rows, out); });
  wrong("a norm of other channels", [&] { norm.forward(Tensor<float>(Shape{4, 3}), out); });
  wrong("a moved norm", [&] { emptied(norm).forward(x, out); });

  const auto attend = [&](const AttentionOptions& options) {
    attention(x, x, x, {}, 0, out, memory, options);
  };
  wrong("no heads", [&] { attend({.num_heads = 0}); });
  wrong("huge heads", [&] { attend({.num_heads = kHuge}); });
  wrong("a negative scale", [&] { attend({.num_heads = 2, .scale = -1.0}); });
  wrong("a scale that is no number", [&] { attend({.num_heads = 2, .scale = NAN}); });
  wrong("attention on -1 threads", [&] { attend({.num_heads = 2, .threads = -1}); });
  const std::vector<std::size_t> descending{0, 3, 2, 4}, beyond{0, 9};
  wrong("descending sequences", [&] { attend({.num_heads = 2, .sequences = descending}); });
  wrong("sequences beyond the rows", [&] { attend({.num_heads = 2, .sequences = beyond}); });
  wrong("no queries", [&] { attention(none, x, x, {}, 0, {.num_heads = 2}); });
  wrong("queries of no memory", [&] { attention(null_rows, x, x, {}, 0, {.num_heads = 2}); });
  wrong("keys of no memory", [&] { attention(x, null_rows, x, {}, 0, {.num_heads = 2}); });
  wrong("out of no memory",
        [&] { attention(x, x, x, {}, 0, TensorView<float>(nullptr, x.shape()), memory, {.num_heads = 2}); });
  const auto table = position::build_axial_table<float>(position::grid_coords({2, 2}),
                                                        RopeFrequencies::from_theta(1, 100.0));
  wrong("factors of another grid", [&] { attention(x, x, x, table, 1, {.num_heads = 2}); });
  wrong("part beyond the end", [&] { static_cast<void>(x.view().part(0, 2)); });
  wrong("part that wraps around", [&] { static_cast<void>(x.view().part(1, kWrapped)); });
  wrong("index beyond the end", [&] { static_cast<void>(x.view()[1]); });
  wrong("index of nothing", [&] { static_cast<void>(none[0]); });
  wrong("factors of another width", [&] { attention(x, x, x, table, 0, {.num_heads = 1}); });
  wrong("a huge prefix", [&] { attention(x, x, x, table, kHuge, {.num_heads = 2}); });
  for (const std::size_t prefix : {kWrapped - 4, kWrapped - 3, kWrapped})
    wrong("a prefix that wraps around", [&] { attention(x, x, x, table, prefix, {.num_heads = 2}); });
  const auto part_of_table = position::build_axial_table<float>(position::grid_coords({1, 2}),
                                                                RopeFrequencies::from_theta(1, 100.0));
  wrong("factors of a part of the tokens", [&] { attention(x, x, x, part_of_table, 0, {.num_heads = 2}); });
  Workspace emptied_memory;
  wrong("a moved workspace",
        [&] { attention(x, x, x, {}, 0, out, emptied(emptied_memory), {.num_heads = 2}); });

  BlockTensors block{.norm1 = {.gamma = eight},
                     .qkv = {.weight = Tensor<float>().view()},
                     .proj = {.weight = matrix},
                     .norm2 = {.gamma = eight},
                     .fc1 = {.weight = matrix},
                     .fc2 = {.weight = matrix}};
  const auto encoder_of = [&] { return Encoder(std::span(&block, 1), {.num_heads = 2}); };
  const Tensor<float> qkv(Shape{24, 8});
  wrong("a block without qkv", [&] { encoder_of(); });
  block.qkv.weight = qkv;
  Encoder encoder = encoder_of();
  block.norm1.gamma = {};
  wrong("a block without norm1", [&] { encoder_of(); });
  block.norm1.gamma = eight;
  block.q_norm.gamma = eight;
  wrong("a norm of heads of another width", [&] { encoder_of(); });
  block.q_norm.gamma = {};
  block.end1.gamma = three;
  wrong("a norm of a branch of another width", [&] { encoder_of(); });
  block.end1.gamma = {};
  block.q_norm.beta = eight;
  wrong("a norm with beta and no gamma", [&] { encoder_of(); });
  block.q_norm.beta = {};
  block.gate.bias = eight;
  wrong("a gate with a bias and no weight", [&] { encoder_of(); });
  block.gate.bias = {};
  block.fc2.weight = qkv;
  wrong("fc2 of another width", [&] { encoder_of(); });
  block.fc2.weight = matrix;
  wrong("no blocks", [] { Encoder({}, {}); });
  wrong("no heads of a block", [&] { Encoder(std::span(&block, 1), {.num_heads = 0}); });
  wrong("tokens of nothing", [&] { encoder.forward(TensorView<float>(), {}, 0, memory); });
  wrong("tokens of no memory",
        [&] { encoder.forward(TensorView<float>(nullptr, x.shape()), {}, 0, memory); });
  wrong("encoder on -1 threads", [&] { encoder.forward(x, {}, 0, memory, -1); });
  const position::RopeFactors factors[] = {part_of_table};
  wrong("an encoder with factors of a part of the tokens", [&] { encoder.forward(x, factors, 0, memory); });
  {
    BlockTensors others = block;  // heads of 2 channels, not 4
    const Tensor<float> narrow_qkv(Shape{12, 8}), narrow_proj(Shape{8, 4});
    others.qkv.weight = narrow_qkv;
    others.proj.weight = narrow_proj;
    const BlockTensors both[] = {block, others};
    const auto four = position::build_axial_table<float>(position::grid_coords({2, 2}),
                                                         RopeFrequencies::from_theta(1, 100.0));
    const position::RopeFactors of_all[] = {four};
    std::ranges::fill(x.flat(), 1.0f);
    wrong("factors that fit the first block only",
          [&] { Encoder(both, {.num_heads = 2}).forward(x, of_all, 0, memory); });
    CHECK(std::ranges::all_of(x.flat(), [](float number) { return number == 1.0f; }));
    wrong("factors of the second block of another width", [&] {
      const position::RopeFactors each[] = {four, four};
      Encoder(both, {.num_heads = 2}).forward(x, each, 0, memory);
    });
    CHECK(std::ranges::all_of(x.flat(), [](float number) { return number == 1.0f; }));
  }
  wrong("a moved encoder", [&] { emptied(encoder).forward(x, {}, 0, memory); });
  CHECK(encoder.depth() == 0);

  wrong("a head of 0 channels", [] { Head({}, {}); });
  wrong("attention pooling without tensors",
        [] { Head({}, {.embed_dim = 8, .pooling = Pooling::attention}); });
  wrong("a classifier of another width", [&] { Head({.classifier = {.weight = matrix}}, {.embed_dim = 4}); });
  wrong("prefix tokens of none",
        [] { Head({}, {.embed_dim = 8, .pooling = Pooling::prefix_mean, .num_prefix = 0}); });
  Head head({.classifier = {.weight = matrix}}, {.embed_dim = 8});
  wrong("pooled of another shape", [&] { head.forward(x, matrix, {}, memory); });
  wrong("logits of another shape", [&] { head.forward(x, {}, out, memory); });
  wrong("head of no tokens", [&] { head.forward({}, {}, {}, memory); });
  wrong("a moved head", [&] { emptied(head).forward(x, {}, {}, memory); });
  wrong("a classifier with a bias and no weight",
        [&] { Head({.classifier = {.bias = eight}}, {.embed_dim = 8}); });
  wrong("a probe without attention pooling", [&] { Head({.probe = eight}, {.embed_dim = 8}); });
  wrong("a mean into rows that overlap", [&] {
    Tensor<float> two(Shape{2, 4, 8});
    pool_mean(two, 0, TensorView<float>(matrix.data(), Shape{2, 8}, 1));
  });
  wrong("patches into rows that overlap", [&] {
    patchify(Tensor<float>(Shape{1, 3, 8, 8}), 4, TensorView<float>(matrix.data(), Shape{1, 4, 48}, 0));
  });
  wrong("a mean of nothing", [&] { pool_mean({}, 0, matrix); });
  wrong("a mean from a huge token", [&] { pool_mean(x, kHuge, Tensor<float>(Shape{1, 8}).view()); });
  wrong("a mean into no memory", [&] { pool_mean(x, 0, TensorView<float>(nullptr, Shape{1, 8})); });
}

TEST_CASE("wrong calls: numbers that are no choice") {
  Tensor<float> x(Shape{1, 4, 8}), out(Shape{1, 4, 8}), matrix(Shape{8, 8});
  wrong("the activation of a product",
        [&] { Linear(matrix).forward(x, out, {.activation = static_cast<Activation>(9)}); });
  const LinearTensors layer{.weight = matrix};
  const Tensor<float> wide(Shape{24, 8});
  const std::vector<float> eight(8, 1.0f);
  const BlockTensors block[]{
      {.norm1 = {.gamma = eight}, .qkv = {.weight = wide}, .proj = layer, .fc1 = layer, .fc2 = layer}};
  CHECK(Encoder(block, {.num_heads = 2}).depth() == 1);
  wrong("the activation of blocks",
        [&] { Encoder(block, {.num_heads = 2, .activation = static_cast<Activation>(-1)}); });
  wrong("the precision of blocks",
        [&] { Encoder(block, {.num_heads = 2, .precision = static_cast<Precision>(3)}); });
  wrong("pooling", [] { Head({}, {.embed_dim = 8, .pooling = static_cast<Pooling>(99)}); });
  wrong("the activation of a head",
        [] { Head({}, {.embed_dim = 8, .activation = static_cast<Activation>(6)}); });
  wrong("the precision of a model",
        [] { Model::random(ModelConfig{}, {.precision = static_cast<Precision>(3)}); });
  wrong("the precision of a contract", [] { bits_contract(static_cast<Precision>(-1)); });
  wrong("transparency", [&] {
    const std::vector<std::uint8_t> bytes(16);
    to_rgb(ImageView(bytes.data(), 2, 2, {.format = PixelFormat::rgba}), static_cast<Alpha>(2));
  });
  wrong("an orientation", [] {
    decode_file(test::data_path("images/airplane_airliner.jpg"),
                {.orientation = static_cast<Orientation>(2)});
  });
  wrong("what becomes of values", [] {
    ClassSelection selection;
    selection.activation = static_cast<ClassActivation>(3);
    static_cast<void>(selection.of(std::vector<float>(3)));
  });
  wrong("the method of a head", [] {
    ClassifierHead head;
    head.method = static_cast<FitMethod>(9);
    head.validate();
  });

  const position::RopeFrequencies two = position::RopeFrequencies::from_theta(2, 100.0);
  wrong("the order of axes", [&] {
    position::axial_angles(position::grid_coords({2, 2}), two, static_cast<AxisOrder>(2));
  });
  const Tensor<double> angles =
      position::axial_angles(position::grid_coords({2, 2}), two, AxisOrder::x_then_y);
  wrong("pairs of channels", [&] { position::RopeTable<float>(angles, static_cast<RopePairing>(7)); });
  wrong("angles of a pair",
        [&] { position::RopeTable<float>(angles, RopePairing::halves, static_cast<RopeAngles>(9)); });
  const position::RopeTable<float> table(angles, RopePairing::halves);
  position::RopeFactors factors = table.factors();
  factors.pairing = static_cast<RopePairing>(2);
  wrong("pairs of factors", [&] { position::rotate(x.view(), factors, 0); });
  wrong("pairs of factors in attention",
        [&] { static_cast<void>(attention(x, x, x, factors, 0, {.num_heads = 1})); });

  const auto of_model = [](const auto& change) {
    ModelConfig config;
    CHECK_NOTHROW(validate(config));
    change(config);
    validate(config);
  };
  wrong("of a model: activation",
        [&] { of_model([](ModelConfig& c) { c.mlp.activation = static_cast<Activation>(6); }); });
  wrong("of a model: coordinates",
        [&] { of_model([](ModelConfig& c) { c.position.coordinates = static_cast<CoordinateRule>(-1); }); });
  wrong("of a model: frequencies",
        [&] { of_model([](ModelConfig& c) { c.position.frequencies = static_cast<AxisFrequencies>(3); }); });
  wrong("of a model: relative positions", [&] {
    of_model([](ModelConfig& c) { c.position.relative.emplace().kind = static_cast<RelativeKind>(3); });
  });
  wrong("of a model: attention pooling", [&] {
    of_model([](ModelConfig& c) { c.head.attention_pool = {.activation = static_cast<Activation>(6)}; });
  });
  wrong("of a model: the cells of a merger", [&] {
    of_model([](ModelConfig& c) { c.merger = MergerConfig{.cells = {.rule = static_cast<CellRule>(2)}}; });
  });
  wrong("of a model: logits",
        [&] { of_model([](ModelConfig& c) { c.head.logits = static_cast<LogitKind>(4); }); });
  wrong("of preprocessing", [] {
    PreprocessConfig config;
    config.filter = static_cast<ResizeFilter>(99);
    validate(config);
  });
  wrong("of a text tower", [] {
    TextConfig config;
    config.pooling = static_cast<TextPooling>(6);
    validate(config);
  });
  wrong("of its scores", [] {
    TextConfig config;
    config.score = TextScore{.kind = static_cast<ClassActivation>(3)};
    validate(config);
  });
}

TEST_CASE("wrong calls: positions") {
  using namespace position;
  wrong("a grid of 0", [] { grid_coords({0, 4}); });
  wrong("a huge grid", [] { grid_coords({kHuge, kHuge}); });
  wrong("no frames", [] { clip_coords(0, {2, 2}); });
  wrong("windows of 0", [] { window_coords({4, 4}, 0); });
  wrong("an order of another length", [] {
    const std::vector<std::uint32_t> order{0};
    reordered(grid_coords({2, 2}), order);
  });
  wrong("an order beyond the end", [] {
    const std::vector<std::uint32_t> order{0, 1, 2, 9};
    reordered(grid_coords({2, 2}), order);
  });
  wrong("an odd width", [] { num_axial_frequencies(6); });
  wrong("a width of 0", [] { num_axial_frequencies(0); });
  wrong("no frequencies", [] { RopeFrequencies{std::vector<double>()}; });
  wrong("a frequency that is no number", [] { RopeFrequencies{{NAN}}; });
  wrong("0 frequencies", [] { RopeFrequencies::from_theta(0, 100.0); });
  wrong("huge frequencies", [] { RopeFrequencies::from_theta(kHuge, 100.0); });
  wrong("theta of 0", [] { RopeFrequencies::from_theta(2, 0.0); });
  wrong("a negative theta", [] { RopeFrequencies::from_theta(2, -100.0); });
  wrong("theta that is no number", [] { RopeFrequencies::from_theta(2, NAN); });
  wrong("a period of 0", [] { RopeFrequencies::from_periods(std::vector<float>{0.0f}); });
  wrong("periods that run backwards", [] { RopeFrequencies::from_period_range(2, {4.0, 1.0}); });
  wrong("mixed of rank 2", [] { MixedFrequencies(Tensor<float>(Shape{2, 2}).view()); });
  wrong("mixed of nothing", [] { MixedFrequencies(TensorView<const float>()); });
  const MixedFrequencies mixed(Tensor<float>(Shape{2, 1, 1, 4}).view());
  wrong("a layer that is not there", [&] { static_cast<void>(mixed.x(1, 0)); });
  wrong("angles of a layer that is not there", [&] { mixed_angles(grid_coords({2, 2}), mixed, 9); });
  MixedFrequencies left(Tensor<float>(Shape{2, 1, 1, 4}).view());
  wrong("moved mixed frequencies", [&] { static_cast<void>(emptied(left).x(0, 0)); });
  wrong("angles of moved frequencies", [&] { mixed_angles(grid_coords({2, 2}), left, 0); });
  FrequencyVectors of_axes = FrequencyVectors::mixed(mixed, AxisOrder::x_then_y);
  wrong("moved vectors", [&] { static_cast<void>(emptied(of_axes).of(0, 0)); });
  wrong("angles of moved vectors", [&] { rope_angles(grid_coords({2, 2}), of_axes); });
  wrong("a table of a coordinate that is no number", [] {
    const RopeFrequencies frequencies = RopeFrequencies::from_theta(2, 100.0);
    build_axial_table<float>({.t_x = {0.0, NAN}, .t_y = {0.0, 1.0}}, frequencies);
  });
  wrong("a table of an infinite position", [] {
    const std::vector<double> positions{0.0, INFINITY};
    build_line_table<double>(positions, RopeFrequencies::from_theta(2, 100.0));
  });
  wrong("no vectors", [] { FrequencyVectors{std::vector<FrequencyVector>()}; });
  wrong("a table of no angles", [] { RopeTable<float>(TensorView<const double>(), RopePairing::neighbors); });
  wrong("coordinates of other lengths", [] {
    axial_angles({.t_x = {0.0, 1.0}, .t_y = {0.0}}, RopeFrequencies::from_theta(2, 100.0),
                 AxisOrder::x_then_y);
  });
  const auto table = build_axial_table<float>(grid_coords({2, 2}), RopeFrequencies::from_theta(2, 100.0));
  wrong("a factor that is not there", [&] { static_cast<void>(table.factor(4, 0)); });
  Tensor<float> x(Shape{1, 4, 2, 8}), narrow(Shape{1, 4, 2, 4}), few(Shape{1, 3, 2, 8});
  wrong("rotate another width", [&] { rotate(narrow, table); });
  wrong("rotate another grid", [&] { rotate(few, table); });
  wrong("rotate nothing", [&] { rotate(TensorView<float>(), table); });
  wrong("rotate no memory", [&] { rotate(TensorView<float>(nullptr, x.shape()), table); });
  wrong("rotate rows that overlap", [&] { rotate(TensorView<float>(x.data(), x.shape(), 4), table); });
  wrong("rotate a huge prefix", [&] { rotate(x, table, kHuge); });
  wrong("rotate a prefix that wraps around", [&] { rotate(few, table, kWrapped); });
  wrong("resample nothing", [] {
    resample_table({}, 0, {2, 2}, {4, 4}, TableResampling::bicubic_antialias);
  });
  wrong("resample to 0", [] {
    resample_table(Tensor<float>(Shape{4, 8}), 0, {2, 2}, {0, 4}, TableResampling::bicubic_antialias);
  });
  wrong("resample another table", [] {
    resample_table(Tensor<float>(Shape{5, 8}), 0, {2, 2}, {4, 4}, TableResampling::bicubic_antialias);
  });
  wrong("sinusoids of an odd width", [] { sinusoidal_1d<float>(4, 3); });
  wrong("sinusoids of 0", [] { sinusoidal_1d<float>(0, 4); });
  wrong("sinusoids of a base of 0", [] { sinusoidal_2d<float>({2, 2}, 8, 0.0); });
  wrong("huge relative positions", [] { relative_index(kHuge, 2); });
  wrong("relative attention of nothing", [] { relative_attention<float>({}, {}, {}, {}); });
  wrong("a scaling that is none", [] { parse_rope_scaling("sideways"); });
  CHECK(find_rope_convention("") == nullptr);
  const RopeConvention& convention = rope_conventions().front();
  wrong("a convention of width 0", [&] { frequency_vectors(convention, 0); });
  wrong("a convention of a grid of 0", [&] { coordinates(convention, {0, 0}); });
  wrong("no generators", [] { normal_form_of({}); });
  wrong("a normal form without phases", [] {
    RopeNormalForm form = normal_form(rope_conventions().front(), {2, 2}, 16);
    form.phases.clear();
    normal_angles(form, {2, 2});
  });
  const auto of_scaling = [](RopeScaling scaling) {
    static_cast<void>(grid_scale({4, 4}, {2, 2}, {}, scaling));
  };
  wrong("a negative factor", [&] { of_scaling({.rule = RopeScalingRule::linear, .factor = -2.0}); });
  wrong("an unknown rule", [&] { of_scaling({.rule = static_cast<RopeScalingRule>(9)}); });
  wrong("unknown axes", [&] { of_scaling({.axes = static_cast<RopeScalingAxes>(9)}); });
  wrong("an unknown temperature", [&] { of_scaling({.temperature = static_cast<RopeTemperature>(9)}); });
  wrong("a negative attention factor", [&] {
    static_cast<void>(logit_factor({.rule = RopeScalingRule::yarn, .attention_factor = -5.0},
                                   {.x = {.scale = 2.0}, .y = {.scale = 2.0}}, {4, 4}, {2, 2}));
  });
  wrong("frequencies by a rule that is none", [&] {
    scale_frequencies(RopeFrequencies::from_theta(2, 100.0), {.rule = static_cast<RopeScalingRule>(9)},
                      {.scale = 2.0});
  });
  wrong("a scale to a reference of nothing", [&] {
    static_cast<void>(grid_scale({4, 4}, {2, 2}, {.rule = CoordinateRule::scaled_to_reference}, {}));
  });
  CHECK(window_coords({2, 2}, kHuge >> 40).size() == 4);  // a window larger than the grid
  RopeConvention spiral;
  spiral.kind = ConventionKind::spiral;
  CHECK_FALSE(head_sizes(spiral).contain(64));
  const auto form_of = [](std::size_t num_angles) {
    std::vector<FrequencyVector> frequencies(num_angles, {.x = 1.0});
    return RopeNormalForm{.head_dim = 8,
                          .pairs = channel_pairs(PairLayout::neighbors, 8),
                          .frequencies = FrequencyVectors(std::move(frequencies)),
                          .phases = std::vector<double>(num_angles)};
  };
  wrong("more angles than pairs", [&] { static_cast<void>(read_back(form_of(64), {4, 4})); });
  wrong("fewer angles than pairs", [&] { normal_angles(form_of(2), {4, 4}); });
  wrong("pairs beyond the head of a form", [&] {
    RopeNormalForm form = form_of(4);
    form.head_dim = 4;
    normal_angles(form, {2, 2});
  });
  wrong("a basis of another width", [&] {
    RopeNormalForm form = form_of(4);
    form.basis = Tensor<double>(Shape{4, 4});
    normal_angles(form, {2, 2});
  });
  {
    const RopeNormalForm form = normal_form(*find_rope_convention("comrope"), {2, 2}, 8, 1);
    Tensor<double> seven(Shape{1, 7, 1, 8});
    std::ranges::fill(seven.flat(), 1.0);
    wrong("a prefix of another count", [&] { rotate(seven, form, {2, 2}, 1); });
    CHECK(std::ranges::all_of(seven.flat(), [](double number) { return number == 1.0; }));
  }
  Tensor<double> basis(Shape{4, 4}), vectors(Shape{1, 4, 1, 4});
  wrong("a basis that was moved", [&] { change_basis(vectors, emptied(basis), BasisChange::into); });
  Tensor<double> generators[] = {Tensor<double>(Shape{2, 2})};
  wrong("a generator that was moved", [&] {
    emptied(generators[0]);
    normal_form_of(generators);
  });
  const Tensor<double> angles(Shape{4, 2});
  const std::vector<ChannelPair> beyond{{0, 1}, {2, 4096}}, pairs{{0, 1}, {2, 3}};
  wrong("pairs beyond the head", [&] { rotate_pairs(vectors, angles, beyond, RopeAngles::per_pair, 0); });
  wrong("vectors of no memory", [&] {
    rotate_pairs(TensorView<double>(nullptr, vectors.shape()), angles, pairs, RopeAngles::per_pair, 0);
  });
  wrong("angles of rank 4", [&] {
    rotate_pairs(vectors, Tensor<double>(Shape{1, 1, 4, 2}), pairs, RopeAngles::per_pair, 0);
  });
  wrong("pairs after a prefix that wraps around", [&] {
    Tensor<double> three_tokens(Shape{1, 3, 1, 4});
    rotate_pairs(three_tokens, angles, pairs, RopeAngles::per_pair, kWrapped);
  });
}

TEST_CASE("wrong calls: preprocessing") {
  const Image image(64, 64);
  PreprocessMemory memory;
  Tensor<float> pixels(Shape{3, 224, 224});
  const Preprocessor preprocessor{PreprocessConfig()};
  wrong("moved memory", [&] { preprocessor.run(image, pixels, emptied(memory)); });
  CHECK(memory.bytes() == 0);
  const InputSize fixed{.kind = InputSize::Kind::fixed, .height = 64, .width = 64};
  const auto sized = [](const auto& change, const InputSize& size) {
    PreprocessConfig config;
    change(config);
    static_cast<void>(with_input_size(config, size, 16));
  };
  wrong("a crop to nothing", [&] { sized([](PreprocessConfig& c) { c.crop_height = 0; }, fixed); });
  wrong("patches of nothing", [&] {
    sized(
        [](PreprocessConfig& c) {
          c.resize = ResizeRule::patches;
          c.crop = false;
        },
        fixed);
  });
  wrong("a crop of nearly nothing", [&] { sized([](PreprocessConfig& c) { c.crop_pct = 1e-300; }, fixed); });
  wrong("huge edges", [&] {
    sized([](PreprocessConfig&) {}, {.kind = InputSize::Kind::fixed, .height = kHuge, .width = kHuge});
  });
  wrong("frames in patches of none", [] {
    PreprocessConfig config;
    config.frames_of_patch = 0;
    sample_frames(config, 8);
  });
}

TEST_CASE("wrong calls: analysis") {
  PcaAccumulator pca;
  wrong("components of no rows", [&] { static_cast<void>(pca.fit(1)); });
  wrong("rows of nothing", [&] { pca.add({}); });
  wrong("rows of no memory", [&] { pca.add({nullptr, Shape{3, 4}}); });
  const Tensor<float> rows(Shape{3, 4});
  pca.add(rows);
  wrong("rows of another width", [&] { pca.add(Tensor<float>(Shape{3, 5})); });
  wrong("rows that are not finite", [&] {
    Tensor<float> damaged(Shape{3, 4});
    damaged.data()[5] = kNan;
    pca.add(damaged);
  });
  wrong("0 components", [&] { static_cast<void>(pca.fit(0)); });
  wrong("huge components", [&] { static_cast<void>(pca.fit(kHuge)); });
  wrong("a moved accumulator", [&] { emptied(pca).add(rows); });
  wrong("its components", [&] { static_cast<void>(pca.fit(1)); });
  CHECK(pca.num_rows() == 0);
  wrong("pairs of nothing", [&] { mutual_nearest({}, rows); });
  wrong("pairs of other widths", [&] { mutual_nearest(Tensor<float>(Shape{3, 5}), rows); });
  wrong("pairs on -1 threads", [&] { mutual_nearest(rows, rows, -1); });
}

}  // namespace vit
