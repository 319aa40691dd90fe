// A user's program: the shape of the patch features of one frame, from the headers that were installed.
#include <vit/opencv.h>
#include <vit/vit.h>

#include <cstdio>
#include <exception>
#include <opencv2/core.hpp>

int main(int argc, char** argv) try {
  if (argc != 2) return 2;
  vit::FeatureExtractor extractor(argv[1]);
  const cv::Mat frame(96, 128, CV_8UC3, cv::Scalar(10, 120, 240));
  const vit::ImageOutputs outputs = extractor.extract(vit::view(frame));
  std::printf("vit %s, patches %s\n", vit::version(), outputs.patches().shape().to_string().c_str());
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
