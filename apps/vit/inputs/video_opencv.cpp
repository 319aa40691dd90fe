// The module vit_video.so: video files with OpenCV. See video_module.h.
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <string_view>

#include <opencv2/core/utils/logger.hpp>
#include <opencv2/imgproc.hpp>
#include <opencv2/videoio.hpp>
#include <opencv2/videoio/registry.hpp>

#include "apps/vit/inputs/video_module.h"

namespace {

struct Capture {
  cv::VideoCapture video;
  cv::Mat frame;
};

Capture& capture_of(void* video) {
  return *static_cast<Capture*>(video);
}

void write_error(std::string_view why, char* error) {
  const std::size_t size = why.copy(error, vit::app::kVideoErrorSize - 1);
  error[size] = '\0';
}

/// The result of `work`, or `failed` after an exception, whose text is written to `error`.
template <typename Result, typename Work>
Result run_reporting(Result failed, char* error, const Work& work) {
  try {
    return work();
  } catch (const cv::Exception& failure) {
    write_error(failure.err, error);
  } catch (const std::exception& failure) {
    write_error(failure.what(), error);
  }
  return failed;
}

/// OpenCV and FFmpeg print nothing: what fails is reported by the program, in one line. Formats of FFmpeg are
/// those that hold a video themselves: a playlist under the name of a video would read other files. What the
/// user has set stays.
void set_up_libraries() {
  cv::utils::logging::setLogLevel(cv::utils::logging::LOG_LEVEL_SILENT);
  ::setenv("OPENCV_FFMPEG_LOGLEVEL", "-8", 0);  // AV_LOG_QUIET
  ::setenv("OPENCV_FFMPEG_CAPTURE_OPTIONS",
           "format_whitelist;mov,matroska,webm,avi,mpeg,mpegts,mpegvideo,m4v,h264,hevc,mjpeg,gif,asf,flv,ogg,"
           "dv,ivf,mxf,nut,obu",
           0);
}

/// Releases before 4.5 do not rotate.
void stop_rotating(cv::VideoCapture& video) {
#if CV_VERSION_MAJOR > 4 || (CV_VERSION_MAJOR == 4 && CV_VERSION_MINOR >= 5)
  video.set(cv::CAP_PROP_ORIENTATION_AUTO, 0);
#else
  static_cast<void>(video);
#endif
}

/// `path` is an absolute one of one file: no network addresses, no patterns of numbered files.
void* open_video(const char* path, bool as_stored, char* error) {
  return run_reporting<void*>(nullptr, error, [&]() -> void* {
    set_up_libraries();
    const bool has_ffmpeg = cv::videoio_registry::hasBackend(cv::CAP_FFMPEG);
    auto capture = std::make_unique<Capture>();
    if (capture->video.open(path, has_ffmpeg ? cv::CAP_FFMPEG : cv::CAP_OPENCV_MJPEG)) {
      if (as_stored) stop_rotating(capture->video);
      return capture.release();
    }
    write_error("not a video that OpenCV can decode", error);
    return nullptr;
  });
}

void close_video(void* video) {
  delete static_cast<Capture*>(video);
}

int next_frame(void* video, std::size_t* height, std::size_t* width, char* error) {
  return run_reporting(-1, error, [&] {
    Capture& capture = capture_of(video);
    if (!capture.video.read(capture.frame) || capture.frame.empty()) return 0;
    *height = static_cast<std::size_t>(capture.frame.rows);
    *width = static_cast<std::size_t>(capture.frame.cols);
    return 1;
  });
}

int copy_rgb(void* video, unsigned char* rgb, char* error) {
  return run_reporting(-1, error, [&] {
    const cv::Mat& frame = capture_of(video).frame;
    cv::Mat to(frame.rows, frame.cols, CV_8UC3, rgb);
    cv::cvtColor(frame, to, cv::COLOR_BGR2RGB);
    return 0;
  });
}

double num_frames(void* video) {
  return capture_of(video).video.get(cv::CAP_PROP_FRAME_COUNT);
}

}  // namespace

extern "C" {
__attribute__((visibility("default"))) extern const vit::app::VideoModule vit_video_module_2;
const vit::app::VideoModule vit_video_module_2{
    .open = open_video,
    .close = close_video,
    .next = next_frame,
    .copy_rgb = copy_rgb,
    .num_frames = num_frames,
};
}
