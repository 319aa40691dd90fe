#include "apps/vit/inputs/input_reader.h"

#include <utility>

#include "apps/vit/ground/sha256.h"
#include "apps/vit/inputs/clips.h"
#include "apps/vit/inputs/video_frames.h"
#include "vit/base/check.h"
#include "vit/image/image_file.h"
#include "vit/io/source_file.h"

namespace vit::app {
using namespace internal;

Image decode_input(const Input& input, const DecodeOptions& options) {
  if (input.video) return input.video->frame_for_picture(input.pixels_index);
  if (!input.archive) return decode_file(input.path, options);
  return decode_bytes(input.archive->read(input.member), options, input.name);
}

Tensor<float> preprocess_input(const Input& input, const Preprocessor& preprocessor) {
  if (input.clip) return input.clip->load(preprocessor);
  if (input.video) {
    const Image frame = input.video->frame(input.pixels_index);
    return preprocessor.run(frame);
  }
  PreprocessMemory memory;
  if (!input.archive) return preprocessor.run_file(input.path, memory).pixels;
  return preprocessor.run_bytes(input.archive->read(input.member), input.name, memory).pixels;
}

ImageSource InputReader::source(std::size_t index) {
  const Input& input = inputs_[index];
  if (input.pixels) {
    return LoadPixels([this, &input, index] {
      if (digests_ != Digests::none) keep_digest_of_file(index);
      return input.pixels->load(input.pixels_index);
    });
  }
  if (input.clip) {
    return LoadPixels([this, &input, index] {
      VIT_CHECK(preprocessor_ != nullptr, "read clip", "no rules for its frames");
      if (digests_ != Digests::none) keep_digest_of_clip(index);
      return input.clip->load(*preprocessor_);
    });
  }
  if (input.video) {
    return LoadImage([this, &input, index] {
      if (digests_ != Digests::none) keep_digest_of_file(index);
      return input.video->frame(input.pixels_index);
    });
  }
  if (!input.archive && digests_ == Digests::none) return std::filesystem::path(input.path);
  return LoadFile{input.name, [this, &input, index] {
                    std::vector<std::byte> bytes =
                        input.archive ? input.archive->read(input.member) : read_image_file(input.path, {});
                    if (digests_ != Digests::none) keep_digest(index, sha256(bytes));
                    return bytes;
                  }};
}

std::string InputReader::take_digest(std::size_t index) {
  const std::lock_guard lock(mutex_);
  const auto node = taken_.extract(index);
  return node.empty() ? "" : std::move(node.mapped());
}

void InputReader::keep_digest(std::size_t index, std::string digest) {
  const std::lock_guard lock(mutex_);
  taken_[index] = std::move(digest);
}

/// Of a video that of the file; of a folder that of the digests of its images.
void InputReader::keep_digest_of_clip(std::size_t index) {
  std::string digests;
  for (const std::string& file : inputs_[index].clip->files()) digests += sha256(SourceFile(file, "read"));
  const bool is_video = inputs_[index].clip->is_video();
  keep_digest(index, is_video ? digests : sha256(std::as_bytes(std::span(digests))));
}

void InputReader::keep_digest_of_file(std::size_t index) {
  const std::lock_guard lock(mutex_);
  std::string& digest = files_[inputs_[index].path];
  if (digest.empty()) digest = sha256(SourceFile(inputs_[index].path, "read"));
  taken_[index] = digest;
}

}  // namespace vit::app
