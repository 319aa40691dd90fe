#include <doctest/doctest.h>

#include <limits>
#include <vector>

#include <opencv2/core.hpp>

#include "vit/base/error.h"
#include "vit/opencv.h"

namespace {

std::vector<int> pixel(const vit::Image& image, std::size_t x, std::size_t y) {
  const std::uint8_t* const rgb = image.row(y) + 3 * x;
  return {rgb[0], rgb[1], rgb[2]};
}

}  // namespace

TEST_CASE("opencv: matrices of every accepted type become RGB") {
  cv::Mat wide(4, 6, CV_8UC3, cv::Scalar(3, 2, 1));
  wide.at<cv::Vec3b>(2, 3) = {30, 20, 10};
  const vit::Image part = vit::to_image(wide(cv::Rect(2, 1, 3, 2)));  // rows do not lie behind each other
  CHECK(part.size() == vit::ImageSize{2, 3});
  CHECK(pixel(part, 1, 1) == std::vector<int>{10, 20, 30});
  CHECK(pixel(part, 2, 1) == std::vector<int>{1, 2, 3});
  CHECK(pixel(vit::to_image(cv::Mat(1, 1, CV_8UC1, cv::Scalar(77))), 0, 0) == std::vector<int>{77, 77, 77});
  CHECK(pixel(vit::to_image(cv::Mat(1, 1, CV_8UC4, cv::Scalar(3, 2, 1, 0))), 0, 0) ==
        std::vector<int>{1, 2, 3});
  CHECK(pixel(vit::to_image(cv::Mat(1, 1, CV_16UC3, cv::Scalar(0x0300, 0x02FF, 65535))), 0, 0) ==
        std::vector<int>{255, 2, 3});
  CHECK(pixel(vit::to_image(cv::Mat(1, 1, CV_32FC3, cv::Scalar(2.0, -1.0, 0.5))), 0, 0) ==
        std::vector<int>{128, 0, 255});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(pixel(vit::to_image(cv::Mat(1, 1, CV_32FC1, cv::Scalar(nan))), 0, 0) == std::vector<int>{0, 0, 0});
}

TEST_CASE("opencv: other matrices are Errors") {
  CHECK_THROWS_AS(vit::to_image(cv::Mat()), vit::Error);
  CHECK_THROWS_AS(vit::to_image(cv::Mat(2, 2, CV_8UC2)), vit::Error);
  CHECK_THROWS_AS(vit::to_image(cv::Mat(2, 2, CV_64FC3)), vit::Error);
  const int sizes[] = {2, 2, 2};
  CHECK_THROWS_AS(vit::to_image(cv::Mat(3, sizes, CV_8UC1)), vit::Error);
}

TEST_CASE("opencv: there and back") {
  vit::Image image(2, 3);
  for (std::size_t i = 0; i < 18; ++i) image.data()[i] = static_cast<std::uint8_t>(10 * i);
  const cv::Mat mat = vit::to_mat(image);
  CHECK(mat.at<cv::Vec3b>(1, 2) == cv::Vec3b(170, 160, 150));
  const vit::Image back = vit::to_image(mat);
  for (std::size_t i = 0; i < 18; ++i) CHECK(back.data()[i] == image.data()[i]);
}
