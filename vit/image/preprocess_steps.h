// The steps of a Preprocessor: a plan of both edges, the 8-bit image or planes of floats, the normalized
// planes.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>

#include "vit/image/preprocess.h"

namespace vit {
namespace internal {
struct Bands;
}

struct Preprocessor::Steps {
  /// One edge: resized to `resized`, of which [begin, begin + count) is placed at [at, at + count) of `out`
  /// pixels.
  struct EdgePlan {
    std::size_t resized = 0;
    std::size_t out = 0;
    std::size_t begin = 0;
    std::size_t at = 0;
    std::size_t count = 0;
  };
  struct Plan {
    EdgePlan rows;
    EdgePlan columns;
  };

  Plan plan(ImageSize in) const;
  /// Planes and edges of the result.
  Shape shape_of(const Plan& plan) const;
  EdgePlan plan_edge(std::size_t resized, std::size_t crop) const;
  ImageSize resized_size(ImageSize in) const;
  void run_tiles(ImageView image, const Plan& canvas, PreprocessMemory& memory, int threads,
                 TensorView<float> out) const;
  ImageView input(ImageView image, PreprocessMemory& memory) const;
  ImageSize input_size(ImageSize in) const;
  std::array<ImageSize, 2> opencv_sizes(ImageSize in) const;
  /// The plane of the result with channel `c` of R, G, B, or of gray.
  std::size_t plane_of(std::size_t c) const {
    return config_.channels == ChannelOrder::bgr && num_channels() == 3 ? 2 - c : c;
  }
  bool is_gray() const noexcept { return num_channels() == 1; }
  std::array<unsigned char, 3> padding() const;
  FilePixels run_bands(const internal::Bands& bands, PreprocessMemory& memory, int threads) const;
  ImageView resize_to_bytes(ImageView image, const Plan& plan, PreprocessMemory& memory, int threads) const;
  ImageView warp_to_bytes(ImageView image, const Box& box, PreprocessMemory& memory) const;
  bool is_inside_square() const noexcept { return config_.pad_to_square && !config_.square_at_corner; }
  void run_in_float(ImageView image, const Plan& plan, PreprocessMemory& memory, int threads,
                    TensorView<float> out) const;
  std::optional<FilePixels> run_rows(std::span<const std::byte> file, const std::string& name,
                                     PreprocessMemory& memory) const;
  void write_bytes(ImageView part, const Plan& plan, TensorView<float> out) const;
  void write_floats(TensorView<const float> part, PixelFormat order, const Plan& plan,
                    TensorView<float> out) const;
  float normalized(float value, std::size_t channel) const;

  std::size_t num_channels() const noexcept { return config_.num_channels(); }

  const Preprocessor& of_;
  const PreprocessConfig& config_ = of_.config_;
  const decltype(Preprocessor::levels_)& levels_ = of_.levels_;
};

inline Preprocessor::Steps Preprocessor::steps() const noexcept {
  return {*this};
}

}  // namespace vit
