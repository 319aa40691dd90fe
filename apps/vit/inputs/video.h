// Frames of video files, read with OpenCV by a module that is loaded for the first of them; without the
// module, Error.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>

#include "vit/image/image.h"

namespace vit::app {

/// Whether the extension is one of a video, in any case.
bool has_video_extension(const std::filesystem::path& path);

/// Loads that module now, if there is one: before a sandbox confines what its libraries do when they start.
void load_video_module();

/// A video being read from its beginning. Not to be shared between threads.
class Video {
 public:
  /// Throws Error if the file cannot be opened, or is not a video that OpenCV can decode.
  explicit Video(const std::filesystem::path& path);
  ~Video();
  Video(Video&&) noexcept;
  Video& operator=(Video&&) noexcept;

  /// Goes to the next frame: its size, upright (video_orientation.h), or nothing at the end. Throws Error for
  /// a frame of more than `max_pixels`.
  std::optional<ImageSize> next(std::size_t max_pixels);
  /// The next frame, in RGB, upright; false at the end. Throws Error as next() does.
  bool read(Image& frame, std::size_t max_pixels);
  /// Number of frames according to the file; 0 = unknown.
  std::size_t num_frames() const;

 private:
  struct Capture;
  std::unique_ptr<Capture> capture_;
};

}  // namespace vit::app
