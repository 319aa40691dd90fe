// for_each_image: order, failures, cancellation, the bits of any batch and number of threads, and the bound
// on busy threads.
#include "vit/session.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <map>
#include <mutex>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/shared_data.h"
#include "vit/base/error.h"
#include "vit/config.h"
#include "vit/image/image.h"

namespace vit {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> image_files() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(test::data_path("images"))) {
    if (entry.path().extension() == ".jpg" || entry.path().extension() == ".png")
      files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::shared_ptr<const Model> small_model() {
  return Model::load(test::data_path("golden/models/rope-axial"));
}

/// Logits of all files, one after another.
std::vector<float> logits_of(const std::vector<fs::path>& files, SessionOptions options) {
  Session session(small_model(), options);
  std::vector<float> all;
  std::size_t next = 0;
  for_each_image(session, files, {Output::logits}, [&](const StreamedImage& image) {
    REQUIRE(image.index == next++);
    REQUIRE_MESSAGE(image.outputs.has_value(), image.failure);
    const std::span<const float> logits = image.outputs->logits();
    all.insert(all.end(), logits.begin(), logits.end());
  });
  CHECK(next == files.size());
  return all;
}

}  // namespace

TEST_CASE("stream: results come in order, with the same bits for any batch and number of threads") {
  std::vector<fs::path> files = image_files();
  REQUIRE(files.size() >= 3);
  while (files.size() < 40) files.push_back(files[files.size() / 2]);
  const std::vector<float> expected = logits_of(files, {.threads = 1});
  for (const int threads : {1, 2, 5}) {
    for (const std::size_t batch : {0, 1, 3}) {
      CHECK(logits_of(files, {.threads = threads, .batch = batch}) == expected);
    }
  }
}

TEST_CASE("stream: sources of every kind give the same, and one that fails does not stop the others") {
  Session session(small_model(), {.threads = 2});
  const fs::path file = image_files().front();
  const Image image = session.decode(file);
  const auto source = [&](std::size_t index) -> ImageSource {
    switch (index) {
      case 0: return file;
      case 1: return image.view();
      case 2: return LoadPixels([&] { return session.preprocessor().run(image); });
      case 3: return fs::path("/no/such/image.png");
      case 4: return LoadPixels([] { return Tensor<float>(Shape{2, 2}); });
      case 5: return LoadPixels([]() -> Tensor<float> { throw std::bad_alloc(); });
      default: return file;
    }
  };
  std::map<std::size_t, std::vector<float>> logits;
  std::map<std::size_t, std::string> failures;
  double reported = 0;
  const std::size_t done = for_each_image(session, 7, source, {Output::logits},
                                          [&](const StreamedImage& streamed) {
                                            if (streamed.outputs) {
                                              const std::span<const float> row = streamed.outputs->logits();
                                              logits[streamed.index] = {row.begin(), row.end()};
                                            } else {
                                              failures[streamed.index] = streamed.failure;
                                            }
                                          },
                                          {.on_progress = [&](double number, std::size_t count) {
                                            CHECK(number >= reported);
                                            CHECK(count == 7);
                                            reported = number;
                                          }});
  CHECK(done == 7);
  CHECK(reported == 7);
  REQUIRE(logits.size() == 4);
  for (const auto& [index, row] : logits) CHECK(row == logits.at(0));
  REQUIRE(failures.size() == 3);
  CHECK(failures.at(3).find("/no/such/image.png") != std::string::npos);
  CHECK(failures.at(4).find("(2, 2)") != std::string::npos);
  CHECK(failures.at(5).find("memory") != std::string::npos);
}

TEST_CASE("stream: a cancelled stream ends at once, an exception of the consumer comes through") {
  Session session(small_model(), {.threads = 2});
  const std::vector<fs::path> files(100, image_files().front());
  std::atomic<bool> is_cancelled{false};
  std::size_t seen = 0;
  const std::size_t done = for_each_image(session, files, {Output::logits},
                                          [&](const StreamedImage&) {
                                            ++seen;
                                            is_cancelled = true;
                                          },
                                          {.is_cancelled = [&] { return is_cancelled.load(); }});
  CHECK(done == seen);
  CHECK(done < 100);
  CHECK(done > 0);
  double reported = 0;
  CHECK(for_each_image(session, std::span(files).first(1), {Output::logits},
                       [](const StreamedImage&) { FAIL("the image was cancelled in its first block"); },
                       {.on_progress = [&](double number, std::size_t) { reported = number; },
                        .is_cancelled = [&] { return reported > 0; }}) == 0);
  CHECK(reported > 0);
  CHECK(reported < 1);
  CHECK_THROWS_AS(for_each_image(session, files, {Output::logits},
                                 [](const StreamedImage&) { throw std::runtime_error("full disk"); }),
                  std::runtime_error);
  CHECK_THROWS_AS(for_each_image(session, files, {{Output::block, 999}}, [](const StreamedImage&) {}), Error);
}

TEST_CASE("stream: one thread does everything itself, several read at the same time") {
  const auto readers = [](int threads) {
    Session session(small_model(), {.threads = threads});
    const Image image(64, 64);
    std::mutex mutex;
    std::condition_variable joined;
    std::set<std::thread::id> ids;
    std::atomic<int> busy{0}, most_busy{0};
    for_each_image(
        session, 64,
        [&](std::size_t) -> ImageSource {
          return LoadPixels([&] {
            const int now = ++busy;
            for (int most = most_busy; now > most && !most_busy.compare_exchange_weak(most, now);) {
            }
            {  // the first waits for a second reader
              std::unique_lock lock(mutex);
              ids.insert(std::this_thread::get_id());
              joined.notify_all();
              const auto are_two = [&] { return threads == 1 || ids.size() > 1; };
              joined.wait_for(lock, std::chrono::minutes(1), are_two);
            }
            Tensor<float> pixels = session.preprocessor().run(image);
            --busy;
            return pixels;
          });
        },
        {Output::logits}, [](const StreamedImage& streamed) { CHECK(streamed.failure == ""); });
    CHECK(most_busy <= threads);
    return ids;
  };
  CHECK(readers(1) == std::set{std::this_thread::get_id()});
  CHECK(readers(3).size() > 1);
}

TEST_CASE("stream: an image beyond the tables of columns and rows fails by itself") {
  ModelConfig config;
  config.image.height = config.image.width = 64;
  config.patch.size = 16;
  config.embed_dim = 24;
  config.encoder.depth = 1;
  config.attention.num_heads = 2;
  config.mlp.dim = 48;
  config.position.added = AddedTable::columns_and_rows;
  config.position.added_grid = {4, 4};
  config.position.resampling = TableResampling::bicubic_antialias;
  Session session(Model::random(config), {.threads = 1});
  const auto source = [](std::size_t index) {
    return ImageSource(LoadPixels([index] {
      return Tensor<float>(Shape{3, 48, index == 1 ? 240ul : 48ul});
    }));
  };
  std::vector<std::string> failures;
  for_each_image(session, 3, source, {Output::tokens},
                 [&](const StreamedImage& image) { failures.push_back(image.failure); });
  REQUIRE(failures.size() == 3);
  CHECK(failures[0].empty());
  CHECK(failures[1].find("3 x 15") != std::string::npos);
  CHECK(failures[2].empty());
}

}  // namespace vit
