// What the server and its decoding processes hand each other: messages over a socket, an image file and its
// pixels in memory that both see. Nothing that comes from a decoding process is trusted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "vit/image/preprocess.h"

namespace vit::app {

/// Whose rules make pixels of an image file.
enum class ImageRules : std::uint32_t {
  checkpoint,    // the model's own
  immich,        // of immich's machine learning service in its releases
  immich_model,  // of its newer source: squashed where the model's files say so, with the filter they name
  thumbnail,     // red, green and blue from 0 to 255, shrunk if the longer edge is above kThumbnailEdge
};
inline constexpr std::size_t kThumbnailEdge = 1024;

/// A file to be decoded, which lies at the start of the shared memory.
struct DecodeTask {
  std::uint64_t number = 0;  // of the task
  std::uint64_t file_bytes = 0;
  std::uint32_t model = 0;
  ImageRules rules = ImageRules::checkpoint;
  std::uint64_t least_area = 0, most_area = 0;  // limits in place of the model's own; 0 = those
  bool has_box = false;
  Box box{};  // part of the image that becomes pixels, if there is one
};

/// What became of it.
struct DecodeReply {
  enum class Kind : std::uint32_t {
    taken,    // the process has read the task
    pixels,   // they lie after the file
    outside,  // the box has no pixel of the image
    failure,  // its text lies after the file
    ended,    // from the supervisor: the process ended, and another one takes its place
  };
  std::uint64_t number = 0;  // of the task; of `ended` 0
  Kind kind = Kind::taken;
  std::uint32_t error_kind = 0;                       // ErrorKind of a failure
  std::uint64_t channels = 0, height = 0, width = 0;  // of the pixels
  std::uint64_t image_height = 0, image_width = 0;    // of the image
  std::uint64_t text_bytes = 0;                       // of a failure
  std::int32_t status = 0;                            // of `ended`, as waitpid() has it
};
static_assert(std::is_trivially_copyable_v<DecodeTask> && std::is_trivially_copyable_v<DecodeReply>);

/// The exit code of a process that has decoded before and leaves a file to a process with fresh memory.
inline constexpr int kWantsFreshProcess = 3;

/// Longest text of a failure.
inline constexpr std::size_t kMaxFailureText = 4096;

}  // namespace vit::app
