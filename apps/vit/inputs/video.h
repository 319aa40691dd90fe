// Frames of video files, read with OpenCV; a build without it says so.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>

#include "vit/image/image.h"

namespace vit::app {

/// Whether the extension is one of a video, in any case.
bool has_video_extension(const std::filesystem::path& path);

/// A video being read from its beginning. Not to be shared between threads.
class Video {
 public:
  /// Throws Error if the file cannot be opened, or is no video that OpenCV's decoders know.
  explicit Video(const std::filesystem::path& path);
  ~Video();
  Video(Video&&) noexcept;
  Video& operator=(Video&&) noexcept;

  /// The next frame, in RGB; false at the end. Throws Error for a frame of more than `max_pixels`.
  bool read(Image& frame, std::size_t max_pixels);
  /// Frames that the file announces; 0 = unknown.
  std::size_t num_frames() const;

 private:
  struct Capture;
  std::unique_ptr<Capture> capture_;
};

}  // namespace vit::app
