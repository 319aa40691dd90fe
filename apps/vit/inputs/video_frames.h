// The frames of a video as inputs of their own. They are read by any thread in about their order, once for
// the model and, where pictures of them are made, once more.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>

#include "apps/vit/inputs/inputs.h"
#include "apps/vit/inputs/video.h"

namespace vit::app {

class VideoFrames {
 public:
  /// Reads the video to its end: what a file says of its length is often wrong. Throws Error if it is no
  /// video, or has no frames, or frames of different sizes or of more than `max_pixels`.
  VideoFrames(std::filesystem::path path, std::size_t max_pixels);

  std::size_t size() const noexcept { return count_; }
  /// What the file says of their number; 0 = nothing.
  std::size_t announced() const noexcept { return announced_; }
  ImageSize frame_size() const noexcept { return size_; }
  /// A frame for the model. Cheap where indices grow; one below those before starts the video again.
  Image frame(std::size_t index) const { return read(for_model_, index); }
  /// The same frame for a picture.
  Image frame_for_picture(std::size_t index) const { return read(for_pictures_, index); }

 private:
  struct Cursor {
    std::mutex mutex;
    std::optional<Video> video;
    std::size_t next = 0;
    std::map<std::size_t, Image> passed;  // frames that another thread may be about to take
  };
  Image read(Cursor& cursor, std::size_t index) const;

  std::filesystem::path path_;
  std::size_t max_pixels_;
  std::size_t count_ = 0, announced_ = 0;
  ImageSize size_;
  mutable Cursor for_model_, for_pictures_;
};

/// Puts the frames of each video of the list in its place, as "clip.mp4[I]". A video that cannot be read is a
/// failure of the list.
void expand_videos(InputList& list, std::size_t max_pixels);

}  // namespace vit::app
