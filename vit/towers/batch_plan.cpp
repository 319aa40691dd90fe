#include "vit/towers/batch_plan.h"

#include <algorithm>

#include "vit/base/checked.h"

namespace vit::internal {
namespace {

// Enough rows to keep every core in full tiles, few enough that activations stay near the caches: ViT-B at
// 224 pixels then takes ten images at a time.
constexpr std::size_t kTokensPerPass = 2048;
constexpr std::size_t kMostImagesPerPass = 64;
// A task of one thread streams every weight past its own rows. With fewer rows than this the weights come
// from memory too often: one image of 197 tokens is enough, images of 50 go four at a time.
constexpr std::size_t kRowsPerTask = 192;
// With fewer tasks for each thread a slow core holds up the others; all threads then share the images.
constexpr std::size_t kTasksPerThread = 2;
// 2 MiB are three images of 224 pixels for each thread; a few threads get more, so that a group is worth its
// start.
constexpr std::size_t kGroupBytesPerThread = std::size_t{2} << 20;
constexpr std::size_t kLeastGroupBytes = std::size_t{10} << 20;
constexpr std::size_t kGroupImagesPerThread = 4;
constexpr std::size_t kLeastGroupImages = 16;

}  // namespace

BatchPlan plan_batches(const BatchRequest& request) {
  const std::size_t num_tokens = std::max<std::size_t>(request.num_tokens, 1);
  BatchPlan plan;
  plan.images_per_pass = request.batch != 0
                             ? request.batch
                             : std::clamp<std::size_t>(kTokensPerPass / num_tokens, 1, kMostImagesPerPass);
  const std::size_t num_images = std::min(request.num_images, plan.images_per_pass);
  plan.images_per_task = ceil_div(kRowsPerTask, num_tokens);
  const std::size_t rounds = num_images / plan.images_per_task / request.num_threads;
  plan.num_tasks = rounds < kTasksPerThread ? 0 : rounds * request.num_threads;
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
