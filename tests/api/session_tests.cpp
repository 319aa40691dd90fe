// Sessions: results are views into memory that is used again, and helpers for embeddings.
#include "vit/config.h"
#include "vit/session.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/allocation_count.h"
#include "tests/support/errors.h"
#include "tests/support/shared_data.h"
#include "vit/base/error.h"

namespace vit {

namespace {

/// Whether `run` soon allocates nothing. Buffers belong to threads, and which thread takes which image is
/// open: each has to compute each size once.
template <typename Run>
bool becomes_warm(const Run& run) {
  constexpr int kRuns = 100, kWarmRuns = 5;
  for (int i = 0, warm = 0; i < kRuns; ++i) {
    const std::size_t before = test::allocation_count();
    run();
    warm = test::allocation_count() == before ? warm + 1 : 0;
    if (warm == kWarmRuns) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("session: a warm session allocates nothing, for one image, a frame or images of several sizes") {
  for (const int threads : {1, 2}) {
    Session session(Model::load(test::data_path("golden/models/rope-axial")),
                    {.threads = threads, .input_size = {.kind = InputSize::Kind::native}});
    const Image wide(64, 96), square(80, 80);
    const std::vector<ImageView> images{wide.view(), square.view(), wide.view()};
    const Request request{Output::logits, Output::pooled, Output::tokens};
    Outputs outputs;
    BatchOutputs results;
    CHECK(becomes_warm([&] { session.run(images, request, results); }));
    const float* const kept = results[1].tokens().data();
    CHECK(becomes_warm([&] { session.run(images[0], request, outputs); }));
    session.run(images, request, results);
    CHECK(results[1].tokens().data() == kept);
    CHECK(std::ranges::equal(results[0].pooled(), outputs[0].pooled()));
  }
}

TEST_CASE("session: what is reserved is not allocated later") {
  const auto model = Model::load(test::data_path("golden/models/rope-axial"));
  const Request request{Output::logits, Output::pooled, Output::tokens};
  const ImageSize sizes[] = {{64, 96}, {80, 80}};
  const Image wide(64, 96), square(80, 80);
  const std::vector<ImageView> images{wide.view(), square.view(), wide.view(), square.view(), wide.view()};
  BatchOutputs results;
  Session(model, {.input_size = {.kind = InputSize::Kind::native}}).run(images, request, results);
  for (const int threads : {1, 2, 3}) {
    Session session(model, {.threads = threads, .input_size = {.kind = InputSize::Kind::native}});
    session.reserve(sizes, request, 3);
    for (const std::size_t count : {5u, 1u, 2u, 4u, 3u, 5u}) {
      const std::size_t before = test::allocation_count();
      session.run(std::span(images).first(count), request, results);
      CHECK(test::allocation_count() == before);
    }
  }
  Session session(model);
  CHECK_THROWS_AS(session.reserve(sizes, request, 0), const Error&);
  CHECK_THROWS_AS(session.reserve(std::vector<ImageSize>{{0, 9}}, request), const Error&);
  CHECK_THROWS_AS(session.reserve(sizes, Output::merged), const Error&);
}

TEST_CASE("session: runs end at their deadline and when a stop is requested") {
  const auto model = Model::load(test::data_path("golden/models/rope-axial"));
  const Image image(64, 64);
  const std::vector<ImageView> images(20, image.view());
  for (const int threads : {1, 2}) {
    Session session(model, {.threads = threads});
    Outputs outputs, expected;
    BatchOutputs results;
    session.run(image.view(), Output::logits, expected);
    std::stop_source source;
    using Clock = std::chrono::steady_clock;
    session.set_limits({.stop = source.get_token(), .deadline = Clock::now() + std::chrono::hours(1)});
    session.run(image.view(), Output::logits, outputs);
    CHECK(std::ranges::equal(outputs[0].logits(), expected[0].logits()));
    source.request_stop();
    CHECK(test::message_of([&] {
            session.run(image.view(), Output::logits, outputs);
          }).find("a stop was requested") != std::string::npos);
    session.set_limits({.deadline = Clock::now()});
    CHECK_THROWS_AS(session.run(images, Output::logits, results), const Cancelled&);
    CHECK(test::message_of([&] {
            session.forward(Tensor<float>(Shape{1, 3, 64, 64}), Output::logits, outputs);
          }).find("its deadline has passed") != std::string::npos);
    CHECK_THROWS_AS(for_each_image(
                        session, 2, [&](std::size_t) { return ImageSource(image.view()); }, Output::logits,
                        [](const StreamedImage&) {}),
                    const Cancelled&);
    session.set_limits({});
    session.run(image.view(), Output::logits, outputs);
    CHECK(std::ranges::equal(outputs[0].logits(), expected[0].logits()));
  }
  // asked between the blocks: a stop during a pass of many blocks ends it before its end
  Session deep(Model::random("vit_tiny_patch16_224", {.overrides = {{"depth", "64"}}}), {.threads = 1});
  std::stop_source source;
  deep.set_limits({.stop = source.get_token()});
  const auto start = std::chrono::steady_clock::now();
  Outputs outputs;
  std::jthread other([&source] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    source.request_stop();
  });
  CHECK_THROWS_AS(deep.forward(Tensor<float>(Shape{1, 3, 224, 224}), Output::pooled, outputs),
                  const Cancelled&);
  const auto cancelled = std::chrono::steady_clock::now() - start;
  other.join();
  deep.set_limits({});
  const auto again = std::chrono::steady_clock::now();
  deep.forward(Tensor<float>(Shape{1, 3, 224, 224}), Output::pooled, outputs);
  CHECK(cancelled < std::chrono::steady_clock::now() - again);
}

TEST_CASE("session: images of many sizes give the bits that each gives separately") {
  const auto model = Model::load(test::data_path("golden/models/rope-axial"));
  const std::size_t patch = model->config().patch.size;
  // rows and columns of patches; some sizes twice
  std::vector<Tensor<float>> pixels;
  for (const auto& [rows, columns] : std::vector<std::pair<std::size_t, std::size_t>>{
           {3, 5}, {9, 9}, {12, 4}, {6, 10}, {9, 9}, {10, 6}, {2, 2}, {4, 12}, {6, 10}}) {
    pixels.emplace_back(Shape{3, patch * rows, patch * columns});
    std::size_t i = 0;
    for (float& value : pixels.back().flat()) value = std::sin(static_cast<float>(i++ + 17 * pixels.size()));
  }
  const std::vector<TensorView<const float>> views(pixels.begin(), pixels.end());
  const Request request{Output::logits, Output::tokens};
  for (const int threads : {1, 2, 3}) {
    for (const std::size_t batch : {0, 2}) {
      Session together(model, {.threads = threads, .batch = batch}), alone(model, {.threads = threads});
      const BatchOutputs results = together.run_pixels(views, request);
      REQUIRE(results.size() == views.size());
      for (std::size_t i = 0; i < views.size(); ++i) {
        const BatchOutputs expected = alone.run_pixels(std::span(views).subspan(i, 1), request);
        CHECK(std::ranges::equal(results[i].logits(), expected[0].logits()));
        CHECK(std::ranges::equal(results[i].tokens().flat(), expected[0].tokens().flat()));
        CHECK(results[i].grid() == expected[0].grid());
      }
    }
  }
}

TEST_CASE("session: stages are timed for one pass") {
  Session session(Model::load(test::data_path("model")), {.threads = 1});
  const ModelConfig& config = session.model().config();
  const Tensor<float> pixels(Shape{1, 3, config.image.height, config.image.width});
  Outputs outputs;
  const StageTimes times = session.measure(pixels.view(), {Output::logits}, outputs);
  CHECK(*std::ranges::min_element(times.seconds) >= 0);
  CHECK(*std::ranges::max_element(times.seconds) > 0);
  CHECK(outputs[0].logits().size() == config.head.num_classes);
}

TEST_CASE("session: pixels that are not finite are an Error, not numbers") {
  Session session(Model::load(test::data_path("golden/models/rope-axial")), {.threads = 1});
  const ModelConfig& config = session.model().config();
  const std::size_t edge = config.image.height;
  for (const float wrong : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity()}) {
    Tensor<float> pixels(Shape{2, 3, edge, edge});
    pixels.view()[1][2].row(3)[edge - 1] = wrong;
    const TensorView<const float> view = pixels;
    Outputs outputs;
    CHECK_THROWS_WITH_AS(session.forward(view, Output::logits, outputs),
                         doctest::Contains("image 1 are not finite (NaN or infinity in plane 2, row 3)"),
                         Error);
    const std::vector<TensorView<const float>> images{view[0], view[1]};
    BatchOutputs results;
    CHECK_THROWS_AS(session.run_pixels(images, Output::logits, results), Error);
    const auto load = [&](std::size_t i) -> ImageSource {
      return LoadPixels([&, i] {
        Tensor<float> one(Shape{3, edge, edge});
        std::ranges::copy(view[i].flat(), one.data());
        return one;
      });
    };
    std::vector<bool> failed;
    for_each_image(session, 2, load, Output::logits,
                   [&](const StreamedImage& image) { failed.push_back(!image.outputs.has_value()); });
    CHECK(failed == std::vector<bool>{false, true});
    pixels.view()[1][2].row(3)[edge - 1] = std::numeric_limits<float>::max();  // finite, if large
    CHECK_NOTHROW(session.forward(view, Output::tokens, outputs));
  }
}

TEST_CASE("session: wrong use is an Error of the library") {
  const auto model = Model::load(test::data_path("golden/models/rope-axial"));
  CHECK_THROWS_WITH_AS(Session(model, {.threads = -1}), doctest::Contains("threads is -1"), Error);
  Session session(model, {.threads = 1});
  Outputs outputs;
  for (const ImageSource& empty :
       {ImageSource(LoadFile{}), ImageSource(LoadImage()), ImageSource(LoadPixels())})
    CHECK_THROWS_WITH_AS(session.run(empty, Output::logits, outputs), doctest::Contains("is empty"), Error);
  const Session taken = std::move(session);
  const Image image(64, 64);
  CHECK_THROWS_WITH_AS(session.run(image.view(), Output::logits, outputs), doctest::Contains("moved from"),
                       Error);
  CHECK_THROWS_AS(session.model(), Error);
  CHECK_THROWS_AS(session.options(), Error);
  CHECK_THROWS_AS(session.workspace_bytes(), Error);
  CHECK(&taken.model() == model.get());
}

TEST_CASE("session: class tokens of several tiles are asked for with all tokens") {
  ModelConfig config;
  config.image = {.height = 16, .width = 16, .stack = StackRule::apart};
  config.patch.size = 8;
  config.embed_dim = 16;
  config.encoder.depth = 1;
  config.attention.num_heads = 2;
  config.mlp.dim = 32;
  config.tokens.class_token = true;
  const auto model = Model::random(config);
  Session session(model);
  Tensor<float> pixels(Shape{1, 6, 16, 16});
  for (std::size_t i = 0; i < pixels.num_elements(); ++i) pixels.data()[i] = static_cast<float>(i % 7);
  Outputs of_two, of_one;
  session.forward(pixels, {Output::class_token, Output::tokens, Output::pooled}, of_two);
  const ImageOutputs two = of_two[0];
  CHECK(two[Output::tokens].shape() == Shape{2, 5, 16});
  CHECK(two[Output::pooled].shape() == Shape{2, 16});
  CHECK_ERROR(ErrorKind::mismatch, ("tokens"), two[Output::class_token]);
  const TensorView<const float> second(pixels.data() + 3 * 16 * 16, Shape{1, 3, 16, 16});
  session.forward(second, {Output::class_token}, of_one);
  const std::span<const float> token(two[Output::tokens][1].row(0), 16);
  CHECK(std::ranges::equal(of_one[0].class_token(), token));
}

TEST_CASE("session: cosine and length of embeddings") {
  const std::vector<float> a{3, 4, 0}, b{0, 0, 2}, zero{0, 0, 0}, longer{1, 2, 3, 4};
  CHECK(cosine_similarity(a, a) == doctest::Approx(1.0));
  CHECK(cosine_similarity(a, b) == 0.0);
  CHECK(cosine_similarity(a, zero) == 0.0);
  CHECK_THROWS_AS(cosine_similarity(a, longer), Error);
  std::vector<float> unit = a;
  normalize_vector(unit);
  CHECK(unit == std::vector<float>{0.6f, 0.8f, 0.0f});
  std::vector<float> still_zero = zero;
  normalize_vector(still_zero);
  CHECK(still_zero == zero);
}

}  // namespace vit
