// The numbers of the C interface are those of the C++ interface, bit for bit.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tests/support/c_handles.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/clip_model.h"
#include "tests/support/shared_data.h"
#include "vit/c.h"
#include "vit/position/rope.h"
#include "vit/position/tables.h"
#include "vit/vit.h"

namespace vit {
namespace {

using namespace test;

void check_same(std::span<const float> a, std::span<const float> b) {
  CHECK(std::ranges::equal(a, b));
}

void check_features(const std::string& path, Precision precision) {
  CAPTURE(path);
  const ModelHandle model = load(path, precision);
  const SessionHandle session = session_of(model);
  const ResultsHandle results = make_results();
  const std::int64_t last[] = {-1};
  vit_request request{};
  request.struct_size = sizeof request;
  request.features = VIT_POOLED | VIT_PATCHES | VIT_EMBEDDED;
  request.blocks = last;
  request.num_blocks = 1;
  const std::vector<vit_input> files = inputs();
  REQUIRE(vit_session_run(session.get(), files.data(), files.size(), &request, results.get()) == VIT_OK);

  Session plain(Model::load(path, {.precision = precision}));
  const std::size_t block = plain.model().config().encoder.depth - 1;
  for (std::size_t i = 0; i < images().size(); ++i) {
    Outputs outputs;
    const Image image = plain.decode(images()[i]);
    plain.run(image.view(), {Output::pooled, Output::tokens, Output::embedded, {Output::block, block}},
              outputs);
    check_same(one(results, i, VIT_POOLED), outputs[0].pooled());
    check_same(one(results, i, VIT_PATCHES), outputs[0].patches().flat());
    check_same(one(results, i, VIT_EMBEDDED), outputs[0].embedded().flat());
    check_same(one(results, i, VIT_BLOCK, -1), outputs[0].block(block).flat());
  }
}

}  // namespace

TEST_CASE("C interface: features are those of a Session, in every precision") {
  for (const Precision precision : {Precision::float32, Precision::bfloat16, Precision::int8})
    check_features(test::data_path("model").string(), precision);
  check_features(test::data_path("golden/models/hf-siglip").string(), Precision::float32);
}

TEST_CASE("C interface: what is NULL or beyond any memory is an argument") {
  vit_model* model = nullptr;
  CHECK(vit_model_load(nullptr, nullptr, &model) == VIT_ERROR_ARGUMENT);
  CHECK(std::string(vit_last_error()).find("path") != std::string::npos);
  CHECK(vit_model_random(nullptr, nullptr, &model) == VIT_ERROR_ARGUMENT);
  REQUIRE(vit_model_load(test::data_path("model").string().c_str(), nullptr, &model) == VIT_OK);
  const ModelHandle owned(model);
  vit_session* made = nullptr;
  REQUIRE(vit_session_create(model, nullptr, &made) == VIT_OK);
  const SessionHandle session(made);
  const std::vector<vit_input> known = inputs();
  vit_results* results = nullptr;
  REQUIRE(vit_results_create(&results) == VIT_OK);
  const ResultsHandle kept(results);
  CHECK(vit_session_run(made, known.data(), std::size_t{1} << 60, nullptr, results) == VIT_ERROR_ARGUMENT);
}

TEST_CASE("C interface: clips are those of Preprocessor::run_clip") {
  const test::ScratchFolder scratch("c-clips");
  const std::string folder = test::write_clip_model(scratch.path() / "model");
  constexpr std::size_t kFrames = 5, kHeight = 20, kWidth = 28, kTaken = 4;
  std::vector<Image> images;
  std::vector<vit_input> frames;
  std::vector<ImageView> taken;
  for (std::size_t k = 0; k < kFrames; ++k) {
    Image& image = images.emplace_back(kHeight, kWidth);
    for (std::size_t i = 0; i < 3 * kHeight * kWidth; ++i)
      image.data()[i] = static_cast<unsigned char>(i * (k + 3));
  }
  for (const Image& image : images) {
    vit_input& frame = frames.emplace_back();
    frame.struct_size = sizeof frame;
    frame.kind = VIT_INPUT_PIXELS;
    frame.data = image.data();
    frame.height = kHeight;
    frame.width = kWidth;
  }
  const auto model = Model::load(folder, {.clip_frames = kTaken});
  Session session(model, {.threads = 1});
  for (const std::size_t index : sample_frames(model->preprocess_config(), kFrames))
    taken.push_back(images[index]);
  const Tensor<float> pixels = session.preprocessor().run_clip(taken);
  const TensorView<const float> clip_pixels = pixels;
  const BatchOutputs expected = session.run_pixels(std::span(&clip_pixels, 1), Output::merged);

  vit_model_options options{};
  options.struct_size = sizeof options;
  vit_input clip{};
  clip.struct_size = sizeof clip;
  clip.kind = VIT_INPUT_CLIP;
  clip.frames = frames.data();
  clip.num_frames = kFrames;
  vit_request request{};
  request.struct_size = sizeof request;
  request.features = VIT_MERGED;
  const ResultsHandle results = make_results();
  vit_model* handle = nullptr;
  REQUIRE(vit_model_load(folder.c_str(), &options, &handle) == VIT_OK);
  const ModelHandle of_images(handle);
  const char* message = nullptr;
  CHECK(vit_session_run(session_of(of_images).get(), &clip, 1, &request, results.get()) != VIT_OK);
  CHECK(vit_results_status(results.get(), 0, &message) == VIT_ERROR_ARGUMENT);
  CHECK(std::string(message).find("clip_frames of vit_model_options") != std::string::npos);

  options.clip_frames = kTaken;
  REQUIRE(vit_model_load(folder.c_str(), &options, &handle) == VIT_OK);
  const ModelHandle of_clips(handle);
  const SessionHandle run = session_of(of_clips);
  REQUIRE(vit_session_run(run.get(), &clip, 1, &request, results.get()) == VIT_OK);
  check_same(one(results, 0, VIT_MERGED), expected[0][Output::merged].flat());
  vit_input planes{};
  planes.struct_size = sizeof planes;
  planes.kind = VIT_INPUT_PREPROCESSED;
  planes.data = pixels.data();
  planes.height = pixels.dim(1);
  planes.width = pixels.dim(2);
  planes.num_frames = kTaken;
  REQUIRE(vit_session_run(run.get(), &planes, 1, &request, results.get()) == VIT_OK);
  check_same(one(results, 0, VIT_MERGED), expected[0][Output::merged].flat());

  vit_preprocessor* preprocessor = nullptr;
  REQUIRE(vit_preprocessor_create(of_clips.get(), nullptr, &preprocessor) == VIT_OK);
  REQUIRE(vit_preprocessor_run(preprocessor, &clip, 1, VIT_PIXELS, results.get()) == VIT_OK);
  check_same(one(results, 0, VIT_PIXELS), pixels.flat());
  vit_preprocessor_free(preprocessor);
}

TEST_CASE("C interface: classes are those of a Classifier") {
  const std::string path = test::data_path("model").string();
  const ModelHandle model = load(path);
  const SessionHandle session = session_of(model);
  const ResultsHandle results = make_results();
  vit_classifier* classifier = nullptr;
  REQUIRE(vit_classifier_create(model.get(), &classifier) == VIT_OK);
  const std::unique_ptr<vit_classifier, Release<vit_classifier, vit_classifier_free>> owner(classifier);
  const std::vector<vit_input> files = inputs();
  REQUIRE(vit_classifier_run(classifier, session.get(), files.data(), files.size(), results.get()) == VIT_OK);
  const Classifier plain(path);
  for (std::size_t i = 0; i < files.size(); ++i) {
    vit_prediction top[10];
    std::size_t count = 0;
    REQUIRE(vit_classifier_top(classifier, results.get(), i, 10, top, &count) == VIT_OK);
    const std::vector<Prediction> expected =
        plain.classify(std::filesystem::path(images()[i]), std::size_t{10});
    REQUIRE(count == expected.size());
    for (std::size_t k = 0; k < count; ++k) {
      CHECK(top[k].index == expected[k].index);
      CHECK(top[k].label == expected[k].label);
      CHECK(top[k].probability == expected[k].probability);
      CHECK(top[k].logit == expected[k].logit);
    }
  }
}

TEST_CASE("C interface: texts and classes in words are those of TextEncoder and Classifier") {
  const std::string path = test::data_path("golden/text/openclip-siglip").string();
  vit_model* model = nullptr;
  vit_text_tower* tower = nullptr;
  vit_text_encoder* encoder = nullptr;
  vit_classifier* classifier = nullptr;
  REQUIRE(vit_model_and_text_load(path.c_str(), nullptr, nullptr, &model, &tower) == VIT_OK);
  const ModelHandle owner(model);
  REQUIRE(vit_text_encoder_create(tower, 1, &encoder) == VIT_OK);
  const char* const texts[] = {"a cat", "a dog"};
  const ResultsHandle results = make_results();
  REQUIRE(vit_text_encoder_run(encoder, texts, nullptr, 2, 0, results.get(), nullptr) == VIT_OK);
  TextEncoder plain(path);
  const std::vector<std::string_view> views(std::begin(texts), std::end(texts));
  const TextEmbeddings expected = plain.encode(views);
  for (std::size_t i = 0; i < 2; ++i)
    check_same(one(results, i, VIT_TEXT), expected.vectors.view()[i].flat());

  REQUIRE(vit_classifier_create_zero_shot(model, encoder, texts, 2, nullptr, 0, &classifier) == VIT_OK);
  const SessionHandle session = session_of(owner);
  const std::vector<vit_input> files = inputs();
  REQUIRE(vit_classifier_run(classifier, session.get(), files.data(), 1, results.get()) == VIT_OK);
  const Classifier words = Classifier::of_texts(ImageAndText::load(path), {"a cat", "a dog"});
  const std::vector<Prediction> top = words.classify(std::filesystem::path(images()[0]), 2);
  vit_prediction found[2];
  std::size_t count = 0;
  REQUIRE(vit_classifier_top(classifier, results.get(), 0, 2, found, &count) == VIT_OK);
  REQUIRE(count == top.size());
  for (std::size_t k = 0; k < count; ++k) {
    CHECK(found[k].index == top[k].index);
    CHECK(found[k].probability == top[k].probability);
    CHECK(found[k].logit == top[k].logit);
  }
  vit_classifier_free(classifier);
  vit_text_encoder_free(encoder);
  vit_text_tower_free(tower);
}

TEST_CASE("C interface: a rope table of options is that of build_axial_table") {
  vit_rope_options options{};
  options.struct_size = sizeof options;
  options.coordinates = VIT_COORDINATES_CENTERED;
  options.axis_order = VIT_Y_THEN_X;
  options.pairing = VIT_PAIR_HALVES;
  std::vector<double> frequencies(4);
  REQUIRE(vit_rope_frequencies(VIT_FREQUENCIES_THETA, 4, 100.0, 0.0, frequencies.data()) == VIT_OK);
  vit_rope_table* table = nullptr;
  REQUIRE(vit_rope_axial(3, 5, frequencies.data(), 4, &options, &table) == VIT_OK);
  const position::RopeTable<float> expected =
      position::build_axial_table<float>(position::grid_coords({3, 5}, {.rule = CoordinateRule::centered}),
                                         position::RopeFrequencies::from_theta(4, 100.0),
                                         {.axis_order = AxisOrder::y_then_x, .pairing = RopePairing::halves});
  vit_array cosines{}, sines{};
  REQUIRE(vit_rope_table_get(table, &cosines, &sines) == VIT_OK);
  const std::span<const float> flat = expected.cos().flat();
  check_same({static_cast<const float*>(cosines.data), flat.size()}, flat);
  check_same({static_cast<const float*>(sines.data), flat.size()}, expected.sin().flat());

  std::vector<float> x(16 * 16), y;
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  y = x;
  const std::size_t shape[] = {1, 16, 16};
  REQUIRE(vit_rope_rotate(table, x.data(), shape, 3, 1) == VIT_OK);
  position::rotate(TensorView<float>(y.data(), {1, 16, 16}), expected, 1);
  check_same(x, y);
  vit_rope_table_free(table);
}

}  // namespace vit
