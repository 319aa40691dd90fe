#include "vit/analysis/neighbors.h"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "vit/base/parallel.h"

namespace vit::internal {
namespace {

using Vector = Eigen::Map<const Eigen::VectorXf>;

}  // namespace

std::vector<double> count_votes(const LabeledRows& data, std::span<const float> vector,
                                std::size_t num_classes, std::size_t count) {
  const auto columns = static_cast<Eigen::Index>(vector.size());
  const Vector query(vector.data(), columns);
  std::vector<double> cosines(data.rows.size());
  for (std::size_t i = 0; i < cosines.size(); ++i) {
    const Vector row(data.features.row(data.rows[i]), columns);
    cosines[i] = row.cast<double>().dot(query.cast<double>());
  }
  std::vector<std::size_t> order(cosines.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto nearest = order.begin() + static_cast<std::ptrdiff_t>(std::min(count, order.size()));
  std::partial_sort(order.begin(), nearest, order.end(), [&](std::size_t a, std::size_t b) {
    return cosines[a] != cosines[b] ? cosines[a] > cosines[b] : a < b;
  });
  std::vector<double> votes(num_classes);
  for (auto i = order.begin(); i != nearest; ++i)
    votes[data.classes[data.rows[*i]]] += std::exp(cosines[*i] / kVoteTemperature);
  return votes;
}

std::vector<std::uint32_t> vote_of_neighbors(const LabeledRows& data, std::span<const std::size_t> asked,
                                             std::size_t num_classes, std::size_t count, int threads) {
  std::vector<std::uint32_t> out(asked.size());
  parallel_for(asked.size(), threads, [&](std::size_t i, int) {
    const std::span vector(data.features.row(asked[i]), data.features.num_columns());
    const std::vector<double> votes = count_votes(data, vector, num_classes, count);
    out[i] = static_cast<std::uint32_t>(std::ranges::max_element(votes) - votes.begin());
  });
  return out;
}

}  // namespace vit::internal
