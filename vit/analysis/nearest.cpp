#include "vit/analysis/features.h"

#include <Eigen/Core>
#include <algorithm>
#include <limits>

#include "vit/base/check.h"
#include "vit/base/checked.h"
#include "vit/base/parallel.h"

namespace vit {
using namespace internal;
namespace {

constexpr Where kWhere{"mutual_nearest", ErrorKind::argument};
using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr std::size_t kBlockRows = 128;

/// Rows of length 1; zero rows stay zero.
Rows unit_rows(TensorView<const float> rows) {
  Rows out(static_cast<Eigen::Index>(rows.num_rows()), static_cast<Eigen::Index>(rows.num_columns()));
  for (Eigen::Index r = 0; r < out.rows(); ++r) {
    const float* const from = rows.row(static_cast<std::size_t>(r));
    for (Eigen::Index c = 0; c < out.cols(); ++c) out(r, c) = static_cast<double>(from[c]);
    const double length = out.row(r).norm();
    if (length > 0) out.row(r) /= length;
  }
  return out;
}

struct Best {
  std::size_t index = 0;
  double cosine = -std::numeric_limits<double>::infinity();

  void offer(std::size_t other, double value) {
    if (value > cosine || (value == cosine && other < index)) *this = {other, value};
  }
};

}  // namespace

std::vector<NearestPair> mutual_nearest(TensorView<const float> a, TensorView<const float> b, int threads) {
  VIT_CHECK(!a.empty() && !b.empty() && a.num_columns() == b.num_columns(), kWhere, "rows ",
            a.shape().to_string(), " and ", b.shape().to_string(), " cannot be compared");
  const Rows first = unit_rows(a), second = unit_rows(b);
  const std::size_t num_a = a.num_rows(), num_b = b.num_rows();
  const auto num_threads = static_cast<std::size_t>(resolve_threads(threads));
  std::vector<Best> nearest_of_a(num_a);
  std::vector<std::vector<Best>> nearest_of_b(num_threads, std::vector<Best>(num_b));  // per thread
  parallel_for(ceil_div(num_a, kBlockRows), threads, [&](std::size_t block, int thread) {
    const std::size_t begin = block * kBlockRows, count = std::min(kBlockRows, num_a - begin);
    const Rows cosines =
        first.middleRows(static_cast<Eigen::Index>(begin), static_cast<Eigen::Index>(count)) *
        second.transpose();
    std::vector<Best>& columns = nearest_of_b[static_cast<std::size_t>(thread)];
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t j = 0; j < num_b; ++j) {
        const double cosine = cosines(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j));
        nearest_of_a[begin + i].offer(j, cosine);
        columns[j].offer(begin + i, cosine);
      }
    }
  });
  for (std::size_t t = 1; t < num_threads; ++t) {
    for (std::size_t j = 0; j < num_b; ++j)
      nearest_of_b[0][j].offer(nearest_of_b[t][j].index, nearest_of_b[t][j].cosine);
  }
  std::vector<NearestPair> pairs;
  for (std::size_t i = 0; i < num_a; ++i) {
    const Best& best = nearest_of_a[i];
    if (nearest_of_b[0][best.index].index == i)
      pairs.push_back({.first = i, .second = best.index, .cosine = best.cosine});
  }
  return pairs;
}

}  // namespace vit
