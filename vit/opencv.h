// The door between OpenCV's pictures and ours. The rest of the library's interface knows no OpenCV type.
#pragma once

#include <opencv2/core/mat.hpp>

#include "vit/image/image.h"

namespace vit {

/// Copies a picture as OpenCV holds it: one channel grey, three B, G, R, four B, G, R, alpha (dropped). Depth
/// 8U is taken as it is, of 16U the upper byte, 32F between 0 and 1 is multiplied by 255, rounded half to
/// even and clipped (NaN becomes 0). Any row stride. Throws Error for other types, and for matrices that are
/// empty or have more than two dimensions.
Image to_image(const cv::Mat& mat);

/// Copies a picture to a CV_8UC3 matrix in the order B, G, R.
cv::Mat to_mat(ImageView image);

}  // namespace vit
