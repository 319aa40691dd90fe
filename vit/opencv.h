// Conversions between cv::Mat and images. Header only: the library itself neither uses nor links OpenCV, and
// users of this header must link opencv_core.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <opencv2/core.hpp>

#include "vit/base/error.h"
#include "vit/image/image.h"

namespace vit {

namespace opencv_detail {

inline PixelFormat format_of(const cv::Mat& mat, const char* where) {
  if (mat.empty() || mat.dims != 2) {
    throw Error(where, "a matrix of two dimensions is expected, got " + std::to_string(mat.dims) +
                           " dimensions and " + std::to_string(mat.total()) + " elements");
  }
  switch (mat.channels()) {
    case 1: return PixelFormat::gray;
    case 3: return PixelFormat::bgr;
    case 4: return PixelFormat::bgra;
    default: throw Error(where, "1, 3 or 4 channels are expected, got " + std::to_string(mat.channels()));
  }
}

inline std::uint8_t to_byte(std::uint16_t value) {
  return static_cast<std::uint8_t>(value >> 8);
}
inline std::uint8_t to_byte(float value) {
  const float level = value * 255.0f;
  if (!(level > 0.0f)) return 0;  // NaN as well
  return level >= 255.0f ? std::uint8_t{255} : static_cast<std::uint8_t>(std::nearbyint(level));
}

/// The elements as contiguous bytes, in order.
template <typename Number>
std::vector<std::uint8_t> bytes_of(const cv::Mat& mat) {
  const auto row_size = static_cast<std::size_t>(mat.cols) * static_cast<std::size_t>(mat.channels());
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(mat.rows) * row_size);
  std::uint8_t* out = bytes.data();
  for (int y = 0; y < mat.rows; ++y) {
    const Number* const in = mat.ptr<Number>(y);
    for (std::size_t i = 0; i < row_size; ++i) *out++ = to_byte(in[i]);
  }
  return bytes;
}

}  // namespace opencv_detail

/// The pixels of a matrix without a copy: CV_8UC1 as gray, CV_8UC3 as bgr, CV_8UC4 as bgra, with any row
/// stride (regions of interest). The matrix must outlive the view and keep its pixels; there is no view of a
/// temporary. Throws Error for other types, and for matrices that are empty or have more than two dimensions.
inline ImageView view(const cv::Mat& mat) {
  const PixelFormat format = opencv_detail::format_of(mat, "view");
  if (mat.depth() != CV_8U) {
    throw Error("view", std::string("depth 8U is expected, got ") + cv::depthToString(mat.depth()) +
                            "; to_image() converts 16U and 32F");
  }
  return {mat.data,
          static_cast<std::size_t>(mat.rows),
          static_cast<std::size_t>(mat.cols),
          {.format = format, .row_stride = mat.step[0]}};
}
ImageView view(const cv::Mat&& mat) = delete;

/// view(mat) of a matrix whose channels are in another order, as after cv::cvtColor(..., cv::COLOR_BGR2RGB):
/// rgb or bgr for three channels, rgba or bgra for four. Throws Error for another number of channels, too.
inline ImageView view(const cv::Mat& mat, PixelFormat format) {
  const ImageView own = view(mat);
  if (bytes_per_pixel(format) != static_cast<std::size_t>(mat.channels())) {
    throw Error("view", "a format of " + std::to_string(bytes_per_pixel(format)) +
                            " channels for a matrix of " + std::to_string(mat.channels()));
  }
  return {mat.data, own.height(), own.width(), {.format = format, .row_stride = mat.step[0]}};
}
ImageView view(const cv::Mat&& mat, PixelFormat format) = delete;

/// Copies a matrix of one channel (gray), three (B, G, R) or four (B, G, R, alpha) to RGB. Depth 8U is used
/// as it is, for 16U the upper byte; 32F between 0 and 1 is multiplied by 255, rounded half to even and
/// clipped (NaN becomes 0). Any row stride. Throws Error for other types, and for matrices that are empty or
/// have more than two dimensions.
inline Image to_image(const cv::Mat& mat, Alpha alpha = Alpha::drop) {
  const PixelFormat format = opencv_detail::format_of(mat, "to_image");
  const int depth = mat.depth();
  if (depth != CV_8U && depth != CV_16U && depth != CV_32F) {
    throw Error("to_image", std::string("depth 8U, 16U or 32F is expected, got ") + cv::depthToString(depth));
  }
  if (depth == CV_8U) return to_rgb(view(mat), alpha);
  const std::vector<std::uint8_t> bytes =
      depth == CV_16U ? opencv_detail::bytes_of<std::uint16_t>(mat) : opencv_detail::bytes_of<float>(mat);
  return to_rgb({bytes.data(),
                 static_cast<std::size_t>(mat.rows),
                 static_cast<std::size_t>(mat.cols),
                 {.format = format}},
                alpha);
}

/// Copies an image to a CV_8UC3 matrix in the order B, G, R; alpha is dropped. Throws Error for an image that
/// is empty or too large for a matrix.
inline cv::Mat to_mat(ImageView image) {
  if (image.empty() || image.height() > 0x7FFFFFFF || image.width() > 0x7FFFFFFF) {
    throw Error("to_mat", "an image of " + std::to_string(image.width()) + " x " +
                              std::to_string(image.height()) + " does not fit a cv::Mat");
  }
  const Image rgb = to_rgb(image);
  cv::Mat mat(static_cast<int>(rgb.height()), static_cast<int>(rgb.width()), CV_8UC3);
  for (std::size_t y = 0; y < rgb.height(); ++y) {
    const std::uint8_t* const in = rgb.row(y);
    std::uint8_t* const bgr = mat.ptr<std::uint8_t>(static_cast<int>(y));
    for (std::size_t i = 0; i < rgb.row_stride(); i += 3) {
      for (std::size_t c = 0; c < 3; ++c) bgr[i + c] = in[i + 2 - c];
    }
  }
  return mat;
}

}  // namespace vit
