// The interface of the module vit_video.so. It links OpenCV's videoio, which brings about two hundred shared
// libraries; they are loaded when the first video is opened. Plain C types, so that the module has no part of
// the library in it.
#pragma once

#include <cstddef>

namespace vit::app {

inline constexpr std::size_t kVideoErrorSize = 512;

/// Functions of the module. One that fails writes the reason to `error`: kVideoErrorSize bytes, terminated.
struct VideoModule {
  /// A video being read; null if it cannot be opened or decoded. `as_stored`: its frames as they are stored,
  /// else rotated as OpenCV does it.
  void* (*open)(const char* path, bool as_stored, char* error);
  void (*close)(void* video);
  /// Reads the next frame: 1 if there is one, 0 at the end, -1 for a failure.
  int (*next)(void* video, std::size_t* height, std::size_t* width, char* error);
  /// Writes that frame as (H, W, 3) red, green, blue: 0, or -1 for a failure.
  int (*copy_rgb)(void* video, unsigned char* rgb, char* error);
  /// Number of frames according to the file; 0 or less = unknown.
  double (*num_frames)(void* video);
};

/// The one symbol that the module exports: a VideoModule. Its number changes with the structure.
inline constexpr const char* kVideoModuleSymbol = "vit_video_module_2";

}  // namespace vit::app
