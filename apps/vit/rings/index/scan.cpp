#include "apps/vit/rings/index/scan.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "vit/base/check.h"
#include "vit/base/checked.h"
#include "vit/base/parallel.h"

namespace vit::app {

using namespace internal;

namespace {

constexpr Where kWhere{"index", ErrorKind::mismatch};
constexpr std::size_t kBlockFloats = std::size_t{1} << 17;  // half a MiB: stays in the L2 cache

// Eight vectors of the smallest instruction set: one thread nearly saturates memory. FAISS's own, built
// for every processor of an architecture, takes four times as long.
constexpr std::size_t kSums = 32;

bool is_better(const Hit& a, const Hit& b) {
  return a.score > b.score || (a.score == b.score && a.index < b.index);
}

/// The best hits of one query in one thread.
class Best {
 public:
  explicit Best(std::size_t top) : top_(top), most_(top + std::max<std::size_t>(top, 1024)) {}

  void add(const Hit& hit) {
    if (is_full_ && !is_better(hit, worst_)) return;
    hits_.push_back(hit);
    if (hits_.size() < most_) return;
    keep_best(hits_, top_);
    is_full_ = true;
    worst_ = hits_.back();
  }
  std::span<const Hit> hits() const { return hits_; }

 private:
  std::size_t top_, most_;
  std::vector<Hit> hits_;
  bool is_full_ = false;
  Hit worst_;  // of those kept, once there are `top`
};

/// Buffers and results of a thread.
struct Lane {
  std::vector<float> rows;
  std::vector<Best> best;  // of each query
};

}  // namespace

void keep_best(std::vector<Hit>& hits, std::size_t top) {
  const std::size_t count = std::min(top, hits.size());
  std::partial_sort(hits.begin(), hits.begin() + static_cast<std::ptrdiff_t>(count), hits.end(), is_better);
  hits.resize(count);
}

float inner_product(const float* a, const float* b, std::size_t count) {
  std::array<float, kSums> sums{};
  std::size_t i = 0;
  for (; i + kSums <= count; i += kSums) {
    for (std::size_t k = 0; k < kSums; ++k) sums[k] += a[i + k] * b[i + k];
  }
  for (std::size_t k = 0; i < count; ++i, ++k) sums[k] += a[i] * b[i];
  for (std::size_t half = kSums / 2; half > 0; half /= 2) {
    for (std::size_t k = 0; k < half; ++k) sums[k] += sums[k + half];
  }
  return sums[0];
}

std::vector<std::vector<Hit>> scan(const StoredVectors& vectors,
                                   std::span<const std::span<const float>> queries, std::size_t top,
                                   int threads) {
  const std::size_t n = vectors.size(), dim = vectors.dim();
  for (const std::span<const float> query : queries) {
    VIT_CHECK(query.size() == dim, kWhere, "the query has ", query.size(),
              " numbers, the vectors of the index ", dim);
  }
  top = std::min(top, n);
  const std::size_t per_block = std::max<std::size_t>(1, kBlockFloats / dim);
  std::vector<Lane> lanes(static_cast<std::size_t>(resolve_threads(threads)));
  parallel_for(ceil_div(n, per_block), threads, [&](std::size_t block, int thread) {
    Lane& lane = lanes[static_cast<std::size_t>(thread)];
    const std::size_t first = block * per_block, count = std::min(per_block, n - first);
    lane.rows.resize(per_block * dim);
    lane.best.resize(queries.size(), Best(top));
    vectors.read(first, std::span(lane.rows).first(count * dim));
    for (std::size_t q = 0; q < queries.size(); ++q) {
      for (std::size_t i = 0; i < count; ++i) {
        const float score = inner_product(queries[q].data(), lane.rows.data() + i * dim, dim);
        VIT_CHECK(std::isfinite(score), kWhere.with(ErrorKind::format), "vector ", first + i,
                  " of the index is not finite: damaged? Run vit index again into a new folder");
        lane.best[q].add({first + i, score});
      }
    }
  });
  std::vector<std::vector<Hit>> found(queries.size());
  for (std::size_t q = 0; q < queries.size(); ++q) {
    for (const Lane& lane : lanes) {
      if (lane.best.empty()) continue;
      const std::span<const Hit> hits = lane.best[q].hits();
      found[q].insert(found[q].end(), hits.begin(), hits.end());
    }
    keep_best(found[q], top);
  }
  return found;
}

}  // namespace vit::app
