// Features of an image, their distances to a bank, and the score that follows.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "vit/base/check.h"
#include "vit/base/parallel.h"
#include "vit/io/in_quotes.h"
#include "vit/kernels/kernels.h"
#include "vit/rings/anomaly/search.h"

namespace vit {
using namespace internal;
namespace {

constexpr Where kWhere{"anomaly", ErrorKind::argument};
constexpr std::size_t kPatchesPerTask = 64;
constexpr std::size_t kNeighborsOfNearest = 9;  // b of PatchCore, as its authors' code has it

/// The mean of `neighborhood` x `neighborhood` patches around each, of (h, w, C); at edges of those that
/// exist.
Tensor<float> mean_of_neighbors(TensorView<const float> patches, std::size_t neighborhood, int threads) {
  const std::size_t height = patches.dim(0), width = patches.dim(1), columns = patches.dim(2);
  const std::size_t reach = neighborhood / 2;
  Tensor<float> out(patches.shape());
  parallel_for(height, threads, [&](std::size_t y, int) {
    std::vector<double> sum(columns);
    for (std::size_t x = 0; x < width; ++x) {
      std::ranges::fill(sum, 0.0);
      const std::size_t top = y - std::min(y, reach), bottom = std::min(y + reach, height - 1);
      const std::size_t left = x - std::min(x, reach), right = std::min(x + reach, width - 1);
      for (std::size_t v = top; v <= bottom; ++v) {
        for (std::size_t u = left; u <= right; ++u) {
          const float* const from = patches[v].row(u);
          for (std::size_t c = 0; c < columns; ++c) sum[c] += static_cast<double>(from[c]);
        }
      }
      const double count = static_cast<double>((bottom - top + 1) * (right - left + 1));
      float* const to = out.view()[y].row(x);
      for (std::size_t c = 0; c < columns; ++c) to[c] = static_cast<float>(sum[c] / count);
    }
  });
  return out;
}

/// The patches (h, w, C) that layer `l` of the options means.
TensorView<const float> patches_of(const ImageOutputs& outputs, const AnomalyOptions& options,
                                   std::size_t l) {
  if (options.layers.empty()) return outputs.patches();
  const TensorView<const float> tokens = outputs.block(options.layers[l]);
  const GridSize grid = outputs.grid();
  const std::size_t prefix = tokens.num_rows() - grid.rows * grid.columns;
  return {tokens.row(prefix), Shape{grid.rows, grid.columns, tokens.num_columns()}, tokens.row_stride()};
}

double dot(const float* a, const float* b, std::size_t count) {
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

/// Writes a row with the length `length` to `to`; zeros stay. False if it is not finite.
bool scale_to(double length, const float* row, std::size_t count, float* to) {
  const double own = std::sqrt(dot(row, row, count));
  const double scale = own > 0 ? length / own : 0.0;
  for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<float>(scale * static_cast<double>(row[i]));
  return std::isfinite(own);
}

/// Of two rows of length 1.
double euclidean(const float* a, const float* b, std::size_t count) {
  return std::sqrt(std::max(0.0, 2.0 - 2.0 * dot(a, b, count)));
}

float mean_of_largest(std::span<const float> distances) {
  std::vector<float> sorted(distances.begin(), distances.end());
  const std::size_t count = std::max<std::size_t>(sorted.size() / 100, 1);
  std::ranges::partial_sort(sorted, sorted.begin() + static_cast<std::ptrdiff_t>(count), std::greater{});
  return static_cast<float>(
      std::accumulate(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(count), 0.0) /
      static_cast<double>(count));
}

/// Equation 7 of PatchCore for the patch `query` and the row of the bank that is nearest to it.
float reweighted(const float* query, std::size_t nearest, TensorView<const float> patches,
                 RowRange left_out) {
  const std::size_t columns = patches.num_columns();
  std::vector<std::pair<double, std::size_t>> others;
  for (std::size_t i = 0; i < patches.num_rows(); ++i) {
    if (i >= left_out.begin && i < left_out.end) continue;
    others.emplace_back(-dot(patches.row(nearest), patches.row(i), columns), i);
  }
  const std::size_t count = std::min(kNeighborsOfNearest, others.size());
  std::ranges::partial_sort(others, others.begin() + static_cast<std::ptrdiff_t>(count));
  const double distance = euclidean(query, patches.row(nearest), columns);
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i)
    sum += std::exp(euclidean(query, patches.row(others[i].second), columns) - distance);
  return static_cast<float>((1.0 - 1.0 / sum) * distance);
}

}  // namespace

const char* to_string(AnomalyScore score) {
  switch (score) {
    case AnomalyScore::maximum: return "maximum";
    case AnomalyScore::reweighted: return "reweighted";
    case AnomalyScore::top_percent: break;
  }
  return "top-percent";
}

AnomalyModel::Search::Search(TensorView<const float> patches)
    : nearest(patches, *kernels::default_kernels().float32->linear) {}

namespace internal {

Request anomaly_request(const AnomalyOptions& options) {
  if (options.layers.empty()) return Output::patches;
  Request request;
  for (const std::size_t layer : options.layers) request.add({Output::block, layer});
  return request;
}

Tensor<float> anomaly_features(const ImageOutputs& outputs, const AnomalyOptions& options, int threads) {
  const GridSize grid = outputs.grid();
  const std::size_t num_patches = grid.rows * grid.columns;
  const std::size_t num_layers = std::max<std::size_t>(options.layers.size(), 1);
  Tensor<float> features;
  for (std::size_t l = 0; l < num_layers; ++l) {
    TensorView<const float> patches = patches_of(outputs, options, l);
    Tensor<float> means;
    if (options.neighborhood > 1) {
      means = mean_of_neighbors(patches, options.neighborhood, threads);
      patches = means;
    }
    const std::size_t columns = patches.num_columns();
    if (features.empty()) features = Tensor<float>(Shape{num_patches, num_layers * columns});
    const double share = 1.0 / std::sqrt(static_cast<double>(num_layers));
    parallel_for_parts(num_patches, kPatchesPerTask, threads, [&](std::size_t first, std::size_t count) {
      for (std::size_t p = first; p < first + count; ++p)
        VIT_CHECK(scale_to(share, patches.row(p), columns, features.view().row(p) + l * columns), kWhere,
                  "features of the image are not finite; damaged pixels or weights?");
    });
  }
  return features;
}

bool is_foreground(std::span<const float> patch, TensorView<const float> background) {
  if (background.empty()) return true;
  double side = 0;
  for (std::size_t c = 0; c < patch.size(); ++c)
    side += (static_cast<double>(patch[c]) - static_cast<double>(background.row(0)[c])) *
            static_cast<double>(background.row(1)[c]);
  return side > 0;
}

float score_of(AnomalyScore score, std::span<const float> distances, TensorView<const float> features,
               std::span<const NearestRow> nearest, TensorView<const float> patches, RowRange left_out) {
  if (score == AnomalyScore::top_percent) return mean_of_largest(distances);
  const auto largest = static_cast<std::size_t>(std::ranges::max_element(distances) - distances.begin());
  if (score == AnomalyScore::maximum || distances[largest] == 0) return distances[largest];
  return reweighted(features.row(largest), nearest[largest].row, patches, left_out);
}

}  // namespace internal

Request AnomalyModel::request(const Model& model) const {
  VIT_CHECK(fingerprint_.empty() || fingerprint_ == model.report().fingerprint,
            kWhere.with(ErrorKind::mismatch), "the bank was built with ", plain_or_quoted(model_), " (",
            fingerprint_, "), not with ", plain_or_quoted(model.name()), " (", model.report().fingerprint,
            ")");
  return anomaly_request(options_);
}

AnomalyResult AnomalyModel::score(const ImageOutputs& outputs, int threads) const {
  return judge(anomaly_features(outputs, options_, threads), outputs.grid(), 0, 0, threads);
}

AnomalyResult AnomalyModel::judge(TensorView<const float> features, GridSize grid, std::size_t skip_begin,
                                  std::size_t skip_end, int threads) const {
  VIT_CHECK(features.num_columns() == num_features(), kWhere.with(ErrorKind::mismatch),
            "the bank has patches of ", num_features(), " features, the image of ", features.num_columns());
  const RowRange left_out{skip_begin, skip_end};
  std::vector<NearestRow> nearest(features.num_rows());
  search_->nearest.find(features, nearest, left_out, threads);
  AnomalyResult result{.threshold = threshold_, .distances = Tensor<float>(Shape{grid.rows, grid.columns})};
  for (std::size_t p = 0; p < nearest.size(); ++p) {
    if (is_foreground({features.row(p), features.num_columns()}, background_))
      result.distances.data()[p] = std::max(0.0f, 1.0f - nearest[p].product);
  }
  result.score = score_of(options_.score, result.distances.flat(), features, nearest, patches_, left_out);
  return result;
}

void AnomalyModel::prepare() {
  search_ = std::make_shared<const Search>(patches_);
}

}  // namespace vit
