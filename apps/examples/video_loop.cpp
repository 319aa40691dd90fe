// Frames of a video through a model: one session, frames viewed where OpenCV holds them, and results whose
// memory is used for every frame. video_loop MODEL [VIDEO]; without a video it is a drawn scene.
#include <chrono>
#include <cstdio>
#include <vector>

#include <opencv2/imgproc.hpp>
#include <opencv2/videoio.hpp>

#include "vit/opencv.h"
#include "vit/vit.h"

namespace {

constexpr int kDrawnFrames = 100;

/// Replaces a camera: a disc that wanders over a gradient, in B, G, R.
bool draw_frame(cv::Mat& frame, int number) {
  if (number == kDrawnFrames) return false;
  frame.create(240, 320, CV_8UC3);
  for (int y = 0; y < frame.rows; ++y) {
    const double level = 255.0 * y / frame.rows;
    frame.row(y) = cv::Scalar(96, level, 255 - level);
  }
  cv::circle(frame, {4 * number % frame.cols, frame.rows / 2}, 40, cv::Scalar(255, 255, 255), cv::FILLED);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    std::fprintf(stderr, "usage: video_loop MODEL [VIDEO]\n");
    return 2;
  }
  try {
    vit::Session session(vit::Model::load(argv[1]));
    cv::VideoCapture video;
    if (argc == 3 && !video.open(argv[2])) {
      std::fprintf(stderr, "%s: OpenCV cannot open this video\n", argv[2]);
      return 1;
    }

    cv::Mat frame;
    vit::Outputs outputs;
    const vit::Request request{vit::Output::tokens};
    double change = 0;  // how much the tokens move from frame to frame
    std::vector<float> previous;
    int number = 0;
    const auto start = std::chrono::steady_clock::now();
    for (; argc == 3 ? video.read(frame) : draw_frame(frame, number); ++number) {
      session.run(vit::view(frame), request, outputs);  // no copy, and nothing allocated after the first
      const std::span<const float> tokens = outputs[vit::Output::tokens].flat();
      for (std::size_t i = 0; i < previous.size(); ++i) {
        const double difference = static_cast<double>(tokens[i]) - static_cast<double>(previous[i]);
        change += difference * difference;
      }
      previous.assign(tokens.begin(), tokens.end());
    }
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    std::printf("%d frames, %.1f frames/s, %.1f KiB of working memory, mean squared change %.4f\n", number,
                number / passed.count(), static_cast<double>(session.workspace_bytes()) / 1024,
                number < 2 ? 0.0 : change / (static_cast<double>(previous.size()) * (number - 1)));
  } catch (const vit::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
