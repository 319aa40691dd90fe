// Teams as users of OpenMP expect them: its threads, its environment, its regions. CMakeLists.txt runs the
// cases with several environments.
#include <doctest/doctest.h>
#include <omp.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/shared_data.h"
#include "vit/attention.h"
#include "vit/base/parallel.h"
#include "vit/session.h"

using namespace vit;
using namespace vit::internal;

namespace {

/// The number in a variable of the environment; `otherwise` without it.
int environment_number(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::stoi(text);
}

int expected_threads(int wanted) {
  return std::min(wanted, environment_number("OMP_THREAD_LIMIT", wanted));
}

/// What the tasks of a team see, each thread once.
struct Seen {
  int region_threads = 0;
  bool are_numbered_alike = true;
  bool have_one_core = true;
};

/// What a team of `wanted` threads sees whose every thread has a task.
Seen look(int wanted) {
  const int present = expected_threads(wanted);
  Seen seen;
  std::atomic<int> begun{0};
  std::atomic<bool> alike{true}, one_core{true};
  parallel_for(static_cast<std::size_t>(present), wanted, [&](std::size_t, int thread) {
    for (++begun; begun < present;) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (thread == 0) seen.region_threads = omp_get_num_threads();
    if (omp_get_thread_num() != thread) alike = false;
    cpu_set_t cores;
    if (::pthread_getaffinity_np(::pthread_self(), sizeof cores, &cores) == 0 && CPU_COUNT(&cores) != 1)
      one_core = false;
  });
  seen.are_numbered_alike = alike;
  seen.have_one_core = one_core;
  return seen;
}

/// What a team that OpenMP serves sees: on a busy machine own workers do for a second.
Seen look_in_region(int wanted) {
  Seen seen = look(wanted);
  for (int wait = 0; wait < 20 && seen.region_threads == 1; ++wait) {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    seen = look(wanted);
  }
  return seen;
}

}  // namespace

TEST_CASE("openmp: the threads of a team are those of a region, as the environment wants them") {
  const int procs = omp_get_num_procs();
  const int by_default = expected_threads(environment_number("OMP_NUM_THREADS", procs));
  CHECK(resolve_threads(0) == by_default);
  CHECK(resolve_threads(3) == 3);
  if (expected_threads(3) > 1) {
    const Seen seen = look_in_region(3);
    CHECK(seen.region_threads == expected_threads(3));
    CHECK(seen.are_numbered_alike);
  }
  if (std::getenv("OMP_PROC_BIND") != nullptr) {
    CHECK(look_in_region(2).have_one_core);
    for (int round = 0; round < 50; ++round) parallel_for(64, 2, [](std::size_t, int) {});
    CHECK(look_in_region(2).have_one_core);
  }
}

TEST_CASE("openmp: omp_set_num_threads is what 0 threads means") {
  const int before = omp_get_max_threads();
  omp_set_num_threads(5);
  CHECK(resolve_threads(0) == expected_threads(5));
  omp_set_num_threads(before);
}

TEST_CASE("openmp: sessions and workspaces serve threads that want other numbers") {
  const int before = omp_get_max_threads();
  const auto model = Model::load(test::data_path("golden/models/rope-axial"));
  const std::vector<Image> images = [] {
    std::vector<Image> out;
    for (std::size_t i = 0; i < 12; ++i) out.emplace_back(40 + i, 60);
    return out;
  }();
  const std::vector<ImageView> views(images.begin(), images.end());
  Session single(model, {.threads = 1});
  const BatchOutputs expected = single.run(views, Output::logits);
  const auto check = [&](const BatchOutputs& found) {
    for (std::size_t i = 0; i < views.size(); ++i)
      CHECK(std::ranges::equal(found[i].logits(), expected[i].logits()));
  };
  omp_set_num_threads(1);
  Session session(model);
  CHECK(session.options().threads == expected_threads(1));
  omp_set_num_threads(5);
  check(session.run(views, Output::logits));
  std::thread([&] { check(session.run(views, Output::logits)); }).join();
  omp_set_num_threads(1);
  std::size_t streamed = 0;
  for_each_image(
      session, views.size(),
      [&](std::size_t i) {
        omp_set_num_threads(7);
        return ImageSource(views[i]);
      },
      Output::logits,
      [&](const StreamedImage& image) {
        REQUIRE(image.outputs);
        CHECK(std::ranges::equal(image.outputs->logits(), expected[image.index].logits()));
        ++streamed;
      });
  CHECK(streamed == views.size());

  const Tensor<float> tokens(Shape{2, 9, 16});
  Tensor<float> out(tokens.shape());
  Workspace memory;
  for (const int threads : {1, 6, 2}) {
    omp_set_num_threads(threads);
    attention(tokens, tokens, tokens, {}, 0, out, memory, {.num_heads = 4});
  }
  omp_set_num_threads(before);
}

TEST_CASE("openmp: in a caller's region each thread does its own tasks") {
  std::vector<std::atomic<int>> counts(2 * 50);
  std::atomic<bool> changed_thread{false};
  std::atomic<int> region{0};
#pragma omp parallel num_threads(2)
  {
    region = omp_get_num_threads();
    const auto own = std::this_thread::get_id();
    const auto first = static_cast<std::size_t>(omp_get_thread_num()) * 50;
    with_team(4, [&] {
      parallel_for(50, 4, [&](std::size_t task, int thread) {
        if (std::this_thread::get_id() != own || thread != 0) changed_thread = true;
        counts[first + task]++;
      });
    });
  }
  if (region == 1) return;  // a limit of the environment: there was no region
  CHECK_FALSE(changed_thread);
  for (const auto& count : counts) CHECK(count == 1);
}

TEST_CASE("openmp: a caller who allows nested regions gets teams in them") {
  const int before = omp_get_max_active_levels();
  omp_set_max_active_levels(2);
  std::atomic<int> tasks{0}, level{0};
#pragma omp parallel num_threads(2)
  {
    for (int round = 0; round < 10; ++round) {
      parallel_for(20, 2, [&](std::size_t, int) {
        ++tasks;
        level = std::max(level.load(), omp_get_level());
      });
    }
  }
  omp_set_max_active_levels(before);
  CHECK(tasks % 200 == 0);
  CHECK(level == 2);
}
