#include "apps/vit/inputs/video_frames.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "vit/base/check.h"

namespace vit::app {
namespace {

constexpr Where kWhere{"read video", ErrorKind::format};
constexpr std::size_t kMostPassed = 64;       // more than threads that read at the same time
constexpr std::size_t kMostPassedInJump = 8;  // most of the frames before are of other parts of the run

}  // namespace

VideoFrames::VideoFrames(std::filesystem::path path, std::size_t max_pixels)
    : path_(std::move(path)), max_pixels_(max_pixels) {
  Video video(path_);
  announced_ = video.num_frames();
  for (; const std::optional<ImageSize> size = video.next(max_pixels_); ++count_) {
    if (count_ == 0) size_ = *size;
    VIT_CHECK(*size == size_, kWhere.with(ErrorKind::unsupported), path_.string(), ": frame ", count_,
              " has ", size->width, " x ", size->height, " pixels, those before ", size_.width, " x ",
              size_.height);
  }
  VIT_CHECK(count_ != 0, kWhere, path_.string(), ": no frame of it can be decoded");
}

Image VideoFrames::read(Cursor& cursor, std::size_t index) const {
  const std::lock_guard lock(cursor.mutex);
  if (auto found = cursor.passed.extract(index); !found.empty()) return std::move(found.mapped());
  if (!cursor.video || index < cursor.next) {
    cursor.video.emplace(path_);
    cursor.next = 0;
    cursor.passed.clear();
  }
  const std::size_t num_kept = index - cursor.next > kMostPassed ? kMostPassedInJump : kMostPassed;
  for (;; ++cursor.next) {
    Image frame;
    const bool is_kept = cursor.next + num_kept >= index;
    const bool is_same = is_kept ? cursor.video->read(frame, max_pixels_) && frame.size() == size_
                                 : cursor.video->next(max_pixels_) == size_;
    VIT_CHECK(is_same, kWhere, path_.string(), ": frame ", cursor.next,
              " is not what it was before; did the file change?");
    if (cursor.next == index) {
      cursor.passed.erase(cursor.passed.begin(),
                          cursor.passed.lower_bound(index - std::min(index, kMostPassed)));
      if (++cursor.next == count_) cursor.video.reset();  // a decoder takes much memory
      return frame;
    }
    if (is_kept) cursor.passed.emplace(cursor.next, std::move(frame));
  }
}

void expand_videos(InputList& list, std::size_t max_pixels) {
  std::vector<Input> inputs;
  for (Input& input : list.inputs) {
    if (input.pixels || input.archive || !has_video_extension(input.path)) {
      inputs.push_back(std::move(input));
      continue;
    }
    try {
      const auto frames = std::make_shared<const VideoFrames>(input.path, max_pixels);
      if (frames->announced() > frames->size())
        list.notes.push_back(
            {input.name, text("has ", frames->size(), " frames that can be decoded; it announces ",
                              frames->announced())});
      for (std::size_t i = 0; i < frames->size(); ++i) {
        inputs.push_back({.name = text(input.name, "[", i, "]"),
                          .path = input.path,
                          .pixels = nullptr,
                          .pixels_index = i,
                          .video = frames});
      }
    } catch (const Error& error) {
      list.failures.push_back({input.name, error.what()});
    }
  }
  list.inputs = std::move(inputs);
}

}  // namespace vit::app
