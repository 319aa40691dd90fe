// Runs the snippets of the pages in the folder that tests.cmake prepared, with a short film for the video
// loop.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <opencv2/imgproc.hpp>
#include <opencv2/videoio.hpp>

namespace {

bool write_film(const char* path) {
  cv::VideoWriter film(path, cv::CAP_OPENCV_MJPEG, cv::VideoWriter::fourcc('M', 'J', 'P', 'G'), 10.0,
                       {160, 120});
  for (int i = 0; i < 3 && film.isOpened(); ++i) {
    cv::Mat frame(120, 160, CV_8UC3, cv::Scalar(90, 140, 60));
    cv::circle(frame, {40 + 30 * i, 60}, 20, cv::Scalar(20, 40, 220), cv::FILLED);
    film.write(frame);
  }
  return film.isOpened();
}

}  // namespace

int main(int argc, char** argv) {
  if (!write_film("street.avi")) return 1;
  return doctest::Context(argc, argv).run();
}
