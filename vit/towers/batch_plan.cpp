#include "vit/towers/batch_plan.h"

#include <algorithm>

#include "vit/base/checked.h"

namespace vit::internal {
namespace {

constexpr std::size_t kMostImagesPerPass = 64;
// With fewer tasks for each thread a slow core holds up the others.
constexpr std::size_t kTasksPerThread = 2;
// 2 MiB are three images of 224 pixels for each thread; a few threads get more, so that a group is worth its
// start.
constexpr std::size_t kGroupBytesPerThread = std::size_t{2} << 20;
constexpr std::size_t kLeastGroupBytes = std::size_t{10} << 20;
constexpr std::size_t kGroupImagesPerThread = 4;
constexpr std::size_t kLeastGroupImages = 16;

}  // namespace

std::size_t even_tasks(std::size_t num_tasks, std::size_t num_threads) {
  const std::size_t of_each = num_tasks / num_threads;
  return of_each < kTasksPerThread ? 0 : of_each * num_threads;
}

std::size_t tasks_of_group(std::size_t num_threads) {
  return 2 * kTasksPerThread * num_threads;
}

BatchPlan plan_batches(const BatchRequest& request) {
  const std::size_t num_tokens = std::max<std::size_t>(request.num_tokens, 1);
  BatchPlan plan;
  plan.images_per_pass = request.batch != 0
                             ? request.batch
                             : std::clamp<std::size_t>(kRowsPerPass / num_tokens, 1, kMostImagesPerPass);
  const std::size_t num_images = std::min(request.num_images, plan.images_per_pass);
  plan.images_per_task = ceil_div(kTokensPerTask, num_tokens);
  plan.num_tasks = even_tasks(num_images / plan.images_per_task, request.num_threads);
  plan.num_shared = num_images - plan.num_tasks * plan.images_per_task;
  return plan;
}

std::size_t GroupPlan::num_images(std::size_t image_bytes) const {
  return std::clamp(ceil_div(pixel_bytes, std::max<std::size_t>(image_bytes, 1)), at_least, at_most);
}

GroupPlan plan_group(std::size_t num_threads, std::size_t batch) {
  return {.at_least = std::max(num_threads, batch),
          .at_most = std::max({kLeastGroupImages, kGroupImagesPerThread * num_threads, batch}),
          .pixel_bytes = std::max(kLeastGroupBytes, kGroupBytesPerThread * num_threads)};
}

}  // namespace vit::internal
