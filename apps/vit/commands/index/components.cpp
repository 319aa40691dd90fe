#include "apps/vit/commands/index/components.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "vit/kernels/kernels.h"
#include "vit/layers/activations.h"
#include "vit/layers/linear.h"
#include "vit/outputs.h"

namespace vit::app {
namespace {

constexpr std::size_t kBlock = 1024;  // a block of cosines is 4 MB

// Cosines this close to the threshold are recomputed in double. A float32 sum of d products of vectors
// of length 1 has an error below sqrt(d) 2^-24, which is 1e-5 for d = 30,000.
constexpr double kBand = 1e-5;

/// Disjoint sets; the smallest member represents a set.
class DisjointSets {
 public:
  explicit DisjointSets(std::size_t count) : parent_(count) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }

  std::size_t find(std::size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void join(std::size_t a, std::size_t b) {
    const auto [low, high] = std::minmax({find(a), find(b)});  // by value
    parent_[high] = low;
  }

 private:
  std::vector<std::size_t> parent_;
};

}  // namespace

std::vector<std::vector<std::size_t>> connected_components(TensorView<const float> vectors, double threshold,
                                                           int threads) {
  const std::size_t count = vectors.num_rows(), dim = vectors.num_columns();
  const internal::kernels::Arithmetic& arithmetic = *internal::kernels::default_kernels().float32;
  internal::Activations activations;
  activations.reserve(
      {.num_tokens = kBlock, .embed_dim = dim, .attention_dim = dim, .hidden_dim = dim, .threads = threads},
      arithmetic);
  const internal::Pass pass{.activations = activations, .threads = threads};
  Tensor<float> cosines(Shape{kBlock, kBlock});
  DisjointSets sets(count);
  for (std::size_t column = 0; column < count; column += kBlock) {
    const std::size_t columns = std::min(kBlock, count - column);
    const internal::Linear block(vectors.part(column, columns), {}, *arithmetic.linear);
    for (std::size_t row = 0; row <= column; row += kBlock) {
      const std::size_t rows = std::min(kBlock, count - row);
      const TensorView<float> out(cosines.data(), Shape{rows, columns});
      block.forward(vectors.part(row, rows), out, pass);
      for (std::size_t i = 0; i < rows; ++i) {
        const float* const found = out.row(i);
        for (std::size_t j = row == column ? i + 1 : 0; j < columns; ++j) {
          const auto cosine = static_cast<double>(found[j]);
          if (cosine < threshold - kBand) continue;
          const std::size_t a = row + i, b = column + j;
          if (cosine < threshold + kBand &&
              cosine_similarity({vectors.row(a), dim}, {vectors.row(b), dim}) < threshold &&
              !std::equal(vectors.row(a), vectors.row(a) + dim, vectors.row(b)))
            continue;
          sets.join(a, b);
        }
      }
    }
  }
  std::map<std::size_t, std::vector<std::size_t>> members;
  for (std::size_t i = 0; i < count; ++i) members[sets.find(i)].push_back(i);
  std::vector<std::vector<std::size_t>> out;
  for (auto& [first, group] : members) {
    if (group.size() > 1) out.push_back(std::move(group));
  }
  return out;
}

}  // namespace vit::app
