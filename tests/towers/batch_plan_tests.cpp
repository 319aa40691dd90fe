// BatchPlan and Lanes: every image and text is computed once, and the numbers that passes and tasks are
// measured for.
#include "vit/towers/batch_plan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "tests/support/rng.h"
#include "vit/towers/lanes.h"

namespace vit::internal {

TEST_CASE("model: tasks and the shared remainder make up a pass") {
  for (const std::size_t num_images : {1, 2, 3, 8, 41, 64, 100}) {
    for (const std::size_t num_tokens : {1, 50, 197, 577, 4097}) {
      for (const std::size_t batch : {0, 1, 16}) {
        for (const std::size_t num_threads : {1, 2, 16}) {
          const BatchPlan plan = plan_batches({.num_images = num_images,
                                               .num_tokens = num_tokens,
                                               .batch = batch,
                                               .num_threads = num_threads});
          CHECK(plan.images_per_pass >= 1);
          if (batch != 0) CHECK(plan.images_per_pass == batch);
          const std::size_t pass = std::min(num_images, plan.images_per_pass);
          CHECK(plan.num_tasks * plan.images_per_task + plan.num_shared == pass);
          // No thread has a task more than another, and each has two at least.
          CHECK(plan.num_tasks % num_threads == 0);
          CHECK((plan.num_tasks == 0 || plan.num_tasks >= 2 * num_threads));
        }
      }
    }
  }
}

TEST_CASE("model: a group keeps all threads busy and bounds what is held") {
  constexpr std::size_t kImage = 3 * 224 * 224 * sizeof(float), kMegabyte = std::size_t{1} << 20;
  for (const std::size_t num_threads : {1, 2, 16, 100}) {
    for (const std::size_t batch : {0, 1, 8, 500}) {
      const GroupPlan plan = plan_group(num_threads, batch);
      for (const std::size_t image_bytes : {std::size_t{1}, kImage, 100 * kMegabyte}) {
        const std::size_t num_images = plan.num_images(image_bytes);
        CHECK(num_images >= std::max(num_threads, batch));
        CHECK(num_images <= std::max({std::size_t{16}, 4 * num_threads, batch}));
        // the count at which a stream that reads one after another stops
        CHECK(plan.is_full(num_images, num_images * image_bytes));
        CHECK_FALSE(plan.is_full(num_images - 1, (num_images - 1) * image_bytes));
      }
    }
  }
  CHECK(plan_group(2, 8).num_images(1) == 16);
  CHECK(plan_group(2, 8).num_images(kMegabyte) == 10);
  CHECK(plan_group(2, 8).num_images(5 * kMegabyte) == 8);
}

TEST_CASE("model: passes hold about 2048 tokens, tasks at least 192") {
  CHECK(plan_batches({.num_tokens = 197}).images_per_pass == 10);
  CHECK(plan_batches({.num_tokens = 4097}).images_per_pass == 1);
  CHECK(plan_batches({.num_tokens = 10}).images_per_pass == 64);
  CHECK(plan_batches({.num_tokens = 197}).images_per_task == 1);
  CHECK(plan_batches({.num_tokens = 50}).images_per_task == 4);
}

TEST_CASE("model: lanes run what the plan of a batch says") {
  ForwardMemory memory;
  for (const std::size_t num_images : {1, 3, 8, 41, 64}) {
    for (const std::size_t num_tokens : {1, 50, 197, 577}) {
      for (const std::size_t num_threads : {1, 2, 5}) {
        const BatchPlan plan = plan_batches({.num_images = num_images,
                                             .num_tokens = num_tokens,
                                             .batch = num_images,
                                             .num_threads = num_threads});
        const Lanes lanes(Sequences(num_images, num_tokens), static_cast<int>(num_threads), 0, memory);
        REQUIRE(lanes.num_tasks() == plan.num_tasks);
        REQUIRE(lanes.num_parts() == plan.num_tasks + (plan.num_shared != 0 ? 1 : 0));
        if (plan.num_tasks != 0) CHECK(lanes.count_of(0) == plan.images_per_task);
        if (plan.num_shared != 0) CHECK(lanes.count_of(plan.num_tasks) == plan.num_shared);
      }
    }
  }
}

TEST_CASE("model: lanes run each of items of different lengths once, and report them") {
  test::Rng rng(4);
  const kernels::Arithmetic& arithmetic = *kernels::default_kernels().float32;
  const ActivationShape shape{.num_tokens = 8, .embed_dim = 8, .attention_dim = 8, .threads = 1};
  for (const std::size_t num_items : {1, 40, 900}) {
    for (const int threads : {1, 2, 3}) {
      CAPTURE(num_items);
      CAPTURE(threads);
      std::vector<std::size_t> starts{0};
      for (std::size_t i = 0; i < num_items; ++i) starts.push_back(starts.back() + 1 + rng.next() % 76);
      std::vector<std::atomic<int>> runs(num_items);
      double reported = 0;
      PassWatch watch([&](double items) { reported = items; }, {});
      StageTimes times;
      ForwardMemory memory;
      memory.watch_passes(&watch);
      memory.measure_stages(&times);
      Lanes lanes(Sequences(starts), threads, kRowsPerPass, memory);
      std::atomic<std::size_t> tasks = 0;
      lanes.run(
          shape, arithmetic, [](ForwardMemory::Lane&) {},
          [&](std::size_t first, std::size_t count, const Pass& pass, ForwardMemory::Lane&) {
            const std::size_t rows = starts[first + count] - starts[first];
            if (pass.watch == nullptr) {
              ++tasks;
              if (pass.threads != 1 || rows < kTokensPerTask) runs[first] = 1000;
            }
            pass.times->seconds[0] += static_cast<double>(count);
            for (std::size_t i = 0; i < count; ++i) ++runs[first + i];
          });
      CHECK(std::ranges::all_of(runs, [](const std::atomic<int>& run) { return run == 1; }));
      CHECK(tasks == lanes.num_tasks());
      CHECK(tasks % static_cast<std::size_t>(threads) == 0);
      CHECK(reported == static_cast<double>(num_items));
      const double of_tasks = static_cast<double>(lanes.first_of(lanes.num_tasks()));
      CHECK(times.seconds[0] ==
            doctest::Approx(of_tasks / threads + (static_cast<double>(num_items) - of_tasks)));
    }
  }
}

}  // namespace vit::internal
