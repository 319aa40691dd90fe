#include "vit/analysis/detection.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "vit/base/check.h"

namespace vit {
namespace {

constexpr Where kWhere{"detection", ErrorKind::argument};

struct Scored {
  float score;
  bool is_positive;
};

/// Area under the ROC curve of `count` scores in descending order; at(i) is the i-th.
template <typename At>
double area_of_sorted(std::size_t count, const At& at) {
  double positives = 0, negatives = 0, area = 0;
  for (std::size_t i = 0; i < count;) {
    double more_positives = 0, more_negatives = 0;
    const float score = at(i).score;
    for (; i < count && at(i).score == score; ++i) (at(i).is_positive ? more_positives : more_negatives) += 1;
    area += more_negatives * (positives + more_positives / 2);
    positives += more_positives;
    negatives += more_negatives;
  }
  VIT_CHECK(positives > 0 && negatives > 0, kWhere, positives, " anomalous and ", negatives,
            " good ones: both are required");
  return area / positives / negatives;
}

/// Numbers the regions of a mask (H, W): 0 = good, then first, first + 1, ...; appends their sizes.
class Regions {
 public:
  Regions(TensorView<const std::uint8_t> mask, std::vector<std::size_t>& sizes)
      : mask_(mask), height_(mask.dim(0)), width_(mask.dim(1)), labels_(height_ * width_), sizes_(sizes) {
    for (std::size_t i = 0; i < labels_.size(); ++i) {
      if (is_marked(i) && labels_[i] == 0) fill(i);
    }
  }
  std::uint32_t operator[](std::size_t pixel) const { return labels_[pixel]; }

 private:
  bool is_marked(std::size_t pixel) const { return mask_.row(pixel / width_)[pixel % width_] != 0; }

  void fill(std::size_t seed) {
    sizes_.push_back(0);
    const auto label = static_cast<std::uint32_t>(sizes_.size());
    labels_[seed] = label;
    for (stack_.assign(1, seed); !stack_.empty();) {
      const std::size_t at = stack_.back();
      stack_.pop_back();
      ++sizes_.back();
      const std::size_t y = at / width_, x = at % width_;
      for (std::size_t v = y - (y > 0); v <= std::min(y + 1, height_ - 1); ++v) {
        for (std::size_t u = x - (x > 0); u <= std::min(x + 1, width_ - 1); ++u) {
          const std::size_t next = v * width_ + u;
          if (labels_[next] != 0 || !is_marked(next)) continue;
          labels_[next] = label;
          stack_.push_back(next);
        }
      }
    }
  }

  TensorView<const std::uint8_t> mask_;
  std::size_t height_, width_;
  std::vector<std::uint32_t> labels_;
  std::vector<std::size_t>& sizes_;
  std::vector<std::size_t> stack_;
};

}  // namespace

double roc_auc(std::span<const float> scores, std::span<const std::uint8_t> is_positive) {
  VIT_CHECK(scores.size() == is_positive.size(), kWhere, scores.size(), " scores and ", is_positive.size(),
            " labels");
  std::vector<Scored> sorted;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    VIT_CHECK(std::isfinite(scores[i]), kWhere, "score ", i, " is not finite");
    sorted.push_back({scores[i], is_positive[i] != 0});
  }
  std::ranges::sort(sorted, std::greater{}, &Scored::score);
  return area_of_sorted(sorted.size(), [&](std::size_t i) { return sorted[i]; });
}

void PixelScores::add(TensorView<const float> map, TensorView<const std::uint8_t> mask) {
  VIT_CHECK(map.rank() == 2 && (mask.empty() || mask.shape() == map.shape()), kWhere, "a map ",
            map.shape().to_string(), " and a mask ", mask.shape().to_string(), " differ in size");
  const std::size_t width = map.dim(1), count = map.num_elements();
  for (std::size_t i = 0; i < count; ++i)
    VIT_CHECK(std::isfinite(map.row(i / width)[i % width]), kWhere, "a score of a pixel is not finite");
  is_sorted_ = false;
  pixels_.reserve(pixels_.size() + count);
  if (mask.empty()) {
    for (std::size_t i = 0; i < count; ++i) pixels_.push_back({map.row(i / width)[i % width], 0});
    return;
  }
  const Regions regions(mask, sizes_);
  for (std::size_t i = 0; i < count; ++i) pixels_.push_back({map.row(i / width)[i % width], regions[i]});
}

void PixelScores::sort() {
  if (!is_sorted_) std::ranges::sort(pixels_, std::greater{}, &Pixel::score);
  is_sorted_ = true;
}

double PixelScores::roc_auc() {
  sort();
  return area_of_sorted(pixels_.size(), [this](std::size_t i) {
    return Scored{pixels_[i].score, pixels_[i].region != 0};
  });
}

double PixelScores::per_region_overlap(double limit) {
  VIT_CHECK(limit > 0 && limit <= 1, kWhere, "the limit must be above 0 and at most 1, got ", limit);
  sort();
  double marked = 0;
  for (const std::size_t size : sizes_) marked += static_cast<double>(size);
  const double num_good = static_cast<double>(pixels_.size()) - marked;
  VIT_CHECK(marked > 0 && num_good > 0, kWhere, marked, " anomalous and ", num_good,
            " good pixels: both are required");
  double share = 0, overlap = 0, area = 0;  // of good pixels; mean of the regions; under the curve so far
  for (std::size_t i = 0; i < pixels_.size();) {
    double good = 0, more = 0;
    const float score = pixels_[i].score;
    for (; i < pixels_.size() && pixels_[i].score == score; ++i) {
      const std::uint32_t region = pixels_[i].region;
      region == 0 ? good += 1 : more += 1 / static_cast<double>(sizes_[region - 1]);
    }
    const double next_share = share + good / num_good;
    const double next_overlap = overlap + more / static_cast<double>(sizes_.size());
    if (next_share >= limit) {
      const double part = next_share > share ? (limit - share) / (next_share - share) : 0;
      const double at_limit = overlap + part * (next_overlap - overlap);
      return (area + (limit - share) * (overlap + at_limit) / 2) / limit;
    }
    area += (next_share - share) * (overlap + next_overlap) / 2;
    share = next_share;
    overlap = next_overlap;
  }
  return area / limit;
}

}  // namespace vit
