// BatchPlan: every image is computed once, and the numbers that passes and tasks are measured for.
#include "vit/towers/batch_plan.h"

#include <doctest/doctest.h>

#include <algorithm>

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

}  // namespace vit::internal
