// A loop as over the frames of a camera: one session, and buffers that are made once and used for every
// frame. video_loop MODEL
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "vit/vit.h"

namespace {

/// Stands in for a camera: a bright bar that wanders over a gradient.
void draw_frame(std::vector<std::uint8_t>& rgb, std::size_t height, std::size_t width, std::size_t number) {
  for (std::size_t y = 0; y < height; ++y) {
    for (std::size_t x = 0; x < width; ++x) {
      std::uint8_t* const pixel = &rgb[3 * (y * width + x)];
      const bool is_bar = (x + 4 * number) % width < width / 8;
      pixel[0] = static_cast<std::uint8_t>(is_bar ? 255 : 255 * x / width);
      pixel[1] = static_cast<std::uint8_t>(is_bar ? 255 : 255 * y / height);
      pixel[2] = 96;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: video_loop MODEL\n");
    return 2;
  }
  try {
    constexpr std::size_t kHeight = 240, kWidth = 320, kFrames = 100;
    vit::Session session(vit::Model::load(argv[1]));

    std::vector<std::uint8_t> frame(kHeight * kWidth * 3);
    vit::Outputs outputs;
    const vit::Request request{.tokens = true};

    double change = 0;  // how much the mean token moves from frame to frame
    std::vector<float> previous;
    const auto start = std::chrono::steady_clock::now();
    for (std::size_t number = 0; number < kFrames; ++number) {
      draw_frame(frame, kHeight, kWidth, number);
      session.run(vit::ImageView(frame.data(), kHeight, kWidth), request, outputs);
      const std::span<const float> tokens = outputs.tokens.flat();
      for (std::size_t i = 0; i < previous.size(); ++i) {
        const double difference = static_cast<double>(tokens[i]) - static_cast<double>(previous[i]);
        change += difference * difference;
      }
      previous.assign(tokens.begin(), tokens.end());
    }
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    std::printf("%zu frames, %.1f frames/s, %.1f KiB of working memory, mean squared change %.4f\n", kFrames,
                static_cast<double>(kFrames) / passed.count(),
                static_cast<double>(session.workspace_bytes()) / 1024,
                change / static_cast<double>(previous.size() * (kFrames - 1)));
  } catch (const vit::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
