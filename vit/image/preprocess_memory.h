// What the sources of Preprocessor share: its buffers, and gray pixels.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "vit/image/preprocess.h"
#include "vit/image/resize_memory.h"

namespace vit {

struct PreprocessMemory::Buffers {
  internal::ResizeMemory resize;
  std::vector<std::byte> file;                 // an image file
  internal::Buffer<std::uint8_t> rgb;          // the input of another format, (H, W, 3)
  internal::Buffer<std::uint8_t> squared;      // the input padded to a square, (S, S, 3)
  internal::Buffer<std::uint8_t> second_step;  // of two resizes of the input
  internal::Buffer<std::uint8_t> resized;      // the result of resize and crop, (h, w, 3)
  internal::Buffer<float> planes;              // the same of a float resize, (3, h, w)

  std::size_t bytes() const noexcept {
    return resize.bytes() + file.capacity() + rgb.bytes() + squared.bytes() + second_step.bytes() +
           resized.bytes() + planes.bytes();
  }
  /// Releases the memory of one exceptionally large image, which would otherwise be kept.
  void give_back() {
    constexpr std::size_t kMaxKeptBytes = std::size_t{1} << 28;
    if (bytes() > kMaxKeptBytes) *this = {};
  }
};

namespace internal {

/// Pillow's convert("L") of `count` pixels R, G, B, in place: all three become gray.
inline void make_gray(std::uint8_t* pixels, std::size_t count) {
  for (std::uint8_t* const end = pixels + 3 * count; pixels != end; pixels += 3) {
    const std::uint32_t sum = pixels[0] * 19595u + pixels[1] * 38470u + pixels[2] * 7471u + 0x8000u;
    std::fill_n(pixels, 3, static_cast<std::uint8_t>(sum >> 16));
  }
}

}  // namespace internal
}  // namespace vit
