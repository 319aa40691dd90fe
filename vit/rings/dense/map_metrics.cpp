#include "vit/rings/dense/map_metrics.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "vit/base/check.h"

namespace vit {
namespace {

using internal::Where;
constexpr Where kWhere{"evaluate", ErrorKind::mismatch};

template <typename A, typename B>
void check_sizes(const TensorView<A>& found, const TensorView<B>& truth) {
  VIT_CHECK(found.rank() == 2 && found.shape() == truth.shape(), kWhere, "a map of ",
            found.shape().to_string(), " for a truth of ", truth.shape().to_string());
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 == 1) return *middle;
  return 0.5 * (*middle + *std::max_element(values.begin(), middle));
}

/// factor, offset: the least squares of factor * x + offset - y.
std::pair<double, double> fit_line(const std::vector<double>& x, const std::vector<double>& y) {
  const auto count = static_cast<double>(x.size());
  double mean_x = 0, mean_y = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    mean_x += x[i] / count;
    mean_y += y[i] / count;
  }
  double xx = 0, xy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    xy += (x[i] - mean_x) * (y[i] - mean_y);
  }
  const double factor = xx > 0 ? xy / xx : 0.0;
  return {factor, mean_y - factor * mean_x};
}

void align(std::vector<double>& found, const std::vector<double>& truth, DepthAlignment alignment) {
  if (alignment == DepthAlignment::none) return;
  if (alignment == DepthAlignment::median) {
    const double factor = median(truth) / median(found);
    for (double& value : found) value *= factor;
    return;
  }
  const bool inverse = alignment == DepthAlignment::inverse;
  std::vector<double> target = truth;
  if (inverse) std::ranges::transform(target, target.begin(), [](double depth) { return 1.0 / depth; });
  const auto [factor, offset] = fit_line(found, target);
  for (double& value : found) {
    value = factor * value + offset;
    // what is not in front of the camera is as far as it can be
    if (inverse) value = value > 0 ? 1.0 / value : HUGE_VAL;
  }
}

}  // namespace

std::optional<DepthMeasures> measure_depth(TensorView<const float> depth, TensorView<const float> truth,
                                           DepthAlignment alignment, float lowest, float highest) {
  check_sizes(depth, truth);
  std::vector<double> found, wanted;
  for (std::size_t i = 0; i < truth.num_elements(); ++i) {
    const float value = truth.data()[i];
    if (!(value > 0.0f) || !(value >= lowest && value <= highest) || !std::isfinite(value)) continue;
    found.push_back(depth.data()[i]);
    wanted.push_back(value);
  }
  if (found.empty()) return std::nullopt;
  align(found, wanted, alignment);
  DepthMeasures out{.pixels = found.size()};
  const auto count = static_cast<double>(found.size());
  double squares = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double p = std::clamp<double>(found[i], lowest, highest), t = wanted[i];
    out.abs_rel += std::abs(p - t) / t / count;
    out.delta1 += std::max(p / t, t / p) < 1.25 ? 1.0 / count : 0.0;
    squares += (p - t) * (p - t) / count;
  }
  out.rmse = std::sqrt(squares);
  return out;
}

// ----------------------------------------------------------------------------------------------------
// segments

ClassScores::ClassScores(std::size_t num_classes)
    : right_(num_classes), truth_(num_classes), found_(num_classes) {}

void ClassScores::add(TensorView<const std::int32_t> found, TensorView<const std::int32_t> truth) {
  check_sizes(found, truth);
  const auto is_class = [this](std::int32_t index) {
    return index >= 0 && static_cast<std::size_t>(index) < truth_.size();
  };
  for (std::size_t i = 0; i < truth.num_elements(); ++i) {
    const std::int32_t wanted = truth.data()[i], got = found.data()[i];
    if (!is_class(wanted)) continue;
    ++num_pixels_;
    ++truth_[static_cast<std::size_t>(wanted)];
    if (is_class(got)) ++found_[static_cast<std::size_t>(got)];
    if (got == wanted) ++right_[static_cast<std::size_t>(wanted)];
  }
}

std::optional<double> ClassScores::iou(std::size_t index) const {
  const std::uint64_t all = truth_[index] + found_[index] - right_[index];
  if (all == 0) return std::nullopt;
  return static_cast<double>(right_[index]) / static_cast<double>(all);
}

double ClassScores::mean_iou() const {
  double sum = 0;
  std::size_t count = 0;
  for (std::size_t c = 0; c < truth_.size(); ++c) {
    if (const auto value = iou(c)) {
      sum += *value;
      ++count;
    }
  }
  return count != 0 ? sum / static_cast<double>(count) : 0.0;
}

double ClassScores::accuracy() const {
  std::uint64_t right = 0;
  for (const std::uint64_t count : right_) right += count;
  return num_pixels_ != 0 ? static_cast<double>(right) / static_cast<double>(num_pixels_) : 0.0;
}

PanopticScores::PanopticScores(std::size_t num_classes) : counts_(num_classes) {}

namespace {

/// The segment of each id, and the pixels of each pair of ids.
using Areas = std::map<std::int32_t, std::size_t>;
using Overlaps = std::map<std::pair<std::int32_t, std::int32_t>, std::size_t>;

const PanopticSegment& segment_with(std::span<const PanopticSegment> segments, std::int32_t id,
                                    std::size_t num_classes) {
  const auto found = std::ranges::find(segments, id, &PanopticSegment::id);
  VIT_CHECK(found != segments.end(), kWhere, "the map has pixels of a segment ", id, " that is not listed");
  VIT_CHECK(found->index < num_classes, kWhere, "segment ", id, " has the class ", found->index, " of ",
            num_classes);
  return *found;
}

}  // namespace

void PanopticScores::add(TensorView<const std::int32_t> found,
                         std::span<const PanopticSegment> found_segments,
                         TensorView<const std::int32_t> truth,
                         std::span<const PanopticSegment> truth_segments) {
  check_sizes(found, truth);
  Areas found_areas, truth_areas;
  Overlaps overlaps;
  for (std::size_t i = 0; i < truth.num_elements(); ++i) {
    ++found_areas[found.data()[i]];
    ++truth_areas[truth.data()[i]];
    ++overlaps[{truth.data()[i], found.data()[i]}];
  }
  // what is not listed is an Error before anything is counted
  for (const auto& [id, area] : truth_areas) {
    if (id >= 0) segment_with(truth_segments, id, counts_.size());
  }
  for (const auto& [id, area] : found_areas) {
    if (id >= 0) segment_with(found_segments, id, counts_.size());
  }
  const auto overlap = [&](std::int32_t wanted, std::int32_t got) {
    const auto place = overlaps.find({wanted, got});
    return place == overlaps.end() ? std::size_t{0} : place->second;
  };
  std::map<std::int32_t, bool> matched_truth, matched_found;
  for (const auto& [ids, pixels] : overlaps) {
    const auto [wanted, got] = ids;
    if (wanted < 0 || got < 0) continue;
    const PanopticSegment& t = segment_with(truth_segments, wanted, counts_.size());
    const PanopticSegment& f = segment_with(found_segments, got, counts_.size());
    if (t.is_crowd || t.index != f.index) continue;
    // pixels without a truth do not count against what was found there
    const std::size_t both = found_areas[got] + truth_areas[wanted] - pixels - overlap(-1, got);
    const double iou = static_cast<double>(pixels) / static_cast<double>(both);
    if (!(iou > 0.5)) continue;
    counts_[t.index].iou += iou;
    ++counts_[t.index].matched;
    matched_truth[wanted] = matched_found[got] = true;
  }
  for (const auto& [id, area] : truth_areas) {
    if (id < 0 || matched_truth.contains(id)) continue;
    const PanopticSegment& t = segment_with(truth_segments, id, counts_.size());
    if (!t.is_crowd) ++counts_[t.index].missed;
  }
  for (const auto& [id, area] : found_areas) {
    if (id < 0 || matched_found.contains(id)) continue;
    const PanopticSegment& f = segment_with(found_segments, id, counts_.size());
    std::size_t ignored = overlap(-1, id);
    for (const auto& [wanted, unused] : truth_areas) {
      if (wanted < 0) continue;
      const PanopticSegment& t = segment_with(truth_segments, wanted, counts_.size());
      if (t.is_crowd && t.index == f.index) ignored += overlap(wanted, id);
    }
    if (static_cast<double>(ignored) / static_cast<double>(area) > 0.5) continue;
    ++counts_[f.index].extra;
  }
}

std::optional<PanopticScores::Quality> PanopticScores::of_class(std::size_t index) const {
  const Counts& c = counts_[index];
  if (c.matched + c.extra + c.missed == 0) return std::nullopt;
  const auto matched = static_cast<double>(c.matched);
  const double all = matched + 0.5 * static_cast<double>(c.extra) + 0.5 * static_cast<double>(c.missed);
  return Quality{.quality = c.iou / all,
                 .segmentation = c.matched != 0 ? c.iou / matched : 0.0,
                 .recognition = matched / all,
                 .classes = 1};
}

PanopticScores::Quality PanopticScores::mean() const {
  Quality out;
  for (std::size_t c = 0; c < counts_.size(); ++c) {
    const auto quality = of_class(c);
    if (!quality) continue;
    out.quality += quality->quality;
    out.segmentation += quality->segmentation;
    out.recognition += quality->recognition;
    ++out.classes;
  }
  if (out.classes == 0) return out;
  const auto count = static_cast<double>(out.classes);
  out.quality /= count;
  out.segmentation /= count;
  out.recognition /= count;
  return out;
}

}  // namespace vit
