// A video through a model on all cores: one thread decodes, one session per core computes, and the main
// thread draws what moves, in order. video_pipeline MODEL [VIDEO|FRAMES [DRAWN.avi]]: a video, or so many
// drawn frames.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include <opencv2/imgproc.hpp>
#include <opencv2/videoio.hpp>

#include "vit/opencv.h"
#include "vit/vit.h"

namespace {

/// A frame on its way; its memory is used again. Frame n is in slot n % slots.size().
struct Slot {
  std::atomic<std::size_t> steps{0};  // decoded, computed, drawn: three for each of its frames
  cv::Mat frame;                      // empty: the video has ended
  vit::Outputs outputs;
  std::exception_ptr failure;

  void wait_for(std::size_t step) {
    for (std::size_t now = steps; now != step; now = steps) steps.wait(now);
  }
  void advance() {
    ++steps;
    steps.notify_all();
  }
};

/// Replaces a camera: a disc that wanders over a gradient, in B, G, R.
void draw_scene(cv::Mat& frame, std::size_t number) {
  frame.create(240, 320, CV_8UC3);
  for (int y = 0; y < frame.rows; ++y) {
    const double level = 255.0 * y / frame.rows;
    frame.row(y) = cv::Scalar(96, level, 255 - level);
  }
  const int x = static_cast<int>(4 * number) % frame.cols;
  cv::circle(frame, {x, frame.rows / 2}, 40, cv::Scalar(255, 255, 255), cv::FILLED);
}

/// Reddens each patch by the change of its features since the frame before.
void draw_changes(cv::Mat& frame, vit::TensorView<const float> patches, std::vector<float>& previous) {
  const std::size_t rows = patches.dim(0), columns = patches.dim(1), channels = patches.dim(2);
  const std::span<const float> features = patches.flat(), last(previous);
  for (std::size_t patch = 0; patch < rows * columns && last.size() == features.size(); ++patch) {
    const double change = 1.0 - vit::cosine_similarity(features.subspan(patch * channels, channels),
                                                       last.subspan(patch * channels, channels));
    const auto edge = [](std::size_t i, std::size_t n, int size) {
      return static_cast<int>(i) * size / static_cast<int>(n);
    };
    const std::size_t row = patch / columns, column = patch % columns;
    for (int y = edge(row, rows, frame.rows); y < edge(row + 1, rows, frame.rows); ++y) {
      for (int x = edge(column, columns, frame.cols); x < edge(column + 1, columns, frame.cols); ++x) {
        auto& red = frame.ptr<cv::Vec3b>(y)[x][2];
        red = cv::saturate_cast<uchar>(red + 255.0 * change);
      }
    }
  }
  previous.assign(features.begin(), features.end());
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2 || argc > 4) {
    std::fprintf(stderr, "usage: video_pipeline MODEL [VIDEO|FRAMES [DRAWN.avi]]\n");
    return 2;
  }
  char* end = nullptr;
  const std::size_t num_drawn = argc > 2 ? std::strtoul(argv[2], &end, 10) : 100;
  const bool has_video = argc > 2 && *end != '\0';
  cv::VideoCapture video;
  if (has_video && !video.open(argv[2])) throw vit::Error("video_pipeline", "OpenCV cannot open this video");
  cv::VideoWriter drawn;
  const int motion_jpeg = cv::VideoWriter::fourcc('M', 'J', 'P', 'G');

  const auto model = vit::Model::load(argv[1]);
  const vit::Request request{vit::Output::patches};
  const auto num_sessions = static_cast<std::size_t>(vit::num_threads());
  std::vector<vit::Session> sessions;
  for (std::size_t i = 0; i < num_sessions; ++i)
    sessions.emplace_back(model, vit::SessionOptions{.threads = 1});
  std::vector<Slot> slots(2 * num_sessions + 2);
  const auto slot_of = [&](std::size_t n) -> Slot& { return slots[n % slots.size()]; };
  const auto first_step = [&](std::size_t n) { return 3 * (n / slots.size()); };
  std::atomic<bool> stop{false};

  const auto decode = [&] {
    for (std::size_t n = 0, ends = 0; ends < num_sessions; ++n) {  // an end for each session
      Slot& slot = slot_of(n);
      slot.wait_for(first_step(n));
      if (ends == 0 && !stop && has_video && video.read(slot.frame)) {
      } else if (ends == 0 && !stop && !has_video && n < num_drawn) {
        draw_scene(slot.frame, n);
      } else {
        slot.frame.release();
        ++ends;
      }
      slot.advance();
    }
  };
  std::atomic<std::size_t> next{0};
  const auto compute = [&](vit::Session& session) {
    for (bool ended = false; !ended;) {
      const std::size_t n = next++;
      Slot& slot = slot_of(n);
      slot.wait_for(first_step(n) + 1);
      ended = slot.frame.empty();
      try {
        if (!ended) session.run(vit::view(slot.frame), request, slot.outputs);
      } catch (...) {
        slot.failure = std::current_exception();
      }
      slot.advance();
    }
  };

  const auto start = std::chrono::steady_clock::now();
  std::vector<std::thread> threads;
  threads.emplace_back(decode);
  for (vit::Session& session : sessions) threads.emplace_back(compute, std::ref(session));

  std::vector<float> previous;
  std::exception_ptr failure;
  std::size_t n = 0;
  for (;; ++n) {
    Slot& slot = slot_of(n);
    slot.wait_for(first_step(n) + 2);
    if (slot.frame.empty()) break;
    try {
      if (slot.failure) std::rethrow_exception(slot.failure);
      draw_changes(slot.frame, slot.outputs[0].patches(), previous);
      if (argc == 4 && n == 0 && !drawn.open(argv[3], motion_jpeg, 25, slot.frame.size()))
        throw vit::Error("video_pipeline", "OpenCV cannot write this video");
      if (drawn.isOpened()) drawn.write(slot.frame);
    } catch (...) {
      failure = std::current_exception();
      stop = true;
    }
    slot.advance();
  }
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  std::printf("%zu frames by %zu sessions, %.1f frames/s\n", n, num_sessions,
              static_cast<double>(n) / passed.count());
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
