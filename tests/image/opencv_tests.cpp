#include <doctest/doctest.h>

#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include <opencv2/core.hpp>

#include "vit/base/error.h"
#include "vit/opencv.h"

namespace {

std::vector<int> pixel(const vit::Image& image, std::size_t x, std::size_t y) {
  const std::uint8_t* const rgb = image.row(y) + 3 * x;
  return {rgb[0], rgb[1], rgb[2]};
}

const cv::Mat no_pixels;

template <typename Mat>
concept Viewable = requires(Mat&& mat) {
  vit::view(std::forward<Mat>(mat));
};
static_assert(Viewable<cv::Mat&> && Viewable<const cv::Mat&>);
static_assert(!Viewable<cv::Mat> && !Viewable<const cv::Mat>);

}  // namespace

TEST_CASE("opencv: matrices of every accepted type become RGB") {
  cv::Mat wide(4, 6, CV_8UC3, cv::Scalar(3, 2, 1));
  wide.at<cv::Vec3b>(2, 3) = {30, 20, 10};
  const vit::Image part = vit::to_image(wide(cv::Rect(2, 1, 3, 2)));  // rows are not contiguous
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

TEST_CASE("opencv: regions of 16-bit and float matrices with alpha") {
  cv::Mat deep(5, 7, CV_16UC4, cv::Scalar(0, 0, 0, 0));
  deep.at<cv::Vec<ushort, 4>>(3, 4) = {0x0A00, 0x14FF, 0x1E01, 0x8000};
  const cv::Mat deep_part = deep(cv::Rect(3, 2, 3, 2));
  REQUIRE(!deep_part.isContinuous());
  CHECK(pixel(vit::to_image(deep_part), 1, 1) == std::vector<int>{30, 20, 10});
  CHECK(pixel(vit::to_image(deep_part, vit::Alpha::on_white), 1, 1) == std::vector<int>{142, 137, 132});
  CHECK(pixel(vit::to_image(deep_part, vit::Alpha::on_white), 0, 0) == std::vector<int>{255, 255, 255});
  cv::Mat real(5, 7, CV_32FC4, cv::Scalar(0, 0, 0, 1));
  real.at<cv::Vec4f>(3, 4) = {0.2f, 0.4f, 1.0f, 0.5f};
  const cv::Mat real_part = real(cv::Rect(3, 2, 3, 2));
  CHECK(pixel(vit::to_image(real_part), 1, 1) == std::vector<int>{255, 102, 51});
  CHECK(pixel(vit::to_image(real_part, vit::Alpha::on_white), 1, 1) == std::vector<int>{255, 178, 153});
  CHECK(pixel(vit::to_image(real_part, vit::Alpha::on_white), 0, 0) == std::vector<int>{0, 0, 0});
}

TEST_CASE("opencv: a view shares the pixels and equals the copy") {
  for (const int type : {CV_8UC1, CV_8UC3, CV_8UC4}) {
    cv::Mat mat(6, 9, type);
    cv::randu(mat, 0, 256);
    const cv::Mat part = mat(cv::Rect(2, 1, 5, 4));
    const vit::ImageView view = vit::view(part);
    CHECK(view.data() == part.data);
    CHECK(view.row_stride() == mat.step[0]);
    for (const vit::Alpha alpha : {vit::Alpha::drop, vit::Alpha::on_white}) {
      const vit::Image viewed = vit::to_rgb(view, alpha);
      const vit::Image copied = vit::to_image(part, alpha);
      REQUIRE(viewed.size() == copied.size());
      CHECK(std::memcmp(viewed.data(), copied.data(), copied.height() * copied.row_stride()) == 0);
    }
    const cv::Mat back = vit::to_mat(view);
    CHECK(back.at<cv::Vec3b>(3, 2)[0] == vit::to_rgb(view).row(3)[3 * 2 + 2]);
  }
  CHECK_THROWS_AS(vit::view(no_pixels), vit::Error);
  const cv::Mat deep(2, 2, CV_16UC3);
  CHECK_THROWS_AS(vit::view(deep), vit::Error);
  const cv::Mat pairs(2, 2, CV_8UC2);
  CHECK_THROWS_AS(vit::view(pairs), vit::Error);
}

TEST_CASE("opencv: a view in the order of the channels that the caller names") {
  const cv::Mat mat(2, 2, CV_8UC3, cv::Scalar(1, 2, 3));
  CHECK(pixel(vit::to_rgb(vit::view(mat)), 0, 0) == std::vector<int>{3, 2, 1});
  CHECK(pixel(vit::to_rgb(vit::view(mat, vit::PixelFormat::rgb)), 0, 0) == std::vector<int>{1, 2, 3});
  CHECK_THROWS_AS(vit::view(mat, vit::PixelFormat::rgba), vit::Error);
  CHECK_THROWS_AS(vit::view(mat, vit::PixelFormat::gray), vit::Error);
}
