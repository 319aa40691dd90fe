// Where does an image look like its center? Compares the embedding of the middle patch with those of all
// others and prints the map.  patch_embeddings MODEL IMAGE
#include <Eigen/Core>
#include <cstdio>
#include <opencv2/imgcodecs.hpp>

#include "vit/eigen.h"
#include "vit/opencv.h"
#include "vit/vit.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: patch_embeddings MODEL IMAGE\n");
    return 2;
  }
  try {
    const cv::Mat mat = cv::imread(argv[2], cv::IMREAD_COLOR);  // (H, W) of BGR
    // native: the image keeps its size, so the map has its shape
    vit::FeatureExtractor extractor(argv[1], {.input_size = {.kind = vit::InputSize::Kind::native}});
    const vit::ImageOutputs outputs = extractor.extract(vit::view(mat));
    const vit::TensorView<const float> patches = outputs.patches();  // (h, w, C)
    const std::size_t rows = patches.dim(0), columns = patches.dim(1);

    const auto matrix = vit::view_as_eigen(patches);  // (h w, C), no copy
    const auto center = static_cast<Eigen::Index>(rows / 2 * columns + columns / 2);
    const Eigen::VectorXf norms = matrix.rowwise().norm();
    const Eigen::VectorXf cosines =
        (matrix * matrix.row(center).transpose()).array() / (norms.array() * norms[center]);

    std::printf("%zu x %zu patches, %zu numbers each\n", rows, columns, patches.dim(2));
    for (std::size_t i = 0; i < rows * columns; ++i) {
      std::printf("%6.2f%s", static_cast<double>(cosines[static_cast<Eigen::Index>(i)]),
                  (i + 1) % columns == 0 ? "\n" : "");
    }
  } catch (const vit::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
