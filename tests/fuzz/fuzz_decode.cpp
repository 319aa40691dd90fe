// Decodes pictures of every format that is read, upright and as stored.
#include "tests/fuzz/fuzz_decode.h"

#include <opencv2/imgcodecs.hpp>

#include "vit/image/decode.h"

namespace vit::fuzz {

void run_decode(std::string_view input) {
  const auto bytes = std::as_bytes(std::span(input));
  constexpr std::size_t kMaxPixels = 1u << 20;  // a mutated size must not fill the memory of the test machine
  decode_bytes(bytes, {.max_pixels = kMaxPixels}, "input");
  decode_bytes(bytes, {.orientation = Orientation::apply, .alpha = Alpha::on_white, .max_pixels = kMaxPixels},
               "input");
}

std::vector<std::string> decode_seeds() {
  cv::Mat picture(45, 43, CV_8UC3);  // JPEG 2000 wants at least 32
  for (int y = 0; y < picture.rows; ++y) {
    for (int x = 0; x < picture.cols; ++x) {
      picture.at<cv::Vec3b>(y, x) = {static_cast<unsigned char>(5 * x), static_cast<unsigned char>(4 * y),
                                     static_cast<unsigned char>(x * y)};
    }
  }
  cv::Mat deep;
  picture.convertTo(deep, CV_16U, 257.0);
  std::vector<std::string> seeds;
  const auto add = [&](const char* extension, const cv::Mat& image) {
    std::vector<unsigned char> bytes;
    cv::imencode(extension, image, bytes);
    seeds.emplace_back(bytes.begin(), bytes.end());
  };
  for (const char* extension : {".jpg", ".png", ".tiff", ".webp", ".bmp", ".ppm", ".jp2"})
    add(extension, picture);
  add(".png", deep);
  add(".tiff", deep);
  return seeds;
}

}  // namespace vit::fuzz
