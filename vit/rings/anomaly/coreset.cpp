#include "vit/rings/anomaly/coreset.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>

#include "vit/analysis/eigen_rows.h"
#include "vit/base/check.h"
#include "vit/base/parallel.h"

namespace vit::internal {
namespace {

constexpr std::size_t kRowsPerTask = 4096;
// Distances of float32 rows are exact to about 1e-6; a row within this margin of the bound is compared.
constexpr float kMargin = 1e-4f;

float distance(TensorView<const float> rows, std::size_t a, std::size_t b) {
  return (map_row(rows, a) - map_row(rows, b)).norm();
}

std::size_t farthest_from_mean(TensorView<const float> rows) {
  Eigen::VectorXd mean = Eigen::VectorXd::Zero(static_cast<Eigen::Index>(rows.num_columns()));
  for (std::size_t i = 0; i < rows.num_rows(); ++i) mean += map_row(rows, i).cast<double>();
  mean /= static_cast<double>(rows.num_rows());
  std::size_t best = 0;
  double largest = -1;
  for (std::size_t i = 0; i < rows.num_rows(); ++i) {
    const double d = (map_row(rows, i).cast<double>() - mean).squaredNorm();
    if (d > largest) best = i, largest = d;
  }
  return best;
}

/// Each row with its nearest center.
struct Assignment {
  std::vector<float> distance;       // (n)
  std::vector<std::uint32_t> owner;  // (n) number of the center

  std::size_t farthest() const {
    return static_cast<std::size_t>(std::ranges::max_element(distance) - distance.begin());
  }
};

void add_center(TensorView<const float> rows, std::span<const std::size_t> centers, Assignment& nearest,
                int threads) {
  const std::size_t added = centers.back();
  std::vector<float> to_others(centers.size());
  for (std::size_t c = 0; c < centers.size(); ++c) to_others[c] = distance(rows, centers[c], added);
  parallel_for_parts(rows.num_rows(), kRowsPerTask, threads, [&](std::size_t first, std::size_t count) {
    for (std::size_t i = first; i < first + count; ++i) {
      if (to_others[nearest.owner[i]] > 2 * nearest.distance[i] + kMargin) continue;
      const float d = distance(rows, i, added);
      if (d < nearest.distance[i]) {
        nearest.distance[i] = d;
        nearest.owner[i] = static_cast<std::uint32_t>(centers.size() - 1);
      }
    }
  });
}

}  // namespace

std::vector<std::size_t> choose_coreset(TensorView<const float> rows, std::size_t count, int threads) {
  const std::size_t num_rows = rows.num_rows();
  VIT_CHECK(count > 0 && count <= num_rows && num_rows <= std::numeric_limits<std::uint32_t>::max(),
            "coreset", count, " of ", num_rows, " rows cannot be chosen");
  std::vector<std::size_t> chosen(num_rows);
  std::iota(chosen.begin(), chosen.end(), std::size_t{0});
  if (count == num_rows) return chosen;
  chosen.assign(1, farthest_from_mean(rows));
  Assignment nearest{.distance = std::vector<float>(num_rows, std::numeric_limits<float>::infinity()),
                     .owner = std::vector<std::uint32_t>(num_rows)};
  with_team(threads, [&] {
    while (true) {
      add_center(rows, chosen, nearest, threads);
      nearest.distance[chosen.back()] = -1;  // prevents equal rows from being chosen twice
      if (chosen.size() == count) break;
      chosen.push_back(nearest.farthest());
    }
  });
  std::ranges::sort(chosen);
  return chosen;
}

}  // namespace vit::internal
