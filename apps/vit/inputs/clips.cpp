#include "apps/vit/inputs/clips.h"

#include <iostream>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "apps/vit/inputs/video.h"
#include "vit/base/check.h"

namespace vit::app {
namespace {

namespace fs = std::filesystem;

/// Frames of a video from the first to the last that can be read.
std::size_t count_frames(const std::string& path, std::size_t max_pixels) {
  Video video{fs::path(path)};
  std::size_t count = 0;
  while (video.next(max_pixels)) ++count;
  return count;
}

/// The frames of these increasing indices; nothing if the video ends before the last of them.
std::optional<std::vector<Image>> read_frames(const std::string& path, std::span<const std::size_t> indices,
                                              std::size_t max_pixels) {
  Video video{fs::path(path)};
  Image frame;
  std::vector<Image> frames;
  for (std::size_t at = 0; frames.size() < indices.size(); ++at) {
    const bool is_taken = at == indices[frames.size()];
    if (is_taken ? !video.read(frame, max_pixels) : !video.next(max_pixels)) return std::nullopt;
    for (; frames.size() < indices.size() && indices[frames.size()] == at;) {
      Image copy(frame.height(), frame.width());
      std::copy_n(frame.data(), 3 * frame.height() * frame.width(), copy.data());
      frames.push_back(std::move(copy));
    }
  }
  return frames;
}

}  // namespace

Clip::Clip(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  VIT_CHECK(fs::exists(status), "open", "no such file or folder");
  is_folder_ = fs::is_directory(status);
  if (!is_folder_) {
    files_.push_back(path.string());
    return;
  }
  for (const fs::path& entry : entries_of(path, error)) {
    if (has_image_extension(entry) && left_by_others(entry.filename().string()) == nullptr)
      files_.push_back(entry.string());
  }
  VIT_CHECK(!error, "read folder", error.message());
  VIT_CHECK(!files_.empty(), "read folder", "no images in this folder, expected the frames of a clip");
}

std::vector<Image> Clip::frames_of_folder(const Preprocessor& preprocessor) const {
  std::vector<Image> frames;
  for (const std::size_t index : sample_frames(preprocessor.config(), files_.size()))
    frames.push_back(decode_file(files_[index], preprocessor.decode_options()));
  return frames;
}

std::vector<Image> Clip::frames_of_video(const Preprocessor& preprocessor) const {
  const PreprocessConfig& config = preprocessor.config();
  const std::size_t announced = Video(fs::path(files_.front())).num_frames();
  if (announced != 0) {
    if (auto frames = read_frames(files_.front(), sample_frames(config, announced), config.max_pixels))
      return *std::move(frames);
  }
  const std::size_t counted = count_frames(files_.front(), config.max_pixels);
  auto frames = read_frames(files_.front(), sample_frames(config, counted), config.max_pixels);
  VIT_CHECK(frames, "read video", "did the file change?");
  return *std::move(frames);
}

Tensor<float> Clip::load(const Preprocessor& preprocessor) const {
  const std::vector<Image> frames =
      is_folder_ ? frames_of_folder(preprocessor) : frames_of_video(preprocessor);
  const std::vector<ImageView> views(frames.begin(), frames.end());
  return preprocessor.run_clip(views);
}

namespace {

void add_clip(const std::string& argument, InputList& list) {
  const fs::path path(argument);
  if (path.extension() == ".npy") {
    InputList pixels = list_inputs(std::span(&argument, 1), std::cin);
    std::ranges::move(pixels.inputs, std::back_inserter(list.inputs));
    std::ranges::move(pixels.failures, std::back_inserter(list.failures));
    return;
  }
  try {
    list.inputs.push_back(
        {.name = argument, .path = argument, .pixels = nullptr, .clip = std::make_shared<const Clip>(path)});
  } catch (const Error& error) {
    list.failures.push_back({argument.empty() ? "''" : argument, error.what()});
  }
}

}  // namespace

InputList list_clips(std::span<const std::string> arguments) {
  InputList list;
  const auto add = [&](const std::string& path) { add_clip(path, list); };
  for (const std::string& argument : arguments) {
    argument == "-" ? for_each_path(std::cin, list, add) : add(argument);
  }
  return list;
}

}  // namespace vit::app
