// Copies and views of cv::Mat.
#include "vit/opencv.h"

#include <cmath>
#include <cstdint>
#include <utility>

#include <opencv2/core.hpp>

#include "vit/base/error.h"
#include "vit/image/convert.h"

namespace vit {

namespace {

std::uint8_t to_byte(std::uint8_t value) {
  return value;
}
std::uint8_t to_byte(std::uint16_t value) {
  return static_cast<std::uint8_t>(value >> 8);
}
std::uint8_t to_byte(float value) {
  const float level = value * 255.0f;
  if (!(level > 0.0f)) return 0;  // NaN as well
  return level >= 255.0f ? std::uint8_t{255} : static_cast<std::uint8_t>(std::nearbyint(level));
}

void check_shape(const cv::Mat& mat, const char* where) {
  VIT_CHECK(!mat.empty() && mat.dims == 2, where, "an image of two dimensions is expected, got ", mat.dims,
            " dimensions and ", mat.total(), " pixels");
  const int channels = mat.channels();
  VIT_CHECK(channels == 1 || channels == 3 || channels == 4, where, "1, 3 or 4 channels are expected, got ",
            channels);
}

template <typename Number>
Image copied(const cv::Mat& mat, Alpha alpha) {
  Image image(static_cast<std::size_t>(mat.rows), static_cast<std::size_t>(mat.cols));
  const auto channels = static_cast<std::size_t>(mat.channels());
  for (std::size_t y = 0; y < image.height(); ++y) {
    const Number* in = mat.ptr<Number>(static_cast<int>(y));
    std::uint8_t* rgb = image.row(y);
    for (std::size_t x = 0; x < image.width(); ++x, in += channels, rgb += 3) {
      for (std::size_t c = 0; c < 3; ++c) rgb[c] = to_byte(in[channels == 1 ? 0 : 2 - c]);
      if (channels == 4 && alpha == Alpha::on_white) internal::composite_on_white(rgb, to_byte(in[3]));
    }
  }
  return image;
}

}  // namespace

ImageView view(const cv::Mat& mat) {
  check_shape(mat, "view");
  VIT_CHECK(mat.depth() == CV_8U, "view", "depth 8U is expected, got ", cv::depthToString(mat.depth()),
            "; to_image() converts 16U and 32F");
  const PixelFormat format = mat.channels() == 1   ? PixelFormat::grey
                             : mat.channels() == 3 ? PixelFormat::bgr
                                                   : PixelFormat::bgra;
  return {mat.data,
          static_cast<std::size_t>(mat.rows),
          static_cast<std::size_t>(mat.cols),
          {.format = format, .row_stride = mat.step[0]}};
}

Image to_image(const cv::Mat& mat, Alpha alpha) {
  check_shape(mat, "to_image");
  switch (mat.depth()) {
    case CV_8U: return copied<std::uint8_t>(mat, alpha);
    case CV_16U: return copied<std::uint16_t>(mat, alpha);
    case CV_32F: return copied<float>(mat, alpha);
    default: fail("to_image", "depth 8U, 16U or 32F is expected, got ", cv::depthToString(mat.depth()));
  }
}

cv::Mat to_mat(ImageView image) {
  VIT_CHECK(!image.empty() && image.height() <= 0x7FFFFFFF && image.width() <= 0x7FFFFFFF, "to_mat",
            "an image of ", image.width(), " x ", image.height(), " does not fit a cv::Mat");
  cv::Mat mat(static_cast<int>(image.height()), static_cast<int>(image.width()), CV_8UC3);
  for (std::size_t y = 0; y < image.height(); ++y) {
    std::uint8_t* const bgr = mat.ptr<std::uint8_t>(static_cast<int>(y));
    internal::convert_to_rgb({image.row(y), 1, image.width(), {.format = image.format()}}, Alpha::drop, bgr);
    for (std::size_t x = 0; x < image.width(); ++x) std::swap(bgr[3 * x], bgr[3 * x + 2]);
  }
  return mat;
}

}  // namespace vit
