#include <opencv2/imgproc.hpp>
#include <opencv2/videoio.hpp>

#include "apps/vit/inputs/video.h"
#include "vit/base/check.h"
#include "vit/opencv.h"

namespace vit::app {
namespace {

constexpr Where kWhere{"read video", ErrorKind::format};

}  // namespace

struct Video::Capture {
  std::string path;
  cv::VideoCapture video;
  cv::Mat frame;
};

Video::Video(const std::filesystem::path& path) : capture_(std::make_unique<Capture>()) {
  std::error_code error;
  VIT_CHECK(std::filesystem::is_regular_file(path, error), kWhere.with(ErrorKind::io), path.string(),
            ": no such file");
  capture_->path = path.string();
  try {
    // The name of one file: no network addresses, no patterns of numbered files.
    capture_->video.open(std::filesystem::absolute(path).string(), cv::CAP_FFMPEG);
    if (!capture_->video.isOpened()) capture_->video.open(capture_->path, cv::CAP_OPENCV_MJPEG);
  } catch (const cv::Exception& failure) {
    fail(kWhere, capture_->path, ": ", failure.err);
  }
  VIT_CHECK(capture_->video.isOpened(), kWhere, capture_->path, ": not a video that OpenCV can decode");
}

Video::~Video() = default;
Video::Video(Video&&) noexcept = default;
Video& Video::operator=(Video&&) noexcept = default;

bool Video::read(Image& frame, std::size_t max_pixels) {
  try {
    if (!capture_->video.read(capture_->frame) || capture_->frame.empty()) return false;
  } catch (const cv::Exception& failure) {
    fail(kWhere, capture_->path, ": ", failure.err);
  }
  const auto height = static_cast<std::size_t>(capture_->frame.rows);
  const auto width = static_cast<std::size_t>(capture_->frame.cols);
  VIT_CHECK(height * width <= max_pixels, kWhere.with(ErrorKind::unsupported), capture_->path, ": frames of ",
            width, " x ", height, " pixels, above --max-pixels ", max_pixels);
  if (frame.size() != ImageSize{height, width}) frame = Image(height, width);
  cv::Mat rgb(capture_->frame.rows, capture_->frame.cols, CV_8UC3, frame.data());
  cv::cvtColor(capture_->frame, rgb, cv::COLOR_BGR2RGB);
  return true;
}

std::size_t Video::num_frames() const {
  const double count = capture_->video.get(cv::CAP_PROP_FRAME_COUNT);
  return count > 0 && count < 1e9 ? static_cast<std::size_t>(count) : 0;
}

}  // namespace vit::app
