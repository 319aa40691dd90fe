// Many threads over one model: sessions, the stream, its end from a signal. The cases run in every build;
// under ThreadSanitizer (preset tsan) they show that nothing is written by one thread while another looks at
// it.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <exception>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/rng.h"
#include "tests/support/shared_data.h"
#include "vit/base/parallel.h"
#include "vit/vit.h"

namespace vit {
namespace {

// Of every thread and of freed memory, sanitizers keep something.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
constexpr bool kSanitized = __has_feature(thread_sanitizer) || __has_feature(address_sanitizer);
#else
constexpr bool kSanitized = false;
#endif

std::shared_ptr<const Model> golden_model(const std::string& name, Precision precision = Precision::float32) {
  return Model::load(test::data_path("golden/models/" + name), {.precision = precision});
}

/// Runs body(0) ... body(count - 1) in threads of their own at once; rethrows what one of them throws.
template <typename Body>
void at_once(std::size_t count, const Body& body) {
  std::vector<std::exception_ptr> errors(count);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      try {
        body(i);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

/// Resident pages of this process; 0 if the system does not say.
std::size_t resident_pages() {
  std::ifstream file("/proc/self/statm");
  std::size_t all = 0, resident = 0;
  return file >> all >> resident ? resident : 0;
}

/// Tokens of pixels that `seed` chooses, of this many patches of 8 pixels in each direction.
std::vector<float> tokens_of(Session& session, unsigned seed, std::size_t patches) {
  const Tensor<float> pixels = test::Rng(seed).tensor({2, 3, 8 * patches, 8 * patches});
  Outputs outputs;
  session.forward(pixels, {Output::tokens}, outputs);
  const std::span<const float> tokens = outputs[Output::tokens].flat();
  return {tokens.begin(), tokens.end()};
}

ImageSource image_of(const std::vector<std::uint8_t>& pixels, std::size_t edge) {
  return ImageView(pixels.data(), edge, edge);
}

}  // namespace

TEST_CASE("threads: sessions of one model, each with a team, give the bits of a single one") {
  constexpr std::size_t kSessions = 4, kSizes = 3;
  for (const char* name : {"rope-mixed-ape", "hf-dinov3"}) {  // resampled tables and factors for each grid
    for (const Precision precision : {Precision::float32, Precision::int8}) {
      CAPTURE(name);
      const auto model = golden_model(name, precision);
      std::vector<std::vector<float>> expected;
      Session alone(model, {.threads = 1});
      for (unsigned i = 0; i < kSizes; ++i) expected.push_back(tokens_of(alone, i, 3 + i));
      std::vector<int> equal(kSessions);
      const auto shared = golden_model(name, precision);  // has seen no size
      at_once(kSessions, [&](std::size_t i) {
        Session session(shared, {.threads = static_cast<int>(1 + i % 3)});
        for (unsigned round = 0; round < 2 * kSizes; ++round) {
          const unsigned size = (round + static_cast<unsigned>(i)) % kSizes;
          equal[i] += tokens_of(session, size, 3 + size) == expected[size] ? 1 : 0;
        }
      });
      for (const int count : equal) CHECK(count == 2 * kSizes);
    }
  }
}

TEST_CASE("threads: 64 sessions of one model at once") {
  const auto model = golden_model("rope-axial");
  Session alone(model, {.threads = 1});
  const std::vector<float> expected = tokens_of(alone, 1, 4);
  std::vector<int> equal(64);
  at_once(equal.size(), [&](std::size_t i) {
    Session session(model, {.threads = static_cast<int>(1 + i % 2)});
    for (int round = 0; round < 3; ++round) equal[i] += tokens_of(session, 1, 4) == expected ? 1 : 0;
  });
  for (const int count : equal) CHECK(count == 3);
}

TEST_CASE("threads: sessions of short-lived threads leave nothing") {
  const auto model = golden_model("rope-axial");
  const auto run = [&](int count) {
    for (int i = 0; i < count; ++i) {
      std::thread([&] {
        Session session(model, {.threads = 2});
        tokens_of(session, 1, 3);
      }).join();
    }
  };
  run(50);  // the threads of teams and the arenas of the heap are there
  const std::size_t before = resident_pages();
  run(400);
  // A session's own memory, kept once each, would be some fifty pages; the heap may grow by a few.
  if (!kSanitized) CHECK(resident_pages() < before + 400);
}

TEST_CASE("threads: preprocessors of several sessions and threads give the same pixels") {
  const auto model = golden_model("hf-vit");
  const std::vector<std::uint8_t> pixels(37 * 37 * 3, 99);
  std::vector<std::vector<float>> logits(4);
  at_once(logits.size(), [&](std::size_t i) {
    Session session(model, {.threads = 2});
    Outputs outputs;
    for (int round = 0; round < 3; ++round)
      session.run(ImageView(pixels.data(), 37, 37), {Output::logits}, outputs);
    logits[i].assign(outputs[Output::logits].flat().begin(), outputs[Output::logits].flat().end());
  });
  for (const auto& found : logits) CHECK(found == logits[0]);
}

TEST_CASE("threads: streams over one model hand out results in order, failures among them") {
  const auto model = golden_model("rope-axial");
  const std::vector<std::uint8_t> pixels(24 * 24 * 3, 77);
  std::vector<std::vector<std::size_t>> order(3);
  std::vector<std::size_t> failures(3);
  at_once(order.size(), [&](std::size_t i) {
    Session session(model, {.threads = static_cast<int>(1 + i)});
    const auto source = [&](std::size_t index) -> ImageSource {
      if (index % 5 == 3) return std::filesystem::path("/nonexistent/" + std::to_string(index));
      return image_of(pixels, 24);
    };
    for_each_image(session, 60, source, {Output::logits}, [&](const StreamedImage& image) {
      order[i].push_back(image.index);
      failures[i] += image.outputs ? 0 : 1;
    });
  });
  for (std::size_t i = 0; i < order.size(); ++i) {
    CHECK(order[i].size() == 60);
    CHECK(std::ranges::is_sorted(order[i]));
    CHECK(failures[i] == 12);
  }
}

namespace {

std::atomic<bool> signaled{false};
static_assert(std::atomic<bool>::is_always_lock_free);  // as a signal handler needs it

}  // namespace

TEST_CASE("threads: a signal ends a stream between two results") {
  signaled = false;
  const auto former = std::signal(SIGTERM, [](int) { signaled = true; });
  const auto model = golden_model("rope-axial");
  const std::vector<std::uint8_t> pixels(24 * 24 * 3, 77);
  Session session(model, {.threads = 3});
  std::size_t consumed = 0;
  const std::size_t done = for_each_image(
      session, 100'000, [&](std::size_t) { return image_of(pixels, 24); }, {Output::logits},
      [&](const StreamedImage&) {
        if (++consumed == 20) std::thread([] { std::raise(SIGTERM); }).join();
      },
      {.is_cancelled = [] { return signaled.load(); }});
  std::signal(SIGTERM, former);
  CHECK(done == consumed);
  CHECK(consumed >= 20);
  CHECK(consumed < 100'000);
}

TEST_CASE("threads: an exception of the consumer ends a stream and its threads") {
  const auto model = golden_model("rope-axial");
  const std::vector<std::uint8_t> pixels(24 * 24 * 3, 77);
  Session session(model, {.threads = 3});
  CHECK_THROWS_AS(for_each_image(
                      session, 1000, [&](std::size_t) { return image_of(pixels, 24); }, {Output::logits},
                      [&](const StreamedImage& image) {
                        if (image.index == 7) throw std::runtime_error("enough");
                      }),
                  std::runtime_error);
}

TEST_CASE("threads: teams of several leaders do not see each other's tasks") {
  std::vector<std::size_t> sums(3);
  at_once(sums.size(), [&](std::size_t leader) {
    std::vector<std::size_t> counts(37);
    internal::with_team(3, [&] {
      for (std::size_t round = 0; round < 200; ++round)
        internal::parallel_for(counts.size(), 3, [&](std::size_t task, int) { counts[task] += leader + 1; });
    });
    for (const std::size_t count : counts) sums[leader] += count;
  });
  for (std::size_t leader = 0; leader < sums.size(); ++leader) CHECK(sums[leader] == 37 * 200 * (leader + 1));
}

}  // namespace vit
