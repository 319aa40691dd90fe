// How many images or texts are read and computed together, and by how many threads.
//
//   all inputs            ->  groups, read by all threads and then computed: GroupPlan
//   a group, size by size ->  passes of images_per_pass: activations stay near the caches
//   a pass                ->  num_tasks tasks of images_per_task, one thread each, then num_shared images by
//                             all: lanes.h, which runs them, of images and of texts
//
// Results do not depend on it.
#pragma once

#include <cstddef>

namespace vit::internal {

/// A task of one thread streams every weight past its own rows. With fewer rows than this the weights come
/// from memory too often: one image of 197 tokens is enough, images of 50 go four at a time.
inline constexpr std::size_t kTokensPerTask = 192;
/// Enough rows to keep every core in full tiles, few enough that activations stay near the caches: ViT-B at
/// 224 pixels then takes ten images at a time.
inline constexpr std::size_t kRowsPerPass = 2048;

/// Of so many tasks those that are run as such, as many by each thread; 0 if a slow core would hold up the
/// others, so that all threads share everything.
std::size_t even_tasks(std::size_t num_tasks, std::size_t num_threads);

/// Tasks of a group of texts between two reports of progress: enough for the threads to end about together.
std::size_t tasks_of_group(std::size_t num_threads);

struct BatchRequest {
  std::size_t num_images = 1;   // of one size
  std::size_t num_tokens = 1;   // of an image, prefix included
  std::size_t batch = 0;        // images of a pass, 0 = chosen here
  std::size_t num_threads = 1;  // at least one
};

struct BatchPlan {
  std::size_t images_per_pass = 1;  // of all passes but the last
  // of a pass of num_images or images_per_pass, whichever is less:
  std::size_t images_per_task = 1;
  std::size_t num_tasks = 0;   // of one thread each; those threads never wait for each other
  std::size_t num_shared = 0;  // images computed by all threads together
};

BatchPlan plan_batches(const BatchRequest& request);

/// How many images of a stream are read before they are computed: enough for full batches and to keep all
/// threads busy, few, so that a cancellation is heard soon and results do not pile up.
struct GroupPlan {
  std::size_t at_least = 1;     // images, however large
  std::size_t at_most = 1;      // images, however small
  std::size_t pixel_bytes = 0;  // of preprocessed pixels: no image more once these are there

  bool is_full(std::size_t num_images, std::size_t num_bytes) const {
    return num_images >= at_most || (num_images >= at_least && num_bytes >= pixel_bytes);
  }
  /// Images of a full group, of as many bytes each.
  std::size_t num_images(std::size_t image_bytes) const;
};

/// `batch` as in BatchRequest.
GroupPlan plan_group(std::size_t num_threads, std::size_t batch);

}  // namespace vit::internal
