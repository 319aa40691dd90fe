// How far does each head look? Mean distance, in patches, between a patch and those that it attends to, over
// the given images: local heads are near 1, global ones near half of the grid.
// attention_distance MODEL IMAGE...
#include <cmath>
#include <cstdio>
#include <span>
#include <vector>

#include "vit/vit.h"

namespace {

/// Probability-weighted distance of the patches of one head, averaged over queries; what goes to prefix
/// tokens does not count. probabilities: (T, T), rows are queries.
double mean_distance(vit::TensorView<const float> probabilities, const vit::ImageOutputs& outputs) {
  const std::size_t prefix = outputs.num_prefix_tokens(), columns = outputs.grid().columns;
  const std::size_t patches = outputs.grid().rows * columns;
  double sum = 0;
  for (std::size_t query = 0; query < patches; ++query) {
    const std::span<const float> row = probabilities[prefix + query].flat();
    double distance = 0, weight = 0;
    for (std::size_t key = 0; key < patches; ++key) {
      const double x = static_cast<double>(key % columns) - static_cast<double>(query % columns);
      const double y = static_cast<double>(key / columns) - static_cast<double>(query / columns);
      distance += static_cast<double>(row[prefix + key]) * std::hypot(x, y);
      weight += static_cast<double>(row[prefix + key]);
    }
    sum += weight > 0 ? distance / weight : 0;
  }
  return sum / static_cast<double>(patches);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: attention_distance MODEL IMAGE...\n");
    return 2;
  }
  try {
    vit::Session session(vit::Model::load(argv[1]));
    const std::size_t depth = session.model().config().encoder.depth,
                      heads = session.model().config().attention.num_heads;
    vit::Request request;
    for (std::size_t block = 0; block < depth; ++block) request.add({vit::Output::attention, block});

    std::vector<double> sums(depth * heads);
    vit::Outputs all;
    for (int i = 2; i < argc; ++i) {
      const vit::Image image = session.decode(argv[i]);
      session.run(image, request, all);
      const vit::ImageOutputs outputs = all[0];
      for (std::size_t block = 0; block < depth; ++block) {
        for (std::size_t head = 0; head < heads; ++head) {
          sums[block * heads + head] += mean_distance(outputs.attention(block)[head], outputs);
        }
      }
    }
    for (std::size_t block = 0; block < depth; ++block) {
      std::printf("block %zu:", block);
      for (std::size_t head = 0; head < heads; ++head) {
        std::printf(" %.3f", sums[block * heads + head] / (argc - 2));
      }
      std::printf("\n");
    }
  } catch (const vit::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
