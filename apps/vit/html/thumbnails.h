// Thumbnails of inputs for pages: decoded again, upright, on white, as WebP.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "apps/vit/ground/progress.h"
#include "apps/vit/inputs/inputs.h"
#include "vit/image/image.h"

namespace vit::app {

struct Thumbnail {
  std::string webp;     // "" if there is none
  std::string failure;  // why
  ImageSize size;       // of the original image
};

struct ThumbnailOptions {
  int threads = 0;
  ProgressMode progress = ProgressMode::automatic;
  std::size_t page_bytes = 0;  // of the page that shows them; chooses their size
};

/// The longest edge that so many pictures of a page may have for it to stay below `page_bytes`, at most
/// `largest`.
std::size_t thumbnail_edge(std::size_t num_pictures, std::size_t page_bytes, std::size_t largest);

/// WebP of an image, shrunk to `max_edge` pixels if it is larger. Throws Error if it cannot be made.
std::string encode_thumbnail(ImageView image, std::size_t max_edge);

/// One per input, in order. An input that has no image, or one that cannot be read, has a failure
/// instead; so have all that an interrupt skipped.
std::vector<Thumbnail> make_thumbnails(std::span<const Input> inputs, const ThumbnailOptions& options);

/// The inputs that had these names in an earlier run, if they still exist; one without a path
/// is gone.
std::vector<Input> find_inputs(std::span<const std::string> names);

}  // namespace vit::app
