// Conversions between cv::Mat and images. The rest of the library's interface knows no OpenCV type.
#pragma once

#include <opencv2/core/mat.hpp>

#include "vit/base/export.h"
#include "vit/image/image.h"

namespace vit {

/// The pixels of a matrix without a copy: CV_8UC1 as grey, CV_8UC3 as bgr, CV_8UC4 as bgra, with any row
/// stride (regions of interest). The matrix must outlive the view and keep its pixels; there is no view of a
/// temporary. Throws Error for other types, and for matrices that are empty or have more than two dimensions.
VIT_API ImageView view(const cv::Mat& mat);
ImageView view(const cv::Mat&& mat) = delete;

/// Copies a matrix of one channel (grey), three (B, G, R) or four (B, G, R, alpha) to RGB. Depth 8U is taken
/// as it is, of 16U the upper byte, 32F between 0 and 1 is multiplied by 255, rounded half to even and
/// clipped (NaN becomes 0). Any row stride. Throws Error for other types, and for matrices that are empty or
/// have more than two dimensions.
VIT_API Image to_image(const cv::Mat& mat, Alpha alpha = Alpha::drop);

/// Copies an image to a CV_8UC3 matrix in the order B, G, R; alpha is dropped.
VIT_API cv::Mat to_mat(ImageView image);

}  // namespace vit
