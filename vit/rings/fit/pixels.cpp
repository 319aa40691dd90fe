// Training of classes of pixels: rows of labeled pixels, what the cross-validation holds out, and examples.
#include "vit/pixels.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "vit/base/check.h"
#include "vit/base/moved.h"
#include "vit/rings/fit/held_out.h"
#include "vit/rings/fit/pixel_options.h"
#include "vit/rings/fit/pixel_rows.h"
#include "vit/rings/fit/standardize.h"

namespace vit {
using namespace internal;
namespace {

constexpr Where kFitPixels{"fit pixels", ErrorKind::argument};
// Among which the cross-validation chooses. A few strokes are nearly always separable: weaker penalties than
// the last one only move the optimum towards infinity.
constexpr std::array<double, 7> kStrengths{1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0};
// Of vectors of length one. Smaller ones leave probabilities near their mean.
constexpr std::array<double, 6> kUnitStrengths{1e-1, 1.0, 10.0, 100.0, 1e3, 1e4};

}  // namespace

const char* to_string(HeldOut held_out) {
  switch (held_out) {
    case HeldOut::nothing: return "nothing";
    case HeldOut::strokes: return "strokes";
    case HeldOut::images: return "images";
  }
  return "";
}

struct PixelTrainer::State {
  PixelOptions options;
  PixelRows rows;                   // of all images
  std::vector<std::size_t> images;  // (n) of the rows
  std::size_t num_images = 0;
  std::size_t num_pixels = 0;
  std::size_t num_all_pixels = 0;  // of these images

  std::size_t num_classes() const {
    return rows.classes.empty() ? 0 : *std::ranges::max_element(rows.classes) + std::size_t{1};
  }
  TensorView<const float> features() const {
    return {rows.numbers.data(), Shape{rows.classes.size(), rows.num_features}};
  }
};

PixelTrainer::PixelTrainer() : state_(std::make_unique<State>()) {}
PixelTrainer::~PixelTrainer() = default;
PixelTrainer::PixelTrainer(PixelTrainer&&) noexcept = default;
PixelTrainer& PixelTrainer::operator=(PixelTrainer&&) noexcept = default;

std::size_t PixelTrainer::num_images() const {
  return internal::parts_of(state_, kFitPixels).num_images;
}
std::size_t PixelTrainer::num_pixels() const {
  return internal::parts_of(state_, kFitPixels).num_pixels;
}
TensorView<const float> PixelTrainer::rows() const {
  return internal::parts_of(state_, kFitPixels).features();
}
std::span<const std::uint32_t> PixelTrainer::classes() const {
  return internal::parts_of(state_, kFitPixels).rows.classes;
}

void PixelTrainer::add(const PixelFeatures& features, TensorView<const std::int32_t> labels, int threads) {
  State& s = internal::parts_of(state_, kFitPixels);
  const ImageSize size = features.size();
  VIT_CHECK(labels.rank() == 2 && labels.dim(0) == size.height && labels.dim(1) == size.width,
            kFitPixels.with(ErrorKind::mismatch), "labels of shape ", labels.shape().to_string(),
            " for an image of ", size.height, " x ", size.width, " (height x width)");
  for (std::size_t y = 0; y < size.height; ++y) {
    const auto wrong = std::find_if(labels.row(y), labels.row(y) + size.width, [](std::int32_t label) {
      return label < -1 || label >= kMostPixelClasses;
    });
    VIT_CHECK(wrong == labels.row(y) + size.width, kFitPixels, "label ", *wrong, " at pixel ",
              wrong - labels.row(y), ",", y, "; classes count from 0, and -1 is not labeled");
  }
  if (s.num_images == 0) s.options = features.options();
  VIT_CHECK(are_same(s.options, features.options()) &&
                (s.num_images == 0 || s.rows.num_features == features.num_features()),
            kFitPixels.with(ErrorKind::mismatch), "these features were made with ",
            described(features.options()), ", those before with ", described(s.options));
  PixelRows rows =
      rows_of_labels(features.state_->grids, features.state_->image, s.options.color, labels, threads);
  if (rows.classes.empty()) return;
  s.rows.num_features = rows.num_features;
  const auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
  append(s.rows.numbers, rows.numbers);
  append(s.rows.classes, rows.classes);
  append(s.rows.strokes, rows.strokes);
  append(s.rows.num_pixels, rows.num_pixels);
  s.images.resize(s.rows.classes.size(), s.num_images++);
  s.num_all_pixels += size.height * size.width;
  s.num_pixels = std::accumulate(rows.num_pixels.begin(), rows.num_pixels.end(), s.num_pixels);
}

namespace {

/// The fold in which each row is held out, and how many there are; 0 = none.
struct Folds {
  std::vector<std::size_t> of_rows;
  std::size_t count = 0;
};

Folds folds_of_images(std::span<const std::size_t> images, std::size_t num_images, std::size_t most) {
  Folds out{.of_rows = {images.begin(), images.end()}, .count = std::min(num_images, most)};
  if (out.count < 2) return {};
  for (std::size_t& fold : out.of_rows) fold %= out.count;
  return out;
}

/// The strokes of each class in turn.
Folds folds_of_strokes(const PixelRows& rows, std::size_t num_classes, std::size_t most) {
  const std::size_t num_strokes = *std::ranges::max_element(rows.strokes) + 1;
  constexpr std::size_t kUnknown = ~std::size_t{0};
  std::vector<std::size_t> number(num_strokes, kUnknown), counts(num_classes);  // of its class
  for (std::size_t r = 0; r < rows.strokes.size(); ++r) {
    std::size_t& place = number[rows.strokes[r]];
    if (place == kUnknown) place = counts[rows.classes[r]]++;
  }
  Folds out{.of_rows = {}, .count = std::min(*std::ranges::max_element(counts), most)};
  if (out.count < 2) return {};
  for (const std::size_t stroke : rows.strokes) out.of_rows.push_back(number[stroke] % out.count);
  return out;
}

/// Intersection over union of classes of pixels.
class Overlaps {
 public:
  explicit Overlaps(std::size_t num_classes) : hits_(num_classes), unions_(num_classes) {}

  void add(std::size_t truth, std::size_t predicted, std::size_t num_pixels) {
    unions_[truth] += num_pixels;
    (truth == predicted ? hits_ : unions_)[predicted] += num_pixels;
  }
  double mean() const {
    double sum = 0;
    for (std::size_t k = 0; k < hits_.size(); ++k)
      sum += static_cast<double>(hits_[k]) / static_cast<double>(std::max<std::size_t>(unions_[k], 1));
    return sum / static_cast<double>(hits_.size());
  }

 private:
  std::vector<std::size_t> hits_, unions_;
};

/// What predicts held-out rows, in each of some variants.
using PredictHeldOut = std::function<std::vector<Predictions>(const Division&)>;

/// Mean IoU of each variant over the pixels of all folds.
std::vector<double> overlaps_of(const TrainingSet& set, const PixelRows& rows, const Folds& folds,
                                const PredictHeldOut& predict) {
  std::vector<Overlaps> overlaps;
  for (std::size_t fold = 0; fold < folds.count; ++fold) {
    const Division division = divide(set, folds.of_rows, fold);
    const std::vector<Predictions> variants = predict(division);
    overlaps.resize(variants.size(), Overlaps(set.num_classes));
    for (std::size_t v = 0; v < variants.size(); ++v) {
      for (std::size_t i = 0; i < division.tested.size(); ++i) {
        const std::size_t row = division.tested[i];
        overlaps[v].add(set.classes[row], variants[v][i], rows.num_pixels[row]);
      }
    }
  }
  std::vector<double> out;
  for (const Overlaps& of : overlaps) out.push_back(of.mean());
  return out;
}

Tensor<float> rows_of_unit_length(TensorView<const float> rows) {
  Tensor<float> out(rows.shape());
  for (std::size_t r = 0; r < rows.num_rows(); ++r) {
    std::copy_n(rows.row(r), rows.num_columns(), out.view().row(r));
    normalize_vector({out.view().row(r), rows.num_columns()});
  }
  return out;
}

void check_classes(const PixelRows& rows, std::size_t num_classes) {
  VIT_CHECK(num_classes > 0, kFitPixels, "no pixel is labeled");
  const std::vector<std::size_t> counts = count_classes(rows.classes, num_classes);
  const auto empty = std::ranges::find(counts, std::size_t{0});
  VIT_CHECK(empty == counts.end(), kFitPixels, "class ", empty - counts.begin(), " of ", num_classes,
            " has no labeled pixel");
  VIT_CHECK(num_classes >= 2, kFitPixels,
            "all labeled pixels are of one class; two are required, one of which may be the background");
}

}  // namespace

PixelHead PixelTrainer::fit(FitMethod method, const FitOptions& options) const {
  check_choice(kFitPixels, "method", method, FitMethod::centroid);
  const State& s = internal::parts_of(state_, kFitPixels);
  const std::size_t num_classes = s.num_classes();
  check_classes(s.rows, num_classes);
  const Folds folds = s.num_images > 1 ? folds_of_images(s.images, s.num_images, options.num_folds)
                                       : folds_of_strokes(s.rows, num_classes, options.num_folds);
  PixelHead head{
      .classifier = {}, .options = s.options, .num_images = s.num_images, .num_pixels = s.num_pixels};
  FitOptions chosen = options;
  chosen.num_folds = 0;
  chosen.strength = options.strength.value_or(1.0);
  // Vectors of length one are compared by their angle: functions through the origin, and no feature counts
  // more for varying less in the few strokes that there are.
  if (s.options.unit_length) {
    chosen.standardize = chosen.intercept = false;
    chosen.balanced = 2 * s.num_pixels < s.num_all_pixels;  // strokes: how many says nothing of a class
  }
  if (folds.count > 0) {
    const Tensor<float> units =
        method == FitMethod::knn ? rows_of_unit_length(s.features()) : Tensor<float>();
    const TrainingSet set{.features = method == FitMethod::knn ? units.view() : s.features(),
                          .classes = s.rows.classes,
                          .num_classes = num_classes};
    const Standardization standard = chosen.standardize && method != FitMethod::knn
                                         ? standardization_of(set.features)
                                         : no_standardization(s.rows.num_features);
    const std::vector<double> strengths = options.strength ? std::vector{*options.strength}
                                          : s.options.unit_length
                                              ? std::vector(kUnitStrengths.begin(), kUnitStrengths.end())
                                              : std::vector(kStrengths.begin(), kStrengths.end());
    const auto predict = [&](const Division& division) -> std::vector<Predictions> {
      switch (method) {
        case FitMethod::knn: return {predict_by_votes(set, division, options)};
        case FitMethod::centroid: return {predict_by_centroids(set, division, standard, options.threads)};
        case FitMethod::logistic: break;
      }
      return predict_by_strength(set, division, standard, strengths, chosen);
    };
    const std::vector<double> scores = overlaps_of(set, s.rows, folds, predict);
    const auto best = std::ranges::max_element(scores);  // ties: the first
    if (method == FitMethod::logistic)
      chosen.strength = strengths[static_cast<std::size_t>(best - scores.begin())];
    head.cross_validated_iou = *best;
    head.held_out = s.num_images > 1 ? HeldOut::images : HeldOut::strokes;
  }
  switch (method) {
    case FitMethod::knn: head.classifier = fit_knn(s.features(), s.rows.classes, chosen); break;
    case FitMethod::centroid: head.classifier = fit_centroid(s.features(), s.rows.classes, chosen); break;
    case FitMethod::logistic: head.classifier = fit_linear(s.features(), s.rows.classes, chosen); break;
  }
  head.classifier.num_folds = folds.count;
  head.classifier.features = features_name(s.options);
  return head;
}

PixelHead PixelTrainer::fit_example() const {
  const State& s = internal::parts_of(state_, kFitPixels);
  check_classes(s.rows, s.num_classes());
  VIT_CHECK(s.num_classes() == 2, kFitPixels,
            "an example has two classes, the background and what is looked for; found ", s.num_classes());
  VIT_CHECK(s.options.unit_length, kFitPixels, "cosines need features of unit_length");
  const std::size_t columns = s.rows.num_features, count = s.rows.classes.size();
  const TensorView<const float> rows = s.features();
  std::array<std::vector<double>, 2> means{std::vector<double>(columns), std::vector<double>(columns)};
  for (std::size_t r = 0; r < count; ++r) {
    for (std::size_t c = 0; c < columns; ++c)
      means[s.rows.classes[r]][c] += static_cast<double>(rows.row(r)[c]);
  }
  for (std::vector<double>& mean : means) {
    const double length = std::sqrt(std::inner_product(mean.begin(), mean.end(), mean.begin(), 0.0));
    for (double& x : mean) x /= std::max(length, 1e-12);
  }
  std::vector<double> direction(columns), scores(count);
  for (std::size_t c = 0; c < columns; ++c) direction[c] = means[1][c] - means[0][c];
  std::array<double, 2> sums{}, counts{};
  for (std::size_t r = 0; r < count; ++r) {
    for (std::size_t c = 0; c < columns; ++c) scores[r] += direction[c] * static_cast<double>(rows.row(r)[c]);
    sums[s.rows.classes[r]] += scores[r];
    counts[s.rows.classes[r]] += 1;
  }
  const double low = sums[0] / counts[0], high = sums[1] / counts[1];
  double variance = 0;
  for (std::size_t r = 0; r < count; ++r)
    variance += std::pow(scores[r] - (s.rows.classes[r] == 1 ? high : low), 2.0) / static_cast<double>(count);
  // Of two normal distributions with one variance and equal frequencies; at most 0.999 at the means.
  constexpr double kMostAtMean = 7.0;
  const double gap = high - low;
  VIT_CHECK(gap > 0, kFitPixels, "the marked pixels have the same features as the others");
  const double slope = std::min(gap / std::max(variance, 1e-12), 2 * kMostAtMean / gap);
  PixelHead head{
      .classifier = {}, .options = s.options, .num_images = s.num_images, .num_pixels = s.num_pixels};
  ClassifierHead& of = head.classifier;
  of.method = FitMethod::centroid;
  of.labels = {"background", "like"};
  of.features = features_name(s.options);
  of.num_images = count;
  of.mean = Tensor<float>(Shape{columns});
  of.scale = Tensor<float>(Shape{columns});
  std::ranges::fill(of.scale.flat(), 1.0f);
  of.coefficients = Tensor<float>(Shape{2, columns});
  of.intercepts = Tensor<float>(Shape{2});
  for (std::size_t k = 0; k < 2; ++k) {
    const double half = k == 1 ? slope / 2 : -slope / 2;
    for (std::size_t c = 0; c < columns; ++c)
      of.coefficients.view().row(k)[c] = static_cast<float>(half * direction[c]);
    of.intercepts.data()[k] = static_cast<float>(-half * (high + low) / 2);
  }
  return head;
}

}  // namespace vit
